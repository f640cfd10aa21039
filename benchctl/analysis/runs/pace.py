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


def extra_s(ended: Sequence[Timing], pause_s: float) -> float:
    """Return the time that a trial takes beyond its plan, set-up, attempts and pause included.

    It is the median of the last trials, from end to end, so that neither the building of a lab nor
    the hours between a run and its resumption count. For the first trial, all before its common
    start is unknown, and only the pause of the profile is added.
    """
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
