"""Records the packets of a flow at its ends, from before its client starts until after its end."""

from __future__ import annotations

import asyncio
import errno
import json
import re
import sys
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from msgspec import Struct
from msgspec.structs import replace

from benchctl.api import Channel
from benchctl.engine.checks.tools import captured_at
from benchctl.engine.site.context import RunContext
from benchctl.engine.trial.setup import FlowSetup
from benchctl.errors import HostError
from benchctl.hosts.clocks import OURS, ClockSpan
from benchctl.hosts.local.spawn import Process, Spawner, has_ended, stop
from benchctl.hosts.sent import recorder
from benchctl.hosts.sent.filter import packet_filter
from benchctl.hosts.sent.messages import RECORDED, check
from benchctl.run.planned import Host
from benchctl.run.record import RecordedPackets
from benchctl.store.captures import PRIVATE_FOLDER

# As for a server: a cold start of an interpreter takes tenths of a second.
_READY_S = 10.0
# A million packets become pcapng in some seconds. From a remote host they come piece by piece.
_WRITTEN_S = 60.0
# A line of what a recorder says; a piece of its file, which may be much longer than it came.
_MOST_LINE, _PIECE_BYTES = 8192, 1 << 20
_PROGRAM = (sys.executable, "-I", "-S", str(Path(recorder.__file__)))


class HostCapture(Struct, frozen=True):
    """What to record at one end of a flow: of packets from and to an address, if that is known.

    A remote host keeps them in memory, and sends them when the flow has ended.
    """

    host: Host
    address: str
    snap_bytes: int
    most_bytes: int


class HostRecorder:
    """The process that records at one end, and what it says."""

    def __init__(self, recording: HostCapture, file: Path, wall_clock: Callable[[], float]) -> None:
        self._wall = wall_clock
        self._recording = recording
        self._file = file
        self._process: Process | None = None
        self._text = b""
        self._coming: _Arriving | None = None
        self._has_reported = asyncio.Event()
        self._heard = asyncio.Event()
        self._said: dict[str, Any] = {}
        self._clock, self._steps, self._since = OURS, 0, 0.0
        self._first = OURS.reading(0.0)
        self._is_dropped = False
        self.trouble = ""
        """What went wrong with what was recorded, in words."""

    @property
    def host(self) -> str:
        return self._recording.host.name

    async def start(self, spawner: Spawner) -> str:
        """Start to record; returns why not, empty if it records."""
        try:
            self._file.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            capture = self._recording
            self._clock = await spawner.clock_of(capture.host)
            self._since, self._steps = self._wall(), self._clock.steps
            self._first = self._clock.reading(self._since)
            addresses = [capture.address] * (capture.address not in capture.host.translated)
            program = packet_filter(addresses, capture.snap_bytes, spawner.own_ports())
            flags = ("--max", f"{capture.most_bytes}", "--filter", json.dumps(program))
            await has_ended(await self._start(spawner, *flags), _READY_S, unless=self._has_reported)
        except HostError as error:
            self._said["message"] = error.message
        except OSError as error:
            self._said["message"] = error.strerror
        if self._said.get("event") == "recording":
            return ""
        why = self._said.get("message", "its recorder did not start")
        return f"the packets of {self.host} cannot be recorded: {why}"

    async def _start(self, spawner: Spawner, *flags: str) -> Process:
        host = replace(self._recording.host, as_root=True)
        file = str(self._file) if host.reach is None else "-"
        argv = (
            *_PROGRAM, file, "--name", self.host,
            "--snaplen", f"{self._recording.snap_bytes}", *flags,
        )  # fmt: skip
        self._process = await spawner.start(host, argv, {}, self._feed)
        self._process.begin()
        return self._process

    async def stop(self, spawner: Spawner, store: Path) -> RecordedPackets | None:
        """End it and wait for its file; None if there is none."""
        if self._process is None:
            return None
        self._process.send_signal("SIGTERM")
        try:
            await self._until_written(self._process)
            if self._said.get("event") != "end":
                self.trouble = self._said.get("message", "")
            if self._said.get("event") in ("recording", "file"):
                why = await spawner.why_lost(self._recording.host)
                self.trouble = why or "its recorder was killed"
                if self._recording.host.reach is None and not self._is_dropped:
                    await self._until_written(await self._start(spawner, "--finish"))
        except OSError as error:
            self.trouble = "; ".join(filter(None, [self.trouble, f"its file: {error.strerror}"]))
            self._said = {}
        finally:
            if self._coming is not None:
                self._coming.close()
        if self._said.get("event") != "end":
            self._file.unlink(missing_ok=True)
            return None
        self.trouble = self.trouble or self._said.get("message", "")
        counts = (self._said[name] for name in ("packets", "dropped", "left_out"))
        file = self._file.relative_to(store.parent).as_posix()
        return RecordedPackets(self.host, file, *counts)

    @property
    def clock(self) -> ClockSpan | None:
        """Its host's clock from its start until now; None if one of the clocks was set since."""
        if self._clock.steps != self._steps:
            return None
        now = self._wall()
        return ClockSpan(self._since, self._first, now, self._clock.reading(now))

    def kill(self) -> None:
        """Drop what was recorded: nobody waits for its file."""
        if self._process is not None:
            self._is_dropped = True
            self._process.send_signal("SIGKILL")

    async def _until_written(self, process: Process) -> None:
        """Wait until it has ended, for as long as something comes. Raises OSError."""
        while not await has_ended(process, _WRITTEN_S, unless=self._heard):
            if not self._heard.is_set():
                break
            self._heard.clear()
        await stop(process, "SIGKILL")
        await process.wait()

    def _feed(self, channel: Channel, data: bytes) -> None:
        if channel is not Channel.STDOUT:
            return
        self._heard.set()
        while data:
            if self._coming is not None and not self._coming.is_whole:
                data = self._coming.feed(data)
            else:
                line, end, data = data.partition(b"\n")
                self._text += line
                if len(self._text) > _MOST_LINE:
                    raise OSError(errno.EPROTO, "what it says is no line of a recorder")
                if end:
                    self._take(self._text)
                    self._text = b""

    def _take(self, line: bytes) -> None:
        try:
            said = json.loads(line)
            name = said.pop("event", None)
            check(RECORDED, name, said)
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise OSError(errno.EPROTO, f"what it says is not allowed: {error}") from None
        self._said = {"event": name, **said}
        self._has_reported.set()
        if name == "file" and self._coming is None:
            most_bytes = self._recording.most_bytes + recorder.ROOM
            self._coming = _Arriving(self._file.open("wb"), most_bytes)


