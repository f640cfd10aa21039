"""The details that ``--debug=1`` adds to the text format (3.12 and later, TCP).

Level 1 prints a few lines an interval and nothing for each packet. They hold what the tables
round off or leave out: the sender's RTT, window and MSS, the exact bytes and length of every
interval, and the results that both ends exchange.

    tcpi_snd_cwnd 58 tcpi_snd_mss 65483 tcpi_rtt 656       one line a stream
    interval_len 1.002232 bytes_transferred 1538785280     one line a stream, after all of those
    send_results / get_results                             then a JSON object over many lines
"""

from __future__ import annotations

import math
import re
from collections import deque
from dataclasses import dataclass

from benchctl_iperf3.values import JsonObject, load

_TCP_INFO = re.compile(r"tcpi_snd_cwnd (\d{1,15}) tcpi_snd_mss (\d{1,15}) tcpi_rtt (\d{1,15})$")
_LENGTH = re.compile(r"interval_len (\d{1,9}\.\d{6}) bytes_transferred (\d{1,18})$")
_MAX_RESULT_LINES = 16 * 256  # a stream has 9 to 11 lines


@dataclass(frozen=True, slots=True)
class Detail:
    """The details of one stream in one interval."""

    bytes: float
    cwnd_bytes: float
    mss_bytes: int
    rtt_s: float
    """0 if unknown, and then the window and the MSS are, too."""


class Details:
    """Collects the details of the last interval, and the results of the run."""

    def __init__(self, max_streams: int) -> None:
        self.results: dict[str, JsonObject] = {}
        """By ``send_results`` (this end's) and ``get_results`` (the other end's)."""
        self._tcp: deque[tuple[int, int, int]] = deque(maxlen=max_streams)
        self._lengths: deque[tuple[float, int]] = deque(maxlen=max_streams)
        self._reading = ""
        self._lines: list[str] = []

    def take(self, text: str) -> bool:
        """Take a line; returns whether it was one of the details."""
        if self._reading:
            self._result_line(text)
        elif text in ("send_results", "get_results"):
            self._reading = text
        elif match := _TCP_INFO.match(text):
            if self._lengths:  # of the interval before
                self._tcp.clear()
                self._lengths.clear()
            self._tcp.append((int(match[1]), int(match[2]), int(match[3])))
        elif match := _LENGTH.match(text):
            self._lengths.append((float(match[1]), int(match[2])))
        else:
            return False
        return True

    def of(self, rate_bps: float) -> Detail | None:
        """Return the details of the stream that a table shows with this rate.

        The order of streams in the table differs from that of the details if data goes both ways,
        so the rate identifies the stream. Two streams with one rate have equal details but for the
        TCP figures, and those are in the table's order.
        """
        for index, (seconds, amount) in enumerate(self._lengths):
            if seconds and math.isclose(amount * 8 / seconds, rate_bps, rel_tol=1e-5, abs_tol=600):
                self._lengths[index] = (0.0, 0)
                # In an interval that ends with the run, the TCP figures are printed twice: the
                # later ones count.
                place = index - len(self._lengths)
                known = -place <= len(self._tcp)
                cwnd, mss, rtt_us = self._tcp[place] if known else (0, 0, 0)
                return Detail(float(amount), float(cwnd * mss), mss, rtt_us / 1e6)
        return None

    def _result_line(self, text: str) -> None:
        self._lines.append(text)
        if text == "}" or len(self._lines) > _MAX_RESULT_LINES:
            self.results[self._reading] = load("".join(self._lines))
            self._reading = ""
            self._lines.clear()
