"""How results leave the program: tables for people, one JSON object, or JSON lines.

Every output has the same methods. Figures are dictionaries in SI units with the unit in the name;
the documented vocabulary is in docs/simpleperf-protocol.md.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from .errors import Problem
from .units import BYTE_UNITS, scaled

__all__ = ["EventsOutput", "JsonOutput", "Output", "TextOutput"]


class Output:
    """Takes what happens, in order; the methods do nothing by default."""

    def listening(self, host: str, port: int) -> None:
        """The server accepts clients from now on."""

    def started(self, facts: Mapping[str, Any]) -> None:
        """The measurement runs; `facts` has the wall-clock time of its second 0."""

    def interval(self, figures: Mapping[str, Any]) -> None:
        """One interval of one stream is over."""

    def warning(self, message: str) -> None:
        """Something the user should know; the measurement goes on."""
        print(f"simpleperf: warning: {message}", file=sys.stderr, flush=True)

    def finished(self, result: Mapping[str, Any]) -> None:
        """The measurement is over; `result` has its figures."""

    def failed(self, problem: Problem) -> None:
        """The measurement cannot go on."""
        print(f"simpleperf: {problem.message}", file=sys.stderr, flush=True)
        if problem.hint:
            print(f"simpleperf: {problem.hint}", file=sys.stderr, flush=True)


class EventsOutput(Output):
    """One JSON object a line, each as soon as it is known."""

    def listening(self, host: str, port: int) -> None:
        self._write("listening", {"address": host, "port": port})

    def started(self, facts: Mapping[str, Any]) -> None:
        self._write("start", facts)

    def interval(self, figures: Mapping[str, Any]) -> None:
        self._write("interval", figures)

    def warning(self, message: str) -> None:
        self._write("warning", {"message": message})

    def finished(self, result: Mapping[str, Any]) -> None:
        self._write("end", result)

    def failed(self, problem: Problem) -> None:
        self._write("error", problem_object(problem))

    def _write(self, event: str, figures: Mapping[str, Any]) -> None:
        sys.stdout.write(json.dumps({"event": event, **figures}) + "\n")
        sys.stdout.flush()


class JsonOutput(Output):
    """One JSON object for each measurement, at its end."""

    def __init__(self) -> None:
        self._facts: Mapping[str, Any] = {}
        self._intervals: list[Mapping[str, Any]] = []
        self._warnings: list[str] = []

    def started(self, facts: Mapping[str, Any]) -> None:
        self._facts = facts

    def interval(self, figures: Mapping[str, Any]) -> None:
        self._intervals.append(figures)

    def warning(self, message: str) -> None:
        self._warnings.append(message)

    def finished(self, result: Mapping[str, Any]) -> None:
        self._write({**result, "error": None})

    def failed(self, problem: Problem) -> None:
        self._write({"throughput_bps": None, "error": problem_object(problem)})

    def _write(self, result: Mapping[str, Any]) -> None:
        whole = {**result, **self._facts, "intervals": self._intervals, "warnings": self._warnings}
        print(json.dumps(whole, indent=2), flush=True)
        self._facts, self._intervals, self._warnings = {}, [], []


def problem_object(problem: Problem) -> dict[str, str]:
    """Return a problem as it is written in JSON."""
    return {"kind": problem.kind, "message": problem.message, "hint": problem.hint}


class TextOutput(Output):
    """Tables for people. ``unit`` fixes the unit of transfers (B, KB, MB) and rates to Mbps."""

    def __init__(self, unit: str | None = None) -> None:
        self._unit = unit
        self._heading = ""

    def listening(self, host: str, port: int) -> None:
        print(f"simpleperf server listening on {host} port {port}", flush=True)

    def started(self, facts: Mapping[str, Any]) -> None:
        self._heading = ""

    def interval(self, figures: Mapping[str, Any]) -> None:
        self._row(str(figures.get("id", figures["stream"])), figures)

    def finished(self, result: Mapping[str, Any]) -> None:
        print("-" * 70)
        for direction, figures in result["directions"].items():
            for stream in figures["streams"]:
                self._row(str(stream.get("id", stream["stream"])), stream)
            if len(figures["streams"]) > 1:
                self._row(f"all ({direction})", figures)
        sys.stdout.flush()

    def _row(self, name: str, figures: Mapping[str, Any]) -> None:
        heading = f"{'ID':<22} {'Interval':>15} {'Transfer':>12} {'Rate':>14}"
        if heading != self._heading:
            self._heading = heading
            print(heading)
        received = "bytes_received" in figures
        count = figures["bytes_received" if received else "bytes_sent"]
        rate = figures["throughput_bps" if received else "sent_bps"]
        span = f"{figures.get('start_s', 0.0):.1f} - {figures['end_s']:.1f} s"
        print(f"{name:<22} {span:>15} {self._size(count):>12} {self._rate(rate):>14}", flush=True)

    def _size(self, count: float) -> str:
        if self._unit is None:
            return scaled(count, "B")
        return f"{count / BYTE_UNITS[self._unit]:.{0 if self._unit == 'B' else 2}f} {self._unit}"

    def _rate(self, rate_bps: float) -> str:
        return scaled(rate_bps, "bit/s") if self._unit is None else f"{rate_bps / 1e6:.2f} Mbps"
