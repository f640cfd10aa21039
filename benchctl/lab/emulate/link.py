"""The link model: what happens to frames in one direction of a link.

No I/O and no clock: time is a parameter, in nanoseconds, and never runs backwards. The rules:

- a frame that finds the transmitter idle is sent at once; one that finds it busy waits; one that
  finds `queue_packets` waiting is dropped (drop-tail);
- sending takes size x 8 / rate, rounded up to a nanosecond, so that no window of time ever sees
  more than the rate;
- at the end of its transmission a frame is lost with the probability of the moment, or starts on
  its way: it arrives after the delay, give or take the jitter (uniform, as netem's default);
- without jitter no frame overtakes another, even when the delay shrinks;
- every frame that arrived is delivered, dropped, lost, waiting or on its way.

The caller hands in frames with the time they came (`arrive`), and takes out those that are due
(`due`); `next_ns` says when to look again.
"""

from __future__ import annotations

import heapq
import math
import random
from bisect import insort
from collections import deque
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Generic, TypeVar

from benchctl.lab.topology.model import LinkSettings

NEVER_NS = 1 << 63
"""Never."""

Frame = TypeVar("Frame")


@dataclass(frozen=True, slots=True)
class Change:
    """New settings for one direction, from a time on.

    ``at_ns`` is on the clock that drives the model; None means at once. Values that are None stay
    unchanged, and continue a ramp. With ``over_ns`` the others move to their new values linearly,
    as when a link fades (the queue, a whole number, changes at once).
    """

    at_ns: int | None = None
    over_ns: int = 0
    rate_bps: float | None = None
    delay_s: float | None = None
    jitter_s: float | None = None
    loss_ratio: float | None = None
    queue_packets: int | None = None


@dataclass(frozen=True, slots=True)
class _Ramp:
    start_ns: int
    end_ns: int
    start: float
    end: float

    def value(self, now_ns: int) -> float:
        if now_ns >= self.end_ns:
            return self.end
        if math.isinf(self.start) or math.isinf(self.end):
            return self.start  # no intermediate values: the change happens at its end
        part = (now_ns - self.start_ns) / (self.end_ns - self.start_ns)
        return self.start + (self.end - self.start) * part


class SettingsSchedule:
    """The settings of one direction as a function of time: steps and ramps."""

    def __init__(self, settings: LinkSettings) -> None:
        self.settings = settings
        self.next_ns = NEVER_NS
        """When `settings` will no longer hold; in the past while a ramp is under way."""
        self._changes: list[tuple[int, int, Change]] = []
        self._ramps: dict[str, _Ramp] = {}
        self._count = 0

    def add(self, change: Change, now_ns: int) -> None:
        """Add a change."""
        at_ns = now_ns if change.at_ns is None else change.at_ns
        self._count += 1
        heapq.heappush(self._changes, (at_ns, self._count, change))
        self.next_ns = min(self.next_ns, at_ns)

    def advance(self, now_ns: int) -> None:
        """Bring `settings` to their values at a time."""
        while self._changes and self._changes[0][0] <= now_ns:
            at_ns, _, change = heapq.heappop(self._changes)
            self._follow(at_ns)
            self._begin(at_ns, change)
        self._follow(now_ns)
        coming_ns = self._changes[0][0] if self._changes else NEVER_NS
        self.next_ns = now_ns if self._ramps else coming_ns

    def at(self, later_ns: int) -> LinkSettings:
        """Return the settings at a later time, as the current ramps give them."""
        values = {name: ramp.value(later_ns) for name, ramp in self._ramps.items()}
        return replace(self.settings, **values)  # type: ignore[arg-type]

    def _begin(self, at_ns: int, change: Change) -> None:
        for name in ("rate_bps", "delay_s", "jitter_s", "loss_ratio"):
            end = getattr(change, name)
            if end is not None:
                start = getattr(self.settings, name)
                self._ramps[name] = _Ramp(at_ns, at_ns + change.over_ns, start, end)
        if change.queue_packets is not None:
            self.settings = replace(self.settings, queue_packets=change.queue_packets)

    def _follow(self, now_ns: int) -> None:
        self.settings = self.at(now_ns)
        self._ramps = {name: ramp for name, ramp in self._ramps.items() if now_ns < ramp.end_ns}


@dataclass(slots=True)
class Counters:
    """Counters of one direction, in frames."""

    arrived: int = 0
    delivered: int = 0
    dropped: int = 0
    """Dropped at a full queue."""
    lost: int = 0
    """Lost in transit by `loss_ratio`."""
    queue_max: int = 0
    """The longest queue so far."""


