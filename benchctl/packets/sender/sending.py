"""The data of one end of a connection, and the acknowledgements that they get.

Sequence numbers count from 0, which is the SYN, and do not wrap; the first byte of data is 1. In a
trace that begins in the middle, 1 is the first byte that it has.

Bytes that come late or again:

- They fill a gap within a round trip: others overtook them on the way (out of order).
- They fill a gap later: a first copy was lost before the place of the trace (retransmission).
- They were seen before, with the same IPv4 identification: the network doubled the packet.
- They were seen before: a retransmission; `retransmissions` says why.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Sequence

from benchctl.packets.sender.gaps import Gap, Gaps
from benchctl.packets.sender.reading import Reading
from benchctl.packets.sender.retransmissions import Retransmissions, Why
from benchctl.packets.sender.seen import Seen, Sent
from benchctl.packets.sender.waiting import RAISED, RAISED_S, Waiting
from benchctl.packets.wire.frames import FIN, SYN, options_of

MASK = 0xFFFFFFFF
BOUNDS = SYN | FIN
"""Flags that take a sequence number."""
MOST_TIMED = 1 << 16
"""Segments in flight whose round trip is measured."""
_BACK = 1 << 31
_RECENT = 256
"""Segments among which the one that the network doubled is looked for."""
_REORDERING_S = 0.003
"""How late what was overtaken may be if no round trip is known, as in Wireshark."""
_OVERTAKEN = 0.9
"""Of the least round trip: later, bytes that fill a gap may have been sent because of the gap."""
_UNSURE_S = 0.01
"""How much longer than a round trip an answer may take: timers of hosts tick that coarsely."""
_AT_ONE_PLACE = 0.05
"""The trace was taken at an end if less than this share of the round trip is between."""
_USUAL_SEGMENT_BYTES = 1460
_ONLY_TIMESTAMPS = b"\x01\x01\x08\x0a"


class HalfConnection:
    """The fold over the data of one end; ``peer`` is the half of the other end."""

    __slots__ = (
        "_dup_at", "_dups", "_edge", "_gaps", "_least_edge", "_raised_s", "_reading", "_recent",
        "_repeated_bytes", "_repeated_to", "_room", "_sacked_to", "_sent", "_smooth_s", "_unread_s",
        "acked", "announced_scale", "base", "data_bytes", "data_segments", "doubled", "dsacks",
        "duplicate_acks", "first_data_s", "frame_bytes", "handshake_s", "heard_ack", "heard_s",
        "heard_window", "keep_alives", "largest_bytes", "last_data_s", "least_s", "mss_bytes",
        "next", "out_of_order", "packets", "peer", "retransmissions", "rtt_s", "rtt_times_s",
        "sack_acks", "sack_blocks", "sack_permitted", "scale", "seen", "shift", "synchronized",
        "timestamps", "triple_acks", "waiting", "window_least_bytes", "window_most_bytes",
    )  # fmt: skip

    def __init__(self) -> None:
        self.peer = self
        self.seen: Seen | None = None
        self.packets = self.frame_bytes = 0
        # What this end announced in its SYN, if that is in the trace.
        self.synchronized = False
        self.mss_bytes: int | None = None
        self.scale: int | None = None
        # None as long as that is not in the trace.
        self.announced_scale: bool | None = None
        self.sack_permitted: bool | None = None
        self.timestamps: bool | None = None
        # What it sent.
        self.next = 0
        self.data_segments = self.data_bytes = self.largest_bytes = 0
        self.first_data_s: float | None = None
        self.last_data_s: float | None = None
        self.out_of_order = self.doubled = self.keep_alives = 0
        self.retransmissions: Retransmissions | None = None
        self.waiting: Waiting | None = None
        # What its receiver answered; ``shift`` is the scale of the receiver's windows, if known.
        self.acked = 0
        self.shift: int | None = None
        self.handshake_s: float | None = None
        self.least_s: float | None = None
        self.rtt_times_s, self.rtt_s = array("d"), array("d")
        self.duplicate_acks = self.triple_acks = 0
        self.sack_acks = self.sack_blocks = self.dsacks = 0
        self.window_least_bytes: int | None = None  # `timeline` begins anew in each interval
        self.window_most_bytes: int | None = None
        self.base: int | None = None
        """The sequence number that counts as 0, less 2^32 for each time that they have wrapped.

        None before a segment of this end is seen.
        """
        self._gaps: Gaps | None = None
        self._sent: deque[tuple[int, float, int]] | None = None
        self._recent: list[int] | None = None
        self._repeated_bytes = self._repeated_to = self._sacked_to = self._dups = 0
        self._dup_at = -1
        self._smooth_s: float | None = None
        self._raised_s = 0.0
        self.heard_ack = self.heard_window = -1
        """The last acknowledgement and the last window, as on the wire, at ``heard_s``."""
        self.heard_s: float | None = None
        # Data may be sent up to this; without the scale of windows, at least up to the other.
        self._edge: int | None = None
        self._least_edge = 0
        self._room = 0
        self._reading: Reading | None = None
        self._unread_s: float | None = None
        """When the first data came after the last acknowledgement that a reader was seen by."""

    def begin(self, time_s: float, seq: int, flags: int) -> None:
        """Count from this sequence number, the first that is seen."""
        if flags & SYN:
            self.base = seq
        else:
            self.base = (seq - 1) & MASK
            self.next = self.acked = 1
            # What was sent before the trace began may come again, or late.
            self._missed(Gap(-_BACK, 1, time_s))

    def begins_with(self, seq: int) -> bool:
        """Return whether this is the number of the SYN, or nothing is known of it."""
        return self.base is None or (self.synchronized and self.base & MASK == seq)

    @property
    def lag_s(self) -> float:
        """The round trip between the place of the trace and the sender; 0 if it is there.

        Unknown without the handshake, and then 0.
        """
        ours, theirs = self.handshake_s, self.peer.handshake_s
        if ours is None or theirs is None or theirs < _AT_ONE_PLACE * (ours + theirs):
            return 0.0
        return theirs

    @property
    def segment_bytes(self) -> int:
        """The data of a full segment."""
        known = [half.mss_bytes for half in (self, self.peer) if half.mss_bytes is not None]
        stamped = self.timestamps, self.peer.timestamps
        if known and False in stamped:
            return max(1, min(known))
        if known and True in stamped:  # the other end agrees, as far as is known
            return max(1, min(known) - 12)  # RFC 7323, appendix A
        return self.largest_bytes or _USUAL_SEGMENT_BYTES

    @property
    def unique_bytes(self) -> int:
        """Bytes of data that passed, each once."""
        return self.data_bytes - self._repeated_bytes

    @property
    def unseen_bytes(self) -> int:
        """Bytes that were acknowledged, and are not in the trace: its recorder missed them."""
        return 0 if self._gaps is None else self._gaps.missing_bytes(1, self.acked)

    @property
    def absent_bytes(self) -> int:
        """Bytes that never came, though later ones did."""
        return 0 if self._gaps is None else self._gaps.missing_bytes(max(1, self.acked), self.next)

    @property
    def window_bytes(self) -> int | None:
        """The receiver's window now, if it is known."""
        return None if self._edge is None else self._edge - self.acked

    @property
    def is_recovering(self) -> bool:
        """Return whether data in flight are missing, or were sent again, as far as was reported."""
        return self._dups > 0 or max(self._repeated_to, self._sacked_to) > self.acked

    def send(
        self, time_s: float, seq: int, length: int, flags: int, ident: int, options: bytes = b""
    ) -> None:
        """Data, a SYN or a FIN were sent."""
        assert self.base is not None
        ahead = self.next
        start = seq - self.base
        if start != ahead:
            start = ahead + ((start - ahead + _BACK) & MASK) - _BACK
            self.base = seq - start
        end, echo = start + length, None
        if flags & BOUNDS:
            end += 1 if flags & SYN else 0
            end += 1 if flags & FIN else 0
        if length:
            self.data_segments += 1
            self.data_bytes += length
            if self.waiting is None:
                self.first_data_s = time_s
                self.waiting = Waiting(time_s, start, self._edge, self.lag_s, self.segment_bytes)
                self.waiting.least_edge = self._least_edge
                self.waiting.seen = self.seen
            if self.largest_bytes < length:
                self.largest_bytes = length
                self.waiting.segment_bytes = self.segment_bytes
            if self.waiting.stamped and options.startswith(_ONLY_TIMESTAMPS):
                echo = int.from_bytes(options[8:12])
        if start < ahead:
            self._late(time_s, start, end, length, seq << 16 | ident, echo)
        if end > ahead:
            if start > ahead:
                self._missed(Gap(ahead, start, time_s))
                ahead = start
            if self._sent is None:
                self._sent = deque(maxlen=MOST_TIMED)
            self._sent.append((end, time_s, ahead))
            self.next = end
            if self._unread_s is None:
                self._unread_s = time_s
            if self.seen is not None and start >= ahead:
                self.seen.sent(time_s, start, end, Sent.NEW)
        if length:
            if ident:
                recent = self._recent
                if recent is None:
                    recent = self._recent = []
                elif len(recent) > 2 * _RECENT:
                    del recent[:_RECENT]
                recent.append(seq << 16 | ident)
            self.last_data_s = time_s
            waiting = self.waiting
            assert waiting is not None
            waiting.sent(time_s, end, length, echo)

    def _missed(self, gap: Gap) -> None:
        if self._gaps is None:
            self._gaps = Gaps()
        self._gaps.open(gap)

    def _late(
        self, time_s: float, start: int, end: int, length: int, mark: int, echo: int | None
    ) -> None:
        """Bytes came late or again."""
        filled, since_s = (0, None) if self._gaps is None else self._gaps.fill(start, end)
        flying = range(self.acked, self.next)
        self._repeated_bytes += length - min(length, filled + max(0, end - self.next))
        # An acknowledgement of these bytes, or past them, times nothing.
        self._repeated_to = max(self._repeated_to, end)
        if since_s is not None and time_s - since_s < _OVERTAKEN * self._path_s():
            self.out_of_order += 1
            how = Sent.LATE
        elif since_s is None and self._recent is not None and mark in self._recent:
            self.doubled += 1
            how = Sent.DOUBLED
        else:
            how = Sent.AGAIN
        if self.seen is not None:
            self.seen.sent(time_s, start, end, how)
        if how is not Sent.AGAIN:
            return
        if self.retransmissions is None:
            self.retransmissions = Retransmissions()
        silent = self._is_silent(time_s)
        reported = (
            self._dups > 0 or start == self._dup_at or self._sacked_to > max(start, self.acked)
        )
        if start and not self._knows_cause(silent=silent, reported=reported):
            kind, silent = Why.OTHER, False
        else:
            kind = self.retransmissions.why(start, end, flying, silent=silent, reported=reported)
        needless = end <= self.acked and self.heard_ack >= 0
        self.retransmissions.add(time_s, start, start + length, kind, needless)
        if self.waiting is not None and length:
            if silent:
                self.waiting.expired(time_s, end, echo)
            self.waiting.lost(time_s)

    def _knows_cause(self, *, silent: bool, reported: bool) -> bool:
        """Return whether the trace shows how long an answer takes, and what the sender knew.

        A trace that began in the middle shows neither before a round trip, and later only that of
        one half: a silence after a report may be the way to the sender.
        """
        if self._smooth_s is None:
            return self.synchronized and self.heard_s is not None
        return self.synchronized or self.peer.least_s is not None or not (silent and reported)

    def _is_silent(self, time_s: float) -> bool:
        """Return whether both ends were silent for longer than an answer takes.

        An answer was possible with every acknowledgement, and with all data that were sent.
        """
        last = [at_s for at_s in (self.heard_s, self.last_data_s) if at_s is not None]
        if not last or self._smooth_s is None:
            return True
        patience_s = 1.25 * (self._smooth_s + (self.peer.least_s or 0.0)) + _UNSURE_S
        return time_s - max(last) > patience_s

    def _path_s(self) -> float:
        """Return the least round trip between both ends."""
        if self.least_s is None or self.peer.least_s is None:
            return max(_REORDERING_S, self.least_s or 0.0)
        return self.least_s + self.peer.least_s

    def is_probe(self, seq: int, length: int) -> bool:
        """Return whether a segment repeats an acknowledged byte, to provoke an acknowledgement.

        A keep-alive or a zero-window probe: RFC 9293, sections 3.8.4 and 3.8.6.1.
        """
        if self.base is None or length > 1 or self.next < 2:
            return False
        return not (self.base + self.next - 1 - seq) & MASK and self.next - 1 < self.acked

    def hear(self, time_s: float, ack: int, window: int, bare: bool, options: bytes) -> None:
        """The receiver acknowledged data; ``bare`` if the segment does nothing else."""
        if self.base is None:
            return
        before, last, said = self.acked, self.heard_window, ack
        ack = before + ((ack - self.base - before + _BACK) & MASK) - _BACK
        if ack < before:
            if self.synchronized or self.heard_ack >= 0:
                return  # overtaken by a newer one
            before = self.acked = ack  # the first that is seen, of data before the trace
        self.heard_ack, self.heard_window = said, window
        self.heard_s = time_s
        shift = self.shift
        room = window if not window or shift is None else window << shift
        if ack > before:
            if ack > self.next:
                self._missed(Gap(self.next, ack, time_s))
                self.next = ack
            self._time(time_s, before, ack)
            self.acked = ack
            self._dups = 0
        elif bare and window == last and self.next > ack:
            self._dups += 1  # RFC 5681, section 2
            self._dup_at = ack
            self.duplicate_acks += 1
            if window:
                # What a receiver has behind a gap cannot be read.
                self._unread_s = self._reading = None
            if self._dups == 3:
                self.triple_acks += 1
        if window != last and (shift is not None or not window):
            if self.window_most_bytes is None or room > self.window_most_bytes:
                self.window_most_bytes = room
            if self.window_least_bytes is None or room < self.window_least_bytes:
                self.window_least_bytes = room
        if shift is not None:
            if room > self._room or (room == self._room and ack - before >= 1 << shift):
                self._unread_s = self._reading = None
            elif ack > before:
                self._shrink(time_s, before, ack + room)
            self._room = room
        if shift is not None or not window:
            self._edge = self._least_edge = ack + room
        else:
            self._edge, self._least_edge = None, ack + window
        blocks: Sequence[tuple[int, int]] = ()
        if options and (len(options) > 12 or not options.startswith(_ONLY_TIMESTAMPS)):
            blocks = self._selective(ack, options)
        if self.seen is not None:
            self.seen.heard(time_s, ack, self._edge, blocks)
        if self.waiting is not None:
            stamp = None
            if self.waiting.stamped and options.startswith(_ONLY_TIMESTAMPS):
                stamp = int.from_bytes(options[4:8])
            self.waiting.heard(time_s, ack, self._edge, self._least_edge, stamp)

    def _shrink(self, time_s: float, before: int, edge: int) -> None:
        """The receiver's window is smaller than before; its right edge is this."""
        if self._reading is None:
            self._reading = Reading(before + self._room)
        if self._unread_s is None:
            self._unread_s = time_s
        if self._reading.shrinks(edge, self._unread_s):
            self._unread_s = None

    def stopped_s(self, time_s: float) -> float | None:
        """Return when the first data came that are unread, now that the window is zero.

        None if the scale of the windows is unknown.
        """
        if self.shift is None:
            return None
        unread_s = time_s if self._unread_s is None else self._unread_s
        if self._reading is None:
            return unread_s
        return self._reading.stopped_s(1 << self.shift, unread_s)

    def _time(self, time_s: float, before: int, ack: int) -> None:
        """Take the round trip of the newest byte that is acknowledged, if it is known."""
        sent, item = self._sent, None
        while sent and sent[0][0] <= ack:
            item = sent.popleft()
        if not sent:
            self._sent = None  # an empty one holds half a kilobyte
        if before < self._repeated_to:
            return
        if sent and (item is None or item[0] < ack) and sent[0][2] < ack:
            item = sent[0]  # a part of it: large segments are split after the trace sees them
        elif item is None or item[0] < ack:
            return
        rtt_s = time_s - item[1]
        if rtt_s < 0:
            return
        self.rtt_times_s.append(time_s)
        self.rtt_s.append(rtt_s)
        if self.least_s is None or rtt_s < self.least_s:
            self._shorter(rtt_s)
        if self._smooth_s is None:
            self._smooth_s = rtt_s
            if not before:
                self.handshake_s = rtt_s
        else:
            self._smooth_s += (rtt_s - self._smooth_s) / 8  # RFC 6298
            if self.waiting is not None:
                self.waiting.round_s = self._smooth_s
                # A segment alone may be acknowledged late (RFC 1122, section 4.2.3.2).
                if self._smooth_s > self._raised_s and self.next - before > self.segment_bytes:
                    self.waiting.shows(time_s)

    def _shorter(self, rtt_s: float) -> None:
        """Take a round trip that is shorter than all before."""
        before_s, self.least_s = self.least_s, rtt_s
        self._raised_s = rtt_s + RAISED * (rtt_s + self.lag_s) + RAISED_S
        if before_s is not None and before_s > self._raised_s and self.waiting is not None:
            self.waiting.doubt()

    def _selective(self, ack: int, options: bytes) -> Sequence[tuple[int, int]]:
        """Take the SACK blocks of an acknowledgement, and return them (RFC 2018, RFC 2883)."""
        base = self.base or 0
        found: Sequence[tuple[int, int]] = ()
        for kind, value in options_of(options):
            if kind != 5 or len(value) < 8:
                continue
            blocks = []
            for at in range(0, len(value) - 7, 8):
                edges = (int.from_bytes(value[at + n : at + n + 4]) for n in (0, 4))
                start, end = (ack + ((edge - base - ack + _BACK) & MASK) - _BACK for edge in edges)
                blocks.append((start, end))
            found = blocks
            self.sack_acks += 1
            self.sack_blocks += len(blocks)
            start, end = blocks[0]
            if end <= ack or (len(blocks) > 1 and blocks[1][0] <= start and end <= blocks[1][1]):
                self.dsacks += 1
                if self.retransmissions is not None:
                    self.retransmissions.received_twice(start, end)
                blocks = blocks[1:]
            for _, end in blocks:
                if self._sacked_to < end <= self.next:
                    self._sacked_to = end
        return found
