"""TCP streams: move bytes as fast as the kernel accepts or delivers them."""

from __future__ import annotations

import mmap
import os
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Callable

from benchctl_standalone.kernel import Kernel
from benchctl_standalone.priority import woken_first

from ..protocol.intervals import SECOND_NS
from ..protocol.plain import CHUNK_BYTES
from ..protocol.settings import TCP_LENGTH_BYTES, MeasurementSettings
from .options import get_patience, kernel_paces, set_patience
from .pacing import Pacer, give_way, shares_core
from .stream import NEVER_NS, Reading, Stream, Timeline
from .tcp_info import TCP_INFO_BYTES, read_tcp_info, read_waiting

# One call rarely finds more, and it stays in the processor's cache.
_RECEIVE_BYTES = 128 * 1024
# Discarded bytes touch no memory: one call may take everything that has arrived.
_DISCARD_BYTES = 1 << 22
# On a fast path, waking takes longer than reading. So a receiver sleeps until this time's worth of
# data has arrived, which is short compared with any interval; it updates that amount now and then.
_GATHER_NS = 200_000
_GATHER_BYTES = 512 * 1024
_GATHER_DISCARDED_BYTES = 1024 * 1024
# On one core the sender waits meanwhile, and the data should stay in the cache.
_GATHER_SHARED_BYTES = 128 * 1024
_LOOK_NS = 10_000_000
# The kernel sizes the buffer for what a receiver waits for (tcp_set_rcvlowat in net/ipv4/tcp.c),
# and beyond that only for one round trip's data. That may be less than the sender sends before the
# receiver runs, so space for some milliseconds is requested.
_ROOM = 32
# Bytes of one sendfile, the beginning of a file of zeros: as many as its pipe holds in the kernel
# (PIPE_DEF_BUFFERS in linux/pipe_fs_i.h).
_FILE_BYTES = 1 << 16
# Plain chunks sent in one call: the same bytes on the wire, at a hundredth of the cost.
_CHUNKS_A_CALL = 100
# A blocked plain send returns this often, to check whether the time has expired.
_PLAIN_PATIENCE_S = 0.1
# How often a sender that has passed all data to the kernel checks whether it was acknowledged.
_LOOK_S = 0.001


class _Sender(Stream):
    """Sends zeros until it is stopped or has sent its share; a subclass passes them to the kernel.

    The data waits in the kernel, which knows how much of it was sent. A blocked call keeps the
    thread from checking, so the measurement asks the kernel at each interval's end.
    """

    asks_the_kernel = True
    touches_data = True
    """Whether data passes through the processor's cache on its way to the kernel."""

    def __init__(
        self,
        index: int,
        timeline: Timeline,
        sock: socket.socket,
        settings: MeasurementSettings,
        length: int,
    ) -> None:
        super().__init__(index, timeline, sock)
        self._share = settings.share(index)
        self._payload = _zeros(length)
        self._sent = 0
        self._before: Mapping[str, float] = {}

    def move(self) -> None:
        self._before = _kernel_view(self._sock)[0]
        clock = time.monotonic_ns
        begun_ns = clock()
        # Waiters for the start are woken after the first bytes have left, not before.
        self._sent = self._sock.send(self._payload[: self._share], socket.MSG_DONTWAIT)
        self.begin(begun_ns)
        gives_way = self.touches_data and shares_core(self._sock)
        while self._sent < self._share and not self.stopped:
            self._sent += self._send(self._share - self._sent)
            if clock() >= self.next_ns:
                self.note(clock())
            if gives_way:
                # The receiver finds the data in the cache; later it would be in memory.
                give_way()

    def _send(self, left: int) -> int:
        """Pass at most the remaining bytes to the kernel; returns how many."""
        return self._sock.send(self._payload[:left])

    @property
    def moved_bytes(self) -> int:
        return self._sent

    def reading(self) -> Reading:
        counts, values = _kernel_view(self._sock)
        counts = {name: count - self._before.get(name, 0) for name, count in counts.items()}
        return Reading({"bytes_sent": self._sent, **counts}, values)


