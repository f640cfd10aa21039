"""A measurement that a tool wrote to a file before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchctl.api.events import Event
from benchctl.metrics import Direction


@dataclass(frozen=True, slots=True)
class Recording:
    """One measurement that a tool wrote to a file some time ago, see `Backend.recorded`.

    ``events`` are those of its parser: a fault of the file is a `Warn` among them, and a
    measurement that failed, or whose end is missing, has its `Failure`. ``parameters`` are the
    settings that the file reports, with the names and values of a profile (`write_size` and
    others); one that is None is known of other files only. ``source`` and ``target`` name the two
    ends as far as known, ``port`` is the server's. ``started_time`` is the second 0 as Unix time;
    None if the file does not report it. ``facts`` are those of the host that measured, such as
    ``{"hostname": ..., "kernel": ...}``.
    """

    events: Sequence[Event]
    direction: Direction = Direction.SEND
    parameters: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    target: str = ""
    port: int | None = None
    started_time: float | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
