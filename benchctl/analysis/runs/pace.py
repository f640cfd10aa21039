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
    """A trial that runs: its planned time, and the Unix times at which its attempts began.

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
    running: Sequence[RunningTrial],
    to_come: int,
    to_come_s: float,
    ended: Sequence[Timing],
    settings: Settings,
) -> float:
    """Return the estimate of a run's remaining time in seconds at a moment, in Unix time.

    ``to_come`` trials of together ``to_come_s`` planned seconds follow those that run. One that
    runs is taken to last as the trials before it did, at least. If its attempts are repeated, so
    may be those of the trials that follow.
    """
    left, at_once = to_come_s, settings.at_once
    for trial in running:
        elapsed_s = max(0.0, time - trial.started_time)
        rest_s = max(0.0, trial.planned_s - elapsed_s)
        if trial.wait_s is not None:
            rest_s = trial.wait_s + trial.planned_s
        if ended:
            since = ended[-1].finished_time if at_once == 1 else trial.began_time
            usual_s = trial.planned_s + _extra_s(ended, settings.pause_s, at_once)
            rest_s = max(rest_s, since + usual_s - time)
        if trial.is_repeated:
            ended = [*ended, Timing(trial.planned_s, trial.began_time, time + rest_s)]
        left += rest_s
    left += to_come * _extra_s(ended, settings.pause_s, at_once)
    return max(0.0, left / max(1, min(at_once, len(running) + to_come)))


def wait_s(settings: Settings, attempt: int, since_s: float) -> float:
    """Return the time until the attempt after one that failed ``since_s`` ago.

    Attempts at a server that is starting are numbered, too, and do not wait longer than any that
    the profile allows.
    """
    longest = max(1, settings.attempts - 1)
    return max(0.0, settings.wait_s(min(attempt, longest)) - since_s)


def _extra_s(ended: Sequence[Timing], pause_s: float, at_once: int = 1) -> float:
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
    beyond_s = [timing.finished_time - timing.started_time - timing.planned_s for timing in ended]
    return max(0.0, median(beyond_s)) if beyond_s else 0.0
