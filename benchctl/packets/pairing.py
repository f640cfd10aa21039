"""Two traces of the same connections, from two places: what left one and came to the other.

A packet is known at both places by what no router changes: sequence and acknowledgement number,
bytes of data, options, and the identification of its IPv4 packet. Without the latter (IPv6), two
copies may be alike, and an arrival is that of the newest that had left early enough. Large segments
of hosts that let their devices split them (TSO) or join them (GRO) count as the packets that they
are on the wire.

With one clock for both places the delays are true. With two they have the clocks' offset in them.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec import Struct

from benchctl.packets.sender.sending import MASK
from benchctl.packets.wire.frames import FIN, PSH, SYN, Segment, options_of, reverse

_FIRST = 1 << 10
"""Packets whose least delay is the first estimate of the path's."""
ALWAYS = -math.inf, math.inf
_TICK_S = 2e-6
"""Traces round times to microseconds, at both places; differences of times are rounded, too."""
_SLACK_S = 1.0
"""How much less than that estimate a delay may be: a first packet may have waited in a queue."""


class Passed:
    """The packets of one end of a connection, in the order in which they passed one place.

    Times are seconds of the trace; sequence numbers are as on the wire, sizes bytes of data.
    """

    __slots__ = ("keys", "mss_bytes", "numbers", "sizes", "times_s")

    def __init__(self) -> None:
        self.times_s, self.keys = array("d"), array("q")
        self.numbers, self.sizes = array("L"), array("L")
        self.mss_bytes = 0
        """The least that both ends announced; 0 if that is not in the trace."""

    def add(self, time_s: float, key: int, number: int, size: int) -> None:
        """Take the next packet."""
        self.times_s.append(time_s)
        self.keys.append(key)
        self.numbers.append(number & MASK)
        self.sizes.append(size)


class Passages:
    """What passed one place: the packets of each end of each connection, by its ends."""

    def __init__(self) -> None:
        self.of: dict[bytes, Passed] = {}

    def without_drift(self, drift: float) -> None:
        """Turn times of a clock that gains ``drift`` in each second into those of a true one."""
        for passed in self.of.values():
            passed.times_s = array("d", (time_s / (1 + drift) for time_s in passed.times_s))

    def noting(self, segments: Iterable[Segment]) -> Iterator[Segment]:
        """Yield the segments of a trace, and note each."""
        for segment in segments:
            self._note(segment)
            yield segment

    def _note(self, segment: Segment) -> None:
        (
            time_s, ends, _, seq, ack, flags, window, length, ident, data, options_at, body, stop
        ) = segment  # fmt: skip
        passed = self.of.get(ends)
        if passed is None:
            passed = self.of[ends] = Passed()
        options = data[options_at : min(body, stop)]
        if flags & SYN:
            # Routers rewrite the options of a SYN, the MSS above all.
            self._announce(ends, options)
            passed.add(time_s, hash((seq, ack, flags)), seq, length)
        elif not length:
            passed.add(time_s, hash((seq, ack, flags, window, ident, options)), seq, 0)
        else:
            piece = passed.mss_bytes - len(options)
            if piece <= 0 or piece > length:
                piece = length
            for number, at in enumerate(range(0, length, piece)):
                size = min(piece, length - at)
                piece_ident = ident and (ident + number) & 0xFFFF
                # The last piece alone keeps these two flags; all have the window of the first.
                kept = flags & ~(PSH | FIN)
                passed.add(
                    time_s,
                    hash(((seq + at) & MASK, size, ack, kept, piece_ident, options)),
                    seq + at,
                    size,
                )

    def _announce(self, ends: bytes, options: bytes) -> None:
        for kind, value in options_of(options):
            if kind == 2 and len(value) == 2:
                mss_bytes = int.from_bytes(value)
                for passed in (self.of[ends], self.of.setdefault(reverse(ends), Passed())):
                    passed.mss_bytes = min(passed.mss_bytes or mss_bytes, mss_bytes)


