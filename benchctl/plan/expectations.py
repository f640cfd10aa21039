"""Figures given in a profile: bounds that its run has to meet, and those that others reported.

They are parsed with the unit of their metric. The metric, the flow, the axes and their values must
exist. The analysis decides whether the bounds are met. Reported figures do not affect exit codes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from benchctl.backends import AnyBackend
from benchctl.errors import nearest
from benchctl.metrics import METRICS, OF_TRIALS, Fold, Vocabulary
from benchctl.plan.matrix import Matrix, Value, check_value
from benchctl.profile.load import Document
from benchctl.run.condition import Condition
from benchctl.run.planned import Expectation, Reported, Scalar, Until
from benchctl.toml.source import Key
from benchctl.units import parse_value, quoted


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
        """Return the bounds that the run has to meet."""
        expected = []
        for index, table in enumerate(self._document.model.expect):
            key: Key = ("expect", index)
            self._check_place(key, table.flow, table.where)
            self._check_metric((*key, "metric"), table.flow, table.metric)
            at_least, at_most = (
                None if written is None else self._figure(table.metric, written, (*key, name))
                for name, written in (("at_least", table.at_least), ("at_most", table.at_most))
            )
            if at_least is not None and at_most is not None and at_least > at_most:
                raise self._document.error(key, "at_least is greater than at_most")
            expected.append(Expectation(table.metric, table.flow, table.where, at_least, at_most))
        return tuple(expected)

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
        self._check_metric(key, None, condition.metric)
        if condition.aggregate and self._fold(condition.metric) is not Fold.DISTRIBUTION:
            what = f"{condition.metric} is one figure, not a distribution"
            raise self._document.error(key, what, f"leave out .{condition.aggregate}")
        return condition

    def _fold(self, metric: str) -> Fold:
        backends = (backend for own in self._backends.values() for backend in own)
        own = [metric for backend in backends for metric in backend.capabilities.metrics]
        return Vocabulary(own).describe(metric).fold

    def reported(self) -> tuple[Reported, ...]:
        """Return the figures that others reported."""
        reported = []
        for index, table in enumerate(self._document.model.reported):
            key: Key = ("reported", index)
            self._check_place(key, table.flow, table.where)
            of_trials = OF_TRIALS if table.flow is None else ()
            metrics = {}
            for metric, written in table.figures.items():
                self._check_metric((*key, metric), table.flow, metric, of_trials)
                metrics[metric] = self._figure(metric, written, (*key, metric))
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
        self, key: Key, flow: str | None, metric: str, of_trials: Collection[str] = ()
    ) -> None:
        """Raise ProfileError unless a flow, or any of them, has a metric.

        ``of_trials`` are metrics that a trial has as a whole.
        """
        flows = self._backends if flow is None else [flow]
        own = {m.name for f in flows for b in self._backends[f] for m in b.capabilities.metrics}
        known = {*METRICS, *own, *of_trials}
        if metric not in known:
            hint = nearest(metric, known) or "such as throughput_bps, rtt_s or loss_ratio"
            raise self._document.error(key, f"no metric {quoted(metric)}", hint)

    def _figure(self, metric: str, written: Scalar, key: Key) -> float:
        """Return a figure of a metric in its SI unit."""
        try:
            return parse_value(metric, written)
        except ValueError as error:
            raise self._document.error(key, str(error)) from None
