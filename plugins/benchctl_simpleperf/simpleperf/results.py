"""Puts together what the two ends of a flow saw; pure.

The receiver's figures are the result. The sender adds what only it can know: what it handed over,
and TCP's own figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .errors import Problem
from .measurement import Row

__all__ = [
    "IntervalMerger",
    "check_figures",
    "decode_rows",
    "direction_result",
    "encode_rows",
    "interval_figures",
    "one_sided_result",
    "rate_bps",
]

# Rows of one message: well within the limit of a message, whatever their fields.
_ROWS_A_MESSAGE = 200
# Figures that have no sum over streams; the rest are counts.
_DISTRIBUTION = "packet_gap_s"
_VALUES = ("jitter_rfc3550_s", "pdv_p95_p50_s", _DISTRIBUTION)


def rate_bps(count: float, seconds: float) -> float:
    """Return bits per second of a count of bytes; 0 when no time has passed."""
    return count * 8 / seconds if seconds > 0 else 0.0


# --- intervals -------------------------------------------------------------------------------


def encode_rows(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Yield the members of ``samples`` messages: fields named once, then values only."""
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


def decode_rows(members: Mapping[str, Any], sends: bool, streams: int) -> list[Row]:
    """Read the members of a ``samples`` message of an end. Raises Problem."""
    fields = members["fields"]
    _check_names(fields, sends)
    rows = []
    for row in members["rows"]:
        if len(row) != 4 + len(fields) or row[0] not in range(streams) or row[1] < 0:
            raise Problem("peer", "a row that does not fit its fields")
        stream, number, start_s, end_s, *values = row
        rows.append(Row(int(stream), int(number), start_s, end_s, dict(zip(fields, values))))
    return rows


def interval_figures(direction: str, name: str, ends: Mapping[bool, Row]) -> dict[str, Any]:
    """Return one interval from the rows of the sending (True) and receiving (False) end.

    The times are the receiver's where it told them; each rate is over its own end's time.
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
        rate, count = _rate_of(sends)
        interval[rate] = rate_bps(end.metrics[count], end.end_s - end.start_s)
        interval.update(end.metrics)
    return interval


class IntervalMerger:
    """Joins the rows of one direction's two ends, interval by interval, in order."""

    def __init__(self, direction: str, names: Sequence[str]) -> None:
        self._direction = direction
        self._names = names
        self._rows: dict[tuple[int, int], dict[bool, Row]] = {}
        self._latest = {True: -1, False: -1}

    def add(self, sends: bool, rows: Iterable[Row]) -> None:
        """Take rows of the sending or of the receiving end, in their order."""
        for row in rows:
            self._rows.setdefault((row.number, row.stream), {})[sends] = row
            self._latest[sends] = max(self._latest[sends], row.number)

    def take(self, everything: bool = False) -> list[dict[str, Any]]:
        """Return the intervals that are complete.

        An interval that one end missed, because it woke too late, is complete when that end has
        told a later one; at the end, with ``everything``, none is waited for.
        """
        passed = min(self._latest.values())
        taken = []
        for key in sorted(self._rows):
            if not everything and key[0] >= passed and len(self._rows[key]) < 2:
                break
            name = self._names[key[1]]
            taken.append(interval_figures(self._direction, name, self._rows.pop(key)))
        return taken


# --- final figures ---------------------------------------------------------------------------


def check_figures(figures: Mapping[str, Any], sends: bool, streams: int, protocol: str) -> None:
    """Check that a peer's figures can be put together with one's own. Raises Problem."""
    if len(figures["streams"]) != streams:
        raise Problem("peer", f"figures of {len(figures['streams'])} streams instead of {streams}")
    for stream in figures["streams"]:
        _check_names(stream, sends)
        if protocol == "udp" and ("packets_sent" if sends else "packets_lost") not in stream:
            raise Problem("peer", "figures of UDP without its packets")
        for name, value in stream.items():
            if isinstance(value, Mapping) != (name == _DISTRIBUTION):
                raise Problem("peer", f"{name} is not what it should be")


def direction_result(
    sender: Mapping[str, Any], receiver: Mapping[str, Any], names: Sequence[str]
) -> dict[str, Any]:
    """Return the result of one direction from both ends' figures."""
    sent_s = sender["duration_s"]
    # A receiver that got nothing has measured no time.
    received_s = receiver["duration_s"] or sent_s

    def rates(figures: Mapping[str, Any]) -> dict[str, float]:
        return {
            "throughput_bps": rate_bps(figures["bytes_received"], received_s),
            "sent_bps": rate_bps(figures["bytes_sent"], sent_s),
            "end_s": received_s,
            **_loss(figures),
        }

    streams = []
    for stream, (sent, received) in enumerate(zip(sender["streams"], receiver["streams"])):
        figures = {**sent, **received}
        streams.append({"stream": stream, "id": names[stream], **rates(figures), **figures})
    whole = _sums((*sender["streams"], *receiver["streams"]))
    effective = {**receiver["effective"], **sender["effective"]}
    return {**rates(whole), **whole, "effective": effective, "streams": streams}


def one_sided_result(
    figures: Mapping[str, Any], sends: bool, names: Sequence[str]
) -> dict[str, Any]:
    """Return the result of one direction from one end's figures, as a server shows it."""
    rate, count = _rate_of(sends)
    duration_s = figures["duration_s"]

    def with_rate(own: Mapping[str, Any]) -> dict[str, Any]:
        return {rate: rate_bps(own[count], duration_s), "end_s": duration_s, **own}

    streams = [
        {"stream": stream, "id": names[stream], **with_rate(own)}
        for stream, own in enumerate(figures["streams"])
    ]
    whole = with_rate(_sums(figures["streams"]))
    return {**whole, "effective": figures["effective"], "streams": streams}


def _sums(streams: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Add up the counts of streams; a figure that has no sum becomes its least, mean and most."""
    found: dict[str, list[Any]] = {}
    for stream in streams:
        for name, value in stream.items():
            found.setdefault(name, []).append(value)
    whole: dict[str, Any] = {}
    for name, values in found.items():
        if name not in _VALUES:
            whole[name] = sum(values)
        elif len(values) == 1:
            whole[name] = values[0]
        elif name != _DISTRIBUTION:
            mean = sum(values) / len(values)
            whole[name] = {"min": min(values), "mean": mean, "max": max(values)}
    return whole


def _loss(figures: Mapping[str, Any]) -> dict[str, float]:
    if not figures.get("packets_sent"):
        return {}
    return {"loss_ratio": figures["packets_lost"] / figures["packets_sent"]}


def _rate_of(sends: bool) -> tuple[str, str]:
    """Return the names of an end's rate and of the count it is made of."""
    return ("sent_bps", "bytes_sent") if sends else ("throughput_bps", "bytes_received")


def _check_names(names: Iterable[str], sends: bool) -> None:
    needed = _rate_of(sends)[1]
    if needed not in names:
        raise Problem("peer", f"figures without {needed}")
