"""What searches found: a result for each point of the other axes, and each repeat."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from benchctl.analysis.results import TrialReport
from benchctl.analysis.runs.summary import SummaryRow, point_key
from benchctl.analysis.search.search import SearchFinding, SearchOutcome, finding
from benchctl.analysis.search.tries import expected_bps, search_key, try_of
from benchctl.analysis.statistics import spread
from benchctl.run.planned import Search

FOUND_RATE = "found_rate_bps"
"""The metric of what searches found, for summaries and comparisons."""


class Found(Struct, frozen=True):
    """The result of one search.

    ``point`` is without the searched axis. ``expected_bps`` is the rate that theory expects, None
    if it expects no limit. ``lasted_s`` is the planned time of its shortest try.
    """

    point: Mapping[str, Any]
    repeat: int
    finding: SearchFinding
    expected_bps: float | None
    lasted_s: float


def found_in(search: Search, trials: Iterable[TrialReport]) -> list[Found]:
    """Return the results of all searches, in the order of their first tries."""
    groups: dict[Any, list[TrialReport]] = {}
    for trial in trials:
        groups.setdefault(search_key(search, trial.trial), []).append(trial)
    return [_found(search, group) for group in groups.values()]


def _found(search: Search, group: Sequence[TrialReport]) -> Found:
    first = group[0].trial
    tries = [try_of(search, trial) for trial in group]
    shown = finding(search, tries)
    expected = [bps for trial in group if (bps := expected_bps(search, trial)) is not None]
    return Found(
        {axis: value for axis, value in first.point.items() if axis != search.axis},
        first.repeat,
        shown,
        min(expected, default=None),
        min(trial.trial.duration_s for trial in group),
    )


def found_rates(found: Sequence[Found]) -> list[SummaryRow]:
    """Return the found rates over the repeats, as rows of a summary; others have no value."""
    groups: dict[Any, list[Found]] = {}
    for search in found:
        if search.finding.outcome is SearchOutcome.FOUND:
            groups.setdefault(point_key(search.point), []).append(search)
    rows = []
    for group in groups.values():
        values = [
            search.finding.passing_bps for search in group if search.finding.passing_bps is not None
        ]
        expected = [search.expected_bps for search in group if search.expected_bps is not None]
        beside = {"expected": expected[0]} if expected else {}
        confirmed = all(search.finding.confirmed for search in group)
        point = group[0].point
        rows.append(
            SummaryRow(point, "", "", FOUND_RATE, values, spread(values), beside, confirmed)
        )
    return rows
