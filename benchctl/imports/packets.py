"""A packet trace becomes a run: one trial, and a flow for each direction of a connection with data.

Second 0 of all flows is the first packet of the trace, as in what `benchctl packets` prints. What
was found of a connection is stored with its flows, so that nothing needs the file again.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Container, Mapping, Sequence
from contextlib import closing
from itertools import starmap
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple, cast

from msgspec.structs import replace

from benchctl.api import Recording, Summary
from benchctl.errors import UsageError
from benchctl.imports.files import File, name_of
from benchctl.imports.kinds import FileKind
from benchctl.imports.run import RunBuilder
from benchctl.imports.session import stem
from benchctl.metrics import Sample
from benchctl.packets.findings import connection_entry
from benchctl.packets.tcp import Connection
from benchctl.packets.trace import Trace
from benchctl.packets.wire.frames import names_of
from benchctl.run.packets import ConnectionFound
from benchctl.run.record import RecordedPackets
from benchctl.store.captures import trace_path
from benchctl.store.read import Reader

KIND = FileKind("packets", lambda _: None, (), "throughput_bps")
MOST = 50
"""Connections that are kept, the largest: as many as are listed."""


class Kept(NamedTuple):
    """The run of a trace, and how many connections with data it has not."""

    name: str
    left_out: int


def keep_trace(
    trace: Trace, store: Path, *, numbers: Sequence[int] = (), anew: bool = False,
    tags: Sequence[str] = (),
) -> Kept | None:  # fmt: skip
    """Keep a trace whose connections have recorded their series; None if it has no data.

    The largest connections are kept, and those of ``numbers``. A trace that is there already with
    them is not kept again, unless ``anew``. Raises StoreError, and ParserError for times that
    cannot be.
    """
    capture, found = trace.capture, trace.connections
    ranked = sorted(
        (
            n
            for n, connection in enumerate(found, 1)
            if any(half.data_bytes for half in connection.halves)
        ),
        key=lambda n: found[n - 1].frame_bytes,
        reverse=True,
    )
    chosen = [n for at, n in enumerate(ranked) if at < MOST or n in numbers]
    if not chosen or capture.began_ns is None:
        return None
    left_out = len(ranked) - len(chosen)
    file, packets = _looked_at(trace)
    if not anew and (name := _there(store, file, chosen)):
        return Kept(name, left_out)
    flows: dict[str, Recording] = {}
    captures = {}
    for number in chosen:
        connection = found[number - 1]
        entry = connection_entry(number, connection)
        for direction, half in sorted(
            enumerate(connection.halves), key=lambda it: -it[1].data_bytes
        ):
            if half.data_bytes:
                name = _named(connection, direction, number, flows)
                flows[name] = _recording(connection, direction, entry, capture.began_ns / 1e9)
                captures[name] = [replace(packets, findings=(entry,))]
    notes = [f"{file.name}: {fault}" for fault in capture.faults]
    if left_out:
        notes.append(f"{left_out:,} smaller connections with data are left out")
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder, "packets.sqlite")
        with closing(RunBuilder(built, KIND, stem(capture.path), "", tags)) as run:
            run.add(file, [flows], captures, notes)
            return Kept(run.finish(store, again=True).name, left_out)


def _looked_at(trace: Trace) -> tuple[File, RecordedPackets]:
    """Return the file of a trace as importers have it, and as its flows have it.

    Of a pipe nothing is left to come back to.
    """
    capture = trace.capture
    status = capture.path.stat()
    sha256, path = "", ""
    if S_ISREG(status.st_mode):
        with capture.path.open("rb") as data:
            sha256 = hashlib.file_digest(data, "sha256").hexdigest()
        path = name_of(capture.path.absolute())
    packets = RecordedPackets(
        "", path, capture.packets, capture.dropped or 0, 0, (capture.began_ns or 0) / 1e9,
        size_bytes=status.st_size, changed_time=status.st_mtime,
    )  # fmt: skip
    return File(capture.path, b"", sha256, status.st_mtime), packets


def _there(store: Path, file: File, chosen: Sequence[int]) -> str:
    """Return the run that has these connections of a trace, whose file it still finds; or none."""
    if not file.sha256 or not store.exists():
        return ""
    with closing(Reader(store)) as reader:
        if (name := reader.imported(file.sha256)) is None:
            return ""
        kept = [
            packets
            for trial in reader.trials(reader.find(name).id)
            for flow in reader.flows(trial.id)
            for packets in flow.captures
        ]
        try:
            trace_path(store, kept[0])
        except (UsageError, IndexError):
            return ""
        numbers = {entry["number"] for packets in kept for entry in packets.findings}
        return name if numbers.issuperset(chosen) else ""


def _named(connection: Connection, direction: int, number: int, taken: Container[str]) -> str:
    """Return the name of a flow: its ends, the one that opened without its port.

    So the flows of two traces of the same exchange have the same names. More connections between
    the same ends are told apart by their numbers.
    """
    ends = list(names_of(connection.ends))
    if connection.opener is not None:
        ends[connection.opener] = ends[connection.opener].rpartition(":")[0]
    name = f"{ends[direction]}-{ends[1 - direction]}"
    return f"{name}#{number}" if name in taken else name


def _recording(
    connection: Connection, direction: int, entry: ConnectionFound, began_time: float
) -> Recording:
    mine = entry["directions"][direction]
    rtt_s = cast("Mapping[str, float] | None", mine["rtt_s"])
    figures = {
        "throughput_bps": mine["throughput_bps"],
        "rtt_s": rtt_s and {name: rtt_s[name] for name in rtt_s if name != "samples"},
        "retransmits": mine["retransmissions"]["count"],
        "bytes_sent": mine["unique_bytes"],
    }
    intervals = connection.timeline.intervals(direction) if connection.timeline is not None else ()
    return Recording(
        [
            *starmap(Sample, intervals),
            Summary({n: value for n, value in figures.items() if value is not None}),
        ],
        source=entry["ends"][direction],
        target=entry["ends"][1 - direction],
        started_time=began_time,
    )
