"""When a schedule is due: at equal distances, or at times of the day in a time zone. Pure.

Times of the day follow the clock on the wall. If summer time skips a time, it is an hour later. If
a time comes twice, it is the first of both (RFC 5545, section 3.3.5).
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from datetime import date, datetime, timedelta, tzinfo
from itertools import pairwise, takewhile
from zoneinfo import ZoneInfo

from msgspec import Struct

DAY_S = 86_400.0
LEAST_S = 10.0
"""The least distance. More often, starting a run takes longer than measuring."""


class Recurrence(Struct, frozen=True):
    """When a schedule is due.

    Each ``every_s`` from ``since_time`` (Unix) on. With ``at_s``, seconds from midnight, this is a
    time of the day in ``zone`` (an IANA name; empty for this machine's). Each due time is later by
    at most ``jitter_s``, always by the same for one ``seed`` and time.
    """

    every_s: float
    since_time: float
    at_s: float | None = None
    zone: str = ""
    jitter_s: float = 0.0
    seed: str = ""

    def check(self) -> None:
        """Raise ValueError for a rule that cannot be kept."""
        if not (LEAST_S <= self.every_s < math.inf):
            raise ValueError(f"the least interval is {LEAST_S:g} s")
        whole = self.every_s % DAY_S == 0 or DAY_S % self.every_s == 0
        if self.at_s is not None and not whole:
            raise ValueError("a time of the day needs an interval of whole days, or a part of one")
        if self.jitter_s >= self.every_s:
            raise ValueError("the jitter is not less than the interval")

    def due_after(self, time: float) -> Iterator[float]:
        """Yield the due times after a time (Unix, ascending), without end."""
        for slot in self._slots(time - self.jitter_s):
            if (due := slot + self._late_s(slot)) > time and slot > self.since_time:
                yield due

    def due_between(self, after: float, until: float) -> list[float]:
        """Return the due times after one time, up to and including another."""
        return [*takewhile(lambda due: due <= until, self.due_after(after))]

    def _late_s(self, slot: float) -> float:
        return random.Random(f"{self.seed} {slot:.0f}").random() * self.jitter_s

    def _slots(self, time: float) -> Iterator[float]:
        if self.at_s is None:
            number = max(1, math.floor((time - self.since_time) / self.every_s))
            while True:
                yield self.since_time + number * self.every_s
                number += 1
        yield from self._of_the_clock(time)

    def _of_the_clock(self, time: float) -> Iterator[float]:
        zone = ZoneInfo(self.zone) if self.zone else None
        first = datetime.fromtimestamp(self.since_time, zone).date()
        # A day before: its last slots may be later than a time in the next.
        day = datetime.fromtimestamp(time, zone).date() - timedelta(days=1)
        step = max(1, round(self.every_s / DAY_S))
        day -= timedelta(days=(day - first).days % step)
        while True:
            today, tomorrow = self._day(day, zone), self._day(day + timedelta(days=1), zone)
            for slot, following in pairwise([*today, tomorrow[0]]):
                yield slot
                # An hour that comes twice holds as many more as there is room for.
                while step == 1 and following - slot >= 2 * self.every_s:
                    slot += self.every_s
                    yield slot
            day += timedelta(days=step)

    def _day(self, day: date, zone: tzinfo | None) -> list[float]:
        """Return the slots of a day of the calendar, ascending."""
        assert self.at_s is not None
        midnight = datetime(day.year, day.month, day.day)
        each = min(self.every_s, DAY_S)
        walls = (
            midnight + timedelta(seconds=self.at_s % each + number * each)
            for number in range(round(DAY_S / each))
        )
        return sorted({wall.replace(tzinfo=zone).timestamp() for wall in walls})
