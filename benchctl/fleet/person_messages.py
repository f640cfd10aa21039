"""What a person and the coordinator say to each other, over `bench.submit` and `bench.log`.

A person's message is answered by one of the coordinator's to them. The log of a run is for all.
"""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, Struct

from benchctl.fleet.host_messages import Heartbeat
from benchctl.fleet.messages import (
    Done,
    FleetMessage,
    LineText,
    ReasonText,
    Refused,
    Serial,
    ShortText,
    UnixTime,
)

PEOPLE: Final = "people"
"""The receiver that messages of a log name."""
PART_BYTES: Final = 1 << 19
_MOST_ROWS: Final = 100_000
_Options = Annotated[tuple[LineText, ...], Meta(max_length=1000)]


# --- of a person --------------------------------------------------------------------------------


class ProfileFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A profile, or one that it extends: the name of its file, and its text."""

    name: Annotated[str, Meta(min_length=1, max_length=255)]
    text: Annotated[str, Meta(max_length=500_000)]


class Submit(FleetMessage, frozen=True, tag="submit"):
    """Measure a profile, which is planned anew; answered by `Submitted`.

    ``files`` are the profile and those that it extends, in this order. ``token`` is the same in a
    repeat of this message, which then makes no second run.
    """

    token: ShortText
    files: Annotated[tuple[ProfileFile, ...], Meta(min_length=1, max_length=32)]
    assignments: _Options = ()
    only: _Options = ()
    repeats: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    tags: _Options = ()
    yes: bool = False


class CheckPlan(FleetMessage, frozen=True, tag="check plan"):
    """What of a submission would be refused, by whom; answered by `PlanChecked`."""

    submit: Submit


class StopRun(FleetMessage, frozen=True, tag="stop run"):
    """Stop a run, or take it out of the queue."""

    run: ShortText


class SkipTrial(FleetMessage, frozen=True, tag="skip trial"):
    """Skip the trials of a run that are measured now."""

    run: ShortText


class ListQueue(FleetMessage, frozen=True, tag="list queue"):
    """Who measures what; answered by `Queue`."""


class ListHosts(FleetMessage, frozen=True, tag="list hosts"):
    """How the hosts are; answered by `HostList`."""


class ListRuns(FleetMessage, frozen=True, tag="list runs"):
    """Which runs there are, the newest first; answered by `RunList`."""

    most: Annotated[int, Meta(ge=1, le=10_000)] = 100


class FetchRun(FleetMessage, frozen=True, tag="fetch run"):
    """A part of a run's record, from an offset; answered by `RunPart`.

    The first, at offset 0, makes a new record.
    """

    run: ShortText
    offset: Serial = 0


OfPerson = Submit | CheckPlan | StopRun | SkipTrial | ListQueue | ListHosts | ListRuns | FetchRun


# --- of the coordinator -------------------------------------------------------------------------


class Submitted(FleetMessage, frozen=True, tag="submitted"):
    """The run of a profile, and what is to be said of it."""

    run: ShortText
    trials: Serial
    notes: Annotated[tuple[LineText, ...], Meta(max_length=100)] = ()


class PlanChecked(FleetMessage, frozen=True, tag="plan checked"):
    """How many trials there would be; what is refused, and which hosts are away, a line each."""

    trials: Serial
    refusals: Annotated[tuple[ReasonText, ...], Meta(max_length=10_000)]
    away: Annotated[tuple[LineText, ...], Meta(max_length=10_000)] = ()


class QueuedRun(Struct, frozen=True, forbid_unknown_fields=True):
    """A run that is measured, or waits; ``waits_for`` says what for, empty if it is measured."""

    run: ShortText
    person: ShortText
    profile: LineText
    hosts: Serial
    trials: Serial
    ended: Serial
    """How many trials have ended."""
    submitted_s: UnixTime
    waits_for: LineText = ""


class Queue(FleetMessage, frozen=True, tag="queue"):
    """The answer to `ListQueue`, in the order in which runs begin."""

    runs: Annotated[tuple[QueuedRun, ...], Meta(max_length=_MOST_ROWS)]


class HostReport(Struct, frozen=True, forbid_unknown_fields=True):
    """A host as the coordinator knows it.

    ``heard_s`` is when it was last heard of, by the coordinator's clock; 0 for never. ``offset_s``
    is what its clock is ahead of that, ``offset_error_s`` the most by which this may differ; None
    if it is not known.
    """

    name: ShortText
    is_away: bool
    heard_s: UnixTime = 0.0
    offset_s: float | None = None
    offset_error_s: float | None = None
    heartbeat: Heartbeat | None = None


class HostList(FleetMessage, frozen=True, tag="hosts"):
    """The answer to `ListHosts`."""

    hosts: Annotated[tuple[HostReport, ...], Meta(max_length=_MOST_ROWS)]


class KnownRun(Struct, frozen=True, forbid_unknown_fields=True):
    """A run in the coordinator's store."""

    run: ShortText
    person: ShortText
    status: ShortText
    logged: Serial


class RunList(FleetMessage, frozen=True, tag="runs"):
    """The answer to `ListRuns`."""

    runs: Annotated[tuple[KnownRun, ...], Meta(max_length=_MOST_ROWS)]


class RunPart(FleetMessage, frozen=True, tag="run part"):
    """A part of a run's record: a compressed store that has this run alone.

    ``total`` is how many bytes there are, ``logged`` the number of the last message in it.
    """

    data: Annotated[bytes, Meta(max_length=PART_BYTES)]
    total: Serial


ToPerson = Submitted | PlanChecked | Queue | HostList | RunList | RunPart | Done | Refused


class RunWrites(FleetMessage, frozen=True, tag="log"):
    """The next writes of a run, as `benchctl.store.log.writes` has them."""

    run: ShortText
    number: Serial
    data: Annotated[bytes, Meta(max_length=1 << 20)]