class TcpSender(_Sender):
    """A stream of the control protocol; it ends with the end of its TCP stream."""

    def __init__(
        self,
        index: int,
        timeline: Timeline,
        sock: socket.socket,
        settings: MeasurementSettings,
        unavailable: dict[str, str],
    ) -> None:
        length = settings.length_bytes
        if length == TCP_LENGTH_BYTES:
            length = _whole_segments(sock, length)
        super().__init__(index, timeline, sock, settings, length)
        self.facts = {"length_bytes": length, "send": "copy"}
        self._timed = settings.total_bytes is None
        self._patience_s = get_patience(sock, socket.SO_SNDTIMEO)
        self._pacer: Pacer | None = None
        self._file: int | None = None
        if settings.rate_bps is not None:
            self._set_rate(settings.rate_bps, settings.length_bytes, unavailable)
        if settings.zero_copy and not self._pacer:
            self._open_file(unavailable)

    def begin(self, at_ns: int | None = None) -> None:
        super().begin(at_ns)
        if self._pacer:
            self._pacer.start(at_ns or time.monotonic_ns())

    def move(self) -> None:
        super().move()
        self._sock.shutdown(socket.SHUT_WR)
        if not self._timed:
            self._wait_for_acknowledgement()

    def _wait_for_acknowledgement(self) -> None:
        """Wait until everything is sent and acknowledged, which ends this stream."""
        self.ended_ns = moved_ns = time.monotonic_ns()
        waiting = (0, 0)
        while not self.stopped and Kernel.TCP_INFO is not None:
            data = self._sock.getsockopt(socket.IPPROTO_TCP, Kernel.TCP_INFO, TCP_INFO_BYTES)
            before, waiting = waiting, read_waiting(data)
            now_ns = time.monotonic_ns()
            if waiting == (0, 0):
                return
            if waiting[0]:
                self.ended_ns = now_ns
            if waiting != before:
                moved_ns = now_ns
            elif now_ns - moved_ns > self._patience_s * SECOND_NS:
                raise BlockingIOError
            time.sleep(_LOOK_S)

    def stop(self) -> None:
        super().stop()
        with suppress(OSError):  # It may be closed already.
            self._sock.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        if self._timed:
            # The time expired with bytes still in the kernel: nobody waits for them.
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("@ii", 1, 0))
        super().close()

    def _send(self, left: int) -> int:
        if self._file is not None:
            count = self._file_bytes if left > self._file_bytes else left
            sent: int = self._sendfile(self._descriptor, self._file, 0, count)
            return sent
        if self._pacer:
            self._pacer.wait(self._sent // self._packet_bytes, lambda: self.stopped)
        return super()._send(left)

    def _open_file(self, unavailable: dict[str, str]) -> None:
        if Kernel.SENDFILE is None:
            unavailable["zero_copy_send"] = "this system has no sendfile"
            return
        self._file = _file_of_zeros(Kernel.MEMFD)
        self._file_bytes = _whole_segments(self._sock, _FILE_BYTES)
        self._sendfile, self._descriptor = Kernel.SENDFILE, self._sock.fileno()
        self.touches_data = False
        self.facts["send"] = "sendfile"

    def _set_rate(self, rate_bps: float, asked: int, unavailable: dict[str, str]) -> None:
        if kernel_paces(self._sock, rate_bps):
            self.facts["pacing"] = "kernel"
            return
        unavailable["kernel_pacing"] = "this system cannot pace a socket; a timer does it"
        self.facts["pacing"] = "timer"
        most = self._packet_bytes = len(self._payload)
        if asked == TCP_LENGTH_BYTES:
            self._packet_bytes = min(_segment_bytes(self._sock) or most, most)
        self._pacer = Pacer(rate_bps, self._packet_bytes, most // self._packet_bytes)
        self._payload = self._payload[: self._pacer.burst * self._packet_bytes]
        self.facts["length_bytes"] = len(self._payload)


class PlainSender(_Sender):
    """A stream of the plain protocol: chunks, without an end on the TCP level."""

    def __init__(
        self, index: int, timeline: Timeline, sock: socket.socket, settings: MeasurementSettings
    ) -> None:
        super().__init__(index, timeline, sock, settings, CHUNK_BYTES * _CHUNKS_A_CALL)
        set_patience(sock, socket.SO_SNDTIMEO, _PLAIN_PATIENCE_S)

    def _send(self, left: int) -> int:
        try:
            return super()._send(left)
        except BlockingIOError:
            return 0


class TcpReceiver(Stream):
    """Receives until the peer ends the TCP stream or it is stopped."""

    def __init__(
        self,
        index: int,
        timeline: Timeline,
        sock: socket.socket,
        settings: MeasurementSettings,
        unavailable: dict[str, str],
    ) -> None:
        super().__init__(index, timeline, sock)
        self._received = 0
        self._flags = 0
        # A buffer of a chosen size is the user's: the receiver does not delay reading.
        self._gathers = settings.window_bytes is None
        self._gather_bytes = _GATHER_BYTES
        self._looked_bytes = self._looked_ns = 0
        self._pauses = deque(timeline.pauses)
        self._resumed = threading.Event()
        self.facts = {"receive": "copy"}
        if settings.zero_copy and Kernel.TCP_DISCARD is None:
            unavailable["zero_copy_receive"] = "this system cannot discard received bytes unread"
        elif settings.zero_copy:
            self._flags = Kernel.TCP_DISCARD or 0
            self._gather_bytes = _GATHER_DISCARDED_BYTES
            self.facts["receive"] = "discard"
        elif shares_core(sock):
            self._gather_bytes = _GATHER_SHARED_BYTES

    def move(self) -> None:
        # Anonymous memory takes no space until it is touched.
        buffer = mmap.mmap(-1, _DISCARD_BYTES if self._flags else _RECEIVE_BYTES)
        flags = self._flags
        receive, clock = self._sock.recv_into, time.monotonic_ns
        with woken_first():
            count = receive(buffer, 0, flags)
            self.begin()
        self._looked_ns = clock()
        pause_ns = self._pause_ns()
        while count and not self.stopped:
            now_ns = clock()
            if now_ns >= self.next_ns:
                self.note(now_ns)
            if now_ns >= self._looked_ns + _LOOK_NS and self._gathers:
                self._gather(now_ns)
            self._received += count
            if now_ns >= pause_ns:
                self._pause(pause_ns)
                pause_ns = self._pause_ns()
            count = receive(buffer, 0, flags)

    def _pause_ns(self) -> int:
        """Return when the next pause begins."""
        if not self._pauses:
            return NEVER_NS
        return self._timeline.start_ns + round(self._pauses[0].at_s * SECOND_NS)

    def _pause(self, began_ns: int) -> None:
        """Read nothing until the pause has ended: then the kernel closes the window."""
        end_ns = began_ns + round(self._pauses.popleft().length_s * SECOND_NS)
        self._resumed.wait(max(end_ns - time.monotonic_ns(), 0) / SECOND_NS)

    def _gather(self, now_ns: int) -> None:
        """Let the kernel wake this stream as seldom as the current rate permits."""
        bytes_ns = (self._received - self._looked_bytes) / (now_ns - self._looked_ns)
        enough = max(1, min(int(bytes_ns * _GATHER_NS), self._gather_bytes))
        for least in (enough * _ROOM, enough):
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, least)
        self._looked_bytes, self._looked_ns = self._received, now_ns

    def stop(self) -> None:
        super().stop()
        self._resumed.set()
        with suppress(OSError):  # It may be closed already.
            self._sock.shutdown(socket.SHUT_RD)

    @property
    def moved_bytes(self) -> int:
        return self._received

    def reading(self) -> Reading:
        return Reading({"bytes_received": self._received}, {})


def _whole_segments(sock: socket.socket, most: int) -> int:
    """Return the bytes of one send, ``most`` or a little less: as many as fill whole segments.

    The rest of a send that leaves at once is a segment of its own, and costs as much as a full one:
    on loopback, 128 KiB are two full segments and one of 164 bytes.
    """
    segment = _segment_bytes(sock)
    return most // segment * segment if 0 < segment <= most else most


def _segment_bytes(sock: socket.socket) -> int:
    """Return the bytes of a full segment, or 0 if unknown."""
    with suppress(OSError):  # Tests send through sockets that are no TCP.
        return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
    return 0


_longest_payload = memoryview(b"")


def _zeros(length: int) -> memoryview:
    """Return zeros that all streams share; the kernel keeps a single page of them."""
    global _longest_payload
    if len(_longest_payload) < length:
        _longest_payload = memoryview(bytes(length))
    return _longest_payload[:length]


@cache
def _file_of_zeros(memfd: Callable[[str], int] | None) -> int:
    """Return the file that all streams send, a descriptor that lives as long as the process."""
    if memfd is not None:
        file = memfd("simpleperf")
    else:
        import tempfile  # It would take a tenth of every start.

        with tempfile.TemporaryFile() as unnamed:
            file = os.dup(unnamed.fileno())
    os.truncate(file, _FILE_BYTES)
    return file


def _kernel_view(sock: socket.socket) -> tuple[dict[str, float], dict[str, float]]:
    """Return the sender's figures of TCP_INFO, as far as this system has them."""
    if Kernel.TCP_INFO is None:
        return {}, {}
    return read_tcp_info(sock.getsockopt(socket.IPPROTO_TCP, Kernel.TCP_INFO, TCP_INFO_BYTES))
