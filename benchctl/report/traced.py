"""The packet traces of a run: whose data each of them shows, and where its file is."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchctl.analysis.results import TrialReport
from benchctl.packets.findings import connection_entry
from benchctl.packets.trace import read_trace
from benchctl.run.record import RecordedFlow, RecordedPackets
from benchctl.store.captures import trace_path


class TracedDirection(NamedTuple):
    """The data of one end of a connection in the trace of a flow.

    ``number`` is that of the connection in the file, from 1 on; ``direction`` that of the end.
    """

    flow: RecordedFlow
    packets: RecordedPackets
    path: Path
    number: int
    direction: int
    ends: tuple[str, str]
    """Who sent, and to whom."""

    @property
    def of(self) -> str:
        """Whose data they are."""
        return f"{'the control of ' * bool(self.packets.exchanges)}{self.flow.name}"

    def value(self, key: str) -> str:
        """Return what it has of one of `KEYS`."""
        return {
            "flow": self.flow.name, "host": self.packets.host,
            "connection": str(self.number), "from": self.ends[0],
        }[key]  # fmt: skip


KEYS = ("flow", "host", "connection", "from")
"""What distinguishes traced directions, besides the axes of their run."""


def traces_of(trials: Iterable[TrialReport]) -> Iterator[tuple[RecordedFlow, RecordedPackets]]:
    """Yield the traces of each trial's flows: those of the ends that sent, the most data first."""

    def rank(trace: tuple[RecordedFlow, RecordedPackets]) -> tuple[bool, int]:
        flow, packets = trace
        sender = flow.target if flow.direction == "receive" else flow.source
        sizes = _sizes(packets.findings, flow.source if not packets.host else "")
        return packets.host not in ("", sender), -max(sizes.values(), default=0)

    for trial in trials:
        flows = [report.flow for report in trial.flows]
        traces = [(flow, packets) for flow in flows for packets in flow.captures]
        yield from sorted(traces, key=rank)


def chosen_of(
    traces: Iterable[tuple[RecordedFlow, RecordedPackets]], store: Path,
    only: Mapping[str, Collection[str]], by: Sequence[str], *, every: bool,
) -> Iterator[TracedDirection]:  # fmt: skip
    """Yield whose data of some traces to look at: those with the values of ``only``.

    The first, with the most data; one for each value of ``by``, or ``every`` one. Raises
    UsageError if a file cannot be read.
    """
    seen: set[tuple[str, ...]] = set()
    for flow, packets in traces:
        early = {"flow": flow.name, "host": packets.host}
        if all(value in only[key] for key, value in early.items() if key in only):
            for traced in _directions(store, flow, packets):
                values = tuple(traced.value(key) for key in by)
                if all(traced.value(key) in texts for key, texts in only.items()) and (
                    every or values not in seen
                ):
                    seen.add(values)
                    yield traced
                    if not (by or every):
                        return


def _directions(
    store: Path, flow: RecordedFlow, packets: RecordedPackets
) -> Iterator[TracedDirection]:
    """Yield each direction of a trace's connections that had data; the most data first.

    Of a trace that was kept, a flow is one of them.
    """
    path = trace_path(store, packets)
    findings: Iterable[Mapping[str, Any]] = packets.findings or (
        connection_entry(number, connection)
        for number, connection in enumerate(read_trace(path).connections, 1)
    )
    entries = {entry["number"]: entry for entry in findings}
    sizes = _sizes(entries.values(), flow.source if not packets.host else "")
    for number, direction in sorted(sizes, key=sizes.__getitem__, reverse=True):
        first, second = entries[number]["ends"]
        yield TracedDirection(
            flow,
            packets,
            path,
            number,
            direction,
            (second, first) if direction else (first, second),
        )


def _sizes(findings: Iterable[Mapping[str, Any]], source: str) -> dict[tuple[int, int], int]:
    """Return the bytes of each direction, also by number; only those of a ``source``, if any."""
    return {
        (entry["number"], direction): found["unique_bytes"]
        for entry in findings
        for direction, found in enumerate(entry["directions"])
        if found["unique_bytes"] and (not source or found["from"] == source)
    }
