"""UDP payloads: the number and timestamp of a datagram, and their evaluation on arrival; no I/O.

Each datagram starts with two big-endian 64-bit integers: its number in the stream, from 0, and its
stamp. The stamp is the sender's clock in nanoseconds when the datagram was passed to the kernel,
with `SECOND_0` at the end of the omitted part. The rest is zeros. Older senders stamp their
monotonic clock unchanged.
"""

from __future__ import annotations

import struct
from bisect import bisect_right

from benchctl_standalone.histogram import Histogram

HEADER = struct.Struct(">QQ")
# A monotonic clock needs 73 years to reach the first, and no omitted part begins before it.
STAMPS_FROM = 1 << 61
SECOND_0 = 1 << 62
# A higher number is not from simpleperf: other traffic was sent to the port.
_NUMBER_LIMIT = 1 << 48
# Of a part whose first number is not known.
_UNKNOWN = -1
# Number of remembered gaps, which distinguish a late datagram from a duplicate.
_GAPS_LIMIT = 1024
# The factors by which 1, 2, ... equal transit times in a row reduce the smoothed jitter.
_DECAY = [(15 / 16) ** count for count in range(65)]
# The lowest bytes of consecutive numbers, from any on.
_RAMP = bytes(range(256)) * 2


# Each value for all datagrams of a train, of which the kernel joins at most 64 (UDP_GRO_CNT_MAX).
_SAME = [bytes([value]) * 64 for value in range(256)]


class Train:
    """Consecutive datagrams in one buffer: number and stamp of each, then zeros.

    They are written in place, and only the bytes that differ from those of the train before: each
    at once for all datagrams, since the same byte of all heads is a slice of the buffer.
    """

    def __init__(self, length: int, count: int) -> None:
        self.payload = bytearray(length * count)
        self._length = length
        self._count = count
        self._numbers = (0, 0, 0)
        self._stamp = 0

    def write(self, first: int, stamp: int) -> None:
        """Number the datagrams, beginning with the first, and stamp all of them."""
        payload, length, count = self.payload, self._length, self._count
        low = first & 255
        payload[7::length] = _RAMP[low : low + count]
        high, last = first >> 8, first + count - 1 >> 8
        # Beyond the ramp's end, the higher bytes are one higher.
        numbers = high, last, low if high != last else 0
        if numbers != self._numbers:
            before, self._numbers = self._numbers, numbers
            old_high, old_last = before[:2]
            at, ramp = 6, 256 - low
            while at >= 0:
                start, end = _SAME[high & 255], _SAME[last & 255]
                payload[at::length] = (start[:ramp] + end)[:count]
                at, high, last = at - 1, high >> 8, last >> 8
                old_high, old_last = old_high >> 8, old_last >> 8
                if high == last == old_high == old_last:
                    break
        changed, self._stamp = stamp ^ self._stamp, stamp
        at = 15
        while changed:
            payload[at::length] = _SAME[stamp & 255][:count]
            at, stamp, changed = at - 1, stamp >> 8, changed >> 8


def row_of(data: bytearray, length: int, count: int) -> tuple[int, int] | None:
    """Return the first number and the time of datagrams that were sent as one train, in order.

    None if they were not. Compares the ends, and the three lowest bytes of each number: no network
    keeps a datagram until 16 million others have passed it.
    """
    size = count * length
    low = data[7]
    if data[7:size:length] != _RAMP[low : low + count]:
        return None
    first, sent_ns = HEADER.unpack_from(data)
    if HEADER.unpack_from(data, size - length) != (first + count - 1, sent_ns):
        return None
    if low + count <= 256:
        same = data[6:size:length] == _SAME[data[6]][:count]
        return (first, sent_ns) if same and data[5:size:length] == _SAME[data[5]][:count] else None
    ramp, last = 256 - low, first + count - 1
    for at, shift in ((6, 8), (5, 16)):
        expected = _SAME[first >> shift & 255][:ramp] + _SAME[last >> shift & 255]
        if data[at:size:length] != expected[:count]:
            return None
    return first, sent_ns


