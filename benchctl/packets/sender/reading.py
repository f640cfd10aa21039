"""When a receiver stopped reading: from its window's right edge, which stands still until it reads.

A window is rounded up to the unit of its scale, so the edge in a segment is up to a unit beyond the
true one, and seems to move while the window shrinks.
"""

from __future__ import annotations

_MOST = 64
"""Edges that are kept: those of a receiver that stands still differ by less than a unit."""


class Reading:
    """The edges of a window that shrinks, from the last one before it began to.

    Each has the time of the first data after it.
    """

    __slots__ = ("_after_s", "_edges")

    def __init__(self, edge: int) -> None:
        self._edges = [edge]
        self._after_s: list[float] = []

    def shrinks(self, edge: int, unread_s: float) -> bool:
        """Take an edge, and when the first data after the one before it came.

        Returns whether it is a new one.
        """
        if edge <= self._edges[-1]:
            return False
        self._edges.append(edge)
        self._after_s.append(unread_s)
        if len(self._edges) > _MOST:
            del self._edges[: _MOST // 2], self._after_s[: _MOST // 2]
        return True

    def stopped_s(self, unit_bytes: int, unread_s: float) -> float:
        """Return when the first data came that are still unread, now that the window is zero."""
        last = self._edges[-1]
        moved = [n for n, edge in enumerate(self._edges) if edge <= last - unit_bytes]
        return [*self._after_s, unread_s][moved[-1] if moved else 0]
