"""Brings the summary of a document into rows and columns: what table, markdown and csv show.

A row is a point, a flow and a direction; columns are the axes that vary, the flow and direction
where there is more than one, the figures people look for, and what was asked, what was expected and
what others reported where that is known. Everything else is in the JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from benchctl.metrics import METRICS, STAND_INS
from benchctl.report.document import Document
from benchctl.units import format_mean, format_value, without_unit

KEY_METRICS = [metric.name for metric in METRICS.values() if metric.wanted]
# A sender that misses its rate by more did not do what was asked.
MISSED = 0.01


@dataclass(frozen=True, slots=True)
class Pivot:
    """A table of text: the heads of its columns, and its rows.

    ``numeric`` says which columns are aligned to the right.
    """

    heads: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]


def pivot(document: Document) -> Pivot:
    """Return the summary table of a document."""
    groups: dict[tuple[Any, ...], dict[str, Mapping[str, Any]]] = {}
    for entry in document["summary"]:
        if not entry["flow"]:
            continue  # of a trial as a whole
        key = (tuple(entry["point"].items()), entry["flow"], entry["direction"])
        groups.setdefault(key, {})[entry["metric"]] = entry
    beside = {
        "asked": _beside(document, _asked),
        "expected": _beside(document, itemgetter("expected")),
        "reported": _beside(document, itemgetter("reported")),
    }
    missed = any(_missed(group, beside["asked"].get(key)) for key, group in groups.items())
    if not missed:
        del beside["asked"]
    metrics = [name for name in KEY_METRICS if any(name in g for g in groups.values())]
    for name, stand_in in STAND_INS.items():
        wanted = missed or any(stand_in in figures for figures in beside["reported"].values())
        if wanted or any(name not in g and stand_in in g for g in groups.values()):
            place = metrics.index(name) + 1 if name in metrics else 0
            metrics.insert(place, stand_in)
    varying = [axis for axis, values in document["run"]["axes"].items() if len(values) > 1]
    flows = len({flow for _, flow, _ in groups}) > 1
    # A direction says nothing new where there is but one, or where an axis says it already.
    told = [dict(point).get("direction") for point, _, _ in groups]
    ways = {direction for _, _, direction in groups}
    directions = len(ways) > 1 and [direction for _, _, direction in groups] != told
    known = {
        kind: {name for figures in rows.values() for name in figures}
        for kind, rows in beside.items()
    }
    # With an axis of that name, a trial of both directions has a row for each.
    way = "measured" if "direction" in varying else "direction"
    heads = [*varying, *["flow"] * flows, *[way] * directions, "n"]
    text_columns = len(heads) - 1
    for name in metrics:
        heads += [without_unit(name), *(kind for kind in beside if name in known[kind])]
    rows = []
    for (point, flow, direction), entries in groups.items():
        shown = dict(point)
        row = [str(shown.get(axis, "-")) for axis in varying]
        row += [flow] * flows + [direction] * directions
        row.append(str(max(entry["n"] for entry in entries.values())))
        for name in metrics:
            row.append(with_interval(entries[name]) if name in entries else "-")
            for kind, figures in beside.items():
                if name in known[kind]:
                    value = figures.get((point, flow, direction), {}).get(name)
                    if value is None or name not in entries:
                        row.append("-")
                    else:
                        row.append(format_value(name, value))
        rows.append(tuple(row))
    numeric = tuple(index >= text_columns for index in range(len(heads)))
    return Pivot(tuple(heads), numeric, tuple(rows))


_Key = tuple[Any, ...]
"""Point, flow and direction."""


def _beside(
    document: Document, kind: Callable[[Mapping[str, Any]], Mapping[str, float]]
) -> dict[_Key, Mapping[str, float]]:
    """Return what stands beside the measured figures."""
    return {
        (tuple(trial["point"].items()), flow["name"], flow["direction"]): figures
        for trial in document["trials"]
        for flow in trial["flows"]
        if (figures := kind(flow))
    }


def _asked(flow: Mapping[str, Any]) -> dict[str, float]:
    """Return what a flow was to send, all its streams together, where it had a rate."""
    rate_bps = flow["requested"].get("rate")
    if not isinstance(rate_bps, int | float):
        return {}  # unlimited, or not known to this backend
    return {"sent_bps": rate_bps * flow["requested"].get("streams", 1)}


def _missed(group: Mapping[str, Mapping[str, Any]], asked: Mapping[str, float] | None) -> bool:
    """Return whether a sender sent something else than it was asked to."""
    if not asked or "sent_bps" not in group:
        return False
    sent_bps: float = group["sent_bps"]["mean"]
    return abs(sent_bps / asked["sent_bps"] - 1) > MISSED


def with_interval(entry: Mapping[str, Any]) -> str:
    """Show the mean of an entry of the summary with half its 95 % interval."""
    low, high = entry["ci95_low"], entry["ci95_high"]
    half = None if low is None else (high - low) / 2
    return format_mean(entry["metric"], entry["mean"], half)