class Arrivals:
    """What a receiver knows of one part of a stream; ``first`` is the number of its first datagram.

    ``received`` excludes duplicates; a missing datagram counts as lost until it arrives. One that
    arrives after a later one is reordered (RFC 4737, 3.3). A datagram below the oldest remembered
    gap counts as a duplicate, since it is unknown whether it was missing. If the first number is
    unknown (None), datagrams missing before the least that arrived count as lost from `end` on.
    """

    def __init__(self, first: int | None = 0) -> None:
        self.received = 0
        self.lost = 0
        self.reordered = 0
        self.duplicates = 0
        self.jitter_ns = 0.0
        """Interarrival jitter of RFC 3550, 6.4.1."""
        self.transits = Histogram()
        """Arrival less departure, less that of the first: delay variation, free of the offset."""
        self.gaps = Histogram()
        """Time from one arrival to the next."""
        self._expected = _UNKNOWN if first is None else first
        self._first = self._expected
        self._gap_starts: list[int] = []
        self._gap_ends: list[int] = []
        self._base_ns: int | None = None
        self._transit_ns = 0
        self._arrived_ns = 0

    def train(self, first: int, count: int, sent_ns: int, arrived_ns: int) -> None:
        """Take consecutive datagrams that were sent together and arrived together."""
        if first == self._expected:
            self.received += count
            self._expected += count
        else:
            for number in range(first, first + count):
                self._take(number)
        if first < _NUMBER_LIMIT:
            self._date(sent_ns, arrived_ns, count)

    def end(self, first: int, end: int) -> None:
        """Take the numbers of the sender's first datagram and of the one after its last.

        Those that are missing before the first seen, and after the last, are lost.
        """
        if self._expected == _UNKNOWN:
            self._first = self._expected = first
        if self._expected < end:
            self.lost += end - self._expected
            self._expected = end
        self.lost += max(self._first - first, 0)
        self._first = min(self._first, first)

    @property
    def counts(self) -> dict[str, int]:
        """The counts, by the names of their metrics."""
        return {
            "packets_received": self.received,
            "packets_lost": self.lost,
            "packets_reordered": self.reordered,
            "packets_duplicated": self.duplicates,
        }

    def _take(self, number: int) -> None:
        if number >= _NUMBER_LIMIT:
            return
        if self._expected == _UNKNOWN:
            self._first = self._expected = number
            self._replace_gaps(0, 0, (0, number))
        if number >= self._expected:
            self.received += 1
            self.lost += number - self._expected
            self._replace_gaps(len(self._gap_starts), 0, (self._expected, number))
            self._expected = number + 1
            return
        at = bisect_right(self._gap_starts, number) - 1
        if at >= 0 and number < self._gap_ends[at]:
            self.received += 1
            self.reordered += 1
            if number >= self._first:
                self.lost -= 1
            else:  # It was measured after all, and so are the missing ones after it.
                self.lost += self._first - number - 1
                self._first = number
            start, end = self._gap_starts[at], self._gap_ends[at]
            self._replace_gaps(at, 1, (start, number), (number + 1, end))
        else:
            self.duplicates += 1

    def _replace_gaps(self, at: int, count: int, *gaps: tuple[int, int]) -> None:
        """Replace gaps by others; empty ones are removed, and the oldest beyond the limit."""
        real = [gap for gap in gaps if gap[0] < gap[1]]
        self._gap_starts[at : at + count] = [start for start, _ in real]
        self._gap_ends[at : at + count] = [end for _, end in real]
        excess = len(self._gap_starts) - _GAPS_LIMIT
        if excess > 0:
            del self._gap_starts[:excess], self._gap_ends[:excess]

    def _date(self, sent_ns: int, arrived_ns: int, count: int) -> None:
        transit_ns = arrived_ns - sent_ns
        if self._base_ns is None:
            self._base_ns = self._transit_ns = transit_ns
        else:
            self.gaps.add(arrived_ns - self._arrived_ns)
        if count > 1:
            self.gaps.add(0, count - 1)
        self._arrived_ns = arrived_ns
        self.jitter_ns += (abs(transit_ns - self._transit_ns) - self.jitter_ns) / 16
        self.jitter_ns *= _DECAY[count - 1]
        self._transit_ns = transit_ns
        self.transits.add(transit_ns - self._base_ns, count)


class Reception:
    """One stream at its receiver, in two parts: the stamp of a datagram decides which it is of.

    So a datagram of the omitted part never counts in the measured part, however late it arrives.
    `counts` grow from the first arrival on. They are those of the omitted part until `omit`, and
    grow by those of the measured part from then on. Without an omitted part, ``omits`` False, and
    with a sender that does not stamp its parts, all datagrams belong to the measured part.
    """

    def __init__(self, omits: bool) -> None:
        self.measured = Arrivals(None if omits else 0)
        self.current = Arrivals() if omits else self.measured
        """The part whose counts grow now."""
        self._omitted = self.current
        self._before = dict.fromkeys(self.measured.counts, 0)

    @property
    def received(self) -> int:
        """Datagrams of both parts that have arrived."""
        both = self._omitted is not self.measured
        return self.measured.received + (self._omitted.received if both else 0)

    @property
    def counts(self) -> dict[str, int]:
        """The counts since the first arrival, by the names of their metrics."""
        return {name: self._before[name] + count for name, count in self.current.counts.items()}

    def train(self, first: int, count: int, sent_ns: int, arrived_ns: int) -> None:
        """Take consecutive datagrams that were sent together and arrived together."""
        part = self.measured if sent_ns >= SECOND_0 else self._omitted
        part.train(first, count, sent_ns, arrived_ns)

    def omit(self) -> None:
        """The omitted part has ended."""
        if self.current is not self.measured:
            self._before, self.current = self.counts, self.measured
        else:
            self.measured.gaps = Histogram()

    def end(self, sent: int, omitted: int) -> None:
        """Take the sender's count of datagrams, and how many of them were omitted."""
        if self._omitted is not self.measured:
            self._omitted.end(0, omitted)
        else:
            omitted = 0
        self.measured.end(omitted, sent)
