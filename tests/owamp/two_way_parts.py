"""A clock, and a two-way session over a network that loses what it is told to."""

from typing import NamedTuple

from benchctl_owamp.simpleowamp.measuring.allowance import Allowances
from benchctl_owamp.simpleowamp.measuring.quota import Limits
from benchctl_owamp.simpleowamp.measuring.receiving import Receiving
from benchctl_owamp.simpleowamp.measuring.reflector import Reflector
from benchctl_owamp.simpleowamp.measuring.round_trip import RoundTrip
from benchctl_owamp.simpleowamp.protocol.schedule import FIXED, Slot
from benchctl_owamp.simpleowamp.protocol.timestamps import (
    ErrorEstimate,
    from_timestamp,
    to_interval,
    to_timestamp,
)
from benchctl_owamp.simpleowamp.protocol.two_way import stamp_format, twamp_format

SECOND_NS = 1_000_000_000
NOON_NS = 1_795_262_400 * SECOND_NS
SOURCE = ("192.0.2.7", 40000)
ERROR = ErrorEstimate(True, 0.001).pack()
FORMATS = {"twamp": twamp_format(), "stamp": stamp_format(), "signed": stamp_format(b"a key")}
OUT_NS, REFLECTOR_NS, BACK_NS = 3_000_000, 1_000_000, 2_000_000


class State(NamedTuple):
    synchronized: bool = True
    max_error_s: float = 0.001


class HandClock:
    """A clock that goes on only when it is told to, and is ahead of its ``ns``."""

    def __init__(self, ns=NOON_NS, ahead_ns=0):
        self.ns = ns
        self.ahead_ns = ahead_ns

    def now_ns(self):
        return self.ns + self.ahead_ns

    def state(self):
        return State()


def reflector_of(form, clock):
    """Return a reflector with the limits that a server has unless told otherwise."""
    return Reflector(form, clock, Allowances(Limits()))


class TwoWay:
    """Ten probes a second, 3 ms out and 2 ms back; the reflector takes 1 ms, its clock is ahead."""

    def __init__(self, form, *, ahead_ns=0, counts=False, reflector=None, packets=1000):
        self.clock = HandClock(ahead_ns=ahead_ns)
        self.reflector = reflector or reflector_of(form, self.clock)
        slot = Slot(FIXED, to_interval(SECOND_NS // 10))
        times = to_timestamp(NOON_NS), to_interval(2 * SECOND_NS)
        self.probes = Receiving(bytes(16), [slot], packets, *times)
        self.trip = RoundTrip(form, self.probes, counts)
        self.writer = form.probes()
        self.sent = 0

    def probe(self, seq):
        """Return a probe, and when it leaves."""
        sent_ns = from_timestamp(self.probes.due_time(seq))
        return self.writer.write(seq, sent_ns, ERROR), sent_ns

    def exchange(self, seqs, *, drop_send=(), drop_receive=(), twice=()):
        """Send probes; returns what came back, in the order of arrival."""
        came_back = []
        for seq in seqs:
            probe, sent_ns = self.probe(seq)
            self.sent = seq + 1
            self.clock.ns = sent_ns + OUT_NS
            for _ in range(0 if seq in drop_send else 2 if seq in twice else 1):
                arrived_ns = self.clock.now_ns()
                self.clock.ns += REFLECTOR_NS
                answer = self.reflector.answer(probe, SOURCE, arrived_ns, 253)
                self.clock.ns += BACK_NS
                if seq not in drop_receive:
                    came_back.append(self.trip.receive(answer, self.clock.ns, 252))
        return came_back

    @property
    def lost(self):
        return list(self.probes.lost_seqs(self.sent, ()))

    @property
    def lost_ways(self):
        return self.trip.lost_ways(self.lost)
