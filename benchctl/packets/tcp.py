"""One TCP connection: the fold over its segments."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from benchctl.packets.frames import ACK, FIN, RST, SYN
from benchctl.packets.sending import Half, options_of


class Ending(Enum):
    """How a connection ended, as far as the trace goes."""

    UNANSWERED = "not answered"
    REFUSED = "refused"
    OPEN = "open at the end of the trace"
    HALF_CLOSED = "closed by one end"
    CLOSED = "closed"
    RESET = "reset"


class Shut(Struct):
    """A time during which a receiver's window was zero.

    From the first acknowledgement that says so, to the first that does not (None in an open one).
    """

    way: int
    """Whose data had to wait: 0 those of the first end, 1 of the second."""
    begin_s: float
    end_s: float | None = None
    acks: int = 1
    probes: int = 0
    full_s: float | None = None
    """When data filled the window before, if the sender's last ones did."""


class Connection:
    """A connection between two ends, in the order of its first segment: states in, findings out.

    ``ends`` are the addresses and ports as `frames` has them, ``halves`` the data of each end.
    """

    __slots__ = (
        "_fins", "_shut", "began_s", "ends", "halves", "last_s", "opener", "requests", "reset_by",
        "shuts",
    )  # fmt: skip

    def __init__(self, ends: bytes, began_s: float) -> None:
        self.ends = ends
        self.began_s = self.last_s = began_s
        self.halves = (Half(), Half())
        self.halves[0].peer, self.halves[1].peer = self.halves[1], self.halves[0]
        self.opener: int | None = None
        self.reset_by: int | None = None
        self.shuts: list[Shut] = []
        self.requests: list[str] = []
        self._fins = 0
        self._shut: list[Shut | None] = [None, None]

    def feed(
        self, time_s: float, way: int, wire: int, seq: int, ack: int, flags: int, window: int,
        length: int, ident: int, options: bytes,
    ) -> None:  # fmt: skip
        """Take a segment that the first end (way 0) or the second has sent."""
        one = self.halves[way]
        other = one.peer
        self.last_s = time_s
        one.packets += 1
        one.frame_bytes += wire
        if flags & (SYN | FIN | RST):
            if flags & RST:
                if self.reset_by is None:
                    self.reset_by = way
                return
            if flags & FIN:
                self._fins |= 1 << way
            if flags & SYN:
                self._open(way, seq, flags, options)
        if one.base is None:
            one.begin(time_s, seq, flags)
        if flags & ACK:
            if length and window and (ack, window) == other.heard and len(options) <= 12:
                other.heard_s = time_s  # data that repeat what was said before
            else:
                bare = not length and not flags & (SYN | FIN)
                other.hear(time_s, ack, window, bare, options)
                if not window or self._shut[1 - way] is not None:
                    self._close(time_s, 1 - way, window, flags)
        if flags & SYN:
            self._agree()
        if length > 1 or flags & (SYN | FIN):
            one.send(time_s, seq, length, flags, ident)
        elif one.is_probe(seq, length):
            if (shut := self._shut[way]) is not None:
                shut.probes += 1
            else:
                one.keep_alives += 1
        elif length:
            if (shut := self._shut[way]) is not None:
                shut.probes += 1
            one.send(time_s, seq, length, flags, ident)

    def _open(self, way: int, seq: int, flags: int, options: bytes) -> None:
        """Take what an end announces."""
        one = self.halves[way]
        if self.opener is None:
            self.opener = 1 - way if flags & ACK else way
        for kind, value in options_of(options):
            if kind == 2 and len(value) == 2:
                one.mss_bytes = int.from_bytes(value)
            elif kind == 3 and len(value) == 1:
                one.scale = min(value[0], 14)  # RFC 7323, section 2.3
            elif kind == 4:
                one.sack_permitted = True
            elif kind == 8:
                one.timestamps = True
        one.synchronized = True
        # The window of a SYN is never scaled (RFC 7323, section 2.2).
        one.peer.shift = 0

    def _agree(self) -> None:
        """Windows are scaled if both ends announced it."""
        one, other = self.halves
        if one.synchronized and other.synchronized:
            both = one.scale is not None and other.scale is not None
            one.shift = other.scale if both else 0
            other.shift = one.scale if both else 0

    def _close(self, time_s: float, way: int, window: int, flags: int) -> None:
        """A window is zero, or was until now."""
        shut = self._shut[way]
        if window:
            if shut is not None:
                shut.end_s = time_s
                self._shut[way] = None
        elif shut is not None:
            shut.acks += 1
        elif not flags & (SYN | FIN):
            waiting = self.halves[way].waiting
            shut = self._shut[way] = Shut(way, time_s, full_s=waiting.full_s if waiting else None)
            self.shuts.append(shut)

    @property
    def frame_bytes(self) -> int:
        """Bytes of its frames, both ways."""
        return sum(half.frame_bytes for half in self.halves)

    def finish(self) -> None:
        """Nothing follows."""
        for half in self.halves:
            if half.waiting is not None:
                half.waiting.finish()

    def is_another(self, way: int, seq: int) -> bool:
        """Return whether a SYN of this number opens another connection between the same ends."""
        return not self.halves[way].begins_with(seq)

    @property
    def ending(self) -> Ending:
        """How it ended."""
        opener = 0 if self.opener is None else self.opener
        if self.reset_by is not None:
            answered = self.halves[1 - opener].synchronized or self.opener is None
            return Ending.RESET if answered else Ending.REFUSED
        if self.opener is not None and not self.halves[1 - opener].packets:
            return Ending.UNANSWERED
        return (Ending.OPEN, Ending.HALF_CLOSED, Ending.CLOSED)[self._fins.bit_count()]
