"""What is known of a mesh: the newest figures, how good they are, the history of each pair. Pure.

All text is as it came: the templates escape it.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from statistics import fmean
from typing import NamedTuple

from benchctl.analysis.runs.outcomes import Outcome
from benchctl.metrics import Direction
from benchctl.report.mesh.changes import SeriesChange
from benchctl.report.mesh.days import DayFigures
from benchctl.report.mesh.judging import (
    USUAL,
    FigureState,
    Judged,
    Reference,
    against,
    expected,
    usual,
)
from benchctl.report.mesh.reading import DAY_S, FailedTrial, History, PairFlow, point_text
from benchctl.run.condition import parse_figure
from benchctl.visible import visible

MeshPair = tuple[str, str]
LONGEST_NAME = 24
"""Characters of a host's name in a matrix; the whole one is beside it as a title."""
_SAFE = re.compile(r"[^a-z0-9.-]+")


class Variant(NamedTuple):
    """What one matrix is of, beside its metric: a flow of a profile at a point, one way."""

    profile: str
    name: str
    rest: str
    direction: str


class KnownMesh:
    """A history with all that is known of it, ready to be shown.

    ``changes`` are those of its series. ``outcomes`` are the expectations of each profile's newest
    run; ``baselines`` the figures of baselines, by series.
    """

    def __init__(
        self,
        history: History,
        changes: Sequence[SeriesChange],
        outcomes: Mapping[str, Sequence[Outcome]],
        baselines: Mapping[int, Reference],
    ) -> None:
        self.history = history
        self.numbers = history.numbers
        self._baselines = baselines
        self.changes: defaultdict[int, list[SeriesChange]] = defaultdict(list)
        for change in changes:
            self.changes[change.series].append(change)
        self._expected: defaultdict[int, list[Outcome]] = defaultdict(list)
        for profile, own_outcomes in outcomes.items():
            for outcome in own_outcomes:
                for series in self._of_outcome(profile, outcome):
                    self._expected[series].append(outcome)

    def _of_outcome(self, profile: str, outcome: Outcome) -> Iterator[int]:
        flow = self.history.at.get((profile, outcome.flow, point_text(outcome.point)))
        if flow is None or not outcome.figure:
            return
        own = self.numbers.series_of(flow)
        try:
            metric, _ = parse_figure(outcome.figure)
        except ValueError:  # of events
            return
        for (direction, name), series in own.items():
            if name == metric and outcome.direction in ("", direction):
                yield series

    @cached_property
    def as_of(self) -> float:
        """When the newest trial began (Unix)."""
        times = [own[-1][0] for own in self.history.values.values()]
        times += [own[-1].time for own in self.history.failures.values()]
        return max(times)

    @cached_property
    def series(self) -> list[int]:
        """The series that are shown: those of the newest days and of the past ones."""
        return [number for number in range(len(self.numbers.series)) if self._is_known(number)]

    def _is_known(self, number: int) -> bool:
        if number in self.history.values:
            return True
        return any(
            number < len(day.figures.medians) and not math.isnan(day.figures.medians[number])
            for day in self.history.days
        )

    def flow_of(self, series: int) -> PairFlow:
        """Return the flow of a series."""
        return self.numbers.flows[self.numbers.series[series].flow]

    def pair(self, series: int) -> MeshPair:
        """Return from which host to which the data of a series go."""
        return pair_of(self.flow_of(series), self.numbers.series[series].direction)

    def variant(self, series: int) -> Variant:
        """Return what a series is of, beside its pair and metric."""
        flow = self.flow_of(series)
        return Variant(flow.profile, flow.name, flow.rest, self.numbers.series[series].direction)

    @cached_property
    def _varying(self) -> list[bool]:
        variants = {self.variant(series) for series in self.series}
        return [
            len({variant[place] for variant in variants}) > 1
            for place in range(len(Variant._fields))
        ]

    def named(self, variant: Variant) -> str:
        """Return what distinguishes a variant from the others; empty if there is one only."""
        parts = [
            part for part, varies in zip(variant, self._varying, strict=True) if varies and part
        ]
        return ", ".join(parts)

    @cached_property
    def past(self) -> range:
        """The numbers of the past days, from the first with a run on."""
        days = self.history.days
        if not days:
            return range(0)
        return range(days[0].number, int(self.first // DAY_S))

    @cached_property
    def first(self) -> float:
        """When the newest days begin (Unix)."""
        return self.history.first_day * DAY_S

    @cached_property
    def _columns(self) -> tuple[array[float], array[float], array[float]]:
        count = len(self.numbers.series)
        found = array("f"), array("f"), array("f")
        by_number = {day.number: day.figures for day in self.history.days}
        nothing = array("f", [float("nan")]) * count
        for number in self.past:
            figures = by_number.get(number)
            for place, column in enumerate(found):
                own = nothing if figures is None else figures[place]
                column.extend(own)
                column.extend(nothing[: count - len(own)])
        return found

    def days(self, series: int) -> DayFigures | None:
        """Return the figures of the past days of a series; None without any."""
        if not self.past:
            return None
        count = len(self.numbers.series)
        return DayFigures(*(column[series::count] for column in self._columns))

    def judged(self, series: int) -> Judged:
        """Return how the newest figure of a series is."""
        return self._judged[series]

    @cached_property
    def _judged(self) -> dict[int, Judged]:
        return {series: self._judge(series) for series in self.series}

    def _judge(self, series: int) -> Judged:
        flow = self.flow_of(series)
        last = self.history.last.get(flow.profile)
        values = self.history.values.get(series, [])
        failures = self.history.failures.get(self.numbers.series[series].flow, [])
        newest = [value for value in values if value[2] == last]
        value = fmean(value for _, value, _ in newest) if newest else None
        if value is None:
            failed = [failure for failure in failures if failure.run == last]
            when, before = values[-1][:2] if values else (None, None)
            if failed:
                return Judged(FigureState.FAILED, before, when, failed[-1].why)
            return Judged(FigureState.OLD, before, when, "not measured in the newest run")
        time = newest[-1][0]
        found = expected(self._expected.get(series, ()))
        if found is None:
            reference = self._baselines.get(series)
            if reference is None:
                reference = usual([value for _, value, run in values if run != last])
            if reference is None:
                return Judged(FigureState.FINE, value, time, "nothing to hold it against yet")
            metric = self.numbers.series[series].metric
            better = self.history.vocabulary.describe(metric).better
            found = against(metric, better, value, reference)
        return Judged(found[0], value, time, found[1])

    def held_against(self, series: int) -> str:
        """Return what the newest figure of a series is held against."""
        if self._expected.get(series):
            return "the expectations of the profile"
        if series in self._baselines:
            return self._baselines[series].name
        return f"{USUAL}, the median of the newest days"

    def failures(self, pair: MeshPair) -> list[tuple[PairFlow, FailedTrial]]:
        """Return the failed trials of the newest days between two hosts, the newest first."""
        found = [
            (self.numbers.flows[flow], trial)
            for flow in self.by_ends.get(frozenset(pair), ())
            for trial in self.history.failures.get(flow, ())
        ]
        return sorted(found, key=lambda failure: -failure[1].time)

    def failed_now(self, pair: MeshPair) -> str:
        """Return why the newest trial from a host to another failed; empty if it did not."""
        for flow, trial in self.failures(pair):
            if trial.run == self.history.last.get(flow.profile) and (flow.source, flow.to) == pair:
                return trial.why
        return ""

    @cached_property
    def failed_days(self) -> dict[int, list[float]]:
        """The middles of the past days (Unix) on which trials of a flow failed."""
        found: dict[int, list[float]] = {}
        for day in self.history.days:
            for flow in day.failed:
                found.setdefault(flow, []).append((day.number + 0.5) * DAY_S)
        return found

    @cached_property
    def by_ends(self) -> dict[frozenset[str], list[int]]:
        """The flows between two hosts, whichever way."""
        found: dict[frozenset[str], list[int]] = {}
        for number, flow in enumerate(self.numbers.flows):
            found.setdefault(frozenset((flow.source, flow.to)), []).append(number)
        return found

    @cached_property
    def by_pair(self) -> dict[frozenset[str], list[int]]:
        """The series between two hosts, whichever way."""
        found: dict[frozenset[str], list[int]] = {}
        for series in self.series:
            found.setdefault(frozenset(self.pair(series)), []).append(series)
        # Of what has only failed there is no series.
        for flow in self.history.failures:
            pair_flow = self.numbers.flows[flow]
            found.setdefault(frozenset((pair_flow.source, pair_flow.to)), [])
        return found

    @cached_property
    def metrics(self) -> list[str]:
        """The metrics, in the order of tables."""
        there = {self.numbers.series[series].metric for series in self.series}
        # Those that only past days have may be of a plugin.
        names = dict.fromkeys([*self.history.vocabulary.wanted, *sorted(there)])
        return [name for name in names if name in there]

    @cached_property
    def hosts(self) -> list[str]:
        """All hosts, in the order of their names as people count: h2 before h10."""
        names = {host for pair in self.by_pair for host in pair}
        return sorted(names, key=natural)

    @cached_property
    def short_names(self) -> dict[str, str]:
        """What a matrix calls each host."""
        return shortened(self.hosts)


def pair_of(flow: PairFlow, direction: str) -> MeshPair:
    """Return from which host to which the data of a series go."""
    if direction == Direction.RECEIVE:
        return flow.to, flow.source
    return flow.source, flow.to


def natural(name: str) -> list[tuple[int, str]]:
    """Return the key by which names are sorted as people count."""
    parts = re.split(r"(\d+)", name.lower())
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts] + [(-2, name)]


def shortened(names: Sequence[str]) -> dict[str, str]:
    """Return names without the domain that all have, and at most `LONGEST_NAME` long."""
    tails = [name.partition(".")[2] for name in names]
    common = f".{tails[0]}" if tails and tails[0] and len({*tails}) == 1 else ""
    # Not of addresses, whose networks are no domains.
    if not common or common.replace(".", "").isdecimal():
        common = ""
    found = {}
    for name in names:
        short = visible(name.removesuffix(common))
        found[name] = short if len(short) <= LONGEST_NAME else f"{short[: LONGEST_NAME - 1]}…"
    return found


def file_of(*parts: str) -> str:
    """Return the name of a file for some names: readable, and another one for any others."""
    text = _SAFE.sub("-", "--".join(parts).lower()).strip("-.")[:60]
    digest = sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{text or 'x'}-{digest}"
