"""Figures given in a profile: bounds that its run has to meet, and those that others reported.

They are parsed with the unit of their metric. The metric, the flow, the axes and their values must
exist. The analysis decides whether the bounds are met. Reported figures do not affect exit codes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from msgspec.structs import replace

from benchctl.backends import AnyBackend
from benchctl.errors import nearest
from benchctl.metrics import METRICS, OF_TRIALS, Fold, Metric
from benchctl.plan.matrix import Matrix, Value, check_value
from benchctl.profile.figures import ExpectTable
from benchctl.profile.load import Document
from benchctl.run.condition import (
    Condition,
    Relative,
    parse_bound,
    parse_events,
    parse_figure,
)
from benchctl.run.planned import Expectation, Reported, Scalar, Until
from benchctl.run.record import BASELINE, Happening
from benchctl.toml.source import Key
from benchctl.units import parse_value, quoted

T = TypeVar("T")
NONE: Mapping[str, Metric] = MappingProxyType({})


class FigureTables:
    """The figures of one profile; ``backends`` maps flows to theirs. Methods raise ProfileError."""

    def __init__(
        self, document: Document, matrix: Matrix, backends: Mapping[str, Collection[AnyBackend]]
    ) -> None:
        self._document = document
        self._backends = backends
        self._known: dict[str, dict[Scalar, Value]] = {axis: {} for axis in matrix.axes}
        for value in matrix.values():
            self._known[value.axis][value.shown] = value

    def expectations(self) -> tuple[Expectation, ...]:
        """Return what the run has to meet."""
        return tuple(
            self._expectation(("expect", index), table)
            for index, table in enumerate(self._document.model.expect)
        )

    def _expectation(self, key: Key, table: ExpectTable) -> Expectation:
        self._check_place(key, table.flow, table.where)
        shared = Expectation("", table.flow, table.where, severity=table.severity)
        if table.events is not None:
            rules = self._parsed((*key, "events"), parse_events, table.events, tuple(Happening))
            return replace(shared, events=rules)
        assert table.metric is not None
        metric, aggregate = self._parsed((*key, "metric"), parse_figure, table.metric)
        of_trials = OF_TRIALS if table.flow is None else NONE
        known = self._check_metric((*key, "metric"), table.flow, metric, of_trials, aggregate)
        shared = replace(shared, metric=metric, aggregate=aggregate)
        if table.within is not None:
            of = table.of or "expected"
            return replace(
                shared, least=Relative(1 - table.within, of), most=Relative(1 + table.within, of)
            )
        if table.not_worse_than is not None:
            if not known.better:
                what = f"neither higher nor lower {metric} is worse"
                raise self._document.error((*key, "not_worse_than"), what, "take within")
            higher, of = known.better == "higher", table.of or BASELINE
            change = -table.not_worse_than if higher else table.not_worse_than
            # As of all differences, that of ratios is in percentage points.
            edge = Relative(1 + change, of)
            if metric.endswith("_ratio"):
                edge = Relative(1, of, change)
            return replace(shared, proven=True, **{"least" if higher else "most": edge})
        found: dict[str, Any] = {}
        for name, relative in (("at_least", "least"), ("at_most", "most")):
            written = getattr(table, name)
            if written is not None:
                bound = self._parsed((*key, name), parse_bound, metric, written)
                found[relative if isinstance(bound, Relative) else name] = bound
        if {"at_least", "at_most"} <= found.keys() and found["at_least"] > found["at_most"]:
            raise self._document.error(key, "at_least is greater than at_most")
        return replace(shared, **found)

    def until(self) -> Until | None:
        """Return until when points are repeated; None if their number is fixed."""
        table = self._document.model.run.repeats
        if isinstance(table, int):
            return None
        self._check_metric(("run", "repeats", "of"), None, table.of)
        return Until(table.of, table.until, table.least, table.most)

    def condition(self) -> Condition | None:
        """Return what holds at a rate that passes; None if no rate is searched."""
        search = self._document.model.search
        if search is None:
            return None
        key: Key = ("search", "while")
        condition = search.while_
        self._check_metric(key, None, condition.metric, aggregate=condition.aggregate)
        return condition

    def reported(self) -> tuple[Reported, ...]:
        """Return the figures that others reported."""
        reported = []
        for index, table in enumerate(self._document.model.reported):
            key: Key = ("reported", index)
            self._check_place(key, table.flow, table.where)
            of_trials = OF_TRIALS if table.flow is None else NONE
            metrics = {}
            for metric, written in table.figures.items():
                self._check_metric((*key, metric), table.flow, metric, of_trials)
                metrics[metric] = self._parsed((*key, metric), parse_value, metric, written)
            reported.append(Reported(table.flow, table.direction, table.where, metrics))
        return tuple(reported)

    def _check_place(self, key: Key, flow: str | None, where: Mapping[str, Scalar]) -> None:
        """Raise ProfileError unless the table at ``key`` names a flow and points of the profile."""
        if flow is not None and flow not in self._backends:
            hint = nearest(flow, self._backends) or f"available: {', '.join(self._backends)}"
            raise self._document.error((*key, "flow"), f"no flow {quoted(flow)}", hint)
        for axis, shown in where.items():
            check_value(self._document, self._known, (*key, "where", axis), shown)

    def _check_metric(
        self,
        key: Key,
        flow: str | None,
        metric: str,
        of_trials: Mapping[str, Metric] = NONE,
        aggregate: str = "",
    ) -> Metric:
        """Return a metric. Raises ProfileError unless a flow has it, and this aggregate of it.

        ``of_trials`` are metrics that a trial has as a whole.
        """
        flows = self._backends if flow is None else [flow]
        own = {m.name: m for f in flows for b in self._backends[f] for m in b.capabilities.metrics}
        known = {**own, **METRICS, **of_trials}
        if metric not in known:
            hint = nearest(metric, known) or "such as throughput_bps, rtt_s or loss_ratio"
            raise self._document.error(key, f"no metric {quoted(metric)}", hint)
        if aggregate and known[metric].fold is not Fold.DISTRIBUTION:
            what = f"{metric} is one figure, not a distribution"
            raise self._document.error(key, what, f"leave out .{aggregate}")
        return known[metric]

    def _parsed(self, key: Key, parse: Callable[..., T], *written: object) -> T:
        """Parse what stands at a key; errors of the parser get its place."""
        try:
            return parse(*written)
        except ValueError as error:
            raise self._document.error(key, str(error)) from None
