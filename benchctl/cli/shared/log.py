"""The log of commands on the command line: its options, and what ``-v`` shows of it.

The runner writes the log. This process reads the file and shows its new lines, so that what is
shown does not depend on who started a command.
"""

from __future__ import annotations

import atexit
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from benchctl.settings import JSON_LOG_VARIABLE, LOG_VARIABLE

_shown: IO[str] | None = None
_pending = ""


def keep_log(file: Path | None, *, as_json: bool, verbose: bool = False) -> None:
    """Choose the log of this process and of those that it starts. Raises UsageError.

    ``verbose`` shows it, as JSON without a file does.
    """
    global _shown
    from benchctl.hosts.log import CommandLog, command_log
    from benchctl.settings import settings

    if as_json:
        os.environ[JSON_LOG_VARIABLE] = "1"
    path = file.absolute() if file else settings()["log"]
    if path is None and (verbose or as_json):
        descriptor, name = tempfile.mkstemp(prefix="benchctl-")
        os.close(descriptor)
        path, verbose = Path(name), True
        atexit.register(path.unlink, missing_ok=True)
    if path is None:
        return
    os.environ[LOG_VARIABLE] = str(path)
    command_log.cache_clear()
    CommandLog(path)
    if verbose:
        _shown = path.open(encoding="utf-8")
        _shown.seek(0, os.SEEK_END)


def new_lines() -> Iterator[str]:
    """Yield what was logged since the last call, if it is shown."""
    global _pending
    if _shown is not None:
        *lines, _pending = (_pending + _shown.read()).split("\n")
        yield from lines


def show_new_lines() -> None:
    """Print what was logged since the last call, if it is shown."""
    for line in new_lines():
        print(line, file=sys.stderr)
