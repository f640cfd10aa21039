"""A trace: what is in a capture file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from benchctl.packets.connections import ConnectionWatch, connections_of
from benchctl.packets.pairing import Passages
from benchctl.packets.tcp import Connection
from benchctl.packets.wire.capture import Batch, Capture
from benchctl.packets.wire.frames import Frames


class Trace(NamedTuple):
    """The file, what its packets are, and its connections."""

    capture: Capture
    frames: Frames
    connections: list[Connection]


class StoppedError(Exception):
    """Somebody does not want the rest of a trace."""


def read_trace(
    path: Path,
    watch: ConnectionWatch | None = None,
    passages: Passages | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Trace:
    """Read a capture file in one pass. Raises UsageError if it is none.

    ``passages`` note each packet of TCP. Raises StoppedError soon after ``stop`` returns true.
    """
    capture, frames = Capture(path), Frames()
    segments = frames.segments(_until(capture, stop))
    if passages is not None:
        segments = passages.noting(segments)
    return Trace(capture, frames, connections_of(segments, watch, frames.unread))


def _until(capture: Capture, stop: Callable[[], bool]) -> Iterator[Batch]:
    for batch in capture:
        if stop():
            raise StoppedError
        yield batch
