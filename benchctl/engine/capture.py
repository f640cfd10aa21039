"""Records the packets of a flow at its ends, from before its client starts until after its end."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from benchctl.api import Channel
from benchctl.hosts import recorder
from benchctl.hosts.spawn import Process, Spawner, has_ended, stop
from benchctl.plan.bound import BoundFlow
from benchctl.run.planned import Host, Network
from benchctl.run.record import RecordedPackets
from benchctl.store.captures import PRIVATE_FOLDER
from benchctl.store.record import Recorder

# As for a server: a cold start of an interpreter takes tenths of a second.
_READY_S = 10.0
# A million packets become pcapng in some seconds.
_WRITTEN_S = 60.0
_PROGRAM = (sys.executable, "-I", "-S", str(Path(recorder.__file__)))


class HostCapture(Struct, frozen=True):
    """What to record at one end of a flow: of packets from and to an address, if that is known."""

    host: Host
    address: str
    snap_bytes: int
    most_bytes: int


class HostRecorder:
    """The process that records at one end, and what it says."""

    def __init__(self, recording: HostCapture, file: Path) -> None:
        self._recording = recording
        self._file = file
        self._process: Process | None = None
        self._text = b""
        self._told = asyncio.Event()
        self._said: dict[str, Any] = {}

    async def start(self, spawner: Spawner) -> str:
        """Start to record; returns why not, empty if it records."""
        recording = self._recording
        argv = (
            *_PROGRAM, str(self._file), "--name", recording.host.name,
            "--address", recording.address, "--snaplen", f"{recording.snap_bytes}",
            "--max", f"{recording.most_bytes}",
        )  # fmt: skip
        try:
            self._file.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            self._process = await spawner.start(recording.host, argv, {}, self._feed)
            self._process.begin()
            await has_ended(self._process, _READY_S, unless=self._told)
        except OSError as error:
            self._said["message"] = error.strerror
        if self._said.get("event") == "recording":
            return ""
        why = self._said.get("message", "its recorder did not start")
        return f"the packets of {recording.host.name} cannot be recorded: {why}"

    async def stop(self, store: Path) -> RecordedPackets | None:
        """End it and wait for its file; None if there is none."""
        if self._process is None:
            return None
        self._process.send_signal("SIGTERM")
        await has_ended(self._process, _WRITTEN_S)
        await stop(self._process, "SIGKILL")
        await self._process.wait()
        if self._said.get("event") != "end":
            self._file.unlink(missing_ok=True)
            return None
        counts = (self._said[name] for name in ("packets", "dropped", "left_out"))
        file = self._file.relative_to(store.parent).as_posix()
        return RecordedPackets(self._recording.host.name, file, *counts)

    def _feed(self, channel: Channel, data: bytes) -> None:
        if channel is not Channel.STDOUT:
            return
        *lines, self._text = (self._text + data).split(b"\n")
        for line in lines:
            self._said = json.loads(line)
            self._told.set()


class FlowRecorder:
    """Records a flow at all the ends that its profile asks for, into a folder beside the store."""

    def __init__(self, spawner: Spawner, store: Path, recorders: Sequence[HostRecorder]) -> None:
        self._spawner = spawner
        self._store = store
        self._recorders = recorders

    async def start(self) -> str:
        """Start to record; returns why not, empty if everything records."""
        started = [one.start(self._spawner) for one in self._recorders]
        return next(filter(None, await asyncio.gather(*started)), "")

    async def stop(self) -> list[RecordedPackets]:
        """End, and return what was recorded."""
        ended = await asyncio.gather(*(one.stop(self._store) for one in self._recorders))
        return [one for one in ended if one is not None]


def recorder_of(
    flow: BoundFlow, network: Network, spawner: Spawner, store: Recorder, number: int
) -> FlowRecorder | None:
    """Return what records an attempt at a flow, its ``number``; None if nobody asked for it."""
    capture = flow.plan.capture
    if capture is None:
        return None
    ends = {"from": network.hosts[flow.plan.source], "to": network.target(flow.plan.to)}
    hosts = {host.name: host for end in capture.ends if (host := ends[end]) is not None}
    address, folder = flow.address_in(network), store.captures
    recorders = [
        HostRecorder(
            HostCapture(host, address, capture.snap_bytes, capture.most_bytes),
            folder / re.sub(r"[^\w.-]", "_", f"{flow.plan.name}-{host.name}-{number}.pcapng"),
        )
        for host in hosts.values()
    ]
    return FlowRecorder(spawner, store.path, recorders)
