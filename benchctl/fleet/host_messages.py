"""What a coordinator and a host say to each other, over `bench.run`, `bench.hb` and the streams.

The coordinator's messages name ends of flows as data (`EndSpec`): backend, role and parameters.
There is no field for a command, a module or code. Times are by the host's own clock.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

import msgspec
from msgspec import Meta, Struct

from benchctl.analysis.flow_result import check
from benchctl.api import Effective, Event, Failure, Ready, Started, Warn
from benchctl.engine.trial.ends import EndSpec
from benchctl.fleet.messages import (
    AskHost,
    Done,
    EndRef,
    FleetMessage,
    LineText,
    ReasonText,
    Refused,
    Serial,
    ShortText,
    UnixTime,
)
from benchctl.metrics import Sample, Summary, TracedRoute

# More than a host takes part in at once.
MOST_ENDS = 1024
"""Of one message."""
_MOST_EVENTS = 20_000
_Words = Annotated[tuple[LineText, ...], Meta(max_length=4096)]
_Number = Annotated[float, Meta(ge=-1e15, le=1e15)]


# --- of the coordinator -----------------------------------------------------------------------


class PreparedEnd(Struct, frozen=True, forbid_unknown_fields=True):
    """One end that a host is to bring to where it waits."""

    ref: EndRef
    spec: EndSpec


class Prepare(FleetMessage, frozen=True, tag="prepare"):
    """Start servers until they are ready, and clients up to their gates; answered by `Prepared`."""

    ends: Annotated[list[PreparedEnd], Meta(min_length=1, max_length=MOST_ENDS)]


class JudgeEnds(FleetMessage, frozen=True, tag="judge"):
    """Say what would be refused of these; answered by why, a text for each, empty if nothing is."""

    ends: Annotated[list[PreparedEnd], Meta(min_length=1, max_length=MOST_ENDS)]


class Neighbours(FleetMessage, frozen=True, tag="neighbours"):
    """The addresses of the fleet's hosts: targets that an owner need not list.

    ``keys`` is the newest set of the coordinator's keys, which the root key has signed.
    """

    addresses: Annotated[tuple[ShortText, ...], Meta(max_length=65536)]
    keys: Annotated[bytes, Meta(max_length=4096)] = b""


class GoingEnd(Struct, frozen=True, forbid_unknown_fields=True):
    """When a client begins; at once if ``at_s`` is 0, but not after ``latest_s``."""

    ref: EndRef
    at_s: UnixTime
    latest_s: UnixTime


class StopEnds(FleetMessage, frozen=True, tag="stop"):
    """Let ends end in order and report; their `EndOver` follows in the stream."""

    ends: Annotated[list[EndRef], Meta(max_length=MOST_ENDS)]


class AbortEnds(FleetMessage, frozen=True, tag="abort"):
    """Kill ends."""

    ends: Annotated[list[EndRef], Meta(max_length=MOST_ENDS)]


class Lock(FleetMessage, frozen=True, tag="lock"):
    """Hold the host for a run; answered by who has it, empty if it is held now."""

    run: ShortText
    who: LineText


class Unlock(FleetMessage, frozen=True, tag="unlock"):
    """Leave the host to other runs."""

    run: ShortText


class CommittedEnd(Struct, frozen=True, forbid_unknown_fields=True):
    """All messages of an end up to a number are in the coordinator's store."""

    ref: EndRef
    number: Serial


class Ping(FleetMessage, frozen=True, tag="ping"):
    """Answered at once, by a `Heartbeat`: when that was issued shows the host's clock.

    The spool need not keep what is committed any longer.
    """

    committed: Annotated[tuple[CommittedEnd, ...], Meta(max_length=MOST_ENDS)] = ()


class Go(FleetMessage, frozen=True, tag="go"):
    """Let clients begin; refused whole if one of them is late, else answered as a `Ping`.

    So a host that measures one trial after another need not be asked how it is, too.
    """

    ends: Annotated[list[GoingEnd], Meta(min_length=1, max_length=MOST_ENDS)]
    committed: Annotated[tuple[CommittedEnd, ...], Meta(max_length=MOST_ENDS)] = ()


_OfEnds = Prepare | JudgeEnds | Go | StopEnds | AbortEnds
ToHost = _OfEnds | Neighbours | Lock | Unlock | Ping | AskHost


# --- answers of a host ------------------------------------------------------------------------


_Count = Annotated[int, Meta(ge=0)]


class ReadCounters(TypedDict):
    """The counters of a host, as `benchctl.hosts.sent.counters.read` returns them."""

    time_s: Annotated[float, Meta(ge=0, le=1e12)]
    interfaces: Annotated[
        dict[ShortText, Annotated[list[_Count], Meta(min_length=8, max_length=8)]],
        Meta(max_length=8192),
    ]
    counts: Annotated[dict[ShortText, _Count], Meta(max_length=64)]
    cores: Annotated[
        dict[ShortText, Annotated[list[_Count], Meta(min_length=4, max_length=4)]],
        Meta(max_length=4096),
    ]


