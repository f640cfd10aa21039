"""Chooses the trial after the recorded ones: a pure function of their results.

A run continues, also after a resume, with what its strategy returns until that is None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from benchctl.run.planned import PlannedTrial
from benchctl.run.record import Trial


@dataclass(frozen=True, slots=True)
class Result:
    """A recorded trial, and the figures of its last attempt by flow, direction and metric."""

    trial: Trial
    figures: Mapping[tuple[str, str, str], float]


Strategy = Callable[[Iterator[Result]], PlannedTrial | None]
"""Takes all results of a run, in order of execution; returns the trial to measure next."""


def as_planned(_: Iterator[Result]) -> PlannedTrial | None:
    """Return no trial: all were recorded before the run began."""
    return None
