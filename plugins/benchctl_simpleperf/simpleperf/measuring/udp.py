"""UDP streams: numbered datagrams, sent in trains that the kernel splits and joins.

With UDP_SEGMENT the kernel splits one large send into datagrams, and with UDP_GRO it delivers
several in one receive: the datagrams on the wire are the same, at a fraction of the system calls.
Both are tried, and not used if rejected. A slow paced stream uses neither, so that each datagram
leaves at its time and has an arrival time of its own.
"""

from __future__ import annotations

import errno
import math
import socket
import struct
import time
from contextlib import suppress
from typing import Any

from benchctl_standalone.histogram import Histogram
from benchctl_standalone.kernel import Kernel
from benchctl_standalone.priority import sharpen_timers
from benchctl_standalone.sockets import dropped_packets

from ..protocol.intervals import SECOND_NS
from ..protocol.settings import MeasurementSettings
from .datagrams import HEADER, SECOND_0, STAMPS_FROM, Arrivals, Reception, Train, row_of
from .options import set_patience
from .pacing import Pacer, give_way
from .stream import NEVER_NS, Reading, Stream, Timeline

# The kernel's limits of one UDP_SEGMENT send: UDP_MAX_SEGMENTS, and a UDP payload.
_SEGMENTS_LIMIT = 64
_TRAIN_BYTES = 65507
# Below this rate each datagram is received by itself: exact arrival times cost little.
_SINGLE_PACKETS_S = 20_000
# How long after the sender's end datagrams may still be in transit.
_GRACE_S = 0.25
# How long a stopped receiver waits for the sender's count: well within an interrupted client's
# time.
_COUNT_S = 1.5
# How often the receiver checks whether it should end.
_LOOK_S = 0.05
# So often does a fast stream's second 0 follow its omitted part, which is how exact it is then.
_FOLLOW_NS = 100_000
# Two clocks that are read within this are read at the same time.
_TOGETHER_NS = 100_000
# The pause after a device's queue was full.
_FULL_S = 100e-6
_BUFFER_BYTES = 1 << 16
_ANCILLARY_BYTES = 128
_TIMESPEC = struct.Struct("@ll")
_INT = struct.Struct("@i")
# Rejections of a train: a device without checksum offload, a datagram above the path's MTU.
_NO_TRAIN = (errno.EINVAL, errno.EIO, errno.EMSGSIZE, errno.EOPNOTSUPP)