class _Costs(dict[int, int]):
    """Nanoseconds of transmission by size; TCP knows two or three sizes."""

    def __init__(self, rate_bps: float) -> None:
        super().__init__()
        self._ns_per_byte = 8e9 / rate_bps

    def __missing__(self, size: int) -> int:
        cost_ns = self[size] = math.ceil(size * self._ns_per_byte)
        return cost_ns


class OneWay(Generic[Frame]):
    """One direction of a link. A frame is any object; its size in bytes is given beside it."""

    def __init__(self, settings: LinkSettings, seed: str) -> None:
        self.counters = Counters()
        self._course = SettingsSchedule(settings)
        self._random = random.Random(seed).random
        self._waiting: deque[tuple[int, Frame]] = deque()
        # Sent or being sent, by their time of arrival.
        self._flying: deque[tuple[int, Frame]] = deque()
        self._free_ns = 0
        self._last_ns = 0
        self._load()

    def _load(self) -> None:
        """Compute the numbers that every frame needs."""
        settings = self._course.settings
        self._costs = _Costs(settings.rate_bps)
        self._loss = settings.loss_ratio
        self._limit = settings.queue_packets
        self._jitter_ns = round(settings.jitter_s * 1e9)
        self._least_ns = math.ceil(settings.delay_s * 1e9) - self._jitter_ns
        self._change_ns = self._course.next_ns

    @property
    def queued(self) -> int:
        """The number of waiting frames."""
        return len(self._waiting)

    @property
    def flying(self) -> int:
        """The number of frames being sent or in transit."""
        return len(self._flying)

    @property
    def foreseen(self) -> bool:
        """Whether no future frame can be due before `next_ns`."""
        return bool(self._flying) and not self._jitter_ns

    def change(self, change: Change, now_ns: int) -> None:
        """Take new settings, now or for later."""
        self._serve(now_ns)
        self._course.add(change, now_ns)
        # Not with the next frame, which it would delay.
        self._course.advance(now_ns)
        self._load()

    def arrive(self, now_ns: int, size: int, frame: Frame) -> None:
        """Take a frame that arrived at ``now_ns``."""
        waiting = self._waiting
        if waiting:
            self._serve(now_ns)
        counters = self.counters
        counters.arrived += 1
        if self._free_ns <= now_ns:
            self._send(now_ns, size, frame)
        elif (length := len(waiting)) < self._limit:
            waiting.append((size, frame))
            if length >= counters.queue_max:
                counters.queue_max = length + 1
        else:
            counters.dropped += 1

    def due(self, now_ns: int) -> list[tuple[int, Frame]]:
        """Return what arrives at the far end by ``now_ns``, in order: times and frames."""
        if self._waiting:
            self._serve(now_ns)
        flying = self._flying
        frames = []
        while flying and flying[0][0] <= now_ns:
            frames.append(flying.popleft())
        self.counters.delivered += len(frames)
        return frames

    def next_ns(self) -> int:
        """Return the time before which `due` returns nothing new; NEVER_NS if the link is idle."""
        next_ns = self._flying[0][0] if self._flying else NEVER_NS
        if not self._waiting:
            return next_ns
        if self._change_ns < NEVER_NS:
            return min(next_ns, self._free_ns)
        # The frame at the head cannot arrive earlier, so no earlier check is needed.
        return min(next_ns, self._free_ns + self._least_ns)

    def _serve(self, now_ns: int) -> None:
        """Start the transmission of every frame whose turn has come."""
        waiting, send = self._waiting, self._send
        while waiting and (free_ns := self._free_ns) <= now_ns:
            size, frame = waiting.popleft()
            send(free_ns, size, frame)

    def _send(self, start_ns: int, size: int, frame: Frame) -> None:
        if self._change_ns <= start_ns:
            self._course.advance(start_ns)
            self._load()
        free_ns = self._free_ns = start_ns + self._costs[size]
        if self._loss and self._random() < self._loss:
            self.counters.lost += 1
            return
        arrival_ns = free_ns + self._least_ns
        if self._jitter_ns:
            arrival_ns += int(2 * self._jitter_ns * self._random())
            insort(self._flying, (arrival_ns, frame), key=itemgetter(0))
            return
        if arrival_ns < self._last_ns:
            arrival_ns = self._last_ns
        self._last_ns = arrival_ns
        self._flying.append((arrival_ns, frame))
