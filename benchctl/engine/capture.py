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
        self.trouble = ""
        """What went wrong with what was recorded, in words."""

    @property
    def host(self) -> str:
        return self._recording.host.name

    async def start(self, spawner: Spawner) -> str:
        """Start to record; returns why not, empty if it records."""
        try:
            self._file.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            process = await self._start(
                spawner,
                "--address",
                self._recording.address,
                "--max",
                f"{self._recording.most_bytes}",
            )
            await has_ended(process, _READY_S, unless=self._told)
        except OSError as error:
            self._said["message"] = error.strerror
        if self._said.get("event") == "recording":
            return ""
        why = self._said.get("message", "its recorder did not start")
        return f"the packets of {self.host} cannot be recorded: {why}"

    async def _start(self, spawner: Spawner, *flags: str) -> Process:
        recording = self._recording
        argv = (
            *_PROGRAM, str(self._file), "--name", self.host,
            "--snaplen", f"{recording.snap_bytes}", *flags,
        )  # fmt: skip
        self._process = await spawner.start(recording.host, argv, {}, self._feed)
        self._process.begin()
        return self._process

    async def stop(self, spawner: Spawner, store: Path) -> RecordedPackets | None:
        """End it and wait for its file; None if there is none."""
        if self._process is None:
            return None
        self._process.send_signal("SIGTERM")
        await _end(self._process)
        if self._said.get("event") == "recording":
            self.trouble = "its recorder was killed"
            try:
                await _end(await self._start(spawner, "--finish"))
            except OSError as error:
                self.trouble += f", and its file cannot be finished: {error.strerror}"
        if self._said.get("event") != "end":
            self.trouble = self.trouble or self._said.get("message", "")
            self._file.unlink(missing_ok=True)
            return None
        self.trouble = self.trouble or self._said.get("message", "")
        counts = (self._said[name] for name in ("packets", "dropped", "left_out"))
        file = self._file.relative_to(store.parent).as_posix()
        return RecordedPackets(self.host, file, *counts)

    def _feed(self, channel: Channel, data: bytes) -> None:
        if channel is not Channel.STDOUT:
            return
        *lines, self._text = (self._text + data).split(b"\n")
        for line in lines:
            self._said = json.loads(line)
            self._told.set()


async def _end(process: Process) -> None:
    await has_ended(process, _WRITTEN_S)
    await stop(process, "SIGKILL")
    await process.wait()


class FlowRecorder:
    """Records a flow at all the ends that its profile asks for, into a folder beside the store."""

    def __init__(self, spawner: Spawner, store: Path, recorders: Sequence[HostRecorder]) -> None:
        self._spawner = spawner
        self._store = store
        self._recorders = recorders
        self.notes: list[str] = []
        """What is missing of the packets, and why: one line for each end."""

    async def start(self) -> str:
        """Start to record; returns why not, empty if everything records."""
        started = [one.start(self._spawner) for one in self._recorders]
        return next(filter(None, await asyncio.gather(*started)), "")

    async def stop(self) -> list[RecordedPackets]:
        """End, and return what was recorded."""
        ended = await asyncio.gather(
            *(one.stop(self._spawner, self._store) for one in self._recorders)
        )
        for one, found in zip(self._recorders, ended, strict=True):
            if one.trouble or (found and (found.dropped or found.left_out)):
                words = [found.text if found else "none", *filter(None, [one.trouble])]
                self.notes.append(f"packets at {one.host}: {': '.join(words)}")
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
