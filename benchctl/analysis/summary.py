"""Summarizes the repeats of each point, and checks them against expectations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchctl.analysis.statistics import Spread, spread
from benchctl.run.planned import Expectation, Reported
from benchctl.run.record import Figure, Figures
from benchctl.run.status import Status


@dataclass(frozen=True, slots=True)
class Measured:
    """The figures of one flow of one trial, or of a whole trial: then ``flow`` is empty."""

    point: Mapping[str, Any]
    flow: str
    figures: Figures


def measured_in(
    point: Mapping[str, Any],
    of_trial: Mapping[str, float | None],
    flows: Iterable[tuple[str, Status, Figures]],
) -> Iterator[Measured]:
    """Yield the valid figures of a trial; ``flows`` are names, statuses and figures.

    ``of_trial`` are figures of the whole trial, None if unknown.

    A flow that was ended at its deadline counts with its samples until then.
    """
    for flow, status, figures in flows:
        if status.counts:
            yield Measured(point, flow, figures)
    whole = {
        ("", metric): Figure(value, "samples")
        for metric, value in of_trial.items()
        if value is not None
    }
    if whole:
        yield Measured(point, "", whole)


@dataclass(frozen=True, slots=True)
class SummaryRow:
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
    beside: Mapping[str, float] = field(default_factory=dict)
    valid: bool = True


def point_key(point: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Return a point as a key that does not depend on the order of its axes."""
    return tuple(sorted(point.items()))


def summarize(measured: Iterable[Measured]) -> list[SummaryRow]:
    """Group by point, flow, direction and metric, in the order of first appearance."""
    groups: dict[tuple[Any, ...], tuple[Measured, list[float]]] = {}
    for one in measured:
        for (direction, metric), figure in one.figures.items():
            key = (point_key(one.point), one.flow, direction, metric)
            groups.setdefault(key, (one, []))[1].append(figure.value)
    return [
        SummaryRow(one.point, flow, direction, metric, values, spread(values))
        for (_, flow, direction, metric), (one, values) in groups.items()
    ]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether one expectation was met at one point."""

    text: str
    met: bool


def outcomes_of(expectations: Sequence[Expectation], rows: Sequence[SummaryRow]) -> list[Outcome]:
    """Check rows against expectations."""
    outcomes = []
    for wanted in expectations:
        matching = [row for row in rows if _concerns(wanted, row)]
        if not matching:
            outcomes.append(Outcome(f"{wanted.metric}: nothing was measured", False))
        for row in matching:
            low, high = wanted.at_least, wanted.at_most
            mean = row.spread.mean
            met = (low is None or mean >= low) and (high is None or mean <= high)
            where = ", ".join(f"{axis}={value}" for axis, value in row.point.items())
            outcomes.append(Outcome(f"{row.metric} of {row.flow} at {where or 'its point'}", met))
    return outcomes


def _concerns(wanted: Expectation, row: SummaryRow) -> bool:
    return (
        row.metric == wanted.metric
        and wanted.flow in (None, row.flow)
        and _at(row.point, wanted.where)
    )


def reported_of(
    reported: Sequence[Reported],
    point: Mapping[str, Any],
    flow: str | None = None,
    direction: str | None = None,
) -> dict[str, float]:
    """Return the reported figures of a flow in one direction, or a trial, at a point: by metric."""
    found: dict[str, float] = {}
    for one in reported:
        if (
            one.flow in (None, flow)
            and one.direction in (None, direction)
            and _at(point, one.where)
        ):
            found |= one.metrics
    return found


def _at(point: Mapping[str, Any], where: Mapping[str, Any]) -> bool:
    return all(point.get(axis) == value for axis, value in where.items())