class UdpSender(Stream):
    """Sends datagrams: evenly spaced if a rate is set, otherwise as fast as possible.

    A datagram's stamp and the notes use the same reading of the clock, so both agree on which
    datagrams belong to the omitted part.
    """

    notes_itself = True

    def __init__(
        self,
        index: int,
        timeline: Timeline,
        sock: socket.socket,
        settings: MeasurementSettings,
        unavailable: dict[str, str],
    ) -> None:
        super().__init__(index, timeline, sock)
        self._length = settings.length_bytes
        self._share = -(-settings.share(index) // self._length)
        self._sent = 0
        self._omitted: int | None = None if settings.omit_s else 0
        self._unavailable = unavailable
        self._burst = max(1, min(_SEGMENTS_LIMIT, _TRAIN_BYTES // self._length))
        self._pacer: Pacer | None = None
        self.facts = {"length_bytes": self._length}
        if settings.rate_bps is not None:
            self._pacer = Pacer(settings.rate_bps, self._length, self._burst)
            self._burst = self._pacer.burst
            self.stops_in_time = False  # It sends what its rate allows, a little late if necessary.
            self.facts["pacing"] = "timer"
            if settings.duration_s is not None:
                span_s = settings.omit_s + settings.duration_s
                self._share = math.ceil(span_s * settings.rate_bps / (8 * self._length))
        self._cuts = self._burst > 1 and self._cut()

    @property
    def packets(self) -> int:
        """Datagrams sent so far."""
        return self._sent

    @property
    def omitted_packets(self) -> int:
        """Those of them in the omitted part: all, if it did not end."""
        return self._sent if self._omitted is None else self._omitted

    def omit(self) -> None:
        self._omitted = self._sent

    def move(self) -> None:
        sharpen_timers()
        train, burst, length = Train(self._length, self._burst), self._burst, self._length
        whole = memoryview(train.payload)
        left_ns = now_ns = time.monotonic_ns()
        self.begin(now_ns)
        end_ns, stamp_0_ns = self._timeline.end_ns, SECOND_0 - self._timeline.zero_ns
        if self._pacer:
            self._pacer.start(now_ns)
        while self._sent < self._share:
            if self._pacer:
                self._pacer.wait(self._sent, self._look)
            now_ns = time.monotonic_ns()
            if now_ns >= self.next_ns:
                self.note(now_ns)
            if self.stopped:
                break
            left_ns = now_ns
            if not self._pacer:
                # A receiver on the same core would else run only when this thread is preempted, and
                # its buffer would be full long before.
                give_way()
            train.write(self._sent, now_ns + stamp_0_ns)
            left = self._share - self._sent
            self._send(whole if left >= burst else whole[: left * length])
        if self._pacer and not self.stopped:
            # The last datagram takes its time like all others: n datagrams, n gaps, but for what is
            # beyond the duration.
            self._pacer.wait(self._sent, lambda: self._look() or time.monotonic_ns() >= end_ns)
        # It has measured for as long as was asked: a busy machine may let it find that out late.
        self.ended_ns = max(left_ns, min(time.monotonic_ns(), end_ns))

    def _look(self) -> bool:
        """Return whether to stop; a slow stream's intervals end while it waits."""
        now_ns = time.monotonic_ns()
        if now_ns >= self.next_ns:
            self.note(now_ns)
        return self.stopped

    @property
    def moved_bytes(self) -> int:
        return self._sent * self._length

    def reading(self) -> Reading:
        sent = self._sent
        return Reading({"packets_sent": sent, "bytes_sent": sent * self._length}, {})

    def _send(self, train: memoryview) -> None:
        """Pass datagrams to the kernel, and count those that it accepted."""
        if self._cuts:
            try:
                self._sock.send(train)
            except OSError as error:
                if error.errno not in _NO_TRAIN:
                    raise
                self._leave_whole(f"the path refused it: {error.strerror}")
            else:
                self._sent += len(train) // self._length
                return
        for start in range(0, len(train), self._length):
            if not self._send_one(train[start : start + self._length]):
                return
            self._sent += 1

    def _send_one(self, datagram: memoryview) -> bool:
        """Pass one datagram to the kernel; returns whether it was accepted in time."""
        while not self.stopped:
            try:
                self._sock.send(datagram)
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                # The BSDs report this when Linux would block: the device's queue is full.
                time.sleep(_FULL_S)
            else:
                return True
        return False

    def _cut(self) -> bool:
        if Kernel.UDP_SEGMENT is None:
            return self._leave_whole("this system does not have it")
        try:
            self._sock.setsockopt(socket.IPPROTO_UDP, Kernel.UDP_SEGMENT, self._length)
        except OSError as error:
            return self._leave_whole(f"this kernel does not have it: {error.strerror}")
        self.facts["udp_segment"] = True
        return True

    def _leave_whole(self, reason: str) -> bool:
        self._unavailable["udp_segment"] = reason
        self.facts["udp_segment"] = self._cuts = False
        if Kernel.UDP_SEGMENT is not None:
            with suppress(OSError):  # A kernel without the option has nothing to disable.
                self._sock.setsockopt(socket.IPPROTO_UDP, Kernel.UDP_SEGMENT, 0)
        return False


class UdpReceiver(Stream):
    """Receives until all sent datagrams have arrived, or no more do after the sender's end.

    It measures the datagrams that were sent from the sender's second 0 on. A stamp is how long
    after second 0 a datagram left: its arrival less that is this end's second 0. The end is as long
    after that as the sender measured, or the last arrival if that is later. An older sender does
    not stamp datagrams so: then time begins with the first arrival, ends with the last, and the
    omitted part is over when its length has passed.
    """

    stops_in_time = False
    notes_itself = True

    def __init__(
        self,
        index: int,
        timeline: Timeline,
        sock: socket.socket,
        settings: MeasurementSettings,
        unavailable: dict[str, str],
    ) -> None:
        super().__init__(index, timeline, sock)
        self._length = settings.length_bytes
        self._reception = Reception(settings.omit_s > 0)
        self._transits, self._unmerged = Histogram(), Histogram()
        self._made_ns = time.monotonic_ns()
        self._told_ns = 0
        self._stop_ns = 0
        self._sent: int | None = None
        self._omitted = 0
        self._lasted_ns = 0
        self.facts = {"timestamps": "program", "udp_gro": False, "timed_by": "sender"}
        set_patience(sock, socket.SO_RCVTIMEO, _LOOK_S)
        if self._try(Kernel.TIMESTAMP_NS, socket.SOL_SOCKET, "kernel_timestamps", unavailable):
            self.facts["timestamps"] = "kernel"
        rate_bps = settings.rate_bps or float("inf")
        if rate_bps / (8 * self._length) > _SINGLE_PACKETS_S:
            self.facts["udp_gro"] = self._try(
                Kernel.UDP_GRO, socket.IPPROTO_UDP, "udp_gro", unavailable
            )

    def expect(self, packets: int, omitted: int, lasted_s: float | None) -> None:
        """Take the sender's final counts; the stream ends when these have arrived or no more do."""
        self._told_ns = time.monotonic_ns()
        if lasted_s is None:
            self.facts["timed_by"] = "arrivals"
        else:
            self._lasted_ns = round(lasted_s * SECOND_NS)
        self._omitted, self._sent = omitted, packets

    def stop(self) -> None:
        """End when the sender's count has arrived, and the datagrams that it counts."""
        self._stop_ns = self._stop_ns or time.monotonic_ns()

    def move(self) -> None:
        buffer = bytearray(_BUFFER_BYTES)
        buffers = [buffer]
        receive, reception, timeline = self._sock.recvmsg_into, self._reception, self._timeline
        # What is computed for each train costs a fast stream datagrams, so little is.
        follows, least_ns, again_ns = True, NEVER_NS, 0
        asked_ns = time.monotonic_ns()
        while not self.stopped:
            try:
                size, ancillary, _, _ = receive(buffers, _ANCILLARY_BYTES)
            except BlockingIOError:
                # There was nothing when it was asked. More may have come since, on a busy machine.
                if self._nothing_more(asked_ns):
                    self.stopped = True
                asked_ns = time.monotonic_ns()
                self.note(asked_ns)
                continue
            length, arrived_ns = _arrival(ancillary, size)
            if length != self._length:
                continue  # A repeated greeting, or foreign traffic.
            count = size // length
            self.ended_ns = _monotonic(arrived_ns)
            row = row_of(buffer, length, count)
            sent_ns = row[1] if row else HEADER.unpack_from(buffer)[1]
            if follows and (
                self.ended_ns - sent_ns < least_ns
                or (sent_ns < SECOND_0 and self.ended_ns >= again_ns)
            ):
                follows = self._follow(sent_ns)
                reception, least_ns = self._reception, timeline.zero_ns - SECOND_0
                again_ns = self.ended_ns + _FOLLOW_NS
            if self.ended_ns >= self.next_ns:
                self.note(self.ended_ns)
                follows = follows and not timeline.fixed
            if row:
                reception.train(row[0], count, sent_ns, arrived_ns)
            else:
                # The kernel joined datagrams of several times, or the network reordered them.
                for at in range(0, count * length, length):
                    number, sent_ns = HEADER.unpack_from(buffer, at)
                    reception.train(number, 1, sent_ns, arrived_ns)
            if self._sent is not None:
                if reception.received >= self._sent:
                    break
            elif self._stop_ns and self._nothing_more(time.monotonic_ns()):
                break
        if self._sent is not None:
            self._end()
            # What is missing at the end counts in the last interval, not in those before.
            self.note(self.ended_ns)
            self._reception.end(self._sent, self._omitted)

    def _follow(self, sent_ns: int) -> bool:
        """Let second 0 be that of the datagram that has arrived; returns whether others count, too.

        Whatever a peer stamps, it has sent nothing before it was asked, nor omitted more than that.
        """
        if sent_ns < STAMPS_FROM:
            self.begin(self.ended_ns)
            self.facts["timed_by"] = "arrivals"
            self._reception = Reception(omits=False)
            return False
        omit_ns = self._timeline.schedule.omit_ns
        zero_ns = max(self.ended_ns - (sent_ns - SECOND_0), self._made_ns + omit_ns)
        zero_ns = min(zero_ns, self.ended_ns + omit_ns)
        self.begin(zero_ns - omit_ns)
        follows = self._timeline.follow(zero_ns, sent_ns >= SECOND_0)
        self.note(self.ended_ns)
        return follows

    def _end(self) -> None:
        """The time of this end is at least as long as the sender's."""
        lasted_ns = min(self._lasted_ns, self._told_ns - self._made_ns)
        if not self._timeline.start_ns and lasted_ns:
            # Nothing has arrived: the sender ended just before it said so.
            self.begin(self._told_ns - lasted_ns - self._timeline.schedule.omit_ns)
        sent = self._omitted < (self._sent or 0)
        if self._timeline.start_ns and (sent or not self.ended_ns):
            self._timeline.fix()
            self.ended_ns = max(self.ended_ns, self._timeline.zero_ns + lasted_ns)

    @property
    def moved_bytes(self) -> int:
        return self._reception.received * self._length

    def reading(self) -> Reading:
        arrivals, counts = self._reception.current, dict(self._reception.counts)
        counts["bytes_received"] = counts["packets_received"] * self._length
        if (drops := dropped_packets(self._sock)) is not None:
            counts["receiver_drops"] = drops
        values = _jitter(arrivals)
        interval, arrivals.transits = arrivals.transits, Histogram()
        values.update(_variation(interval))
        # The thread may be adding to it now, so it is merged at the next reading.
        self._transits.merge(self._unmerged)
        self._unmerged = interval
        return Reading(counts, values)

    def omit(self) -> None:
        self._reception.omit()
        self._transits, self._unmerged = Histogram(), Histogram()

    def summary(self) -> dict[str, Any]:
        self._transits.merge(self._unmerged)
        return {
            **_jitter(self._reception.measured),
            "packet_gap_s": self._reception.measured.gaps.summary_s(),
            **_variation(self._transits),
        }

    def _nothing_more(self, now_ns: int) -> bool:
        """Return whether enough time has passed, at a time when nothing was there."""
        if self._sent is None:
            return self._stop_ns > 0 and now_ns - self._stop_ns > _COUNT_S * SECOND_NS
        return now_ns - max(self._told_ns, self.ended_ns) > _GRACE_S * SECOND_NS

    def _try(self, option: int | None, level: int, name: str, unavailable: dict[str, str]) -> bool:
        if option is None:
            unavailable[name] = "this system does not have it"
            return False
        try:
            self._sock.setsockopt(level, option, 1)
        except OSError as error:
            unavailable[name] = f"this kernel does not have it: {error.strerror}"
            return False
        return True


def _arrival(ancillary: list[tuple[int, int, bytes]], size: int) -> tuple[int, int]:
    """Return the length of each datagram of one receive, and when the first arrived."""
    length, arrived_ns = size, 0
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == Kernel.TIMESTAMP_NS:
            seconds, nanoseconds = _TIMESPEC.unpack_from(data)
            arrived_ns = seconds * SECOND_NS + nanoseconds
        elif level == socket.IPPROTO_UDP and kind == Kernel.UDP_GRO:
            length = _INT.unpack_from(data)[0]
    return length, arrived_ns or time.time_ns()


def _monotonic(arrived_ns: int) -> int:
    """Return when something arrived, on the clock that nobody sets.

    The wall clock may be set while we run, so it only gives the time since then. If the thread was
    stopped between the two clocks, they are read again.
    """
    while True:
        now_ns = time.monotonic_ns()
        since_ns = time.time_ns() - arrived_ns
        if time.monotonic_ns() - now_ns < _TOGETHER_NS:
            return now_ns - max(since_ns, 0)


def _jitter(arrivals: Arrivals) -> dict[str, float]:
    """Return the interarrival jitter, which needs two arrivals."""
    if arrivals.received < 2:
        return {}
    return {"jitter_rfc3550_s": arrivals.jitter_ns / SECOND_NS}


def _variation(transits: Histogram) -> dict[str, float]:
    """Return the delay variation as in OWAMP: 95th minus 50th percentile."""
    if not transits:
        return {}
    median, p95 = transits.percentiles(0.5, 0.95)
    return {"pdv_p95_p50_s": (p95 - median) / SECOND_NS}
