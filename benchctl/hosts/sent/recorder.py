"""The process that records the packets of a host, and counts those that it could not keep.

The kernel fills blocks of a ring with the heads of packets (TPACKET_V3 of packet(7)). Each block is
copied to the disk as it is: a packet costs this process nothing while it is measured. When the
recording ends, these blocks become pcapng in the same file, which needs no more of the disk.
Packets begin at their IP head, whatever the device. What a host sends to itself passes twice, and
is kept when it arrives.

It is a script of its own, so that it starts fast on any host: ``python -I -S recorder.py FILE``. A
line of JSON says that it records, and one has its counts at the end, which SIGTERM brings. If it
was killed before that, ``--finish`` makes pcapng of the blocks that it left.

On a remote host the file is ``-``: nothing is written there. The blocks stay in memory, and
follow at the end as pcapng, compressed by zlib, between a line of JSON and the one with the counts.
Remote hosts have Python 3.9 and nothing of benchctl.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import json
import mmap
import os
import select
import signal
import socket
import struct
import sys
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import FileIO
from pathlib import Path
from typing import Any, BinaryIO

# linux/if_packet.h, linux/if_ether.h, asm-generic/socket.h
_SOL_PACKET = 263
_PACKET_RX_RING, _PACKET_STATISTICS, _PACKET_VERSION = 5, 6, 10
_TPACKET_V3 = 2
_SO_ATTACH_FILTER = 26
_ETH_P_ALL = 0x0003
_OUTGOING = 4
_OF_KERNEL, _OF_USER = 0, 1

_BLOCK = struct.Struct("=8xIIII")
"""struct tpacket_block_desc: status, packets, offset of the first one, bytes in use."""
_BLOCK_HEAD_BYTES = 48
_STATUS = struct.Struct("=I")
_STATUS_AT = 8
_PACKET = struct.Struct("=IIIII4xH")
"""struct tpacket3_hdr: the next one's offset, seconds, nanoseconds, bytes kept, bytes in all, and
where they begin."""
_KIND_AT = 48 + 10
"""Of struct sockaddr_ll, which follows that."""

ROOM = 4096
"""Where blocks begin in a file: what describes it as pcapng lies before. A packet in pcapng is
shorter than in a block, so what is written stays behind what is read."""
_BLOCK_BYTES = 1 << 18
# A second and a half of frames at 500 Mbit/s: longer than a disk keeps a writer waiting.
_BLOCKS = 64
_SPARED_BYTES = 32 << 20
"""Of the disk, for the store beside it: figures are worth more than packets. Of the memory, too."""
# A block is passed on half full after this time. Nobody waits for it before the end.
_RETIRE_MS = 100

_NS_PER_S = 1_000_000_000
_LINKTYPE_RAW = 101
_OUT, _IN = 2, 1
"""epb_flags."""


# --- the ring --------------------------------------------------------------------------------


def _attach(sock: socket.socket, program: Sequence[Sequence[int]]) -> None:
    code = ctypes.create_string_buffer(
        b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    )
    sock.setsockopt(
        socket.SOL_SOCKET, _SO_ATTACH_FILTER,
        struct.pack("@HP", len(program), ctypes.addressof(code)),
    )  # fmt: skip


class BlockRing:
    """The blocks that the kernel fills with packets of all devices of this network namespace."""

    def __init__(self, program: Sequence[Sequence[int]]) -> None:
        """``program`` says which packets, and how much of each, see `filter`."""
        # From the IP head on. What arrives before there is a ring is forgotten when it is made.
        self._sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_ETH_P_ALL))
        self._sock.setsockopt(_SOL_PACKET, _PACKET_VERSION, _TPACKET_V3)
        _attach(self._sock, program)
        frame_bytes = mmap.PAGESIZE
        request = struct.pack(
            "=IIIIIII", _BLOCK_BYTES, _BLOCKS, frame_bytes, _BLOCKS * _BLOCK_BYTES // frame_bytes,
            _RETIRE_MS, 0, 0,
        )  # fmt: skip
        self._sock.setsockopt(_SOL_PACKET, _PACKET_RX_RING, request)
        self._memory = memoryview(mmap.mmap(self._sock.fileno(), _BLOCKS * _BLOCK_BYTES))
        self._next = 0

    def fileno(self) -> int:
        """The descriptor to wait on."""
        return self._sock.fileno()

    def take(self) -> Iterator[tuple[int, memoryview]]:
        """Yield the blocks that are filled: their packets, and their bytes until the next one."""
        while True:
            start = self._next * _BLOCK_BYTES
            status, packets, _, used = _BLOCK.unpack_from(self._memory, start)
            if not status & _OF_USER:
                return
            yield packets, self._memory[start : start + used]
            _STATUS.pack_into(self._memory, start + _STATUS_AT, _OF_KERNEL)
            self._next = (self._next + 1) % _BLOCKS

    def counts(self) -> tuple[int, int]:
        """Return how many packets came since the last call, and how many of them found no space."""
        statistics = self._sock.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 12)
        came, dropped, _ = struct.unpack("=III", statistics)
        return came, dropped


def record(
    ring: BlockRing, keep: Callable[[memoryview], None], most_bytes: int, end: int
) -> tuple[int, OSError | None]:
    """Keep the blocks of a ring until a descriptor is readable, and after that what is left.

    Returns how many packets were left out because there are so many bytes, or because a block could
    not be kept, with that error.
    """
    kept = left_out = 0
    error: OSError | None = None
    ending = False
    while True:
        for packets, block in ring.take():
            try:
                # What follows is left out, too, so that nothing is missing in the middle.
                if not left_out and kept + len(block) <= most_bytes:
                    keep(block)
                    kept += len(block)
                else:
                    left_out += packets
            except OSError as failure:
                error, left_out = failure, left_out + packets
        # The last block is passed on at the latest after its time.
        wait_s = 3 * _RETIRE_MS / 1e3 if ending else None
        awaited: list[Any] = [ring] if ending else [ring, end]
        ready = select.select(awaited, [], [], wait_s)[0]
        if ending and not ready:
            return left_out, error
        ending = ending or end in ready


def on_disk(file: BinaryIO | FileIO, free_bytes: Callable[[], int]) -> Callable[[memoryview], None]:
    """Return what writes blocks to a file, which raises OSError when the disk is full."""

    def write(block: memoryview) -> None:
        if free_bytes() < _SPARED_BYTES or file.write(block) < len(block):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return write


def in_memory(blocks: deque[bytes], free_bytes: Callable[[], int]) -> Callable[[memoryview], None]:
    """Return what copies blocks, which raises OSError when the memory is full."""

    def copy(block: memoryview) -> None:
        if free_bytes() < _SPARED_BYTES:
            raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
        blocks.append(bytes(block))

    return copy


# --- the file --------------------------------------------------------------------------------


def blocks_in(file: BinaryIO) -> Iterator[bytes]:
    """Yield the blocks of a file that are whole: the disk may have been full."""
    while len(head := file.read(_BLOCK_HEAD_BYTES)) == _BLOCK_HEAD_BYTES:
        used = _BLOCK.unpack_from(head)[3]
        block = head + file.read(used - len(head))
        if len(block) < used:
            return
        yield block


def packets(blocks: Iterable[bytes]) -> Iterator[tuple[int, int, int, bytes]]:
    """Yield the packets of blocks: time in nanoseconds, direction, size, and what was kept."""
    for block in blocks:
        _, count, at, _ = _BLOCK.unpack_from(block)
        for _ in range(count):
            following, seconds, nanoseconds, kept, size, begins = _PACKET.unpack_from(block, at)
            direction = _OUT if block[at + _KIND_AT] == _OUTGOING else _IN
            data = block[at + begins : at + begins + kept]
            yield seconds * _NS_PER_S + nanoseconds, direction, size, data
            at += following


def _option(code: int, data: bytes) -> bytes:
    return struct.pack("<HH", code, len(data)) + data + bytes(-len(data) % 4)


def _block(kind: int, body: bytes, *options: bytes) -> bytes:
    if options:
        body += b"".join(options) + bytes(4)
    size = len(body) + 12
    return struct.pack("<II", kind, size) + body + struct.pack("<I", size)


def write_pcapng(
    blocks: Iterable[bytes],
    write: Callable[[bytes], object],
    name: str,
    snap_bytes: int,
    *counts: int,
) -> int:
    """Write recorded blocks as pcapng (draft-ietf-opsawg-pcapng); returns how many packets.

    ``counts``, if they are known, are how many packets passed the host, and how many of them were
    not recorded.
    """
    section = struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)
    write(_block(0x0A0D0D0A, section, _option(4, b"benchctl")))
    interface = struct.pack("<HHI", _LINKTYPE_RAW, 0, snap_bytes)
    write(_block(1, interface, _option(2, name.encode()), _option(9, b"\x09")))
    written = time_ns = 0
    for time_ns, direction, size, data in packets(blocks):
        body = struct.pack("<IIIII", 0, *divmod(time_ns, 1 << 32), len(data), size)
        body += data + bytes(-len(data) % 4)
        write(_block(6, body, _option(2, struct.pack("<I", direction))))
        written += 1
    if counts:
        said = [_option(4 + at, struct.pack("<Q", count)) for at, count in enumerate(counts)]
        write(_block(5, struct.pack("<III", 0, *divmod(time_ns, 1 << 32)), *said))
    return written


def in_place(file: Path, name: str, snap_bytes: int, *counts: int) -> int:
    """Make pcapng of the blocks in a file; returns how many packets."""
    with file.open("rb") as source, file.open("r+b") as target:
        source.seek(ROOM)
        written = write_pcapng(blocks_in(source), target.write, name, snap_bytes, *counts)
        target.truncate()
    return written


def send(blocks: deque[bytes], target: BinaryIO, name: str, snap_bytes: int, *counts: int) -> int:
    """Write blocks as pcapng, compressed, and forget each; returns how many packets."""
    squeeze = zlib.compressobj(1)
    ordered = (blocks.popleft() for _ in range(len(blocks)))
    written = write_pcapng(
        ordered, lambda data: target.write(squeeze.compress(data)), name, snap_bytes, *counts
    )
    target.write(squeeze.flush())
    return written


def _free(file: FileIO) -> int:
    status = os.fstatvfs(file.fileno())
    return status.f_bavail * status.f_frsize


def _free_memory() -> int:
    with Path("/proc/meminfo").open("rb") as lines:
        return next(1024 * int(line.split()[1]) for line in lines if b"MemAvailable" in line)


def why_not() -> str:
    """Return why the packets of this host cannot be recorded; empty if they can."""
    if not hasattr(socket, "AF_PACKET"):
        return f"there are no packet sockets on {sys.platform}"
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0).close()
    except OSError as error:
        return f"packet socket: {error.strerror}"
    return ""


def _say(**members: Any) -> None:
    print(json.dumps(members), flush=True)


def main() -> None:
    """Record until a signal comes."""
    parser = argparse.ArgumentParser(description="record the packets of this host")
    parser.add_argument("file", type=Path, help="- keeps them in memory, and prints them")
    parser.add_argument("--name", default="", help="the host's name")
    parser.add_argument("--filter", default="[[6, 0, 0, 96]]", type=json.loads,
                        help="the packets and how much of each: classic BPF as JSON")  # fmt: skip
    parser.add_argument("--snaplen", type=int, default=96, help="bytes to keep of each packet")
    parser.add_argument("--max", type=int, default=200_000_000, help="bytes to keep at most")
    parser.add_argument("--finish", action="store_true", help="write what a killed one has left")
    flags = parser.parse_args()
    os.umask(0o077)
    if flags.finish:
        kept = in_place(flags.file, flags.name, flags.snaplen)
        _say(event="end", packets=kept, dropped=0, left_out=0)
        return
    wake, wakeup = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wakeup)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    try:
        ring = BlockRing(flags.filter)
        kept, dropped, left_out, error = _record(ring, flags, wake)
    except OSError as failure:
        _say(event="error", message=f"{failure.filename or 'packet socket'}: {failure.strerror}")
        sys.exit(1)
    message = error.strerror if error else ""
    _say(event="end", packets=kept, dropped=dropped, left_out=left_out, message=message)


def _record(
    ring: BlockRing, flags: argparse.Namespace, wake: int
) -> tuple[int, int, int, OSError | None]:
    """Return how many packets there are, were dropped and left out, and why if not by the size."""
    if str(flags.file) == "-":
        held: deque[bytes] = deque()
        _say(event="recording")
        left_out, error = record(ring, in_memory(held, _free_memory), flags.max, wake)
        came, dropped = ring.counts()
        _say(event="file")
        counts = came, dropped + left_out
        kept = send(held, sys.stdout.buffer, flags.name, flags.snaplen, *counts)
        return kept, dropped, left_out, error
    with flags.file.open("wb", buffering=0) as file:
        file.write(bytes(ROOM))
        _say(event="recording")
        left_out, error = record(ring, on_disk(file, lambda: _free(file)), flags.max, wake)
    came, dropped = ring.counts()
    kept = in_place(flags.file, flags.name, flags.snaplen, came, dropped + left_out)
    return kept, dropped, left_out, error


if __name__ == "__main__":
    main()
