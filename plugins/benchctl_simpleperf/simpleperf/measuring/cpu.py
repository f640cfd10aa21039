"""CPU time of this process and of the whole host, over a measurement."""

from __future__ import annotations

import time

_STAT = "/proc/stat"


class CpuMeter:
    """Measures from its construction on."""

    def __init__(self) -> None:
        self._start_s = time.monotonic()
        self._process_s = time.process_time()
        self._host = _host_ticks()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the construction."""
        return time.monotonic() - self._start_s

    def read(self) -> dict[str, float | None]:
        """Return ``process_ratio`` (1 is one core) and ``host_ratio`` (1 is all cores)."""
        used_s = time.process_time() - self._process_s
        now, before = _host_ticks(), self._host
        host_ratio = None
        if now and before and now[1] > before[1]:
            host_ratio = (now[0] - before[0]) / (now[1] - before[1])
        return {"process_ratio": used_s / self.elapsed_s, "host_ratio": host_ratio}


def _host_ticks() -> tuple[int, int] | None:
    """Return (busy, all) clock ticks of all cores since boot; None if unknown.

    The numbers of the line are explained in proc(5): idle and iowait are the fourth and fifth;
    guest times, from the ninth on, are already within user and nice.
    """
    try:
        with open(_STAT, encoding="ascii") as stat:
            ticks = [int(word) for word in stat.readline().split()[1:9]]
    except (OSError, ValueError):
        return None
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)