class PreparedAt(Struct, frozen=True, forbid_unknown_fields=True):
    """An end that waits: its program, the tool's version, the words of its command.

    Without ``is_up`` it does not wait; a `Failure` among its events says why.
    """

    ref: EndRef
    is_up: bool
    is_ready: bool = False
    stays: bool = False
    name: LineText = ""
    version: ShortText = ""
    shown: _Words = ()
    port: Annotated[int, Meta(ge=1, le=65535)] | None = None
    parameters: dict[str, Any] = {}
    """Those in effect, in SI units."""
    counters: ReadCounters | None = None
    """Those of the host when it waits."""


class Prepared(FleetMessage, frozen=True, tag="prepared"):
    """The answer to `Prepare`."""

    ends: Annotated[list[PreparedAt], Meta(max_length=MOST_ENDS)]


class Plugin(Struct, frozen=True, forbid_unknown_fields=True):
    """A backend that a host has: the version of its package, the hash of its parameters."""

    name: ShortText
    version: ShortText
    schema: ShortText
    why_not: LineText = ""
    """Why it cannot be used there."""


class SpoolState(Struct, frozen=True, forbid_unknown_fields=True):
    """What waits to be committed: bytes on the disk, of how many at most; messages; dropped."""

    used_bytes: Serial
    most_bytes: Serial
    messages: Serial
    dropped: Serial
    free_bytes: Serial
    """Of its disk."""


class Heartbeat(FleetMessage, frozen=True, tag="heartbeat"):
    """What is told of a host: as the answer to `Ping` and `Go`, and each second if none comes.

    ``nonce`` is made at the agent's start: messages to it must carry it. ``limits`` are the owner's
    in words, ``addresses`` those at which others reach it, ``clock`` what the kernel says of its
    clock. ``running`` are its ends that have not ended. ``is_wanted`` is set if another program
    waits for the host since it is held.
    """

    nonce: ShortText
    time_s: UnixTime
    version: ShortText
    plugins: Annotated[list[Plugin], Meta(max_length=256)]
    limits: Annotated[list[LineText], Meta(max_length=256)]
    spool: SpoolState
    clock: dict[ShortText, bool | _Number]
    is_wanted: bool
    certificate_ends_s: UnixTime = 0.0
    running: Annotated[tuple[EndRef, ...], Meta(max_length=MOST_ENDS)] = ()
    addresses: Annotated[tuple[ShortText, ...], Meta(max_length=64)] = ()


class OtherHeartbeat(Struct, frozen=True, tag_field="is", tag="heartbeat"):
    """What is understood of a heartbeat of another version, which may have more, or less."""

    nonce: ShortText
    time_s: UnixTime
    version: ShortText

    @property
    def known(self) -> Heartbeat:
        """The same, as if nothing else was said."""
        return Heartbeat(
            self.nonce, self.time_s, self.version, [], [], SpoolState(0, 0, 0, 0, 0), {}, False
        )


OfHost = Prepared | Done | Refused | Heartbeat


# --- events of an end, in the streams ---------------------------------------------------------

_Kind = Literal[
    "ready", "started", "sample", "summary", "traced_route", "effective", "warn", "failure"
]
_KINDS: dict[str, Any] = {
    "ready": Ready,
    "started": Started,
    "sample": Sample,
    "summary": Summary,
    "traced_route": TracedRoute,
    "effective": Effective,
    "warn": Warn,
    "failure": Failure,
}
_KIND_OF: dict[type, _Kind] = {type_: kind for kind, type_ in _KINDS.items()}  # type: ignore[misc]


class HeardEvent(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """An event of an end, and when it arrived by the host's clock."""

    arrived_s: UnixTime
    kind: _Kind
    fields: dict[str, Any]

    @classmethod
    def of(cls, event: Event, arrived_s: float) -> HeardEvent:
        """Return an event as it is sent."""
        return cls(arrived_s, _KIND_OF[type(event)], msgspec.to_builtins(event))

    @property
    def event(self) -> Event:
        """The event. Raises ValueError or TypeError if it is none that a backend may yield."""
        return check(msgspec.convert(self.fields, _KINDS[self.kind]))


_Events = Annotated[tuple[HeardEvent, ...], Meta(max_length=_MOST_EVENTS)]


class Events(FleetMessage, frozen=True, tag="events"):
    """Events of an end, in order; the messages of an end have the numbers 1, 2, 3 ..."""

    ref: EndRef
    number: Serial
    events: _Events


class EndOver(FleetMessage, frozen=True, tag="over"):
    """The last message of an end, with its last events.

    ``code`` is its exit code, negative for a signal, None for one that was killed at its gate or
    was lost with its agent: then ``lost`` says why. ``dropped`` are the samples that its full spool
    did not take, ``counters`` those of the host when it had ended.
    """

    ref: EndRef
    number: Serial
    ended_s: UnixTime
    code: Annotated[int, Meta(ge=-64, le=255)] | None
    stderr: Annotated[str, Meta(max_length=16384)] = ""
    lost: ReasonText = ""
    dropped: Serial = 0
    events: _Events = ()
    counters: ReadCounters | None = None


OfEnd = Events | EndOver
