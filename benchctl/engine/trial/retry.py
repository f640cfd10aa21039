"""Whether an attempt at a trial is followed by another one, and after which wait. Pure.

===========  =========================================  ==================  ==========
end          then                                       wait                counts
===========  =========================================  ==================  ==========
ENDED        the trial ends
BUSY         again, at the next port                    none                no
STARTING     again, until the wait for servers is over  doubled, at most 5  no
FAILED       again, while attempts are left             doubled             yes
SITE_FAILED  again in a new lab, as above               none                yes
===========  =========================================  ==================  ==========

The first doubled wait is the back-off of the run, in seconds. A wait that counts takes an attempt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from benchctl.run.planned import Settings

# Longest wait between two looks for a server that is starting.
SERVER_BACKOFF_S = 5.0


class AttemptEnd(Enum):
    """How an attempt went, as far as it matters for the next one."""

    ENDED = auto()
    """Well, or as the user wants, or such that another attempt would end in the same way."""
    BUSY = auto()
    """A server is busy, and has a port that was not tried."""
    STARTING = auto()
    """Servers of others never answered, and may still be starting."""
    FAILED = auto()
    """Another attempt may succeed."""
    SITE_FAILED = auto()
    """The lab failed."""


@dataclass(frozen=True)
class Tries:
    """What was tried of a trial so far."""

    number: int = 1
    """Of the attempt, counted over all runners of the run."""
    counted: int = 1
    """Attempts of those that a profile allows."""
    waits: int = 0
    """How often servers were waited for."""
    ports: Mapping[str, int] = field(default_factory=dict)
    """How many ports each flow has tried."""
    adopted_start_s: float | None = None
    """When an attempt began that an earlier runner has started, and that still goes on, in Unix
    time; None for one that is to be started."""


@dataclass(frozen=True)
class NextAttempt:
    """What is tried next, after a wait."""

    tries: Tries
    wait_s: float


def next_attempt(end: AttemptEnd, tries: Tries, settings: Settings) -> NextAttempt | None:
    """Return what follows an attempt; None ends the trial."""
    again = replace(tries, number=tries.number + 1, adopted_start_s=None)
    match end:
        case AttemptEnd.BUSY:
            return NextAttempt(again, 0.0)
        case AttemptEnd.STARTING:
            wait_s = min(settings.wait_s(tries.waits + 1), SERVER_BACKOFF_S)
            return NextAttempt(replace(again, waits=tries.waits + 1), wait_s)
        case AttemptEnd.FAILED | AttemptEnd.SITE_FAILED if tries.counted < settings.attempts:
            wait_s = 0.0 if end is AttemptEnd.SITE_FAILED else settings.wait_s(tries.counted)
            return NextAttempt(replace(again, counted=tries.counted + 1), wait_s)
        case _:
            return None
