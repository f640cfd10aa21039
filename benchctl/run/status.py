"""The states of a run, a trial and a flow, and which may follow which.

::

    planned ──▶ running ──▶ ok, failed, timed_out, interrupted, skipped
       ▲ │         │                │
       │ └─────────┼────────────────┼──▶ failed, timed_out, interrupted, skipped
       └───────────┴────────────────┘  resumed: what never ended, was interrupted, or failed

A failed trial is measured again only on request. A run is resumed from failed if one of its trials
is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum


class Status(StrEnum):
    """The state of a run, a trial or a flow."""

    PLANNED = "planned"
    RUNNING = "running"
    OK = "ok"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    INTERRUPTED = "interrupted"
    SKIPPED = "skipped"
    DIED = "died"
    """Of a run only, and never stored: its status is running, but it has no runner."""

    @property
    def has_ended(self) -> bool:
        """Whether nothing more is measured, unless the run is resumed."""
        return self not in UNFINISHED

    @property
    def is_open(self) -> bool:
        """Whether a trial in this state is measured when its run is resumed."""
        return self in OPEN

    @property
    def counts(self) -> bool:
        """Whether the figures of a flow in this state count: it measured until its deadline."""
        return self in COUNTED

    def may_become(self, other: Status) -> bool:
        """Return whether the other state may follow this one."""
        return other in TRANSITIONS[self]


def overall(statuses: Collection[Status]) -> Status:
    """Return the status of a trial by those of its flows: the worst of them counts."""
    # After a failure, the others were cut short because of it.
    return next((status for status in _WORST if status in statuses), Status.OK)


UNFINISHED = (Status.PLANNED, Status.RUNNING)
OPEN = (*UNFINISHED, Status.INTERRUPTED)
COUNTED = (Status.OK, Status.TIMED_OUT)
FAILURES = (Status.FAILED, Status.TIMED_OUT)
"""Of trials that are measured again on request."""

_WORST = (Status.FAILED, Status.INTERRUPTED, Status.SKIPPED, Status.TIMED_OUT)
_CUT_SHORT = frozenset(_WORST)
_RESUMED = frozenset({Status.PLANNED})
TRANSITIONS: Mapping[Status, frozenset[Status]] = {
    Status.PLANNED: _CUT_SHORT | {Status.RUNNING},
    Status.RUNNING: _CUT_SHORT | {Status.OK} | _RESUMED,
    Status.INTERRUPTED: _RESUMED,
    Status.FAILED: _RESUMED,
    Status.OK: frozenset(),
    Status.TIMED_OUT: _RESUMED,
    Status.SKIPPED: frozenset(),
    Status.DIED: _RESUMED,
}
