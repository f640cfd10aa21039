"""Reads one line of the tables in iperf3's text format (src/iperf_locale.c, ``report_bw_*``).

[  5]   0.00-1.00   sec  4.29 GBytes  36812345 Kbits/sec    1    895 KBytes       (omitted)
[  5][TX-C]   0.00-1.00   sec  2.38 MBytes  19965 Kbits/sec            1725
[  7][RX-C]   0.00-1.00   sec  2.38 MBytes  19988 Kbits/sec  0.013 ms  0/1727 (0%)
[SUM]   0.00-1.00   sec  5.19 GBytes  44612345 Kbits/sec    0             sender

The columns after the rate depend on the protocol, on who sends and on what the line covers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from benchctl.api import ParserError

_NUMBER = r"(\d{1,18}(?:\.\d{1,9})?)"
_ROW = re.compile(
    r"\[ *(\d{1,9}|SUM)\](?:\[(TX|RX)-[CS]\])?"
    rf" +{_NUMBER}-{_NUMBER} +sec +{_NUMBER} ([KMGT]?)Bytes +{_NUMBER} ([KMGT]?)bits/sec(.*)"
)
_ROW_LIKE = re.compile(r"\[ *(\d+|SUM)\].* sec .*bits/sec")
_OVER_NO_TIME = re.compile(r" -?(nan|inf) [KMGT]?bits/sec")
_ARRIVALS = re.compile(rf" +{_NUMBER} ms +(-?\d{{1,18}}|Unknown)/(\d{{1,18}})")
_COUNT = re.compile(rf" +(-?\d{{1,18}})\b(?: +{_NUMBER} ([KMGT]?)Bytes)?")

_BITS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_BYTES = {"": 1.0, "K": 2.0**10, "M": 2.0**20, "G": 2.0**30, "T": 2.0**40}


@dataclass(frozen=True, slots=True)
class TableRow:
    """One line of a table: a stream or the sum, an interval or the whole run."""

    socket: int | None
    """None for the sum."""
    direction: str
    """``TX`` or ``RX`` if data goes both ways, else empty."""
    start_s: float
    end_s: float
    bytes: float
    rate_bps: float
    count: float | None = None
    """Retransmitted segments (TCP) or datagrams sent (UDP), in a sender's line."""
    cwnd_bytes: float | None = None
    jitter_s: float = 0.0
    lost: float | None = None
    packets: float | None = None
    mark: str = ""
    """``(omitted)`` for an interval; ``sender`` or ``receiver`` for the whole run."""


def read_row(text: str) -> TableRow | None:
    """Return a line of a table, or None for any other line, or for a rate over zero time.

    Raises ParserError for a malformed line of a table.
    """
    match = _ROW.match(text)
    if not match:
        if _ROW_LIKE.match(text) and not _OVER_NO_TIME.search(text):
            raise ParserError(f"not a line of iperf3's table: {text[:120]!r}")
        return None
    name, direction, start, end, amount, amount_unit, rate, rate_unit, rest = match.groups()
    count = cwnd_bytes = lost = packets = None
    jitter_s = 0.0
    if arrivals := _ARRIVALS.match(rest):
        jitter_s = float(arrivals[1]) / 1e3
        lost = None if arrivals[2] == "Unknown" else float(arrivals[2])
        packets = float(arrivals[3])
    elif sender := _COUNT.match(rest):
        count = float(sender[1])
        cwnd_bytes = _whole_bytes(sender[2], sender[3]) if sender[2] else None
    return TableRow(
        None if name == "SUM" else int(name),
        direction or "",
        float(start),
        float(end),
        _whole_bytes(amount, amount_unit),
        float(rate) * _BITS[rate_unit],
        count,
        cwnd_bytes,
        jitter_s,
        lost,
        packets,
        next((mark for mark in ("(omitted)", "sender", "receiver") if rest.endswith(mark)), ""),
    )


def _whole_bytes(amount: str, unit: str) -> float:
    """Return the number of bytes nearest to a rounded amount: ``2.38 MBytes``."""
    return float(round(float(amount) * _BYTES[unit]))
