"""Reads secrets from files of this machine, for the environment of a command.

They are read when the command starts, so no other process has them, and nothing records them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

# Longer than any password; a wrong file may be endless.
_MOST_BYTES = 4096


def read_secrets(files: Mapping[str, str]) -> dict[str, str]:
    """Return the first line of each file, by the variable that is to hold it.

    Raises ValueError for a file that cannot be read, that others may read, or that has no such
    line.
    """
    return {variable: _first_line(path) for variable, path in files.items()}


def _first_line(path: str) -> str:
    try:
        # A pipe without a writer must not hold up the run.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise ValueError(f"{path} is not a file")
            if status.st_mode & stat.S_IROTH:
                raise ValueError(f"{path} is readable by everyone; restrict it with chmod 600")
            line = file.readline(_MOST_BYTES + 1)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    secret = line.rstrip(b"\r\n")
    if not secret or len(secret) > _MOST_BYTES or b"\0" in secret:
        raise ValueError(f"the first line of {path} is empty, too long or no text")
    return os.fsdecode(secret)
