"""Bounds that a run has to meet, read with the unit of their metric.

What they name must be there: the metric, the flow, the axes and their values. Whether they are
met is for the analysis to say.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from benchctl.api import METRICS
from benchctl.backends import AnyBackend
from benchctl.profile.explain import nearest
from benchctl.profile.load import Document
from benchctl.profile.matrix import Matrix, Value, check_value
from benchctl.profile.model import Expectation
from benchctl.profile.source import Key
from benchctl.profile.values import Scalar
from benchctl.units import parse_value, quoted


@dataclass(frozen=True, slots=True)
class Expected:
    """A bound on the mean of a metric over the repeats of a point, in the metric's SI unit.

    ``flow`` is None where every flow that has the metric has to meet it. ``where`` maps axes to
    the value that a point must have; empty for every point.
    """

    metric: str
    flow: str | None
    where: Mapping[str, Scalar]
    at_least: float | None
    at_most: float | None


def read_expectations(
    document: Document, matrix: Matrix, backends: Mapping[str, Collection[AnyBackend]]
) -> tuple[Expected, ...]:
    """Return the expectations of a profile; ``backends`` are those of each flow.

    Raises ProfileError.
    """
    known: dict[str, dict[Scalar, Value]] = {axis: {} for axis in matrix.axes}
    for value in matrix.values():
        known[value.axis][value.shown] = value
    expected = []
    for index, table in enumerate(document.model.expect):
        key: Key = ("expect", index)
        _check_metric(document, table, key, backends)
        for axis, shown in table.where.items():
            check_value(document, known, (*key, "where", axis), shown)
        at_least = _bound(document, table.metric, table.at_least, (*key, "at_least"))
        at_most = _bound(document, table.metric, table.at_most, (*key, "at_most"))
        if at_least is not None and at_most is not None and at_least > at_most:
            raise document.error(key, "at_least is more than at_most")
        expected.append(Expected(table.metric, table.flow, table.where, at_least, at_most))
    return tuple(expected)


def _check_metric(
    document: Document,
    table: Expectation,
    key: Key,
    backends: Mapping[str, Collection[AnyBackend]],
) -> None:
    if table.flow is not None and table.flow not in backends:
        hint = nearest(table.flow, backends) or f"there are: {', '.join(backends)}"
        raise document.error((*key, "flow"), f"no flow {quoted(table.flow)}", hint)
    flows = backends if table.flow is None else [table.flow]
    own = {metric.name for f in flows for b in backends[f] for metric in b.capabilities.metrics}
    if table.metric not in METRICS and table.metric not in own:
        hint = nearest(table.metric, {*METRICS, *own}) or "see the metrics of `benchctl backends`"
        raise document.error((*key, "metric"), f"no metric {quoted(table.metric)}", hint)


def _bound(document: Document, metric: str, written: Scalar | None, key: Key) -> float | None:
    if written is None:
        return None
    try:
        return parse_value(metric, written)
    except ValueError as error:
        raise document.error(key, str(error)) from None
