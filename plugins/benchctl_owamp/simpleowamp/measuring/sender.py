"""Sends the packets of all test sessions, each when it is due, in a process that does nothing else.

Neither the control connection nor the collection of garbage delays a packet. Deadlines are absolute
(RFC 4656, section 4.1.1), so lateness never accumulates. A packet that is later than the session's
timeout would count as lost on arrival, so it is skipped.

A packet carries a time that is read before the kernel gets it, and after a pause the rest takes ten
times as long: nothing of it is in the processor's caches. So all of the packet but its time is made
before. The sender sleeps until shortly before it is due, and rehearses for the rest, but at most a
fifth of the time.
"""

from __future__ import annotations

import errno
import heapq
import os
import select
import socket
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from benchctl_standalone.errors import describe_os_error
from benchctl_standalone.histogram import Histogram
from benchctl_standalone.kernel import Kernel
from benchctl_standalone.priority import sharpen_timers, woken_first

from ..protocol.ciphers import Keys
from ..protocol.messages import OPEN
from ..protocol.packets import PacketFormat, owamp_format
from ..protocol.schedule import Slot, offsets
from ..protocol.timestamps import ErrorEstimate, from_interval, to_timestamp
from ..protocol.two_way import two_way_format
from .channel import Channel
from .clock import SECOND_NS, Clock, ClockState
from .endpoint import stamp_transmissions, transmission
from .rehearsal import Stage

# A wake-up is rarely later than this once the timer slack is reduced, and some rehearsals follow.
_EARLY_NS = 500_000
_EARLY_SHARE = 5
# A rehearsal that begins now would perhaps not have ended when the packet is due.
_STILL_NS = 25_000
# After a longer pause a packet that is late already is rehearsed, too.
_PAUSE_NS = 500_000
# A wake-up that is so late is none of the usual ones.
_BEHIND_NS = 10_000_000
# How long a full device queue is left to drain.
_FULL_NS = 200_000
# While packets are due without a pause, orders are looked for this often.
_LOOK_NS = 5_000_000
# In a shorter pause the kernel's timestamps are not read.
_READ_NS = 300_000
# Packets of which the kernel has not yet said when they left.
_UNSTAMPED = 4096
# The path is broken, or a firewall in the way: the packet is lost there, or the one before it, of
# which the system reports with the next one (ip(7)). Others are ours.
_LOST = (errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN, errno.EPERM)
_FULL = (errno.EAGAIN, errno.ENOBUFS)


class Order(NamedTuple):
    """One test session to send, as the control connection agreed on it.

    ``number`` names it between the processes. ``start_ns`` and ``timeout_ns`` are on the clock of
    this end. ``keys`` are the control connection's, None in open mode.
    """

    number: int
    sid: bytes
    slots: tuple[Slot, ...]
    packets: int
    start_ns: int
    timeout_ns: int
    padding_bytes: int = 0
    mode: int = OPEN
    keys: Keys | None = None
    protocol: str = "owamp"
    secret: bytes = b""
    """The key of STAMP."""
    stamps: bool = True
    """Whether the kernel's transmit timestamps are read, which takes the socket's error queue."""


class Outcome(NamedTuple):
    """What was sent.

    ``late_s`` is from when a packet was due to the time that it carries, and ``kernel_s`` from
    there to when the kernel passed it to the device; None if unknown.
    """

    number: int
    next_seq: int
    sent: int
    skipped: tuple[tuple[int, int], ...]
    late_s: dict[str, float] | None
    kernel_s: dict[str, float] | None
    problem: str = ""


