"""One TCP connection: the fold over its segments."""

from __future__ import annotations

from enum import Enum
from math import inf

from msgspec import Struct

from benchctl.packets.sender.sending import BOUNDS, HalfConnection
from benchctl.packets.timeline import Timeline
from benchctl.packets.wire.frames import ACK, FIN, RST, SYN, options_of

_CONTROL = BOUNDS | RST


class Ending(Enum):
    """How a connection ended, as far as the trace goes."""

    UNANSWERED = "not answered"
    REFUSED = "refused"
    OPEN = "open at the end of the trace"
    HALF_CLOSED = "closed by one end"
    CLOSED = "closed"
    RESET = "reset"


class ZeroWindow(Struct):
    """A time during which a receiver's window was zero.

    From the first acknowledgement that says so, to the first that does not (None in an open one).
    """

    direction: int
    """Whose data had to wait: 0 those of the first end, 1 of the second."""
    begin_s: float
    end_s: float | None = None
    acks: int = 1
    probes: int = 0
    full_s: float | None = None
    """When data filled the window before, if the sender's last ones did."""
    unread_s: float | None = None
    """When the first data came that the receiver did not read before it opened its window again.

    None if the scale of its windows is unknown.
    Its window shrinks from then on. It is zero only when the sender has filled it to the last byte:
    what is less than a segment is kept back until a timer fires (RFC 9293, section 3.8.6.2.1).
    """

    @property
    def pause_s(self) -> float | None:
        """How long the receiver did not read; None if it did not begin again."""
        if self.end_s is None or self.unread_s is None:
            return None
        return self.end_s - self.unread_s


