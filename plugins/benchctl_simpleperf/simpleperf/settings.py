"""What one measurement is asked to do, as both ends know it."""

from __future__ import annotations

from typing import NamedTuple

from .schedule import SECOND_NS, Schedule

__all__ = ["DEFAULT_PORT", "Settings"]

DEFAULT_PORT = 8088


class Settings(NamedTuple):
    """One measurement. ``None`` leaves a setting to the system.

    ``directions`` are seen from the client: ``send``, ``receive`` or both. Exactly one of
    ``duration_s`` and ``total_bytes`` is set; the bytes are shared by the streams of a direction.
    ``rate_bps`` is per stream.
    """

    protocol: str = "tcp"
    directions: tuple[str, ...] = ("send",)
    streams: int = 1
    duration_s: float | None = 10.0
    total_bytes: int | None = None
    omit_s: float = 0.0
    interval_s: float = 1.0

    def schedule(self) -> Schedule:
        """Return when the intervals end."""
        return Schedule(
            round(self.omit_s * SECOND_NS),
            None if self.duration_s is None else round(self.duration_s * SECOND_NS),
            round(self.interval_s * SECOND_NS),
        )

    def share(self, stream: int) -> int | None:
        """Return how many bytes a stream sends; None when time decides."""
        if self.total_bytes is None:
            return None
        each, rest = divmod(self.total_bytes, self.streams)
        return each + (stream < rest)
