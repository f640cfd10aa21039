"""The errors of benchctl, by cause.

Every error has one line that says what is wrong and where, and a hint that says what to do.
`exit_code` is that of the command line; the numbers are documented and never change.
"""

from __future__ import annotations

import difflib
import re
import signal
from collections.abc import Iterable
from typing import ClassVar, NamedTuple

SIGNAL_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
"""The exit codes of a command that was asked to end, as of any program that a signal ended."""


class Place(NamedTuple):
    """A place in a file; line and column count from 1."""

    file: str
    line: int
    column: int


class BenchctlError(Exception):
    """Base of every error that benchctl reports without a traceback.

    Args:
        message: what is wrong and where, in one line.
        hint: what to do about it, in one line; may be empty.
    """

    exit_code: ClassVar[int] = 4

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.place: Place | None = None
        """Of a file that is wrong; the message starts with its file and line."""


class UnwrittenError(BenchctlError):
    """A result cannot be written to ``where``: the disk is full, or gone."""

    def __init__(self, where: str, error: OSError) -> None:
        super().__init__(
            f"cannot write {where}: {error.strerror}",
            "the measurements are in the store: show, export, plot and report write results again",
        )


class NoReaderError(BenchctlError):
    """The reader of the result has closed it (``| head -1``): not a failure."""

    exit_code = 0

    def __init__(self) -> None:
        super().__init__("nobody reads the result any more")


class UsageError(BenchctlError):
    """The command line asks for something impossible."""

    exit_code = 2


class ProfileError(BenchctlError):
    """The profile or the topology file is wrong; the message starts with file and line."""

    exit_code = 2


class MissingError(BenchctlError):
    """A tool, a peer or a plugin that the profile names is missing."""

    exit_code = 3


class HostError(MissingError):
    """A remote host cannot be reached, or lacks what benchctl needs there."""


class PluginError(MissingError):
    """A plugin cannot be loaded, or has failed: it breaks its contract."""


class IncompatibleError(PluginError):
    """A plugin was written for a version of `benchctl.api` that is not supported here.

    ``api_version`` is that version, if it is known.
    """

    def __init__(self, message: str, hint: str = "", api_version: int | None = None) -> None:
        super().__init__(message, hint)
        self.api_version = api_version


class StoreError(BenchctlError):
    """The store cannot be read or written: locked, full, damaged or of a newer version."""

    exit_code = 4


class NoStoreError(StoreError):
    """The store that the user chose is not there, or is no store."""

    exit_code = 2


class StoreBusyError(StoreError):
    """Another program is locking the store."""


class GoneError(StoreError):
    """What was being read or written was deleted: a run, or the store itself."""


class StoreDamagedError(StoreError):
    """The store contains invalid data."""


class ArchiveError(BenchctlError):
    """The archive cannot be reached, read or written."""

    exit_code = 4


class ArchiveAwayError(ArchiveError):
    """The archive does not answer, or the connection to it was lost."""


class FleetError(BenchctlError):
    """A fleet's files are wrong, or its server or coordinator cannot be reached or refuses."""


class LabError(BenchctlError):
    """The lab cannot be built here, or a link does not keep its promise."""

    exit_code = 3


class LabKilledError(LabError):
    """The keeper of the lab was killed while it built it; the next lab may stand."""


class HookError(BenchctlError):
    """A command that prepares a trial, or with ``of_run`` the whole run, has failed."""

    exit_code = 1

    def __init__(self, message: str, *, of_run: bool) -> None:
        super().__init__(message, "benchctl show --trials shows its output")
        self.of_run = of_run


def surroundings(error: Exception) -> str:
    """Return one line for an error of the machine, not of benchctl; empty for any other.

    No descriptors, processes, memory or disk space, or a missing program.
    """
    if isinstance(error, OSError):
        what = error.strerror or str(error)
        return f"{error.filename}: {what}" if error.filename else what
    if isinstance(error, MemoryError) or _without_room(error):
        return "there is not enough memory"
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        return "no thread can be started: a limit of processes or of memory is reached"
    return ""


def _without_room(error: Exception) -> bool:
    """Whether a library could not be loaded for want of memory (glibc, elf/dl-load.c).

    CPython 3.13 may lose the MemoryError of an import, and says only that there was one.
    """
    if isinstance(error, SystemError):
        return re.search("without (exception set|setting an exception)", str(error)) is not None
    words = ("failed to map segment", "cannot map zero-fill", "cannot allocate memory")
    return isinstance(error, ImportError) and any(word in str(error).lower() for word in words)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ``did you mean "x"?`` with the known name nearest to a wrong one, or an empty text."""
    match = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f'did you mean "{match[0]}"?' if match else ""
