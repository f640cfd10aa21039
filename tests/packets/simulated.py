"""A TCP transfer whose truth is known: sender, receiver, and a path that loses, delays and doubles.

Time is in whole microseconds. A trace is taken at one place in the path: what passes there is
recorded, and what the sender really did is counted beside it.
"""

import heapq
from dataclasses import dataclass, field
from itertools import count

ACK, SYN, FIN = 16, 2, 1
SIZE = 1000


@dataclass(frozen=True)
class Plan:
    """What happens: copies of segments are numbered by segment and by how often it was sent."""

    segments: int = 40
    window: int = 8
    rtt_us: int = 50_000
    here: float = 0.0
    """The place of the trace: 0 at the sender, 1 at the receiver."""
    lost_before: frozenset = frozenset()
    lost_after: frozenset = frozenset()
    doubled: frozenset = frozenset()
    late: frozenset = frozenset()
    """Copies that others overtake before the place of the trace."""
    isn: int = 0xFFFFFF00
    peer_isn: int = 7
    sack: bool = True
    handshake: bool = True
    pause_after: frozenset = frozenset()
    """Segments after which the application has nothing to send for a second."""


@dataclass
class Truth:
    """What the sender did, as far as it passed the place of the trace."""

    fast: int = 0
    timeout: int = 0
    out_of_order: int = 0
    doubled: int = 0
    acked_at_us: dict = field(default_factory=dict)


class Transfer:
    """Runs a plan; ``passed`` is what the trace has, in its order."""

    RTO_US = 400_000

    def __init__(self, plan):
        self.plan, self.truth = plan, Truth()
        self.passed = []
        self.now = 0
        self._events, self._order = [], count()
        self._copies, self._ident = {}, count(1)
        self._una = self._next = 0
        self._dups, self._recover, self._loss = 0, -1, False
        self._timer = 0
        self._received, self._idents, self._highest = set(), set(), -1
        self._allowed = 0
        self._run()

    def _at(self, delay, function, *args):
        heapq.heappush(self._events, (self.now + int(delay), next(self._order), function, args))

    def _run(self):
        plan = self.plan
        half = plan.rtt_us // 2
        if plan.handshake:
            there = int(half * plan.here)
            self._see(there, 0, plan.isn, 0, SYN, 0)
            self._see(half + (half - there), 1, plan.peer_isn, plan.isn + 1, SYN | ACK, 0)
            self._see(2 * half + there, 0, plan.isn + 1, plan.peer_isn + 1, ACK, 0)
            self.now = 2 * half
        self._allow()
        while self._events:
            self.now, _, function, args = heapq.heappop(self._events)
            function(*args)
        assert self._una == plan.segments
        self.passed.sort(key=lambda one: one[0])

    def _see(self, at_us, way, seq, ack, flags, length, ident=0, sacked=()):
        self.passed.append(
            (at_us, way, seq & 0xFFFFFFFF, ack & 0xFFFFFFFF, flags, length, ident, sacked)
        )

    def _allow(self):
        """The application has more, up to the next pause."""
        later = sorted(one for one in self.plan.pause_after if one > self._allowed)
        self._allowed = later[0] if later else self.plan.segments
        self._send_new()

    def _send_new(self):
        limit = min(self._una + self.plan.window, self._allowed)
        while self._next < limit:
            self._send(self._next)
            self._next += 1
        if self._una == self._allowed < self.plan.segments:
            self._at(1_000_000, self._allow)

    def _send(self, number, kind=None):
        plan = self.plan
        nth = self._copies.get(number, 0)
        self._copies[number] = nth + 1
        copy, ident = (number, nth), next(self._ident)
        half = plan.rtt_us // 2
        there = int(half * plan.here)
        if number == self._una:
            self._arm()
        if copy in plan.lost_before:
            return
        # Less than a round trip, and less than what others need to be three.
        behind = 150 if copy in plan.late else 0
        for n in range(2 if copy in plan.doubled else 1):
            self._at(there + behind + 20 * n, self._pass, number, ident, kind or "out_of_order")
            if copy not in plan.lost_after:
                self._at(half + behind + 20 * n, self._arrive, number)

    def _pass(self, number, ident, kind):
        if ident in self._idents:
            kind = "doubled"
        # Nobody can tell the first copy that comes by from the first that was sent.
        if number <= self._highest or kind == "doubled":
            setattr(self.truth, kind, getattr(self.truth, kind) + 1)
        self._idents.add(ident)
        self._highest = max(self._highest, number)
        seq = self.plan.isn + 1 + number * SIZE
        self._see(self.now, 0, seq, self.plan.peer_isn + 1, ACK, SIZE, ident)

    def _arm(self):
        self._timer += 1
        self._at(self.RTO_US, self._expire, self._timer)

    def _expire(self, timer):
        if timer != self._timer or self._una == self._next:
            return
        self._loss, self._recover, self._dups = True, self._next, 0
        self._send(self._una, "timeout")

    def _arrive(self, number):
        plan = self.plan
        self._received.add(number)
        expected = 0
        while expected in self._received:
            expected += 1
        above = sorted(one for one in self._received if one > expected)
        sacked = ()
        if plan.sack and above:
            # One block, with what came last.
            low = high = number if number > expected else above[0]
            while low - 1 in self._received:
                low -= 1
            while high + 1 in self._received:
                high += 1
            sacked = ((self._edge(low), self._edge(high + 1)),)
        half = plan.rtt_us // 2
        there = int(half * plan.here)
        self._at(half - there, self._pass_back, expected, sacked)
        self._at(half, self._hear, expected)

    def _edge(self, number):
        return (self.plan.isn + 1 + number * SIZE) & 0xFFFFFFFF

    def _pass_back(self, expected, sacked):
        seq = self.plan.peer_isn + 1
        self._see(self.now, 1, seq, self._edge(expected), ACK, 0, sacked=sacked)
        self.truth.acked_at_us.setdefault(expected, self.now)

    def _hear(self, expected):
        if expected > self._una:
            self._una, self._dups = expected, 0
            self._timer += 1
            if self._una < self._recover:
                self._send(self._una, "timeout" if self._loss else "fast")
            else:
                self._recover, self._loss = -1, False
                if self._una < self._next:
                    self._arm()
            self._send_new()
        elif expected == self._una and self._una < self._next:
            self._dups += 1
            if self._dups == 3 and self._recover < 0:
                self._recover = self._next
                self._send(self._una, "fast")
