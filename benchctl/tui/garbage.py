"""Collects garbage while no key is pressed.

A full collection takes 70 to 150 ms with all that the screens keep, longer than a key may take to
its effect (``python bench tui``). The interpreter starts one whenever enough objects were made,
which is while keys open and close windows. So the command turns that off, and the screens collect
when the hands rest.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

from textual._styles_cache import StylesCache

# A pause between two keys, but not while somebody types.
REST_S = 1.0
# Objects made and not freed: about as many as one window leaves behind.
LITTLE = 10_000
# Some 50 MB. Nobody presses keys for minutes without a rest, but a stuck key does.
MUCH = 500_000


class Garbage:
    """Decides when to collect, by the time of the last key, or of the last move of the mouse."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._touched = clock()

    def touch(self) -> None:
        """Take note of a key."""
        self._touched = self._clock()

    def collect(self) -> None:
        """Collect, if there is enough to collect and no key may have to wait."""
        if not self.due(gc.get_count()[0]):
            return
        # Textual keeps the lines of closed windows in it (Textualize/textual issue 6665).
        StylesCache.get_inner_outer.cache_clear()
        gc.collect()

    def due(self, made: int) -> bool:
        """Return whether to collect, after so many objects were made and not freed."""
        return made > MUCH or (made > LITTLE and self._clock() - self._touched >= REST_S)
