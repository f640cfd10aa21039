"""The intervals of one direction: their ends, from each end, on the wire, and joined; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from benchctl_standalone.errors import Problem

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


# Rows of one message: well within the limit of a message, whatever their fields.
_ROWS_A_MESSAGE = 200


class IntervalRow(NamedTuple):
    """One interval of one stream at one end; seconds from the end of the omitted part.

    ``number`` counts the intervals; an interval has the same number at both ends.
    """

    stream: int
    number: int
    start_s: float
    end_s: float
    metrics: Mapping[str, float]


def rate_bps(count: float, seconds: float) -> float:
    """Return bits per second of a count of bytes; 0 if no time has passed."""
    return count * 8 / seconds if seconds > 0 else 0.0


def rate_names(sends: bool) -> tuple[str, str]:
    """Return the names of an end's rate and of the count behind it."""
    return ("sent_bps", "bytes_sent") if sends else ("throughput_bps", "bytes_received")


def check_names(names: Iterable[str], sends: bool) -> None:
    """Raise Problem if a peer's figures lack the count behind its rate."""
    needed = rate_names(sends)[1]
    if needed not in names:
        raise Problem("peer", f"figures without {needed}")


def encode_rows(rows: Sequence[IntervalRow]) -> Iterator[dict[str, Any]]:
    """Yield the members of ``samples`` messages: field names once, then only values."""
    start = 0
    for end in range(1, len(rows) + 1):
        fields = rows[start].metrics.keys()
        if end == len(rows) or end - start == _ROWS_A_MESSAGE or rows[end].metrics.keys() != fields:
            values = [
                [row.stream, row.number, row.start_s, row.end_s, *(row.metrics[f] for f in fields)]
                for row in rows[start:end]
            ]
            yield {"fields": list(fields), "rows": values}
            start = end


def decode_rows(members: Mapping[str, Any], sends: bool, streams: int) -> list[IntervalRow]:
    """Read the members of a ``samples`` message of an end. Raises Problem.

    An interval that ends before it begins is left out. Version 2.0.0 sends one where nothing of the
    measured part arrives.
    """
    fields = members["fields"]
    check_names(fields, sends)
    rows = []
    for row in members["rows"]:
        if len(row) != 4 + len(fields) or row[0] not in range(streams) or row[1] < 0:
            raise Problem("peer", "a row that does not fit its fields")
        stream, number, start_s, end_s, *values = row
        if start_s <= end_s:
            rows.append(
                IntervalRow(int(stream), int(number), start_s, end_s, dict(zip(fields, values)))
            )
    return rows


def interval_figures(direction: str, name: str, ends: Mapping[bool, IntervalRow]) -> dict[str, Any]:
    """Return one interval from the rows of the sending (True) and receiving (False) end.

    The times are the receiver's if it reported them; each rate is over its own end's time.
    """
    row = ends.get(False) or ends[True]
    interval = {
        "direction": direction,
        "stream": row.stream,
        "id": name,
        "start_s": row.start_s,
        "end_s": row.end_s,
        "omitted": row.start_s < 0,
    }
    for sends, end in ends.items():
        rate, count = rate_names(sends)
        interval[rate] = rate_bps(end.metrics[count], end.end_s - end.start_s)
        interval.update(end.metrics)
    return interval


class IntervalMerger:
    """Joins the rows of one direction's two ends, interval by interval, in order."""

    def __init__(self, direction: str, names: Sequence[str]) -> None:
        self._direction = direction
        self._names = names
        self._rows: dict[tuple[int, int], dict[bool, IntervalRow]] = {}
        self._latest = {(end, stream): -1 for end in (True, False) for stream in range(len(names))}

    def add(self, sends: bool, rows: Iterable[IntervalRow]) -> None:
        """Take rows of the sending or of the receiving end, in their order."""
        for row in rows:
            self._rows.setdefault((row.number, row.stream), {})[sends] = row
            self._latest[sends, row.stream] = max(self._latest[sends, row.stream], row.number)

    def take(self, everything: bool = False) -> list[dict[str, Any]]:
        """Return the complete intervals.

        An interval that one end missed, because it woke too late, is complete when that end has
        reported a later one of the stream. At the end, with ``everything``, all are.
        """
        taken = []
        for key in sorted(self._rows):
            number, stream = key
            passed = min(self._latest[True, stream], self._latest[False, stream])
            if not everything and number >= passed and len(self._rows[key]) < 2:
                break
            name = self._names[key[1]]
            taken.append(interval_figures(self._direction, name, self._rows.pop(key)))
        return taken
