"""The log of commands: every command line, its host, its start, its end and its exit code.

An error within the screens that did not end them is logged, too.

One line for each start and each end, as text or as JSON, appended to one file by every process of
benchctl. What a command gets in its environment or its files is not logged: secrets travel there.
"""

from __future__ import annotations

import json
import os
import shlex
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from benchctl.errors import UsageError
from benchctl.settings import settings
from benchctl.units import format_duration, timestamp
from benchctl.visible import visible

Ended = Callable[[int], None]
"""Takes the exit code of a command, negative for a signal."""


class CommandLog:
    """A log in a file; without one, nothing is logged."""

    def __init__(
        self, path: Path | None, *, as_json: bool = False, clock: Callable[[], float] = time.time
    ) -> None:
        """Open the file, or create it for this user alone. Raises UsageError if it cannot be."""
        self._json = as_json
        self._clock = clock
        self._file: int | None = None
        if path is not None:
            try:
                self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            except OSError as error:
                raise UsageError(f"log {path}: {error.strerror}") from None

    def started(self, host: str, argv: Sequence[str], pid: int) -> Ended:
        """Log the start of a command; returns what logs its end."""
        if self._file is None:
            return lambda _: None
        begun = self._clock()
        entry = {"host": host, "pid": pid, "command": list(argv)}
        who, what = f"{host} {pid}", shlex.join(argv)
        self._write(begun, f"{who} starts: {what}", {"event": "started", **entry})

        def ended(exit_code: int) -> None:
            now = self._clock()
            took = {"exit_code": exit_code, "duration_s": round(now - begun, 6)}
            how = f"signal {-exit_code}" if exit_code < 0 else f"exit code {exit_code}"
            said = f"ends with {how} after {format_duration(now - begun)}"
            self._write(now, f"{who} {said}: {what}", {"event": "ended", **entry, **took})

        return ended

    def fault(self, where: str, error: Exception) -> None:
        """Log an error that ended nothing, with the lines of code that led to it."""
        if self._file is not None:
            lines = "".join(traceback.format_exception(error))
            entry = {"event": "fault", "where": where, "traceback": lines}
            self._write(self._clock(), f"{where} fault: {lines}", entry)

    def _write(self, now: float, text: str, entry: Mapping[str, object]) -> None:
        assert self._file is not None
        stamp = timestamp(now)
        words = f"{stamp[:10]} {stamp[11:23]} {visible(text)}"
        line = json.dumps({"time": stamp, **entry}) if self._json else words
        with suppress(OSError):  # a full disk ends no measurement
            os.write(self._file, f"{line}\n".encode(errors="backslashreplace"))


@cache
def command_log() -> CommandLog:
    """Return the log that the settings name. Raises UsageError, ProfileError."""
    found = settings()
    return CommandLog(found["log"], as_json=found["log_json"])
