"""The bytes that were passed over: a later one came first."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

MOST = 1 << 14
"""Gaps that are known at a time; the oldest are forgotten beyond it."""


class Gap(NamedTuple):
    """Bytes that are missing, and since when."""

    start: int
    end: int
    since_s: float


class Gaps:
    """All gaps of one direction, in the order of their bytes."""

    def __init__(self) -> None:
        self._gaps: list[Gap] = []

    def open(self, gap: Gap) -> None:
        """Add a gap behind all others."""
        self._gaps.append(gap)
        if len(self._gaps) > MOST:
            del self._gaps[: MOST // 2]

    def fill(self, start: int, end: int) -> tuple[int, float | None]:
        """Bytes came late: return how many of them fill gaps, and since when the oldest gap was."""
        gaps, filled, since_s = self._gaps, 0, None
        at = max(0, bisect_right(gaps, start, key=lambda gap: gap.start) - 1)
        while at < len(gaps) and gaps[at].start < end:
            gap = gaps[at]
            low, high = max(gap.start, start), min(gap.end, end)
            left = []
            if low < high:
                filled += high - low
                since_s = gap.since_s if since_s is None else min(since_s, gap.since_s)
                left = [Gap(gap.start, low, gap.since_s)] * (gap.start < low)
                left += [Gap(high, gap.end, gap.since_s)] * (high < gap.end)
                gaps[at : at + 1] = left
                at += len(left)
            else:
                at += 1
        return filled, since_s

    def missing_bytes(self, start: int, end: int) -> int:
        """Return how many bytes of a range are missing."""
        return sum(max(0, min(gap.end, end) - max(gap.start, start)) for gap in self._gaps)
