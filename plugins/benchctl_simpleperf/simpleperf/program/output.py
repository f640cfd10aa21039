"""Writes results: tables for people, one JSON object, or JSON lines.

Every output has the same methods. Figures are dictionaries in SI units with the unit in the name;
docs/simpleperf-protocol.md documents the names.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from benchctl_standalone.errors import Problem
from benchctl_standalone.saying import say
from benchctl_standalone.units import BYTE_UNITS, scaled


class ResultOutput:
    """Receives events, in order; the methods do nothing by default."""

    def listening(self, host: str, port: int) -> None:
        """The server accepts clients from now on."""

    def started(self, facts: Mapping[str, Any]) -> None:
        """The measurement runs; `facts` has the wall-clock time of its second 0."""

    def interval(self, figures: Mapping[str, Any]) -> None:
        """One interval of one stream has ended."""

    def probe(self, figures: Mapping[str, Any]) -> None:
        """A new connection beside the load was answered."""

    def warning(self, message: str) -> None:
        """A message for the user; the measurement continues."""
        say(f"simpleperf: warning: {message}", sys.stderr)

    def late(self, seconds: float) -> None:
        """The measurement could not start at the time of ``--start-at``."""
        self.warning(f"started {seconds:.3f} s after the time of --start-at")

    def finished(self, result: Mapping[str, Any]) -> None:
        """The measurement has ended; `result` has its figures."""

    def unfinished(self, problem: Problem, streams: Sequence[str]) -> None:
        """A measurement of a server has failed; `streams` are the ids of its intervals."""

    def failed(self, problem: Problem) -> None:
        """The measurement has failed."""
        say(f"simpleperf: {problem.message}", sys.stderr)
        if problem.hint:
            say(f"simpleperf: {problem.hint}", sys.stderr)


class EventsOutput(ResultOutput):
    """One JSON object a line, each as soon as it is known."""

    def listening(self, host: str, port: int) -> None:
        self._write("listening", {"address": host, "port": port})

    def started(self, facts: Mapping[str, Any]) -> None:
        self._write("start", facts)

    def interval(self, figures: Mapping[str, Any]) -> None:
        self._write("interval", figures)

    def probe(self, figures: Mapping[str, Any]) -> None:
        self._write("probe", figures)

    def warning(self, message: str) -> None:
        self._write("warning", {"message": message})

    def finished(self, result: Mapping[str, Any]) -> None:
        self._write("end", result)

    def failed(self, problem: Problem) -> None:
        self._write("error", problem_object(problem))

    def _write(self, event: str, figures: Mapping[str, Any]) -> None:
        sys.stdout.write(json.dumps({"event": event, **figures}) + "\n")
        sys.stdout.flush()


class JsonOutput(ResultOutput):
    """One JSON object for each measurement, at its end; those of a server are one line each.

    A server may measure for several clients at once: each object has the intervals of its own.
    """

    def __init__(self, server: bool = False) -> None:
        self._server = server
        self._facts: Mapping[str, Any] = {}
        self._intervals: list[Mapping[str, Any]] = []
        self._probes: list[Mapping[str, Any]] = []
        self._warnings: list[str] = []

    def listening(self, host: str, port: int) -> None:
        say(f"simpleperf server listening on {host} port {port}", sys.stderr)

    def started(self, facts: Mapping[str, Any]) -> None:
        self._facts = facts

    def interval(self, figures: Mapping[str, Any]) -> None:
        self._intervals.append(figures)

    def probe(self, figures: Mapping[str, Any]) -> None:
        self._probes.append(figures)

    def warning(self, message: str) -> None:
        self._warnings.append(message)

    def finished(self, result: Mapping[str, Any]) -> None:
        directions = result["directions"].values()
        ids = [stream["id"] for figures in directions for stream in figures["streams"]]
        self._write({**result, "error": None}, ids)

    def unfinished(self, problem: Problem, streams: Sequence[str]) -> None:
        self._write({"throughput_bps": None, "error": problem_object(problem)}, streams)

    def failed(self, problem: Problem) -> None:
        ids = {figures["id"] for figures in self._intervals}
        self._write({"throughput_bps": None, "error": problem_object(problem)}, ids)

    def _write(self, result: Mapping[str, Any], ids: Iterable[str]) -> None:
        known = set(ids)
        own = [figures for figures in self._intervals if figures["id"] in known]
        self._intervals = [figures for figures in self._intervals if figures["id"] not in known]
        whole = {**result, **self._facts, "intervals": own, "warnings": self._warnings}
        if self._probes:
            whole["probes"] = self._probes
        print(json.dumps(whole, indent=None if self._server else 2), flush=True)
        self._facts, self._warnings = {}, []


def problem_object(problem: Problem) -> dict[str, str]:
    """Return a problem as in JSON."""
    return {"kind": problem.kind, "message": problem.message, "hint": problem.hint}


class TextOutput(ResultOutput):
    """Tables for people. ``unit`` fixes the unit of transfers (B, KB, MB) and rates to Mbps."""

    def __init__(self, unit: str | None = None) -> None:
        self._unit = unit
        self._heading = ""

    def listening(self, host: str, port: int) -> None:
        say(f"simpleperf server listening on {host} port {port}", sys.stdout)

    def interval(self, figures: Mapping[str, Any]) -> None:
        self._row(figures["id"], figures)

    def finished(self, result: Mapping[str, Any]) -> None:
        if self._heading:
            say("-" * len(self._heading), sys.stdout)
        for direction, figures in result["directions"].items():
            for stream in figures["streams"]:
                self._row(stream["id"], stream)
            if len(figures["streams"]) > 1:
                self._row(f"all ({direction})", figures)
        for line in _notes(result):
            say(line, sys.stdout)
        self._heading = ""

    def _row(self, name: str, figures: Mapping[str, Any]) -> None:
        received = "bytes_received" in figures
        count = figures["bytes_received" if received else "bytes_sent"]
        rate = figures["throughput_bps" if received else "sent_bps"]
        cells = {
            "Interval": f"{figures.get('start_s', 0.0):.2f} - {figures['end_s']:.2f} s",
            "Transfer": self._size(count),
            "Rate": self._rate(rate),
            **_tcp_cells(figures),
            **_udp_cells(figures),
        }
        heading = f"{'ID':<22}" + "".join(f"{title:>{_WIDTHS[title]}}" for title in cells)
        if heading != self._heading:
            self._heading = heading
            say(heading, sys.stdout)
        row = "".join(f"{cell:>{_WIDTHS[title]}}" for title, cell in cells.items())
        say(f"{name:<22}{row}", sys.stdout)

    def _size(self, count: float) -> str:
        if self._unit is None:
            return scaled(count, "B")
        return f"{count / BYTE_UNITS[self._unit]:.{0 if self._unit == 'B' else 2}f} {self._unit}"

    def _rate(self, rate_bps: float) -> str:
        return scaled(rate_bps, "bit/s") if self._unit is None else f"{rate_bps / 1e6:.2f} Mbps"


_WIDTHS = {
    "Interval": 19,
    "Transfer": 13,
    "Rate": 15,
    "Retr": 7,
    "Cwnd": 10,
    "RTT": 12,
    "Jitter": 12,
    "Lost/Sent": 25,
}


def _tcp_cells(figures: Mapping[str, Any]) -> dict[str, str]:
    cells = {}
    if "retransmits" in figures:
        cells["Retr"] = f"{figures['retransmits']:.0f}"
    if "cwnd_bytes" in figures:
        cells["Cwnd"] = scaled(figures["cwnd_bytes"], "B")
        cells["RTT"] = f"{figures['tcp_rtt_s'] * 1e3:.3f} ms"
    return cells


def _udp_cells(figures: Mapping[str, Any]) -> dict[str, str]:
    if "packets_lost" not in figures:
        return {}
    lost = figures["packets_lost"]
    # The sender's data of an interval is partly still in transit at the interval's end.
    sent = lost + figures["packets_received"]
    ratio = f" ({lost / sent:.2%})" if sent else ""
    jitter = figures.get("jitter_rfc3550_s")
    shown = f"{jitter * 1e3:.3f} ms" if isinstance(jitter, float) else ""
    return {"Jitter": shown, "Lost/Sent": f"{lost:.0f}/{sent:.0f}{ratio}"}


def _notes(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield figures of a whole measurement: both ends' CPU, and unavailable options."""
    if "responsiveness_rpm" in result:
        yield f"Responsiveness: {result['responsiveness_rpm']:.0f} round trips per minute"
    shown = [
        f"{end} {cpu['process_ratio']:.0%}"
        for end, cpu in result.get("cpu", {}).items()
        if cpu.get("process_ratio") is not None
    ]
    if shown:
        yield f"CPU of one core: {', '.join(shown)}"
    for end, missing in result.get("unavailable", {}).items():
        for name, reason in missing.items():
            yield f"{end} without {name}: {reason}"
