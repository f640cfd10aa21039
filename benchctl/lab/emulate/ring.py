"""A packet socket that receives into a ring of memory shared with the kernel.

The kernel timestamps every frame on arrival, so a late reader still knows when it entered the link.
The size of the ring is not limited, unlike an ordinary user's receive buffer. Layout: TPACKET_V2 of
packet(7), Documentation/networking/packet_mmap.rst.
"""

from __future__ import annotations

import mmap
import socket
import struct
import time

_SOL_PACKET = 263
_PACKET_RX_RING = 5
_PACKET_STATISTICS = 6
_PACKET_VERSION = 10
_PACKET_IGNORE_OUTGOING = 23
_TPACKET_V2 = 1
_ETH_P_ALL = 3
_TP_STATUS_KERNEL = 0

_HEADER = struct.Struct("=8xIH2xII")
"""struct tpacket2_hdr: captured length, offset of the frame, seconds, nanoseconds."""
_OVERHEAD_BYTES = 96
"""More than the header, the address after it and their alignment need (66 bytes in Linux 6)."""
_BLOCK_BYTES = 1 << 16
# 25 ms of full frames at 1 Gbit/s, in 4 MiB: longer than the process waits for a processor.
_FRAMES = 2048
# All links of a lab share the processors, so the more they are, the fewer frames each passes. The
# kernel zeroes this memory, of which 1.6 GB take 2 s.
_LAB_BYTES = 1 << 28
_LEAST_FRAMES = 128

# Reading a clock takes less than a microsecond; a turn of another process takes milliseconds.
_BRIEF_NS = 50_000
_TRIES = 3


class Outlet:
    """Sends frames from a network device of this namespace, and receives none."""

    def __init__(self, device: str) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self._socket.bind((device, 0))
        self.send = self._socket.send


class Ring:
    """Frames that arrive at a network device of this namespace, one of ``rings`` in a lab."""

    def __init__(self, device: str, mtu: int, rings: int = 1) -> None:
        self.dropped = 0
        self._frame_bytes = 1 << (mtu + _OVERHEAD_BYTES - 1).bit_length()
        block_bytes = max(_BLOCK_BYTES, self._frame_bytes)
        share = 1 << (_LAB_BYTES // rings // self._frame_bytes).bit_length() >> 1
        frames = min(_FRAMES, max(_LEAST_FRAMES, share))
        self._size = frames * self._frame_bytes
        self._offset = 0
        # No protocol yet: frames must not arrive before the ring exists.
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self._socket.setsockopt(_SOL_PACKET, _PACKET_VERSION, _TPACKET_V2)
        self._socket.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
        request = struct.pack(
            "=IIII", block_bytes, self._size // block_bytes, self._frame_bytes, frames
        )
        self._socket.setsockopt(_SOL_PACKET, _PACKET_RX_RING, request)
        self._memory = mmap.mmap(self._socket.fileno(), self._size)
        self._words = memoryview(self._memory).cast("I")
        self._socket.bind((device, _ETH_P_ALL))

    def fileno(self) -> int:
        """The descriptor to wait on."""
        return self._socket.fileno()

    def receive(self, most: int) -> list[tuple[int, bytes]]:
        """Return at most so many arrived frames, with their times on the monotonic clock."""
        memory, words, offset = self._memory, self._words, self._offset
        frames: list[tuple[int, bytes]] = []
        shift_ns = _shift_ns()
        while len(frames) < most:
            if words[offset >> 2] == _TP_STATUS_KERNEL:
                break
            length, start, seconds, nanoseconds = _HEADER.unpack_from(memory, offset)
            stamp_ns = seconds * 1_000_000_000 + nanoseconds - shift_ns
            start += offset
            frames.append((stamp_ns, memory[start : start + length]))
            words[offset >> 2] = _TP_STATUS_KERNEL
            offset += self._frame_bytes
            if offset == self._size:
                offset = 0
        self._offset = offset
        return frames

    def count_dropped(self) -> int:
        """Return how many frames so far were dropped at a full ring."""
        # Reading resets the kernel's counter.
        statistics = self._socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8)
        self.dropped += struct.unpack("=II", statistics)[1]
        return self.dropped


def _shift_ns() -> int:
    """Return how far the system's clock is ahead of the monotonic one.

    Without the time for which this process was interrupted between reading the two: frames would
    have arrived in the future.
    """
    for _ in range(_TRIES):
        before_ns = time.monotonic_ns()
        real_ns = time.time_ns()
        after_ns = time.monotonic_ns()
        if after_ns - before_ns < _BRIEF_NS:
            break
    return real_ns - after_ns
