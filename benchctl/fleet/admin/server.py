"""nats-server: which one is here, how one is got, and how it is started for a trial."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from benchctl.errors import FleetError, MissingError
from benchctl.fleet.admin.directory import FleetDirectory
from benchctl.fleet.carrier.opening import open_carrier
from benchctl.fleet.carrier.streams import (
    LEASE_LIFE_S,
    LEASES,
    REPEATS_WITHIN_S,
    STREAMS,
    Stream,
)

LEAST_VERSION: Final = (2, 14)
"""For streams that acknowledge first (persist_mode), and for repairs of its safety."""

HOW_TO_GET: Final = (
    'pip install "benchctl[fleet-trial]" brings one, github.com/nats-io/nats-server has releases'
)
ENDS_WITH_US: Final = ("setpriv", "--pdeathsig", "TERM") if sys.platform == "linux" else ()
"""Goes before a command that must not outlive this process, however it ends."""

DEFAULT_PORT: Final = 4222
"""That of NATS."""

_START_S: Final = 15.0
_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")


def find_server() -> str:
    """Return the path of nats-server, beside this Python or in PATH.

    Raises MissingError if there is none, or if it is too old.
    """
    beside = Path(sys.executable).parent / "nats-server"
    path = str(beside) if beside.exists() else shutil.which("nats-server")
    if path is None:
        raise MissingError("nats-server is not installed", HOW_TO_GET)
    try:
        said = subprocess.run(
            [path, "--version"], check=False, capture_output=True, text=True, timeout=10
        ).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingError(f"{path} cannot be started: {error}", HOW_TO_GET) from None
    found = _VERSION.search(said)
    if found is None or tuple(map(int, found.groups()[:2])) < LEAST_VERSION:
        version = found.group().lstrip("v") if found else "of an unknown version"
        least = ".".join(map(str, LEAST_VERSION))
        raise MissingError(f"{path} is {version}, {least} or newer is needed", HOW_TO_GET)
    return path


class TrialServer:
    """nats-server as a child of this process, which ends with it; an async context manager."""

    def __init__(self, directory: FleetDirectory) -> None:
        self._directory = directory
        self.process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> TrialServer:
        """Start it and wait until it serves and has its streams. Raises FleetError."""
        self._log = self._directory.path / "nats.log"
        with self._log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *ENDS_WITH_US, find_server(), "-c", str(self._directory.path / "nats.conf"),
                stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        try:
            ending = asyncio.create_task(self.process.wait())
            making = asyncio.create_task(make_streams(self._directory, _START_S))
            await asyncio.wait([ending, making], return_when=asyncio.FIRST_COMPLETED)
            if ending.done():
                making.cancel()
                raise FleetError(f"nats-server has ended: {self._last_words()}", str(self._log))
            ending.cancel()
            await making
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.process is not None and self.process.returncode is None:
            self.process.terminate()
            try:
                await asyncio.wait_for(self.process.wait(), 10)
            except TimeoutError:
                self.process.kill()
                await self.process.wait()

    def _last_words(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()
        words = lines[-1] if lines else "it said nothing"
        return re.sub(r"^(\[\d+\] )?\S+ \S+ (\[\w+\] )?", "", words)[:200]


async def make_streams(directory: FleetDirectory, patience_s: float) -> None:
    """Make the streams and the bucket of leases, or bring their bounds up to date.

    Raises FleetError if the server cannot be reached in time, or refuses.
    """
    carrier = open_carrier(directory.server(), directory.setup_key(), "setup")
    try:
        async with carrier:
            await carrier.wait_connected(patience_s)
            for config in [*map(_stream, STREAMS), _lease()]:
                await carrier.make_stream(config)
    except ConnectionError as error:
        raise FleetError(f"the streams cannot be made: {error}") from None


def _stream(stream: Stream) -> dict[str, Any]:
    config = {
        "name": stream.name,
        "subjects": [stream.subject],
        "retention": "limits",
        "storage": "file",
        "num_replicas": 1,
        "discard": "old" if stream.discards_old else "new",
        "max_bytes": stream.max_bytes,
        "max_age": int(stream.max_age_s * 1e9),
        "max_msg_size": -1,
        "max_msgs": -1,
        "max_consumers": -1,
        "duplicate_window": int(REPEATS_WITHIN_S * 1e9),
    }
    if stream.is_async:
        config["persist_mode"] = "async"
    return config


def _lease() -> dict[str, Any]:
    return {
        "name": f"KV_{LEASES}",
        "subjects": [f"$KV.{LEASES}.>"],
        "retention": "limits",
        "storage": "file",
        "num_replicas": 1,
        "discard": "new",
        "max_msgs_per_subject": 1,
        "max_age": int(LEASE_LIFE_S * 1e9),
        "max_bytes": 1 << 20,
        "max_msgs": -1,
        "max_consumers": -1,
        "duplicate_window": int(LEASE_LIFE_S * 1e9),
        "allow_rollup_hdrs": True,
        "deny_delete": True,
        "allow_direct": True,
    }
