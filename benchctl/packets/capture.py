"""The packets of a capture file: pcap and pcapng, either byte order, plain or gzipped.

Formats: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng. A file that is cut, damaged, or still
being written gives every packet before that place, and a fault that names the place. Memory does
not depend on the size of the file.
"""

from __future__ import annotations

import gzip
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from struct import Struct
from typing import IO, Any, Literal, NamedTuple

from benchctl.errors import UsageError

CHUNK = 1 << 18
"""Bytes read at once: larger ones are no faster, and leave the processor's cache."""
LARGEST_PACKET = 1 << 18
"""Bytes of a packet: libpcap's MAXIMUM_SNAPLEN. A larger length is damage."""
LARGEST_BLOCK = 1 << 24
"""Bytes of a block of pcapng: names, secrets and comments may be longer than packets."""
_GZIP = b"\x1f\x8b"
_SECTION = b"\x0a\x0d\x0d\x0a"
_PCAP = {
    bytes.fromhex("d4c3b2a1"): ("<", 1000),
    bytes.fromhex("a1b2c3d4"): (">", 1000),
    bytes.fromhex("4d3cb2a1"): ("<", 1),
    bytes.fromhex("a1b23c4d"): (">", 1),
}
"""The byte order, and the nanoseconds of a unit of time, by the first four bytes."""

_NAMES: dict[str, Literal["little", "big"]] = {"<": "little", ">": "big"}

Packet = tuple[float, int, int, int]
"""Its time, where it begins and ends in the data, and its bytes on the wire."""


class Batch(NamedTuple):
    """Packets of one link type, which lie in one piece of data."""

    link: int
    data: bytes
    packets: list[Packet]


class _Interface(NamedTuple):
    """What an interface description block says; times are ``ticks * mul // div + offset_ns``."""

    link: int
    mul: int
    div: int
    offset_ns: int


class _FaultError(Exception):
    """Ends the reading of a file, in one line."""


