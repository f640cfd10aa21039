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


class RunningTrial(NamedTuple):
    """The trial that runs: its planned time, and the Unix times at which its attempts began.

    ``began_time`` is that of the first attempt, ``started_time`` that of the last. ``wait_s`` is
    the time until the next attempt, which takes all of it again; None while one measures.
    """

    planned_s: float
    began_time: float
    started_time: float
    wait_s: float | None = None

    @property
    def is_repeated(self) -> bool:
        """Whether an attempt has failed."""
        return self.wait_s is not None or self.began_time < self.started_time


def left_s(
    time: float,
    running: RunningTrial | None,
    to_come: int,
    to_come_s: float,
    ended: Sequence[Timing],
    pause_s: float,
) -> float:
    """Return the estimate of a run's remaining time in seconds at a moment, in Unix time.

    ``to_come`` trials of together ``to_come_s`` planned seconds follow the one that runs. It is
    taken to last as the trials before it did, at least. If its attempts are repeated, so may be
    those of the trials that follow.
    """
    rest_s = 0.0
    if running is not None:
        elapsed_s = max(0.0, time - running.started_time)
        rest_s = max(0.0, running.planned_s - elapsed_s)
        if running.wait_s is not None:
            rest_s = running.wait_s + running.planned_s
        if ended:
            usual_s = running.planned_s + extra_s(ended, pause_s)
            rest_s = max(rest_s, ended[-1].finished_time + usual_s - time)
        if running.is_repeated:
            ended = [*ended, Timing(running.planned_s, running.began_time, time + rest_s)]
    return max(0.0, rest_s + to_come_s + to_come * extra_s(ended, pause_s))


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
