"""Runs side by side, as text and as data; the figures come from `analysis.compare`.

The run that others are compared with is A, the others are B, C and so on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import reduce
from operator import or_
from string import ascii_uppercase

from msgspec.structs import replace

from benchctl.analysis.runs.compare import (
    Comparison,
    Verdict,
    compare_all,
    comparison_key,
    of_tables,
)
from benchctl.analysis.runs.equivalence import is_same_within
from benchctl.analysis.runs.families import CORRECTIONS
from benchctl.analysis.runs.summary import SummaryRow
from benchctl.analysis.search.found import FOUND_RATE
from benchctl.metrics import OF_TRIALS, Aspect, Vocabulary, of_aspect
from benchctl.report.pivot import Pivot, figure_name
from benchctl.report.report import Report, is_repeated
from benchctl.run.record import Run
from benchctl.units import format_mean, format_range, format_ratio, format_value, without_unit

NOTHING = "-"
NOT_VALID = "not valid"
"""Instead of a verdict on figures of a lab whose emulator did not keep its promises."""


def letter(number: int) -> str:
    """Return what stands for a run by its place: A, B, …, Z, 27, …."""
    return ascii_uppercase[number] if number < len(ascii_uppercase) else str(number + 1)


def compare_reports(a: Report, *others: Report, correction: str = "holm") -> list[list[Comparison]]:
    """Compare a run with each of the others; ``correction`` is one of `analysis.families`.

    An axis that not all of them have distinguishes no figures, unless a run needs it.
    """
    # Two searches try different rates; what they found can be compared.
    runs = [report.run for report in (a, *others)]
    first, *rest = (
        [row for row in report.summary if all(is_repeated(run, row) for run in runs)]
        for report in (a, *others)
    )
    shared = {axis for axis in a.run.values if all(axis in run.values for run in runs)}
    first, *rest = (_of_axes(shared, rows) for rows in (first, *rest))
    return compare_all(first, rest, vocabulary_of(runs), CORRECTIONS[correction])


def _of_axes(axes: Collection[str], rows: list[SummaryRow]) -> list[SummaryRow]:
    """Return rows whose points have no other axes; as they are if some would be alike then."""
    reduced = [
        replace(row, point={axis: value for axis, value in row.point.items() if axis in axes})
        for row in rows
    ]
    return reduced if len({*map(comparison_key, reduced)}) == len(rows) else rows


def explanation(shown: Sequence[Comparison], correction: str = "holm") -> list[str]:
    """Return what the verdicts of a table hold for, and what more repeats would show."""
    families = {comparison.family: comparison for comparison in shown if comparison.family}
    if not families:
        return []
    sizes = " and, apart from them, ".join(map(str, families))
    whole = {
        "holm": f"any false verdict among {sizes} figures has a chance of 5 % (Holm)",
        "bh": f"5 % of the verdicts among {sizes} figures may be false (Benjamini-Hochberg)",
    }
    lines = [f"{whole[correction]}; an interval is of its figure alone"]
    borrowing = sum(comparison.borrows for comparison in shown)
    if borrowing:
        lines.append(
            f"{borrowing} of {len(shown)} figures borrow the variance of the same metric at other"
            " points"
        )
    if any(comparison.same_within is not None for comparison in shown):
        lines.append("within: of its figure alone, by two one-sided tests with 95 % confidence")
    if disturbed := max(comparison.disturbed for comparison in shown):
        lines.append(
            f"repeats of one figure are so far apart that about {format_ratio(disturbed)} of the"
            " trials may be disturbed; verdicts allow for a figure of which all repeats are"
        )
    open_ones = [comparison for comparison in shown if comparison.repeats_needed is not None]
    if open_ones:
        least = min(open_ones, key=lambda comparison: comparison.repeats_needed or 0)
        lines.append(
            f"of the figures without a verdict, {figure_name(least)} may differ most:"
            f" {least.repeats_needed} repeats of each run would show it with a chance of 80 %"
        )
    return lines


def same_within(comparisons: Iterable[Comparison], share: float) -> list[Comparison]:
    """Return comparisons of which those are marked that differ by less than this share of A."""
    return [
        replace(comparison, same_within=share) if is_same_within(comparison, share) else comparison
        for comparison in comparisons
    ]


def arranged(
    comparisons: Sequence[Comparison],
    *runs: Run,
    every: bool = False,
    by_effect: bool = False,
) -> list[Comparison]:
    """Return the comparisons that a table shows, those of the main metrics first.

    With ``every`` those of all metrics. ``by_effect`` sorts by the size of the difference in
    standard deviations of a repeat, the largest first; those that have none are last.
    """
    vocabulary = vocabulary_of(runs)
    shown = list(comparisons) if every else of_tables(comparisons, vocabulary)
    names = (FOUND_RATE, *vocabulary.wanted, *OF_TRIALS, *vocabulary.metrics)
    places = {name: place for place, name in enumerate(dict.fromkeys(names))}
    shown.sort(key=lambda comparison: places.get(comparison.metric, len(places)))
    if by_effect:
        shown.sort(
            key=lambda comparison: -1.0 if comparison.effect is None else abs(comparison.effect),
            reverse=True,
        )
    return shown


def vocabulary_of(runs: Iterable[Run]) -> Vocabulary:
    """Return the metrics of several runs together."""
    return reduce(or_, (run.vocabulary for run in runs))


def comparison_table(comparisons: Sequence[Comparison]) -> Pivot:
    """Return the comparisons with one run as rows of text; axes of a single value are left out."""
    places, rows = places_of(comparisons)
    heads = (*places, "A", "B", "repeats", "difference", "change", "95 % interval", "verdict")
    numeric = tuple(len(places) <= index < len(heads) - 1 for index in range(len(heads)))
    return Pivot(heads, numeric, tuple(
        (
            *row,
            _value(comparison.metric, comparison.mean_a),
            _value(comparison.metric, comparison.mean_b),
            f"{len(comparison.a)}, {len(comparison.b)}",
            signed(comparison.metric, comparison.difference),
            relative(comparison),
            interval(comparison),
            full_verdict(comparison),
        )
        for row, comparison in zip(rows, comparisons, strict=True)
    ))  # fmt: skip


def side_by_side(compared: Sequence[Sequence[Comparison]]) -> Pivot:
    """Return the comparisons of one run with several as rows of text, a row for each figure of any.

    A difference comes with half its interval.
    """
    by_key = [
        {comparison_key(comparison): comparison for comparison in comparisons}
        for comparisons in compared
    ]
    firsts = {key: comparison for ones in reversed(by_key) for key, comparison in ones.items()}
    keys = [*dict.fromkeys(key for ones in by_key for key in ones)]
    places, rows = places_of([firsts[key] for key in keys])
    heads, numeric = [*places, letter(0)], [False] * len(places) + [True]
    for number in range(1, len(compared) + 1):
        heads += [letter(number), f"{letter(number)} - {letter(0)}", "change", "verdict"]
        numeric += [True, True, True, False]
    heads.insert(len(places), "repeats")
    numeric.insert(len(places), True)
    for row, key in zip(rows, keys, strict=True):
        counts = [len(firsts[key].a), *(len(ones[key].b) if key in ones else 0 for ones in by_key)]
        row += [", ".join(map(str, counts)), _value(firsts[key].metric, firsts[key].mean_a)]
        for number, ones in enumerate(by_key, 1):
            comparison = ones.get(key)
            if comparison is None:
                row += [NOTHING, NOTHING, "", NOTHING]
                continue
            verdict = full_verdict(comparison, letter(number))
            row += [
                _value(comparison.metric, comparison.mean_b),
                _with_half(comparison),
                relative(comparison),
                verdict,
            ]
    return Pivot(tuple(heads), tuple(numeric), tuple(map(tuple, rows)))


def places_of(comparisons: Sequence[Comparison]) -> tuple[list[str], list[list[str]]]:
    """Return the headings and the cells that say what each comparison is of."""
    axes = dict.fromkeys(axis for comparison in comparisons for axis in comparison.point)
    varying = [
        axis
        for axis in axes
        if len({str(comparison.point.get(axis)) for comparison in comparisons}) > 1
    ]
    directions: dict[tuple[str, str], set[str]] = {}
    for comparison in comparisons:
        directions.setdefault((comparison.flow, comparison.metric), set()).add(comparison.direction)
    rows = [
        [
            *(str(comparison.point.get(axis, NOTHING)) for axis in varying),
            comparison.flow or NOTHING,
            f"{without_unit(comparison.metric)} {comparison.direction}".strip()
            if len(directions[comparison.flow, comparison.metric]) > 1
            else without_unit(comparison.metric),
        ]
        for comparison in comparisons
    ]
    return [*varying, "flow", "metric"], rows


def verdict_text(comparison: Comparison, b: str = letter(1)) -> str:
    """Return the verdict on a figure in words; of a figure that one run lacks, which one has it."""
    if not (comparison.a and comparison.b):
        return f"only in {letter(0) if comparison.a else b}"
    return str(comparison.verdict) if comparison.valid else NOT_VALID


def full_verdict(comparison: Comparison, b: str = letter(1)) -> str:
    """Return the verdict in words; of one that is not certain, with the reason."""
    said = verdict_text(comparison, b)
    if comparison.same_within is not None:
        share = _in_points(comparison.metric, format_ratio(comparison.same_within))
        return (
            f"{said}, within {share}" if comparison.verdict.is_certain else f"same within {share}"
        )
    if said == Verdict.APART:
        among = f" among {comparison.family:,} figures" if comparison.family > 1 else ""
        counts = " and ".join(map(str, sorted({len(comparison.a), len(comparison.b)})))
        return f"{said}, but not certain{among} with {counts} repeats"
    if said == Verdict.VARYING:
        return f"{said} for figures that vary like these"
    return said


def verdicts(compared: Sequence[Comparison]) -> str:
    """Count the verdicts: ``2 better, 1 no difference seen, 3 only in B``."""
    counted = Counter(map(verdict_text, compared))
    words = dict.fromkeys([*map(str, Verdict), NOT_VALID, *sorted(counted)])
    return ", ".join(f"{counted[word]} {word}" for word in words if counted[word])


def speed(compared: Iterable[Comparison]) -> str:
    """Return what is seen of B's rates and delays: faster, slower, both, or an empty text."""
    metrics = {*of_aspect(Aspect.RATE), *of_aspect(Aspect.DELAY)}
    seen = {
        comparison.verdict
        for comparison in compared
        if comparison.valid and comparison.metric in metrics
    }
    words = {Verdict.BETTER: "faster", Verdict.WORSE: "slower"}
    return " and ".join(word for verdict, word in words.items() if verdict in seen)


