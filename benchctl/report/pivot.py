"""Brings the summary of a document into rows and columns: what table, markdown and csv show.

A row is a point, a flow and a direction; columns are the axes that vary, the flow and direction
where there is more than one, the figures people look for, and what was expected and what others
reported where that is known. Everything else is in the JSON.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchctl.report.document import Document
from benchctl.units import format_value

# Shown where they were measured, in this order.
KEY_METRICS = (
    "throughput_bps", "rtt_s", "owd_s", "pdv_p95_p50_s", "loss_ratio", "jitter_rfc3550_s",
    "retransmits", "tcp_rtt_s",
)  # fmt: skip
# Stand in for throughput where the receiver's count is not known.
INSTEAD = {"throughput_bps": "sent_bps"}


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
        key = (tuple(entry["point"].items()), entry["flow"], entry["direction"])
        groups.setdefault(key, {})[entry["metric"]] = entry
    beside = {kind: _beside(document, kind) for kind in ("expected", "reported")}
    metrics = [name for name in KEY_METRICS if any(name in g for g in groups.values())]
    for name, stand_in in INSTEAD.items():
        if any(name not in g and stand_in in g for g in groups.values()):
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
        heads += [title_of(name), *(kind for kind in beside if name in known[kind])]
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


def _beside(document: Document, kind: str) -> dict[tuple[Any, ...], Mapping[str, float]]:
    """Return what stands beside the measured figures, by point, flow and direction."""
    return {
        (tuple(trial["point"].items()), flow["name"], flow["direction"]): flow[kind]
        for trial in document["trials"]
        for flow in trial["flows"]
        if flow[kind]
    }


def title_of(metric: str) -> str:
    """Return a metric's name as a head: the unit is in the cells."""
    for suffix in ("_bps", "_s", "_bytes", "_ratio"):
        metric = metric.removesuffix(suffix)
    return metric


def with_interval(entry: Mapping[str, Any]) -> str:
    """Show a mean and half its 95 % interval in the same unit: ``94.1 Mbit/s ±0.3``."""
    name, mean = entry["metric"], entry["mean"]
    text = format_value(name, mean)
    if entry["ci95_low"] is None:
        return text
    half = (entry["ci95_high"] - entry["ci95_low"]) / 2
    number, _, unit = text.partition(" ")
    factor = abs(mean / float(number)) if unit and mean else 1.0
    scaled = half / factor
    digits = max(0, min(3, 1 - math.floor(math.log10(scaled)))) if scaled else 0
    return f"{text} ±{scaled:.{digits}f}"
