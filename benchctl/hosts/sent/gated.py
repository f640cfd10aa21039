"""A command that waits at a gate, here and on a remote host, and what kills it there.

A part of the agent's text: Python 3.9 and the standard library only.
"""

from __future__ import annotations

import errno
import os
import pwd
import subprocess
from typing import Any

GATE = ("/bin/sh", "-c", 'read -r _ || exit 125; exec "$@" </dev/null', "benchctl-gate")


def kill(group: int, number: int) -> None:
    """Send a signal to a process group; no error if it has ended (macOS reports EPERM then)."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return


def program_path(name: str) -> str:
    """Return where a program is, by the PATH. Raises FileNotFoundError."""
    folders = [""] if "/" in name else os.environ.get("PATH", os.defpath).split(os.pathsep)
    for folder in folders:
        path = os.path.join(folder, name)  # noqa: PTH118 (pathlib takes longer to import)
        if os.path.isfile(path) and os.access(path, os.X_OK):  # noqa: PTH113
            return path
    raise FileNotFoundError(errno.ENOENT, f"no program {name} in the PATH")


def caller() -> dict[str, Any]:
    """Return whose rights a command gets, as `subprocess.Popen` takes them.

    An agent that sudo has started is root's, and gives commands the rights of the user who logged
    in. So signals reach both kinds of command alike.
    """
    if os.geteuid() != 0 or "SUDO_UID" not in os.environ:
        return {}
    user = pwd.getpwuid(int(os.environ["SUDO_UID"]))
    groups = os.getgrouplist(user.pw_name, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": groups}


class GatedCommand:
    """A command of this host, from its gate to its end."""

    def __init__(self, number: int, process: subprocess.Popen[bytes]) -> None:
        self.number = number
        self.process = process
        self.gate: Any = process.stdin
        self.streams: dict[Any, int] = {process.stdout: 1, process.stderr: 2}
        """Those that are still open, with their numbers."""

    def open_gate(self) -> None:
        """Let the command begin."""
        try:
            self.gate.write(b"\n")
            self.gate.close()
        except (OSError, ValueError):
            return  # it has ended


def pour(pipe: int, text: bytes) -> None:
    """Write all of a text to a pipe, as far as anybody reads it, and close it."""
    try:
        with open(pipe, "wb", closefd=True) as file:
            file.write(text)
    except OSError:
        return  # the command has ended
