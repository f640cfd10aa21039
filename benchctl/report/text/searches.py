"""What searches found, as rows of text, and what their tries could detect."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from benchctl.analysis.runs.summary import at_point
from benchctl.analysis.search.search import SearchOutcome
from benchctl.metrics import PROBES
from benchctl.report.pivot import Pivot
from benchctl.report.report import Report
from benchctl.run.planned import Search
from benchctl.units import format_duration, format_rate, format_ratio

if TYPE_CHECKING:
    from benchctl.analysis.search.found import Found


def search_table(report: Report) -> Pivot | None:
    """Return a row for each search; None if the run has none."""
    found, search = report.found, report.run.settings.search
    if search is None or not found:
        return None
    axes = [axis for axis in report.run.varying if axis != search.axis]
    repeats = max(search.repeat for search in found) > 1
    expected = any(search.expected_bps is not None for search in found)
    heads = [
        *axes, *["repeat"] * repeats, f"highest {search.axis}", *["expected"] * expected,
        "fails at", "by", "tries", "confirmed",
    ]  # fmt: skip
    rows = [
        (
            *(str(found_search.point.get(axis, "-")) for axis in axes),
            *[str(found_search.repeat)] * repeats,
            rate_text(search, found_search),
            *[format_rate(found_search.expected_bps)] * expected,
            format_rate(found_search.finding.failing_bps),
            found_search.finding.why or "-",
            str(found_search.finding.tries),
            "yes" if found_search.finding.confirmed else "no",
        )
        for found_search in found
    ]
    texts = len(axes)
    right = [texts <= place < len(heads) and heads[place] not in ("by", "confirmed")
             for place in range(len(heads))]  # fmt: skip
    return Pivot(tuple(heads), tuple(right), tuple(rows))


def rate_text(search: Search, found: Found) -> str:
    """Write the highest rate that passes: ``at least 1.00 Gbit/s`` at the end of the range."""
    match found.finding.outcome:
        case SearchOutcome.AT_LEAST:
            return f"at least {format_rate(search.high_bps)}"
        case SearchOutcome.BELOW:
            return f"below {format_rate(search.low_bps)}"
        case SearchOutcome.FOUND | SearchOutcome.OPEN:
            return format_rate(found.finding.passing_bps)


def search_name(search: Search, found: Found) -> str:
    """Name a search: ``highest rate at path=h1-h4, repeat 2``."""
    repeat = f", repeat {found.repeat}" * (found.repeat > 1)
    return f"highest {search.axis}{at_point(found.point)}{repeat}"


def search_remarks(report: Report) -> Iterator[str]:
    """Yield what the results of the searches depend on."""
    search = report.run.settings.search
    if search is None or not report.found:
        return
    yield (
        f"highest {search.axis} with {search.condition}; what fails is at most"
        f" {format_ratio(search.precision)} above it"
    )
    lasted_s = min(search.lasted_s for search in report.found)
    measured = {row.metric for row in report.summary}
    _, text, _ = detection(search, lasted_s, measured)
    yield text
    yield from unanswered(report)


def unanswered(report: Report, *, ends: bool = False) -> Iterator[str]:
    """Yield a line for each search without a confirmed result; with ``ends`` also those at an end.

    At an end of the range, there is no rate between two: the whole range passes, or fails.
    """
    search = report.run.settings.search
    if search is None:
        return
    for found_search in report.found:
        repeat = f", repeat {found_search.repeat}" * (found_search.repeat > 1)
        name = f"search{at_point(found_search.point)}{repeat}"
        finding, rate = found_search.finding, rate_text(search, found_search)
        if finding.outcome is SearchOutcome.OPEN:
            why = f": {finding.why}" if finding.why else ""
            yield f"{name}: not found in {finding.tries} tries{why}"
        elif not finding.confirmed:
            yield f"{name}: {rate}, not confirmed in {finding.tries} tries"
        elif ends and finding.outcome is not SearchOutcome.FOUND:
            yield f"{name}: {rate}"


def detection(search: Search, lasts_s: float, metrics: Iterable[str]) -> tuple[bool, str, str]:
    """Return whether tries last long enough, what they can detect, and a remedy if they do not.

    ``metrics`` are those of the flows.
    """
    lasts, precision = format_duration(lasts_s), format_ratio(search.precision)
    if not set(PROBES).isdisjoint(metrics):
        text = f"a try of {lasts} detects an excess by the rising delay of its probes, or by loss"
        return True, text, ""
    if search.overflow_s is None:
        text = (
            f"the queues of the path are not known: a try of {lasts} detects an excess by loss once"
            " a queue overflows, or by the rising delay of a ping beside it"
        )
        return True, text, ""
    takes = format_duration(search.overflow_s)
    by = f"a try of {lasts} detects an excess by loss"
    if search.overflow_s <= lasts_s:
        return True, f"{by}: {precision} overflows the queue in {takes}", ""
    least = format_ratio(search.precision * search.overflow_s / lasts_s)
    text = f"{by} only from {least} on: {precision} overflows the queue in {takes}"
    enough_s = math.ceil(search.overflow_s * 10) / 10
    return False, text, f"set duration={enough_s:g}s, or add a ping, whose delay rises sooner"