class Connection:
    """A connection between two ends, in the order of its first segment: states in, findings out.

    ``ends`` are the addresses and ports as `frames` has them, ``halves`` the data of each end.
    """

    __slots__ = (
        "_answers",
        "_fins",
        "_shut",
        "_turn_s",
        "began_s",
        "ends",
        "halves",
        "last_s",
        "opener",
        "requests",
        "reset_by",
        "shuts",
        "timeline",
    )  # fmt: skip

    def __init__(self, ends: bytes, began_s: float) -> None:
        self.ends = ends
        self.began_s = self.last_s = began_s
        self.halves = (HalfConnection(), HalfConnection())
        self.halves[0].peer, self.halves[1].peer = self.halves[1], self.halves[0]
        self.opener: int | None = None
        self.reset_by: int | None = None
        self.shuts: list[ZeroWindow] = []
        self.requests: list[str] = []
        self.timeline: Timeline | None = None
        self._turn_s = inf
        self._answers = False
        self._fins = 0
        self._shut: list[ZeroWindow | None] = [None, None]

    def record(self, step_s: float | None = None) -> None:
        """Keep its series over time, in intervals of a length; else of one that its own gives."""
        self.timeline = Timeline(self.began_s, self.halves, step_s)
        self._turn_s = self.began_s

    def feed(
        self, time_s: float, direction: int, wire: int, seq: int, ack: int, flags: int, window: int,
        length: int, ident: int, options: bytes, is_cut: bool = False,
    ) -> None:  # fmt: skip
        """Take a segment that the first end (direction 0) or the second has sent.

        ``is_cut`` says that not all of its options were captured.
        """
        if time_s >= self._turn_s and self.timeline is not None:
            self._turn_s = self.timeline.turn(time_s)
        half = self.halves[direction]
        other = half.peer
        self.last_s = time_s
        half.packets += 1
        half.frame_bytes += wire
        if flags & _CONTROL:
            if flags & RST:
                if self.reset_by is None:
                    self.reset_by = direction
                return
            if flags & FIN:
                self._fins |= 1 << direction
            if flags & SYN:
                self._open(direction, flags, options, is_cut)
        if half.base is None:
            half.begin(time_s, seq, flags)
        if flags & ACK:
            if other.base is None and not flags & RST:
                self._answers = True
            if (
                length and window
                and ack == other.heard_ack and window == other.heard_window
                and len(options) <= 12
            ):  # fmt: skip
                other.heard_s = time_s  # data that repeat what was said before
            else:
                bare = not length and not flags & BOUNDS
                other.hear(time_s, ack, window, bare, options)
                if not window or self._shut[1 - direction] is not None:
                    self._close(time_s, 1 - direction, window, flags)
        if flags & SYN:
            self._agree()
        if length > 1 or flags & BOUNDS:
            half.send(time_s, seq, length, flags, ident, options)
        elif half.is_probe(seq, length):
            if half.seen is not None:
                half.seen.probed(time_s, half.next - 1)
            if (shut := self._shut[direction]) is not None:
                shut.probes += 1
            else:
                half.keep_alives += 1
        elif length:
            if (shut := self._shut[direction]) is not None:
                shut.probes += 1
            half.send(time_s, seq, length, flags, ident, options)

    def _open(self, direction: int, flags: int, options: bytes, is_cut: bool) -> None:
        """Take what an end announces. What may stand in options that were cut off is unknown."""
        half = self.halves[direction]
        if not is_cut:
            half.announced_scale = half.scale is not None
            half.sack_permitted = half.sack_permitted or False
            half.timestamps = half.timestamps or False
        if self.opener is None:
            self.opener = 1 - direction if flags & ACK else direction
        for kind, value in options_of(options):
            if kind == 2 and len(value) == 2:
                half.mss_bytes = int.from_bytes(value)
            elif kind == 3 and len(value) == 1:
                half.scale = min(value[0], 14)  # RFC 7323, section 2.3
                half.announced_scale = True
            elif kind == 4:
                half.sack_permitted = True
            elif kind == 8:
                half.timestamps = True
        half.synchronized = True
        # The window of a SYN is never scaled (RFC 7323, section 2.2).
        half.peer.shift = 0

    def _agree(self) -> None:
        """Windows are scaled if both ends announced it (RFC 7323, section 2.2).

        Who answers a SYN announces it only if that did.
        """
        for direction, half in enumerate(self.halves):
            other = half.peer
            if False in (half.announced_scale, other.announced_scale):
                half.shift = 0
            elif half.announced_scale or self.opener == direction:
                half.shift = other.scale
            else:
                half.shift = None

    def _close(self, time_s: float, direction: int, window: int, flags: int) -> None:
        """A window is zero, or was until now."""
        shut = self._shut[direction]
        if window:
            if shut is not None:
                shut.end_s = time_s
                self._shut[direction] = None
        elif shut is not None:
            shut.acks += 1
        elif not flags & BOUNDS:
            half = self.halves[direction]
            full_s = half.waiting.full_s if half.waiting else None
            shut = self._shut[direction] = ZeroWindow(
                direction, time_s, full_s=full_s, unread_s=half.stopped_s(time_s)
            )
            self.shuts.append(shut)

    @property
    def frame_bytes(self) -> int:
        """Bytes of its frames, both ways."""
        return sum(half.frame_bytes for half in self.halves)

    @property
    def one_way(self) -> bool:
        """Whether only one end's packets are in the trace, though it answers the other's."""
        half = next((half for half in self.halves if half.packets), None)
        return half is not None and not half.peer.packets and self._answers

    def finish(self) -> None:
        """Nothing follows."""
        for half in self.halves:
            if half.waiting is not None:
                half.waiting.finish()
        if self.timeline is not None:
            self.timeline.turn(inf)

    def is_another(self, direction: int, seq: int) -> bool:
        """Return whether a SYN of this number opens another connection between the same ends."""
        return not self.halves[direction].begins_with(seq)

    @property
    def ending(self) -> Ending:
        """How it ended."""
        opener = 0 if self.opener is None else self.opener
        if self.reset_by is not None:
            answered = self.halves[1 - opener].synchronized or self.opener is None
            return Ending.RESET if answered else Ending.REFUSED
        if self.opener is not None and not self.halves[1 - opener].packets and not self.one_way:
            return Ending.UNANSWERED
        return (Ending.OPEN, Ending.HALF_CLOSED, Ending.CLOSED)[self._fins.bit_count()]
