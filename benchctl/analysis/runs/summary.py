"""Summarizes the repeats of each point."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from benchctl.analysis.results import FlowReport
from benchctl.analysis.statistics import Spread, spread
from benchctl.run.planned import Reported
from benchctl.run.record import Figure, Figures, FlowEvent


class Measured(Struct, frozen=True):
    """What one flow of one trial measured, or a whole trial: then ``flow`` is empty.

    ``intervals`` are those of its rate, as far as they were counted. ``broken`` are figures that
    break a law, and so are none of ``figures``.
    """

    point: Mapping[str, Any]
    flow: str
    figures: Figures
    events: Sequence[FlowEvent] = ()
    intervals: int = 0
    broken: Figures = {}


def measured_in(
    point: Mapping[str, Any],
    of_trial: Mapping[str, float | None],
    flows: Iterable[FlowReport],
) -> Iterator[Measured]:
    """Yield what counts of a trial; ``of_trial`` are figures of the whole trial, None if unknown.

    A flow that was ended at its deadline counts with its samples until then.
    """
    for flow in flows:
        if flow.flow.status.counts:
            broken = {key: figure for key, figure in flow.reported.items() if not figure.counts}
            yield Measured(point, flow.flow.name, flow.figures, flow.events, flow.intervals, broken)
    whole = {
        ("", metric): Figure(value, "samples")
        for metric, value in of_trial.items()
        if value is not None
    }
    if whole:
        yield Measured(point, "", whole)


class SummaryRow(Struct, frozen=True):
    """One metric of one flow at one point, over all repeats.

    ``values`` are those of the repeats; a distribution (``rtt_s``) contributes its mean of each.
    ``beside`` are the requested, expected and reported values, as far as known. ``valid`` is false
    if a lab did not keep its promises during one of the repeats.
    """

    point: Mapping[str, Any]
    flow: str
    direction: str
    metric: str
    values: Sequence[float]
    spread: Spread
    beside: Mapping[str, float] = {}
    valid: bool = True


def point_key(point: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Return a point as a key that does not depend on the order of its axes."""
    return tuple(sorted(point.items()))


def at_point(point: Mapping[str, Any], form: str = " at {}") -> str:
    """Write a point in a form: `` at streams=4, window=1M``; nothing if it has no axes."""
    text = ", ".join(f"{axis}={value}" for axis, value in point.items())
    return form.format(text) if text else ""


def summarize(
    measured: Iterable[Measured], metric: str = "", aggregate: str = ""
) -> list[SummaryRow]:
    """Group by point, flow, direction and metric, in the order of first appearance.

    With ``metric`` only this one; with ``aggregate`` (``p95``) that of each repeat's distribution.
    """
    groups: dict[tuple[Any, ...], tuple[Measured, list[float]]] = {}
    for repeat in measured:
        for (direction, name), figure in repeat.figures.items():
            value = figure.spread.get(aggregate) if aggregate else figure.value
            if value is not None and metric in ("", name):
                key = (point_key(repeat.point), repeat.flow, direction, name)
                groups.setdefault(key, (repeat, []))[1].append(value)
    return [
        SummaryRow(repeat.point, flow, direction, metric, values, spread(values))
        for (_, flow, direction, metric), (repeat, values) in groups.items()
    ]


def reported_of(
    reported: Sequence[Reported],
    point: Mapping[str, Any],
    flow: str | None = None,
    direction: str | None = None,
) -> dict[str, float]:
    """Return the reported figures of a flow in one direction, or a trial, at a point: by metric."""
    found: dict[str, float] = {}
    for entry in reported:
        if (
            entry.flow in (None, flow)
            and entry.direction in (None, direction)
            and is_at(point, entry.where)
        ):
            found |= entry.metrics
    return found


def is_at(point: Mapping[str, Any], where: Mapping[str, Any]) -> bool:
    """Return whether a point has some values of its axes."""
    return all(point.get(axis) == value for axis, value in where.items())