class Crossing(Struct):
    """What came of the packets that left one place toward another.

    ``arrival`` has for each packet that left its place among those that came, or -1; ``departure``
    the same the other way round. ``delays_s`` are of the packets that came, in the order in which
    they left, at ``times_s`` of the first trace.
    """

    left: Passed
    came: Passed
    arrival: array[int]
    departure: array[int]
    times_s: array[float]
    delays_s: array[float]
    lost: list[int]
    """The packets that left and never came, by number among those that left."""
    unknown: int
    """How many left when the other place was no longer recorded, or had not yet been."""
    doubled: int
    """How many came once more than they left."""
    unseen: int
    """How many came and were not seen leaving: their recorder missed them, or came too late."""
    overtaken: int
    """How many came after one that had left later (RFC 4737, type-P-reordered)."""


def follow(
    left: Passed, came: Passed, shift_s: float, recorded_s: tuple[float, float] = ALWAYS
) -> Crossing:
    """Return what came of the packets that left.

    ``shift_s`` is to be added to times of the second trace, to be those of the first;
    ``recorded_s`` is from when until when the second place was recorded, in its own times.
    """
    arrival = array("q", [-1]) * len(left.times_s)
    departure = array("q", [-1]) * len(came.times_s)
    for number, place in _matches(left, came, shift_s):
        arrival[number], departure[place] = place, number
    times_s, delays_s = array("d"), array("d")
    missing = []
    for number, place in enumerate(arrival):
        if place >= 0:
            times_s.append(left.times_s[number])
            delays_s.append(came.times_s[place] + shift_s - left.times_s[number])
        else:
            missing.append(number)
    usual_s = sorted(delays_s)[len(delays_s) // 2] if delays_s else 0.0
    begin_s, end_s = (moment_s + shift_s - usual_s for moment_s in recorded_s)
    lost = [number for number in missing if begin_s <= left.times_s[number] <= end_s]
    unknown = len(missing) - len(lost)
    foreign = {came.keys[place] for place, number in enumerate(departure) if number < 0}
    twice = foreign.intersection(left.keys) if foreign else foreign
    doubled = unseen = overtaken = 0
    furthest = -1
    for place, number in enumerate(departure):
        if number < 0:
            doubled += came.keys[place] in twice
            unseen += came.keys[place] not in twice
        else:
            overtaken += number < furthest
            furthest = max(furthest, number)
    return Crossing(
        left, came, arrival, departure, times_s, delays_s, lost, unknown, doubled, unseen, overtaken
    )  # fmt: skip


def _matches(left: Passed, came: Passed, shift_s: float) -> Iterator[tuple[int, int]]:
    """Yield which packet that left is which that came, both by number.

    Both traces are followed side by side, so that only what is on the way is held in memory.
    """
    least_s = _least_s(left, came, shift_s)
    away: dict[int, list[int]] = {}
    early: dict[int, list[int]] = {}
    number = place = 0
    departures, arrivals = len(left.times_s), len(came.times_s)
    while number < departures or place < arrivals:
        due_s = came.times_s[place] + shift_s - least_s if place < arrivals else math.inf
        if number < departures and left.times_s[number] <= due_s + _TICK_S:
            key, time_s = left.keys[number], left.times_s[number]
            before = early.get(key)
            while before and time_s - (came.times_s[before[0]] + shift_s - least_s) > _SLACK_S:
                before.pop(0)
            if before:
                yield number, before.pop(0)
            else:
                away.setdefault(key, []).append(number)
            number += 1
        else:
            key = came.keys[place]
            if sent := away.get(key):
                yield sent.pop(), place
                if not sent:
                    del away[key]
            else:
                early.setdefault(key, []).append(place)
            place += 1


def _least_s(left: Passed, came: Passed, shift_s: float) -> float:
    """Return the least delay of the first packets, without those that have a copy among them.

    It is 0 if none of them is at both places.
    """
    first, then = left.keys[:_FIRST], came.keys[:_FIRST]
    left_at, came_at = (
        {key: place for place, key in enumerate(keys) if copies[key] == 1}
        for keys, copies in ((first, Counter(first)), (then, Counter(then)))
    )
    delays_s = [
        came.times_s[place] + shift_s - left.times_s[left_at[key]]
        for key, place in came_at.items()
        if key in left_at
    ]
    return min(delays_s, default=0.0)
