"""Puts the messages of an end in order, and each of them in once. Pure.

They come over two streams, so a result may overtake the samples before it; and again after a fault
anywhere. The numbers of an end are 1, 2, 3 ...
"""

from __future__ import annotations

from collections.abc import Iterator

from benchctl.fleet.host_messages import EndOver, OfEnd

_MOST_EARLY = 1000
"""So many wait for one before them; what is dropped beyond is not committed, so it comes again."""


class Arrivals:
    """The messages of one end."""

    def __init__(self, last: int = 0) -> None:
        """``last`` is the number of the last message that was taken before."""
        self.last = last
        self.is_over = False
        self._early: dict[int, OfEnd] = {}

    @property
    def wait(self) -> bool:
        """Whether messages wait for one before them."""
        return bool(self._early)

    def take(self, message: OfEnd) -> Iterator[OfEnd]:
        """Take a message in any order; yields those whose turn it is."""
        if self.is_over:
            return
        if isinstance(message, EndOver) and message.lost and message.number <= self.last:
            # The agent was killed, and its spool had forgotten what it had said last.
            self.is_over = True
            self._early.clear()
            yield message
            return
        if message.number <= self.last:
            return
        if message.number > self.last + 1 and len(self._early) >= _MOST_EARLY:
            return
        self._early[message.number] = message
        while (following := self._early.pop(self.last + 1, None)) is not None:
            self.last += 1
            self.is_over = isinstance(following, EndOver)
            yield following
