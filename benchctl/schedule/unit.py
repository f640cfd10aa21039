"""A systemd user timer that starts what is due each minute."""

from __future__ import annotations

from pathlib import Path

from benchctl.errors import UsageError
from benchctl.schedule.loop import COMMAND

NAME = "benchctl-schedule"

_SERVICE = """\
[Unit]
Description=benchctl: runs that are due

[Service]
Type=oneshot
ExecStart={command}
# A run is interrupted in order, then it is resumable.
KillMode=mixed
TimeoutStopSec=60
"""
_TIMER = """\
[Unit]
Description=benchctl: each minute

[Timer]
OnCalendar=*-*-* *:*:00
AccuracySec=1s

[Install]
WantedBy=timers.target
"""


def units(store: Path) -> dict[str, str]:
    """Return the texts of the service and its timer, by file name. Raises UsageError."""
    words = [*COMMAND, "schedule", "run", "--due", "--store", str(store)]
    return {
        f"{NAME}.service": _SERVICE.format(command=" ".join(map(_quoted, words))),
        f"{NAME}.timer": _TIMER,
    }


def _quoted(word: str) -> str:
    """Quote a word of a command line (systemd.service(5), COMMAND LINES)."""
    if any(ord(letter) < 32 for letter in word):
        raise UsageError(f"{word!r}: systemd takes no control character", "use another --store")
    text = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{text}"'
