"""How long the rest of a run takes, by what its trials really took."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from benchctl.run.planned import Settings

# Trials of long ago say little: the network or the machine may have been another then.
LATELY = 20


class Timing(NamedTuple):
    """One trial that has ended: its planned time, and Unix times of its common start and end."""

    planned_s: float
    started_time: float
    finished_time: float


def rest_s(planned_s: float, elapsed_s: float, wait_s: float | None = None) -> float:
    """Return the time that a running trial still takes.

    ``wait_s`` is that until its next attempt, which takes all of it again; None while it measures.
    """
    return max(0.0, planned_s - elapsed_s) if wait_s is None else wait_s + planned_s


def wait_s(settings: Settings, attempt: int, since_s: float) -> float:
    """Return the time until the attempt after one that failed ``since_s`` ago.

    Attempts at a server that is starting are numbered, too, and do not wait longer than any that
    the profile allows.
    """
    longest = max(1, settings.attempts - 1)
    return max(0.0, settings.wait_s(min(attempt, longest)) - since_s)


def extra_s(ended: Sequence[Timing], pause_s: float, at_once: int = 1) -> float:
    """Return the time that a trial takes beyond its plan, set-up, attempts and pause included.

    It is the median of the last trials, from end to end, so that neither the building of a lab nor
    the hours between a run and its resumption count. For the first trial, all before its common
    start is unknown, and only the pause of the profile is added.
    """
    if at_once > 1:
        return pause_s + _beside_s(ended[-LATELY * at_once :])
    lately = ended[-LATELY - 1 :]
    if not lately:
        return pause_s
    first = lately[0]
    beyond_s = [b.finished_time - a.finished_time - b.planned_s for a, b in pairwise(lately)]
    if not beyond_s:
        took_s = first.finished_time - first.started_time
        # A trial that was ended before its common start says nothing.
        return pause_s + (took_s - first.planned_s if took_s > 0 else 0.0)
    return median(beyond_s)


def _beside_s(ended: Sequence[Timing]) -> float:
    """Return the median time beyond the plan of trials that run side by side, without the pause."""
    beyond_s = [one.finished_time - one.started_time - one.planned_s for one in ended]
    return max(0.0, median(beyond_s)) if beyond_s else 0.0


def shared_s(left_s: float, settings: Settings, running: int, to_come: int) -> float:
    """Return how long the work of ``left_s`` takes, by as many trials at once as there are."""
    if settings.parallel is None:
        return left_s
    return left_s / max(1, min(settings.parallel.at_once, running + to_come))


def at_once(settings: Settings) -> int:
    """Return how many trials of a run are measured at the same time, at most."""
    return 1 if settings.parallel is None else settings.parallel.at_once
