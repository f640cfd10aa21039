"""The search of a profile: the parameters that it sets, and whether its range can be tried."""

from __future__ import annotations

from collections.abc import Sequence

from benchctl.analysis.runs.summary import at_point
from benchctl.analysis.search.search import most_needed
from benchctl.plan.bind import Binder
from benchctl.plan.bound import BoundTrial, accepted
from benchctl.plan.matrix import Point
from benchctl.plan.strategy import with_rate
from benchctl.profile.load import Document
from benchctl.run.condition import Condition
from benchctl.run.planned import Search
from benchctl.toml.source import Key
from benchctl.units import format_ratio, quoted, write_rate


def search_of(
    document: Document, binder: Binder, points: Sequence[Point], condition: Condition | None
) -> Search | None:
    """Return the search of a profile, if any; every point takes both ends of its range.

    Raises ProfileError.
    """
    table = document.model.search
    if table is None or condition is None:
        return None
    key: Key = ("search", table.target)
    value = next(value for value in points[0] if value.axis == table.target)
    sets = binder.sets(value)
    if sets is None:
        what = f"{quoted(table.target)} is no parameter of a flow"
        raise document.error(key, what, "search a rate, such as that of UDP")
    search = Search(
        table.target, sets, *table.range_bps, condition, table.precision, table.confirm, table.most
    )
    if search.most < (needed := most_needed(search)):
        precision = format_ratio(search.precision)
        what = f"{search.most} tries are not enough to find the rate to {precision}"
        raise document.error(("search", "most"), what, f"it may take {needed}")
    for point in points:
        _check_ends(document, key, search, binder.bind(point, 0, 1))
    return search


def _check_ends(document: Document, key: Key, search: Search, trial: BoundTrial) -> None:
    """Raise ProfileError unless the flows of a point take both ends of the range."""
    backends = {flow.plan.name: flow.backend for flow in trial.flows}
    if not search.sets.keys() & backends.keys():
        raise document.error(key, f"no flow has this parameter{at_point(trial.plan.point)}")
    for rate_bps in (search.low_bps, search.high_bps):
        for flow in with_rate(search, trial.plan, rate_bps).flows:
            try:
                accepted(flow, backends[flow.name])
            except ValueError as error:
                what = f"{flow.backend} cannot try {write_rate(rate_bps)}: {error}"
                raise document.error(key, what) from None
