"""Reads one line of the tables that iperf 2 prints (src/Locale.c, ``report_bw_*``).

[  1] 0.00-1.00 sec  131072 Bytes  1048576 bits/sec  1/0  0  14K/50(25) us  26      sends TCP
[  1] 0.00-1.00 sec  131072 Bytes  1048576 bits/sec  4=2:0:0:0:0:0:0:2              reads TCP
[  1] 0.00-1.00 sec  131768 Bytes  1054144 bits/sec  91/0  91 pps                   sends UDP
[  1] 0.00-1.00 sec  131768 Bytes  1054144 bits/sec  0.013 ms 0/91 (0%) ...         reads UDP

These are the columns of enhanced reports (``-e``), which say by their shape who counted. Plain
reports have only the bytes and the rate, and those of a UDP receiver the losses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum, auto

from benchctl.api import ParserError

_N = r"(\d{1,18}(?:\.\d{1,9})?)"
_SIGNED = r"(-?\d{1,18}\.\d{1,9})"
_ROW = re.compile(
    rf"\[([^\]]{{1,80}})\] *{_N}- *{_N} sec +{_N} ([KMGTP]?)(bit|Byte)s?"
    rf" +{_N} ([KMGTP]?)(bit|Byte)s/sec(.*)"
)
_ROW_LIKE = re.compile(r"\[[^\]]{1,80}\] *[\d.]+- *[\d.]+ sec .*s/sec")
_SENT_TCP = re.compile(
    r" +(\d{1,18})/(\d{1,18}) +(\d{1,18}) +(?:(-?\d{1,15})K|NA)/(\d{1,12})(?:\((\d{1,12})\))? us"
)
_SENT_UDP = re.compile(r" +(\d{1,18})/(\d{1,18}) +\d{1,18} pps$")
_DELAYS = rf"{_SIGNED}/ *{_SIGNED}/ *{_SIGNED}/ *{_SIGNED} ms"
_READ_TCP = re.compile(r" +(\d{1,18})=\d{1,18}:[\d:]{1,160}")
_READ_BURSTS = re.compile(rf" +{_DELAYS} \((\d{{1,18}})/\d{{1,18}}\)")
_READ_UDP = re.compile(
    rf" +{_N} ms +(-?\d{{1,18}})/ *(\d{{1,18}}) \([^)]{{1,12}}%\)(?: +{_DELAYS})?"
)

_BITS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BYTES = {"": 1.0, "K": 2.0**10, "M": 2.0**20, "G": 2.0**30, "T": 2.0**40, "P": 2.0**50}


class Side(Enum):
    """Who counted a row."""

    SENDER = auto()
    RECEIVER = auto()
    UNKNOWN = auto()
    """The columns do not say: a plain report, or a sum."""


@dataclass(frozen=True, slots=True)
class Delays:
    """One-way delays as the tool folds them; negative if the clocks differ by more."""

    mean_s: float
    min_s: float
    max_s: float
    count: int


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table: an interval, or the whole run, of one stream or of all."""

    label: str
    """What stands in brackets, without spaces: ``1``, ``*1`` (the way back), ``SUM``."""
    start_s: float
    end_s: float
    bytes: float
    rate_bps: float
    side: Side = Side.UNKNOWN
    columns: dict[str, float] = field(default_factory=dict)
    """The other columns, by the names of metrics."""
    delays: Delays | None = None
    is_exact: bool = True
    """Whether every byte is known; else the amount has three digits."""


def read_row(text: str) -> Row | None:
    """Return a line of a table, or None for any other line.

    Raises ParserError for a malformed line of a table.
    """
    match = _ROW.match(text)
    if not match:
        if _ROW_LIKE.match(text) and "nan" not in text and "inf" not in text:
            raise ParserError(f"not a line of iperf's table: {text[:120]!r}")
        return None
    label, start, end, amount, scale, unit, rate, rate_scale, rate_unit, rest = match.groups()
    side, columns, delays = _columns(rest)
    return Row(
        label.replace(" ", ""),
        float(start),
        float(end),
        float(round(_in_bytes(amount, scale, unit))),
        _in_bytes(rate, rate_scale, rate_unit) * 8,
        side,
        columns,
        delays,
        not scale,
    )


def _in_bytes(amount: str, scale: str, unit: str) -> float:
    if unit == "Byte":
        return float(amount) * _BYTES[scale]
    return float(amount) * _BITS[scale] / 8


def _columns(rest: str) -> tuple[Side, dict[str, float], Delays | None]:
    if match := _SENT_TCP.match(rest):
        columns = {"retransmits": float(match[3]), "tcp_rtt_s": int(match[5]) / 1e6}
        if match[4] is not None and int(match[4]) > 0:
            columns["cwnd_bytes"] = float(int(match[4]) * 1024)
        if match[6] is not None:
            columns["tcp_rttvar_s"] = int(match[6]) / 1e6
        return Side.SENDER, columns, None
    if _SENT_UDP.match(rest):
        return Side.SENDER, {}, None
    if _READ_TCP.match(rest):
        return Side.RECEIVER, {}, None
    if match := _READ_BURSTS.match(rest):
        return Side.RECEIVER, {}, _delays(match, 1, int(match[5]))
    if match := _READ_UDP.match(rest):
        lost, total = float(match[2]), float(match[3])
        columns = {"packets_lost": lost, "packets_received": total - lost}
        if total > lost:  # else nothing arrived, and the jitter is an old one
            columns["jitter_rfc3550_s"] = float(match[1]) / 1e3
        delays = _delays(match, 4, int(total - lost)) if match[4] is not None else None
        return Side.RECEIVER, columns, delays
    return Side.UNKNOWN, {}, None


def _delays(match: re.Match[str], first: int, count: int) -> Delays | None:
    mean, low, high = (float(match[first + at]) / 1e3 for at in range(3))
    # Of a single one, iperf prints 0 for its extremes.
    return Delays(mean, low, high, count) if count > 1 else None