class _Arriving:
    """A compressed file that comes piece by piece, and is never larger than it may be."""

    def __init__(self, file: BinaryIO, most_bytes: int) -> None:
        self._file = file
        self._left_bytes = most_bytes
        self._packed = zlib.decompressobj()

    @property
    def is_whole(self) -> bool:
        return self._packed.eof

    def feed(self, data: bytes) -> bytes:
        """Write what comes; returns what follows the file. Raises OSError."""
        while data and not self.is_whole:
            try:
                piece = self._packed.decompress(data, _PIECE_BYTES)
            except zlib.error:
                raise OSError(errno.EIO, "what came of it is damaged") from None
            data = self._packed.unconsumed_tail
            self._left_bytes -= len(piece)
            if self._left_bytes < 0:
                raise OSError(errno.EFBIG, "more came than was asked for")
            self._file.write(piece)
        return self._packed.unused_data

    def close(self) -> None:
        self._file.close()


class FlowRecorder:
    """Records a flow at all the ends that its profile asks for, into a folder beside the store."""

    def __init__(self, spawner: Spawner, store: Path, recorders: Sequence[HostRecorder]) -> None:
        self._spawner = spawner
        self._store = store
        self._recorders = recorders
        self.clocks: dict[str, ClockSpan | None] = {}
        """Those of its hosts while it was recorded, against ours; None if unknown."""
        self.notes: list[str] = []
        """What is missing of the packets, and why: one line for each end."""

    async def start(self) -> str:
        """Start to record; returns why not, empty if everything records."""
        started = [host_recorder.start(self._spawner) for host_recorder in self._recorders]
        return next(filter(None, await asyncio.gather(*started)), "")

    def kill(self) -> None:
        """Drop what was recorded."""
        for host_recorder in self._recorders:
            host_recorder.kill()

    async def stop(self) -> list[RecordedPackets]:
        """End, and return what was recorded."""
        ended = await asyncio.gather(
            *(host_recorder.stop(self._spawner, self._store) for host_recorder in self._recorders)
        )
        for host_recorder, found in zip(self._recorders, ended, strict=True):
            self.clocks[host_recorder.host] = host_recorder.clock
            if host_recorder.trouble or (found and (found.dropped or found.left_out)):
                words = [found.text if found else "none", *filter(None, [host_recorder.trouble])]
                self.notes.append(f"packets at {host_recorder.host}: {': '.join(words)}")
        return [packets for packets in ended if packets is not None]


def recorder_of(setup: FlowSetup, context: RunContext, flow_id: int) -> FlowRecorder | None:
    """Return what records an attempt at a flow; None if nobody asked for it."""
    flow, network, store = setup.flow, setup.network, context.recorder
    capture = flow.plan.capture
    if capture is None:
        return None
    address, folder = flow.address_in(network), store.captures
    recorders = [
        HostRecorder(
            HostCapture(host, address, capture.snap_bytes, capture.most_bytes),
            folder / re.sub(r"[^\w.-]", "_", f"{flow.plan.name}-{host.name}-{flow_id}.pcapng"),
            context.wall,
        )
        for host in captured_at(flow.plan, network)
    ]
    return FlowRecorder(context.hosts, store.path, recorders)
