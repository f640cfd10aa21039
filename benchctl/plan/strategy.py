"""Which trial is measured after those that are recorded: a pure function of how those went.

A run goes on with what its strategy returns until that is None, also when it is resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from benchctl.run.record import Trial
from benchctl.run.trial import PlannedTrial


@dataclass(frozen=True, slots=True)
class Result:
    """A recorded trial, and the figures of its last attempt by flow, direction and metric."""

    trial: Trial
    figures: Mapping[tuple[str, str, str], float]


Strategy = Callable[[Iterator[Result]], PlannedTrial | None]
"""Takes all results of a run, in order of execution; what it returns is measured after them."""


def as_planned(_: Iterator[Result]) -> PlannedTrial | None:
    """Return no other trial: all were recorded before the run began."""
    return None
