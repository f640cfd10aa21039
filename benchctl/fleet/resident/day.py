"""What a host of a fleet may still send today."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime
from pathlib import Path


class DayBytes:
    """The bytes of this day, on the disk: a start of the agent does not begin them anew."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._date, self._bytes = "", 0.0
        with suppress(OSError, ValueError, KeyError):
            kept = json.loads(path.read_text())
            self._date, self._bytes = str(kept["date"]), float(kept["bytes"])

    @property
    def bytes(self) -> float:
        """What was planned on this day of the owner's time."""
        return self._bytes if self._date == _today() else 0.0

    def add(self, amount: float) -> None:
        """Note that a flow may take so much."""
        self._bytes, self._date = self.bytes + amount, _today()
        new = self._path.with_suffix(".new")
        with suppress(OSError):  # a full disk is told by the heartbeat
            new.write_text(json.dumps({"date": self._date, "bytes": self._bytes}))
            new.replace(self._path)


def _today() -> str:
    return datetime.now().astimezone().date().isoformat()
