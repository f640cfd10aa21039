"""UDP payloads: the number and timestamp of a datagram, and their evaluation on arrival; no I/O.

Each datagram starts with two big-endian 64-bit integers: its number in the stream, from 0, and its
stamp. The stamp is the sender's clock in nanoseconds when the datagram was passed to the kernel,
with `SECOND_0` at the end of the omitted part. The rest is zeros. Older senders stamp their
monotonic clock unchanged.
"""

from __future__ import annotations

import struct
from bisect import bisect_right

from .histogram import Histogram

HEADER = struct.Struct(">QQ")
# A monotonic clock needs 73 years to reach the first, and no omitted part begins before it.
STAMPS_FROM = 1 << 61
SECOND_0 = 1 << 62
# A higher number is not from simpleperf: other traffic was sent to the port.
_NUMBER_LIMIT = 1 << 48
# Number of remembered gaps, which distinguish a late datagram from a duplicate.
_GAPS_LIMIT = 1024
# The factors by which 1, 2, ... equal transit times in a row reduce the smoothed jitter.
_DECAY = [(15 / 16) ** count for count in range(65)]
# The lowest bytes of consecutive numbers, from any on.
_RAMP = bytes(range(256)) * 2


def train_struct(length: int, count: int) -> struct.Struct:
    """Return the packing of consecutive datagrams: number and time of each, then zeros."""
    return struct.Struct(">" + f"QQ{length - HEADER.size}x" * count)


def row_of(data: bytearray, length: int, count: int) -> tuple[int, int] | None:
    """Return the first number and the time of datagrams that were sent as one train, in order.

    None if they were not. Compares the ends, and the three lowest bytes of each number: no network
    keeps a datagram until 16 million others have passed it.
    """
    first, sent_ns = HEADER.unpack_from(data)
    last = HEADER.unpack_from(data, (count - 1) * length)
    if last != (first + count - 1, sent_ns):
        return None
    size, low = count * length, first & 255
    if data[7:size:length] != _RAMP[low : low + count]:
        return None
    before = min(256 - low, count)  # Further on, the next byte is one higher.
    for at, shift in ((6, 8), (5, 16)):
        ends = first >> shift & 255, last[0] >> shift & 255
        if data[at:size:length] != bytes(ends[:1]) * before + bytes(ends[1:]) * (count - before):
            return None
    return first, sent_ns


class Arrivals:
    """What a receiver knows of one stream.

    ``received`` excludes duplicates; a missing datagram counts as lost until it arrives. One that
    arrives after a later one is reordered (RFC 4737, 3.3). A datagram below the oldest remembered
    gap counts as a duplicate, since it is unknown whether it was missing. From `measure` on,
    datagrams of the omitted part are not counted, however late they are.
    """

    def __init__(self) -> None:
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
        self._expected = 0
        self._first = 0
        self._least_stamp = 0
        self._gap_starts: list[int] = []
        self._gap_ends: list[int] = []
        self._base_ns: int | None = None
        self._transit_ns = 0
        self._arrived_ns = 0

    def train(self, first: int, count: int, sent_ns: int, arrived_ns: int) -> None:
        """Take consecutive datagrams that were sent together and arrived together."""
        if sent_ns < self._least_stamp:
            return
        if first == self._expected:
            self.received += count
            self._expected += count
        else:
            for number in range(first, first + count):
                self._take(number)
        if first < _NUMBER_LIMIT:
            self._date(sent_ns, arrived_ns, count)

    def measure(self, first: int) -> None:
        """Begin to measure, with the first datagram after those of the omitted part.

        Missing datagrams before it count as lost when `end` gives the sender's count of measured
        ones.
        """
        self._least_stamp = SECOND_0
        self._gap_starts, self._gap_ends = [], []
        self._replace_gaps(0, 0, (self._expected, first))
        self._first = self._expected = max(first, self._expected)

    def end(self, sent: int, omitted: int = 0) -> None:
        """Take the sender's count of datagrams, and how many of them were omitted.

        Those after the last seen are lost, and those between the omitted ones and the first seen.
        """
        if self._expected < sent:
            self.lost += sent - self._expected
            self._expected = sent
        self.lost += max(self._first - omitted, 0)
        self._first = min(self._first, omitted)

    def _take(self, number: int) -> None:
        if number >= _NUMBER_LIMIT:
            return
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
