"""Chooses the trial after the recorded ones: a pure function of their results.

A run continues, also after a resume, with what its strategy returns until that is None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from benchctl.analysis.stopping import is_known_to
from benchctl.analysis.summary import point_key
from benchctl.run.planned import PlannedTrial, Settings, Until
from benchctl.run.record import Trial
from benchctl.run.status import Status


@dataclass(frozen=True, slots=True)
class Result:
    """A recorded trial, and the figures of its last attempt by flow, direction and metric."""

    trial: Trial
    figures: Mapping[tuple[str, str, str], float]


Strategy = Callable[[Iterator[Result]], PlannedTrial | None]
"""Takes all results of a run, in order of execution; returns the trial to measure next."""


def strategy_of(settings: Settings) -> Strategy:
    """Return the strategy of a run."""
    return as_planned if settings.until is None else partial(until_known, settings.until)


def as_planned(_: Iterator[Result]) -> PlannedTrial | None:
    """Return no trial: all were recorded before the run began."""
    return None


def until_known(until: Until, results: Iterable[Result]) -> PlannedTrial | None:
    """Return another repeat of the point with the fewest, until all are known well enough.

    So trials stay interleaved over the points that are left.
    """
    points: dict[Any, list[Result]] = {}
    for result in results:
        points.setdefault(point_key(result.trial.point), []).append(result)
    left = [own for own in points.values() if not _is_settled(until, own)]
    if not left:
        return None
    own = min(left, key=len)  # the first of them, in the order of the profile
    return _again(own[-1].trial, len(own) + 1)


def _again(trial: Trial, repeat: int) -> PlannedTrial:
    fields = {name: getattr(trial, name) for name in PlannedTrial.__dataclass_fields__}
    return replace(PlannedTrial(**fields), position=trial.position + 1, repeat=repeat)


def _is_settled(until: Until, results: list[Result]) -> bool:
    """Return whether a point needs no more repeats; trials that failed count as repeats."""
    if len(results) >= until.most:
        return True
    figures: dict[tuple[str, str], list[float]] = {}
    for result in results:
        if result.trial.status is Status.OK:
            for (flow, direction, metric), value in result.figures.items():
                if metric == until.metric:
                    figures.setdefault((flow, direction), []).append(value)
    return bool(figures) and all(
        len(values) >= until.least and is_known_to(values, until.share, until.most)
        for values in figures.values()
    )
