"""Two traces of the same connections: whose end each is nearer to, and what passed between them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from benchctl.packets.pairing import ALWAYS, Crossing, Passages, Passed, follow
from benchctl.packets.tcp import Connection, ZeroWindow
from benchctl.packets.trace import Trace
from benchctl.packets.wire.frames import reverse

_SAME_S = 1.0
"""How much later one end may see that a window closed than the other."""


class TracePlace(NamedTuple):
    """A trace, and each packet that passed its place.

    The clock there was ``ahead_s`` at its first packet.
    """

    trace: Trace
    passages: Passages
    ahead_s: float = 0.0


class TracePair(NamedTuple):
    """A connection in two traces, by its number in each; ``crossings`` are of its two directions.

    ``shift_s`` turns times of the second trace into those of the first; ``near`` is the direction
    of the end that the first trace is nearer to.
    """

    numbers: tuple[int, int]
    connections: tuple[Connection, Connection]
    near: int
    shift_s: float
    crossings: tuple[Crossing, Crossing]

    @property
    def shuts(self) -> Iterator[tuple[int, ZeroWindow | None, ZeroWindow | None]]:
        """Yield zero windows: whose data waited, and as the sender's and the receiver's end saw it.

        Times are those of the trace of that end.
        """
        for direction in (0, 1):
            sides = [
                [
                    shut
                    for shut in connection.shuts
                    if shut.direction == direction ^ _turned(connection, self.connections[0])
                ]
                for connection in self.connections
            ]
            shifts_s = [0.0, self.shift_s]
            if direction != self.near:
                sides, shifts_s = sides[::-1], shifts_s[::-1]
            at_sender, at_receiver = sides
            for theirs in at_receiver:
                later_s = [
                    abs(window.begin_s + shifts_s[0] - theirs.begin_s - shifts_s[1])
                    for window in at_sender
                ]
                same = min(later_s, default=_SAME_S) < _SAME_S
                yield (
                    direction,
                    at_sender.pop(later_s.index(min(later_s))) if same else None,
                    theirs,
                )
            for ours in at_sender:
                yield direction, ours, None


def pairs_of(first: TracePlace, second: TracePlace, *, whole: bool = False) -> Iterator[TracePair]:
    """Yield the connections that are in both traces.

    ``whole`` says that both were recorded before the connections began and after they ended; else
    each was from its first packet to its last.
    """
    began_ns = first.trace.capture.began_ns, second.trace.capture.began_ns
    if None in began_ns:
        return
    shift_s = (began_ns[1] - began_ns[0]) / 1e9  # type: ignore[operator]
    shift_s -= second.ahead_s - first.ahead_s
    there: dict[bytes, int] = {}
    for number, connection in enumerate(second.trace.connections):
        there.setdefault(connection.ends, number)
        there.setdefault(reverse(connection.ends), number)
    for number, connection in enumerate(first.trace.connections):
        if (found := there.pop(connection.ends, None)) is None:
            continue
        there.pop(reverse(connection.ends), None)
        again = second.trace.connections[found]
        crossings = []
        near = _near(connection, again)
        for direction in (0, 1):
            ends = connection.ends if direction == 0 else reverse(connection.ends)
            here, far = (place.passages.of.get(ends, Passed()) for place in (first, second))
            seen = [(0.0, place.trace.frames.last_s) for place in (first, second)]
            if direction == near:
                crossing = follow(here, far, shift_s, ALWAYS if whole else seen[1])
            else:
                crossing = follow(far, here, -shift_s, ALWAYS if whole else seen[0])
            crossings.append(crossing)
        yield TracePair(
            (number + 1, found + 1), (connection, again), near, shift_s,
            (crossings[0], crossings[1]),
        )  # fmt: skip


def _near(connection: Connection, other: Connection) -> int:
    """Return the direction of the end that the first trace is nearer to.

    What passes nearer to a sender is answered after a longer time, whatever the clocks.
    """
    for direction in (0, 1):
        half, again = (
            connection.halves[direction],
            other.halves[direction ^ _turned(connection, other)],
        )
        for ours, theirs in ((half.handshake_s, again.handshake_s), (half.least_s, again.least_s)):
            if ours is not None and theirs is not None and ours != theirs:
                return direction if ours > theirs else 1 - direction
    return 0


def _turned(connection: Connection, other: Connection) -> int:
    """Return whether the first end of one is the second of the other."""
    return 0 if connection.ends == other.ends else 1