class Capture:
    """The packets of one file; iterate over it once.

    ``faults`` says in words what could not be read, ``dropped`` how many packets the recorder
    missed by its own count (None if the file does not say), ``untimed`` how many packets have no
    time (pcapng's simple packet blocks) and are left out.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.form = ""
        self.began_ns: int | None = None
        self.packets = 0
        self.untimed = 0
        self.dropped: int | None = None
        self.faults: list[str] = []
        self._unpacked = ""
        self._left = -1  # of a file's size as it was opened: it may grow faster than it is read
        self._before = 0  # bytes before the data in hand
        self._file: IO[bytes] | gzip.GzipFile

    def __iter__(self) -> Iterator[Batch]:
        """Yield every packet that can be read. Raises UsageError if it is no capture at all."""
        try:
            with self.path.open("rb") as raw:
                yield from self._batches(raw)
        except OSError as error:
            if self.packets:
                self.faults.append(f"{self._place(0)}: {error.strerror or error}")
            else:
                raise UsageError(f"{self.path}: {error.strerror or error}") from None

    def _batches(self, raw: IO[bytes]) -> Iterator[Batch]:
        status = os.fstat(raw.fileno())
        if stat.S_ISREG(status.st_mode):
            self._left = status.st_size
        self._file = raw
        data = self._read(4)
        if data[:2] == _GZIP:
            raw.seek(0)
            self._file, self._unpacked, self._left = gzip.GzipFile(fileobj=raw), " unpacked", -1
            try:
                data = self._read(4)
            except _FaultError as fault:
                raise UsageError(f"{self.path}: {fault}") from None
        if not data:
            raise UsageError(f"{self.path}: the file is empty", "record it again")
        if data == _SECTION:
            self.form, read = "pcapng", self._blocks(data)
        elif data in _PCAP:
            order, unit_ns = _PCAP[data]
            self.form = "pcap" if unit_ns > 1 else "pcap with nanoseconds"
            read = self._records(data, order, unit_ns)
        else:
            raise UsageError(
                f"{self.path}: this is neither pcap nor pcapng: it begins with {data.hex(' ')}",
                "tcpdump -w, dumpcap and Wireshark write what is read here",
            )
        if self._unpacked:
            self.form += ", gzip"
        try:
            yield from read
        except _FaultError as fault:
            self.faults.append(str(fault))

    def _read(self, size: int) -> bytes:
        """Return the next bytes; none at the end. Raises _FaultError."""
        if self._left >= 0:
            size = min(size, self._left)
            self._left -= size
        try:
            return self._file.read(size)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise _FaultError(f"{self._place(0)}: the gzip data end here: {error}") from None

    def _place(self, at: int) -> str:
        return f"byte {self._before + at:,}{self._unpacked}"

    def _more(self, data: bytes, at: int) -> bytes:
        """Return the rest of the data with more of the file. Raises _FaultError at its end."""
        more = self._read(CHUNK)
        if not more:
            if at == len(data):
                return b""
            raise _FaultError(
                f"{self._place(at)}: the file is cut: it was truncated, or is still being written"
            )
        self._before += at
        return data[at:] + more

    def _records(self, data: bytes, order: str, unit_ns: int) -> Iterator[Batch]:
        """Yield the records of a pcap file."""
        while len(data) < 24:
            if not (data := self._more(data, 0)):
                return
        (link,) = Struct(f"{order}I").unpack_from(data, 20)
        link &= 0xFFFF  # above it are the length of a frame check sequence, and flags
        record = Struct(f"{order}IIII").unpack_from
        at = 24
        while True:
            packets: list[Packet] = []
            append, fault = packets.append, ""
            last = len(data) - 16
            while at <= last:
                seconds, fraction, captured, length = record(data, at)
                start = at + 16
                end = start + captured
                if end > len(data):
                    if captured > LARGEST_PACKET:
                        fault = f"{self._place(at)}: no packet has {captured:,} bytes"
                    break
                time_ns = seconds * 1_000_000_000 + fraction * unit_ns
                if self.began_ns is None:
                    self.began_ns = time_ns
                append(((time_ns - self.began_ns) * 1e-9, start, end, length))
                at = end
            self.packets += len(packets)
            if packets:
                yield Batch(link, data, packets)
            if fault:
                raise _FaultError(f"{fault}: the file is damaged here")
            data, at = self._more(data, at), 0
            if not data:
                return

    def _blocks(self, data: bytes) -> Iterator[Batch]:
        """Yield the packets in the blocks of a pcapng file."""
        interfaces: list[_Interface] = []
        drops: dict[int, int] = {}
        packets: list[Packet] = []
        link, at, order = -1, 0, "<"
        while True:
            kind, size = 0, 12
            if len(data) - at >= 12:
                if data.startswith(_SECTION, at):
                    order = ">" if data.startswith(b"\x1a\x2b\x3c\x4d", at + 8) else "<"
                    head, enhanced = _block_layouts(order)
                kind, size = head(data, at)
            if size < 12 or size % 4 or size > LARGEST_BLOCK:
                yield from self._flush(link, data, packets)
                raise _FaultError(
                    f"{self._place(at)}: no block has {size:,} bytes: the file is damaged here"
                )
            if at + size > len(data):
                yield from self._flush(link, data, packets)
                data, at = self._more(data, at), 0
                if not data:
                    return
                continue
            if kind == 6 and size >= 32:
                number, high, low, captured, length = enhanced(data, at + 8)
                if number >= len(interfaces) or captured > size - 32:
                    yield from self._flush(link, data, packets)
                    raise _FaultError(f"{self._place(at)}: the block of a packet is damaged")
                one = interfaces[number]
                if one.link != link:
                    yield from self._flush(link, data, packets)
                    link = one.link
                time_ns = ((high << 32) + low) * one.mul // one.div + one.offset_ns
                if self.began_ns is None:
                    self.began_ns = time_ns
                start = at + 28
                packets.append(((time_ns - self.began_ns) * 1e-9, start, start + captured, length))
            elif kind == int.from_bytes(_SECTION):
                interfaces = []
            elif kind == 1 and size >= 20:
                interfaces.append(_interface(data[at : at + size - 4], order))
            elif kind == 5 and size >= 24:
                (number,) = Struct(f"{order}I").unpack_from(data, at + 8)
                drops[number] = _drops(data[at : at + size - 4], order)
                self.dropped = sum(drops.values())
            elif kind in (2, 3):
                self.untimed += 1
            at += size

    def _flush(self, link: int, data: bytes, packets: list[Packet]) -> Iterator[Batch]:
        if packets:
            self.packets += len(packets)
            yield Batch(link, data, packets[:])
            packets.clear()


def _block_layouts(order: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return what unpacks the head of a block, and what follows it in an enhanced packet block."""
    return Struct(f"{order}II").unpack_from, Struct(f"{order}IIIII").unpack_from


def _options(block: bytes, at: int, order: str) -> Iterator[tuple[int, bytes]]:
    """Yield the options of a block, which begin at a place in it."""
    while at + 4 <= len(block):
        code, size = Struct(f"{order}HH").unpack_from(block, at)
        if not code:
            return
        yield code, block[at + 4 : at + 4 + size]
        at += 4 + size + -size % 4


def _interface(block: bytes, order: str) -> _Interface:
    """Return what an interface description block says of the packets of its interface."""
    (link,) = Struct(f"{order}H").unpack_from(block, 8)
    mul, div, offset_ns = 1000, 1, 0
    for code, value in _options(block, 16, order):
        if code == 9 and value:  # if_tsresol: a negative power of 10, or of 2
            power = value[0] & 0x7F
            per_second = 2**power if value[0] & 0x80 else 10**power
            whole = 1_000_000_000 % per_second == 0
            mul, div = (1_000_000_000 // per_second, 1) if whole else (1_000_000_000, per_second)
        elif code == 14 and len(value) == 8:  # if_tsoffset, in seconds
            offset_ns = int.from_bytes(value, _NAMES[order], signed=True) * 1_000_000_000
    return _Interface(link, mul, div, offset_ns)


def _drops(block: bytes, order: str) -> int:
    """Return the packets that an interface and the system have dropped: isb_ifdrop, isb_osdrop."""
    return sum(
        int.from_bytes(value, _NAMES[order])
        for code, value in _options(block, 20, order)
        if code in (5, 7)
    )