class Sending:
    """One session: `due_ns` on the monotonic clock, and what became of its packets so far."""

    def __init__(self, order: Order, sock: socket.socket, clock: Clock) -> None:
        self.order = order
        self.next_seq = 0
        self.problem = ""
        self._sock = sock
        self._clock = clock
        # Random octets, so that no link on the way compresses them (RFC 4656, section 4.1.2).
        self._format = _format_of(order)
        least = min((slot.parameter for slot in order.slots), default=0)
        self._gap_ns = from_interval(least) // 2
        self._offsets: Iterator[int] = offsets(order.sid, order.slots, order.packets)
        self._monotonic_ns = time.monotonic_ns() - time.time_ns()
        self._stamped = order.stamps and stamp_transmissions(sock)
        self._unstamped: deque[tuple[int, int]] = deque(maxlen=_UNSTAMPED)
        self._sent = 0
        self._skipped: list[list[int]] = []
        self._late, self._kernel = Histogram(), Histogram()
        self._state: ClockState | None = None
        self._packed_error = 0
        self._own_ns = self.due_ns = self.try_ns = 0
        self._plan()

    @property
    def done(self) -> bool:
        """Whether no packet is left."""
        return self.next_seq >= self.order.packets or bool(self.problem)

    def _plan(self) -> None:
        """Work out when the next packet is due."""
        offset = next(self._offsets, None)
        if offset is None:
            return
        self._own_ns = self.order.start_ns + from_interval(offset)
        self.due_ns = self._clock.system_time(self._own_ns) + self._monotonic_ns
        # A sender that fell behind catches up at twice its rate, and not in one burst.
        now_ns = time.monotonic_ns()
        behind = now_ns - self.due_ns > _BEHIND_NS
        self.try_ns = now_ns + self._gap_ns if behind else self.due_ns

    @property
    def family(self) -> int:
        """The family of its addresses."""
        return self._sock.family

    def rehearse(self, stage: Stage) -> None:
        """Do everything that sending takes, but send nothing beyond this host."""
        complete = self._format.prepare(self.next_seq, self._error_estimate())
        packet = complete(to_timestamp(self._clock.now_ns()))
        if Kernel.PROBE is not None:
            with suppress(OSError):
                self._sock.send(packet, Kernel.PROBE)
        stage.send(packet)

    def send(self) -> None:
        """Send the packet that is due, skip it if it is too late, or leave it for `try_ns`."""
        if self._clock.now_ns() - self._own_ns > self.order.timeout_ns:
            self._skip()
            return
        complete = self._format.prepare(self.next_seq, self._error_estimate())
        now_ns = self._clock.now_ns()
        packet = complete(to_timestamp(now_ns))
        try:
            self._sock.send(packet)
        except OSError as error:
            if error.errno in _FULL:
                self.try_ns = time.monotonic_ns() + _FULL_NS
                return
            if error.errno not in _LOST:
                self.problem = f"a test packet: {describe_os_error(error)}"
                return
            self._stamped = False  # Whether the kernel counted this packet is not known.
            with suppress(OSError):
                self._sock.send(packet)
        self._late.add(max(now_ns - self._own_ns, 0))
        if self._stamped:
            self._unstamped.append((self._sent, now_ns))
        self._sent += 1
        self._advance()

    def _skip(self) -> None:
        """Leave a packet out."""
        if self._skipped and self._skipped[-1][1] == self.next_seq - 1:
            self._skipped[-1][1] = self.next_seq
        else:
            self._skipped.append([self.next_seq, self.next_seq])
        self._advance()
        # Many may have to be left out: packets of other sessions that are due go first.
        self.try_ns = min(self.try_ns, max(self.due_ns, time.monotonic_ns()))

    def _advance(self) -> None:
        self.next_seq += 1
        self._plan()

    def note_transmissions(self) -> None:
        """Read when the kernel passed packets to the device."""
        with suppress(OSError):
            while self._unstamped:
                number, left_ns = transmission(self._sock)
                while self._unstamped and self._unstamped[0][0] <= number:
                    sent, stamp_ns = self._unstamped.popleft()
                    if sent == number:
                        self.left(number, stamp_ns, left_ns)

    def left(self, number: int, stamp_ns: int, left_ns: int) -> None:
        """Take when the kernel passed a packet to the device, by the order of sending from 0."""
        self._kernel.add(self._clock.of_system(left_ns) - stamp_ns)

    def _error_estimate(self) -> int:
        """Return the error estimate of a packet: the clock's, and what the kernel adds to it."""
        state = self._clock.state()
        if state is not self._state:
            self._state = state
            kernel_s = self._kernel.percentiles(0.5)[0] / SECOND_NS if self._kernel else 0.0
            error_s = state.max_error_s + max(kernel_s, 0.0)
            self._packed_error = ErrorEstimate(state.synchronized, error_s).pack()
        return self._packed_error

    def outcome(self) -> Outcome:
        """Return what was sent so far."""
        self.note_transmissions()
        return Outcome(
            self.order.number,
            self.next_seq,
            self._sent,
            tuple((first, last) for first, last in self._skipped),
            self._late.summary_s() if self._late else None,
            self._kernel.summary_s() if self._kernel else None,
            self.problem,
        )

    def close(self) -> None:
        self._sock.close()


