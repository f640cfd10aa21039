"""A trace: what is in a capture file."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from benchctl.packets.capture import Capture
from benchctl.packets.connections import connections_of
from benchctl.packets.frames import Frames
from benchctl.packets.tcp import Connection


class Trace(NamedTuple):
    """The file, what its packets are, and its connections."""

    capture: Capture
    frames: Frames
    connections: list[Connection]


def read_trace(path: Path) -> Trace:
    """Read a capture file in one pass. Raises UsageError if it is none."""
    capture, frames = Capture(path), Frames()
    return Trace(capture, frames, connections_of(frames.segments(capture)))
