"""Chooses the trials after the recorded ones: a pure fold of their results.

A run continues, also after a resume, with what its strategy returns until that is None. Every
result is given once, so a strategy keeps what it needs of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from benchctl.analysis.results import TrialReport
from benchctl.analysis.runs.stopping import is_known_to
from benchctl.analysis.runs.summary import point_key
from benchctl.analysis.search.search import Try, next_rate
from benchctl.analysis.search.tries import search_key, try_of
from benchctl.run.planned import PlannedFlow, PlannedTrial, Search, Settings, Until
from benchctl.run.record import Trial
from benchctl.run.status import Status
from benchctl.units import write_rate


class Strategy(Protocol):
    """Takes all results of a run, in order of execution; returns the trial to measure next."""

    def take(self, ended: TrialReport) -> None:
        """Take the result of one trial."""

    def next(self) -> PlannedTrial | None:
        """Return the trial to add, whose position is that after all others; None to end the run."""


def strategy_of(settings: Settings) -> Strategy | None:
    """Return the strategy of a run; None if all its trials were recorded before it began."""
    if settings.search is not None:
        return Searching(settings.search)
    return None if settings.until is None else UntilKnown(settings.until)


class _Repeats(Struct):
    """The trials of one point, and the values of a metric by flow and direction."""

    last: Trial
    count: int = 0
    values: dict[tuple[str, str], list[float]] = {}
    settled: bool = False


class UntilKnown:
    """Repeats the point with the fewest trials, until all are known well enough.

    So trials stay interleaved over the points that are left. Trials that failed count as repeats.
    """

    def __init__(self, until: Until) -> None:
        self._until = until
        self._points: dict[Any, _Repeats] = {}

    def take(self, ended: TrialReport) -> None:
        until, trial = self._until, ended.trial
        own = self._points.setdefault(point_key(trial.point), _Repeats(trial))
        own.last, own.count = trial, own.count + 1
        for flow in ended.flows if trial.status is Status.OK else ():
            for (direction, metric), figure in flow.figures.items():
                if metric == until.metric:
                    own.values.setdefault((flow.flow.name, direction), []).append(figure.value)
        known = bool(own.values) and all(
            len(values) >= until.least and is_known_to(values, until.share, until.most)
            for values in own.values.values()
        )
        own.settled = known or own.count >= until.most

    def next(self) -> PlannedTrial | None:
        left = [own for own in self._points.values() if not own.settled]
        if not left:
            return None
        own = min(
            left, key=lambda repeats: repeats.count
        )  # the first of them, in the profile's order
        return _again(own.last, repeat=own.count + 1)


class _Tries(Struct):
    """The tries of one search, its last trial, and the rate that is next."""

    last: Trial
    tries: list[Try] = []
    next_bps: float | None = None


class Searching:
    """Tries the next rate of the search with the fewest tries, until all have ended.

    Every point of the other axes has its own, and so has every repeat of it.
    """

    def __init__(self, search: Search) -> None:
        self._search = search
        self._searches: dict[Any, _Tries] = {}

    def take(self, ended: TrialReport) -> None:
        trial = ended.trial
        own = self._searches.setdefault(search_key(self._search, trial), _Tries(trial))
        own.last = trial
        own.tries.append(try_of(self._search, ended))
        own.next_bps = next_rate(self._search, own.tries)

    def next(self) -> PlannedTrial | None:
        left = [own for own in self._searches.values() if own.next_bps is not None]
        if not left:
            return None
        own = min(left, key=lambda tries: len(tries.tries))
        return with_rate(self._search, _again(own.last), own.next_bps or 0.0)


def with_rate(search: Search, trial: PlannedTrial, rate_bps: float) -> PlannedTrial:
    """Return a trial at another rate of a search."""
    text = write_rate(rate_bps)

    def changed(flow: PlannedFlow) -> PlannedFlow:
        if flow.name not in search.sets:
            return flow
        parameters = {**flow.parameters, search.sets[flow.name]: text}
        return replace(flow, parameters=parameters)

    point = {**trial.point, search.axis: text}
    return replace(trial, point=point, flows=tuple(map(changed, trial.flows)))


def _again(trial: Trial, **changes: Any) -> PlannedTrial:
    fields: Mapping[str, Any] = {
        name: getattr(trial, name) for name in PlannedTrial.__struct_fields__
    }
    return replace(PlannedTrial(**fields), **changes)