def _format_of(order: Order) -> PacketFormat:
    wanted = order.padding_bytes
    if order.protocol == "owamp":
        return owamp_format(os.urandom(wanted), order.mode, order.keys, order.sid)
    form = two_way_format(order.protocol, order.mode, order.keys, order.sid, order.secret)
    return form.probes(wanted)


class SenderLoop:
    """Sends what the channel orders, until the other end of the channel is closed."""

    def __init__(self, channel: Channel, clock: Clock) -> None:
        self._channel = channel
        self._clock = clock
        self._sendings: dict[int, Sending] = {}
        self._queue: list[tuple[int, int]] = []
        self._stages: dict[int, Stage] = {}
        self._sent_ns = self._awake_ns = self._looked_ns = 0
        self._unread: Sending | None = None

    def run(self) -> None:
        """Send."""
        sharpen_timers()
        with woken_first():
            while True:
                now_ns = time.monotonic_ns()
                due_ns = self._queue[0][0] if self._queue else None
                if due_ns is not None and now_ns - self._looked_ns < _LOOK_NS:
                    if due_ns <= now_ns:
                        self._send_next(now_ns)
                        continue
                    if due_ns - now_ns <= self._early_ns(due_ns):
                        if due_ns - now_ns > _STILL_NS:
                            self._rehearse()
                        continue
                if not self._rest(due_ns, now_ns):
                    break
        for sending in self._sendings.values():
            sending.close()
        for stage in self._stages.values():
            stage.close()

    def _early_ns(self, due_ns: int) -> int:
        """Return how long before a packet is due to be awake."""
        return min(_EARLY_NS, (due_ns - self._sent_ns) // _EARLY_SHARE)

    def _rehearse(self) -> None:
        sending = self._sendings.get(self._queue[0][1])
        if sending is not None:
            family = sending.family
            if family not in self._stages:
                self._stages[family] = Stage(family)
            sending.rehearse(self._stages[family])
            self._awake_ns = time.monotonic_ns()

    def _send_next(self, now_ns: int) -> None:
        if now_ns - max(self._awake_ns, self._sent_ns) > _PAUSE_NS:
            self._rehearse()
        _, number = heapq.heappop(self._queue)
        sending = self._sendings.get(number)
        if sending is None:
            return  # It was stopped.
        sending.send()
        self._sent_ns = time.monotonic_ns()
        self._unread = sending
        if sending.done:
            self._end(number)
        else:
            heapq.heappush(self._queue, (sending.try_ns, number))

    def _rest(self, due_ns: int | None, now_ns: int) -> bool:
        """Take orders until shortly before a packet is due; False if there will be none."""
        left_ns = None
        if due_ns is not None:
            left_ns = max(due_ns - now_ns - self._early_ns(due_ns), 0)
        if self._unread and (left_ns is None or left_ns > _READ_NS):
            self._unread.note_transmissions()
            self._unread = None
            return True
        wait_s = None if left_ns is None else left_ns / SECOND_NS
        ready = select.select([self._channel], [], [], wait_s)[0]
        self._looked_ns = time.monotonic_ns()
        if ready:
            try:
                self._take_orders()
            except EOFError:
                return False
        return True

    def _take_orders(self) -> None:
        for order, descriptors in self._channel.receive():
            if isinstance(order, Order):
                sock = socket.socket(fileno=descriptors[0])
                sending = Sending(order, sock, self._clock)
                self._sendings[order.number] = sending
                heapq.heappush(self._queue, (sending.try_ns, order.number))
            elif order in self._sendings:
                self._end(order)

    def _end(self, number: int) -> None:
        sending = self._sendings.pop(number)
        if self._unread is sending:
            self._unread = None
        self._channel.send(sending.outcome())
        sending.close()


def run_sender(channel: Channel, clock: Clock) -> None:
    """Send what the channel orders: `Order` with its socket, or the number of one to stop.

    The answer to each is an `Outcome`, when all its packets are sent or it is stopped.
    """
    SenderLoop(channel, clock).run()
