"""When intervals end: the same boundaries at both ends of a flow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

SECOND_NS = 1_000_000_000
# A century: if bytes decide the end, time does not.
_FAR_NS = 100 * 366 * 86400 * SECOND_NS


class Boundary(NamedTuple):
    """The end of one interval, in nanoseconds since the first byte.

    ``number`` counts the intervals from the first byte on, so that the rows of both ends can be
    joined. ``last`` marks the end of the measurement.
    """

    number: int
    at_ns: int
    last: bool


class Schedule(NamedTuple):
    """The division of a measurement into intervals; times in nanoseconds.

    ``duration_ns`` excludes the omitted part and is None if bytes decide the end. ``interval_ns``
    is 0 without intervals.
    """

    omit_ns: int
    duration_ns: int | None
    interval_ns: int

    @property
    def end_ns(self) -> int:
        """When the last interval ends, counted from the first byte."""
        return _FAR_NS if self.duration_ns is None else self.omit_ns + self.duration_ns

    def boundaries(self) -> Iterator[Boundary]:
        """Yield the interval ends in order.

        The end of the omitted part is always a boundary, so no interval lies on both sides.
        """
        number = 0
        for at_ns in _multiples(0, self.omit_ns, self.interval_ns):
            yield Boundary(number, at_ns, last=False)
            number += 1
        for at_ns in _multiples(self.omit_ns, self.end_ns, self.interval_ns):
            yield Boundary(number, at_ns, last=at_ns == self.end_ns)
            number += 1


def _multiples(start_ns: int, end_ns: int, step_ns: int) -> Iterator[int]:
    """Yield start + k x step for k = 1, 2, ... below the end, then the end."""
    if step_ns:
        yield from range(start_ns + step_ns, end_ns, step_ns)
    if end_ns > start_ns:
        yield end_ns
