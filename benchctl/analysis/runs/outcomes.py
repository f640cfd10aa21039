"""Checks what a run measured against the expectations of its profile.

A bound is met, or not met, if the whole 95 % interval of the mean is on one side of it; otherwise
it is undecided. A single repeat has no interval: its value decides. A baseline of a single repeat
counts as a plain value; of several, its scatter counts too (Welch's interval of the difference).

That a figure is not worse has to be shown: there, what is undecided is not met.

Of events, a repeat that shows none is no proof if it is too short for a series in which they are
found: then the expectation is undecided, unless another repeat decides.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from statistics import fmean
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from benchctl.analysis.clocks.levels import LEAST_LEVELS, PACKETS_OF_LEVEL
from benchctl.analysis.distributions import t_quantile
from benchctl.analysis.results import NOT_VALID_HERE, fewest_packets
from benchctl.analysis.runs.compare import comparison_key, welch_interval
from benchctl.analysis.runs.summary import (
    Measured,
    SummaryRow,
    at_point,
    is_at,
    point_key,
    summarize,
)
from benchctl.analysis.steps import LEAST_SERIES
from benchctl.metrics import Aspect, of_aspect
from benchctl.run.condition import ANY_EVENT, EventRule, Relative
from benchctl.run.planned import Expectation, Severity
from benchctl.run.record import BASELINE, Happening
from benchctl.units import format_mean, format_value

_Rows = Mapping[tuple[Any, ...], SummaryRow]
_RATES = of_aspect(Aspect.RATE)
_OF_DELAYS = (Happening.CLOCK_STEP, Happening.DELAY_STEP)
# A stall is no step in a series; two intervals show how long one is.
_LEAST_STALLED = 2


class Answer(StrEnum):
    """Whether an expectation was met, as far as the repeats show."""

    MET = "met"
    NOT_MET = "not met"
    UNDECIDED = "undecided"


class Outcome(Struct, frozen=True):
    """Whether one expectation was met by one flow at one point.

    ``met`` is whether the mean alone meets it, None if there is nothing to compare with; ``why``
    has the figures.
    """

    text: str
    met: bool | None
    answer: Answer
    severity: Severity = Severity.ERROR
    why: str = ""
    point: Mapping[str, Any] = {}
    flow: str = ""
    direction: str = ""
    figure: str = ""

    @property
    def is_met(self) -> bool:
        """Whether the repeats show that it was met."""
        return self.answer is Answer.MET

    def fails(self, *, strict: bool = False) -> bool:
        """Return whether it makes a run end with code 1; with ``strict``, all that is not met."""
        if strict:
            return not self.is_met
        return self.answer is Answer.NOT_MET and self.severity is Severity.ERROR

    @property
    def remark(self) -> str:
        """What to say of it if it is not met: ``expectation not met: …``."""
        kind = "expectation" if self.severity is Severity.ERROR else "warning: expectation"
        return f"{kind} {self.answer}: {self.text}{f' ({self.why})' if self.why else ''}"


def outcomes_of(
    expectations: Sequence[Expectation],
    measured: Sequence[Measured],
    rows: Sequence[SummaryRow],
    baseline: Sequence[Measured] = (),
    *,
    ended: bool = True,
) -> list[Outcome]:
    """Check a run against expectations, point by point.

    ``rows`` are the summary of ``measured``; ``baseline`` is what its baseline measured. Of a run
    that has not ``ended``, what was not measured is undecided.
    """
    silent = Outcome("nothing was measured", False, Answer.NOT_MET)
    if not ended:
        silent = Outcome("not yet measured", None, Answer.UNDECIDED)
    outcomes = []
    for wanted in expectations:
        if wanted.events:
            found = list(_of_events(wanted, measured, rows))
        else:
            found = list(_of_figures(wanted, measured, rows, baseline))
            found += _of_broken(wanted, measured, found)
        what = wanted.figure or ", ".join(map(str, wanted.events))
        text = f"{what}: {silent.text}"
        outcomes += found or [
            replace(silent, text=text, severity=wanted.severity, figure=wanted.figure)
        ]
    return outcomes


def _of_figures(
    wanted: Expectation,
    measured: Iterable[Measured],
    rows: Sequence[SummaryRow],
    baseline: Iterable[Measured],
) -> Iterator[Outcome]:
    known: _Rows = {comparison_key(row): row for row in rows if row.metric == wanted.metric}
    own: _Rows = known
    if wanted.aggregate:
        reduced = summarize(measured, wanted.metric, wanted.aggregate)
        own = {comparison_key(row): row for row in reduced}
    relative = [relative for relative in (wanted.least, wanted.most) if relative is not None]
    before: _Rows = {}
    if any(bound.of == BASELINE for bound in relative):
        reduced = summarize(baseline, wanted.metric, wanted.aggregate)
        before = {comparison_key(row): row for row in reduced}
    for key, row in own.items():
        if wanted.flow not in (None, row.flow) or not is_at(row.point, wanted.where):
            continue
        whole = known[key]
        margins = list(_margins(wanted, row, whole.beside, before.get(key)))
        sides = [margin.answer for margin in margins]
        answer, met = Answer.MET, all(margin.mean >= 0 for margin in margins)
        why = [format_mean(row.metric, row.spread.mean, row.spread.half)]
        why += [margin.text for margin in margins]
        missing = [
            f"no {bound.of} value is known"
            for bound in relative
            if not _reference(bound, whole.beside, before.get(key))
        ]
        if not whole.valid:
            answer = Answer.UNDECIDED
            why.append(NOT_VALID_HERE)
        elif Answer.NOT_MET in sides:
            answer = Answer.NOT_MET
        elif wanted.proven and Answer.UNDECIDED in sides:
            answer = Answer.NOT_MET
            why.append("a worse mean cannot be excluded")
        elif missing or Answer.UNDECIDED in sides:
            answer = Answer.UNDECIDED
        yield Outcome(
            _where(f"{wanted.figure}{f' of {row.flow}' if row.flow else ''}", row.point),
            None if missing else met,
            answer,
            wanted.severity,
            ", ".join([*why, *dict.fromkeys(missing)]),
            row.point,
            row.flow,
            row.direction,
            wanted.figure,
        )


def _of_broken(
    wanted: Expectation, measured: Iterable[Measured], known: Sequence[Outcome]
) -> Iterator[Outcome]:
    """Yield that nothing is known of figures that break a law in all repeats."""
    places = {(point_key(outcome.point), outcome.flow, outcome.direction) for outcome in known}
    for repeat in measured:
        for (direction, metric), figure in repeat.broken.items():
            place = point_key(repeat.point), repeat.flow, direction
            asked = wanted.flow in (None, repeat.flow) and is_at(repeat.point, wanted.where)
            if metric != wanted.metric or not asked or place in places or figure.broken is None:
                continue
            places.add(place)
            what = _where(f"{wanted.figure} of {repeat.flow}", repeat.point)
            why = f"cannot be: {figure.broken.words}"
            yield Outcome(
                what, None, Answer.UNDECIDED, wanted.severity, why, repeat.point, repeat.flow,
                direction, wanted.figure,
            )  # fmt: skip


class _Margin(Struct, frozen=True):
    """By how much the mean is on the right side of a bound, with its interval; and the bound."""

    mean: float
    low: float
    high: float
    text: str

    @property
    def answer(self) -> Answer:
        if self.low >= 0:
            return Answer.MET
        return Answer.NOT_MET if self.high < 0 else Answer.UNDECIDED


def _margins(
    wanted: Expectation,
    row: SummaryRow,
    beside: Mapping[str, float],
    before: SummaryRow | None,
) -> Iterator[_Margin]:
    """Yield the margin to each bound that is known."""
    for name, sign, fixed, relative in (
        ("at least", 1, wanted.at_least, wanted.least),
        ("at most", -1, wanted.at_most, wanted.most),
    ):
        if fixed is not None:
            text = f"{name} {format_value(row.metric, fixed)}"
            yield _margin(row, (fixed,), sign, text)
        elif relative is not None and (reference := _reference(relative, beside, before)):
            bound = [relative.factor * value + relative.plus for value in reference]
            text = f"{name} {relative}: {format_value(row.metric, fmean(bound))}"
            yield _margin(row, bound, sign, text, proven=wanted.proven)


def _reference(
    relative: Relative, beside: Mapping[str, float], before: SummaryRow | None
) -> Sequence[float]:
    """Return the repeats of a reference, one if it is a plain value; none if it is not known."""
    if relative.of == BASELINE:
        return before.values if before is not None else ()
    return (beside[relative.of],) if relative.of in beside else ()


def _margin(
    row: SummaryRow, bound: Sequence[float], sign: int, text: str, *, proven: bool = False
) -> _Margin:
    mean, n = row.spread.mean - fmean(bound), row.spread.n
    # A one-sided test of 5 %, as for equivalence.
    level = 0.95 if proven else 0.975
    found = welch_interval(bound, row.values, level)
    if proven and n == 1:
        found = -math.inf, math.inf
    elif found is None and len(bound) == 1:
        half = t_quantile(level, n - 1) * (row.spread.stdev or 0.0) / math.sqrt(n) if n > 1 else 0.0
        found = mean - half, mean + half
    low, high = sorted(sign * end for end in found or (mean, mean))
    return _Margin(sign * mean, low, high, text)


def _of_events(
    wanted: Expectation, measured: Iterable[Measured], rows: Iterable[SummaryRow]
) -> Iterator[Outcome]:
    invalid = {point_key(row.point) for row in rows if not row.valid}
    flows: dict[tuple[Any, ...], list[Measured]] = {}
    for repeat in measured:
        if wanted.flow in (None, repeat.flow) and is_at(repeat.point, wanted.where):
            flows.setdefault((point_key(repeat.point), repeat.flow), []).append(repeat)
    for (point, flow), all_repeats in flows.items():
        for rule in wanted.events:
            of_delays = rule.kind in _OF_DELAYS
            needed = ("owd_s",) if of_delays else _RATES
            repeats = [
                repeat
                for repeat in all_repeats
                if any(metric in needed for _, metric in repeat.figures)
            ]
            if not repeats:
                continue
            counts = [_count(rule, repeat) for repeat in repeats]
            seen = sum(map(bool, counts))
            least = _LEAST_STALLED if rule.kind == Happening.STALL else LEAST_SERIES
            if of_delays:
                least = LEAST_LEVELS * PACKETS_OF_LEVEL
            short = sum(
                not count
                and (fewest_packets(repeat.figures) if of_delays else repeat.intervals) < least
                for count, repeat in zip(counts, repeats, strict=True)
            )
            of = f"{seen} of {len(counts)}" if seen else str(len(counts))
            where = "the only repeat" if len(counts) == 1 else f"{of} repeats"
            why = f"{sum(counts) or 'none'} in {where}"
            met: bool | None = True
            answer = Answer.MET
            if seen + short < len(counts) if rule.wanted else seen:
                met, answer = False, Answer.NOT_MET
            elif short:
                met, answer = None, Answer.UNDECIDED
                why += f", {short} too short to show any: under {least} "
                why += "packets" if of_delays else "intervals"
            if point in invalid:
                answer = Answer.UNDECIDED
                why += f", {NOT_VALID_HERE}"
            text = _where(f"{rule} in {flow}", repeats[0].point)
            yield Outcome(
                text, met, answer, wanted.severity, why, repeats[0].point, flow, "", str(rule)
            )


def _count(rule: EventRule, measured: Measured) -> int:
    return sum(rule.kind in (ANY_EVENT, event.kind) for event in measured.events)


def _where(what: str, point: Mapping[str, Any]) -> str:
    return f"{what}{at_point(point) or ' at its point'}"