def beside_baseline(compared: Sequence[Comparison]) -> str:
    """Return how a run stands to its baseline: ``slower than the baseline``."""
    seen = speed(compared)
    return f"{seen} than the baseline" if seen else "against the baseline"


def relative(comparison: Comparison) -> str:
    """Show a difference as a share of A; nothing of ratios, whose difference is in points."""
    if not comparison.relative or comparison.metric.endswith("_ratio"):
        return ""
    return f"{'+' if comparison.relative > 0 else ''}{format_ratio(comparison.relative)}"


def _value(metric: str, value: float | None) -> str:
    return NOTHING if value is None else format_value(metric, value)


def signed(metric: str, value: float | None) -> str:
    """Show a difference with its sign: ``+3.2 Mbit/s``; of ratios in percentage points."""
    if value is None:
        return NOTHING
    return f"{'+' if value > 0 else ''}{_in_points(metric, format_value(metric, value))}"


def _with_half(comparison: Comparison) -> str:
    """Show a difference with half its interval, which lies evenly around it."""
    if comparison.difference is None or comparison.low is None or comparison.high is None:
        return signed(comparison.metric, comparison.difference)
    text = format_mean(
        comparison.metric, comparison.difference, (comparison.high - comparison.low) / 2
    )
    points = comparison.metric.endswith("_ratio")
    return (
        f"{'+' if comparison.difference > 0 else ''}{text.replace('%', 'pp') if points else text}"
    )


def _in_points(metric: str, text: str) -> str:
    """Return a difference of ratios in percentage points, not in per cent of anything."""
    return f"{text.removesuffix('%')}pp" if metric.endswith("_ratio") else text


def interval(comparison: Comparison) -> str:
    """Show the interval of a difference in one unit: ``-0.400 … +6.80 Mbit/s``."""
    if comparison.low is None or comparison.high is None:
        return NOTHING
    return _in_points(
        comparison.metric,
        format_range(comparison.metric, comparison.low, comparison.high, signed=True),
    )
