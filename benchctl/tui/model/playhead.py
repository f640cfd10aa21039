"""The moment of a run that the screen shows: now, a frozen one, or that of a replay."""

from __future__ import annotations

import math
from collections.abc import Callable

SPEEDS = (1, 2, 4, 8, 16, 32, 64)


class Playhead:
    """A moment in Unix time that moves with the clock, or is frozen.

    Live, it is the clock's time. A replay goes from ``begin`` to ``end`` at one of `SPEEDS`.
    Freezing stops both.
    """

    def __init__(
        self, clock: Callable[[], float], begin: float | None = None, end: float | None = None
    ) -> None:
        self._clock = clock
        self.live = begin is None
        """Whether it is live, not a replay."""
        self._begin = -math.inf if begin is None else begin
        self._end = math.inf if end is None else end
        self._speed = 1
        self._anchor = (clock(), 0.0 if begin is None else begin)
        self._standing: float | None = None
        self._latest = math.inf
        """Live, the moment when it was frozen: nothing later is known."""

    @property
    def frozen(self) -> bool:
        """Whether it is frozen."""
        return self._standing is not None

    @property
    def standing(self) -> bool:
        """Whether it is frozen, or at the end of a replay."""
        return self.frozen or self.at_end

    @property
    def at_end(self) -> bool:
        """Whether a replay is over."""
        return not self.live and self.time() >= self._end

    @property
    def speed(self) -> int:
        """Seconds of a replay per second."""
        return self._speed

    def keep_within(self, begin: float, end: float | None) -> None:
        """Give a live run its bounds for going back and on; it has no end while it goes on."""
        self._begin, self._end = begin, math.inf if end is None else end

    def time(self) -> float:
        """Return the current moment."""
        if self._standing is not None:
            return self._standing
        if self.live:
            return self._clock()
        since, time = self._anchor
        return self._within(time + (self._clock() - since) * self._speed)

    def _within(self, time: float) -> float:
        return min(max(time, self._begin), self._end, self._latest)

    def toggle(self) -> None:
        """Freeze, or continue: live from now, a replay from its position.

        A finished replay starts again.
        """
        time = self.time()
        if self.at_end:
            self._standing, self._anchor = None, (self._clock(), self._begin)
            return
        self._standing = time if self._standing is None else None
        self._latest = time if self.live and self.frozen else math.inf
        self._anchor = (self._clock(), time)

    def seek(self, time: float) -> None:
        """Go to a moment of the run."""
        time = self._within(time)
        self._anchor = (self._clock(), time)
        if self._standing is not None:
            self._standing = time

    def move(self, seconds: float) -> None:
        """Go back, or on; a live run freezes, and one that has ended begins at its end."""
        if self.live and not self.frozen:
            self.toggle()
        self.seek(self._within(self.time()) + seconds)

    def change_speed(self, steps: int) -> None:
        """Select the next or previous of `SPEEDS`."""
        time = self.time()
        place = SPEEDS.index(self._speed) + steps
        self._speed = SPEEDS[min(len(SPEEDS) - 1, max(0, place))]
        self._anchor = (self._clock(), time)
