"""The moment of a run that the screen shows: now, a frozen one, or that of a replay."""

from __future__ import annotations

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
        self._begin = begin
        self._end = end
        self._speed = 1
        self._anchor = (clock(), begin if begin is not None else 0.0)
        self._standing: float | None = None

    @property
    def live(self) -> bool:
        """Whether it is live, not a replay."""
        return self._begin is None

    @property
    def standing(self) -> bool:
        """Whether it is frozen, or at the end of a replay."""
        return self._standing is not None or self.at_end

    @property
    def at_end(self) -> bool:
        """Whether a replay is over."""
        return self._end is not None and self.time() >= self._end

    @property
    def speed(self) -> int:
        """Seconds of a replay per second."""
        return self._speed

    def time(self) -> float:
        """Return the current moment."""
        if self._standing is not None:
            return self._standing
        if self._begin is None:
            return self._clock()
        since, time = self._anchor
        return self._within(time + (self._clock() - since) * self._speed)

    def _within(self, time: float) -> float:
        if self._begin is not None:
            time = max(time, self._begin)
        return min(time, self._end) if self._end is not None else time

    def toggle(self) -> None:
        """Freeze, or continue: live from now, a replay from its position.

        A finished replay starts again.
        """
        time = self.time()
        if self.at_end and self._begin is not None:
            self._standing, self._anchor = None, (self._clock(), self._begin)
            return
        self._standing = time if self._standing is None else None
        self._anchor = (self._clock(), time)

    def seek(self, time: float) -> None:
        """Go to a moment of a replay, or of a live run, which freezes it."""
        time = self._within(time)
        self._anchor = (self._clock(), time)
        if self._standing is not None:
            self._standing = time

    def change_speed(self, steps: int) -> None:
        """Select the next or previous of `SPEEDS`."""
        time = self.time()
        place = SPEEDS.index(self._speed) + steps
        self._speed = SPEEDS[min(len(SPEEDS) - 1, max(0, place))]
        self._anchor = (self._clock(), time)
