"""The packets of a capture file: pcap and pcapng, either byte order, plain or gzipped.

Formats: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng. A file that is cut, damaged, or still
being written gives every packet before that place, and a fault that names the place. Memory does
not depend on the size of the file.
"""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path
from struct import Struct
from typing import IO, Any, Literal, NamedTuple

from benchctl.errors import UsageError

CHUNK = 1 << 16
"""Bytes read at once: larger ones are no faster, and leave the processor's cache."""
LARGEST_PACKET = 1 << 18
"""Bytes of a packet: libpcap's MAXIMUM_SNAPLEN. A larger length is damage."""
LARGEST_BLOCK = 1 << 24
"""Bytes of a block of pcapng: names, secrets and comments may be longer than packets."""
_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
"""For zlib: with the header and the check sum of gzip."""
_SECTION = b"\x0a\x0d\x0d\x0a"
_PCAP = {
    bytes.fromhex("d4c3b2a1"): ("<", 1000),
    bytes.fromhex("a1b2c3d4"): (">", 1000),
    bytes.fromhex("4d3cb2a1"): ("<", 1),
    bytes.fromhex("a1b23c4d"): (">", 1),
}
"""The byte order, and the nanoseconds of a unit of time, by the first four bytes."""

_UNKNOWN_DROPS = 0xFFFF
"""In an obsolete packet block, whose field for what was lost before has two bytes."""
_UNTIMED = "{:,} packets have no time in the file, and get that of the packet before"

_CUT = "the file is cut: it was truncated, or is still being written"

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
    snap_bytes: int
    mul: int
    div: int
    offset_ns: int


class _FaultError(Exception):
    """Ends the reading of a file, in one line."""


class _Unpacked:
    """The content of a gzip file (RFC 1952), which may have several members, as far as it goes.

    `gzip.GzipFile` keeps back what it has unpacked before an early end, and says not where that is.
    """

    def __init__(self, raw: BufferedReader) -> None:
        self.is_cut = False
        """Whether the file ended within a member."""
        self._raw = raw
        self._packed = b""
        self._packed_bytes = self._unpacked_bytes = 0
        self._member = zlib.decompressobj(_GZIP_WINDOW)

    @property
    def place(self) -> str:
        """How far it was read; of damage, at the most."""
        taken = self._packed_bytes - len(self._packed)
        return f"byte {taken:,} of the file, {self._unpacked_bytes:,} unpacked"

    def read(self, size: int) -> bytes:
        """Return so many bytes, fewer at the end. Raises zlib.error at damage."""
        parts: list[bytes] = []
        while size > 0:
            if not self._packed:
                self._packed = self._raw.read(CHUNK)
                self._packed_bytes += len(self._packed)
            if self._member.eof:
                if not self._packed.startswith(_GZIP):
                    break  # the end, or padding behind it
                self._member = zlib.decompressobj(_GZIP_WINDOW)
            elif not self._packed:
                self.is_cut = True
                break
            part = self._member.decompress(self._packed, size)
            self._packed = self._member.unused_data or self._member.unconsumed_tail
            self._unpacked_bytes += len(part)
            size -= len(part)
            parts.append(part)
        return b"".join(parts)


class Capture:
    """The packets of one file; iterate over it once.

    ``faults`` says in words what could not be read, ``dropped`` how many packets the recorder
    missed by its own count (None if the file does not say). Packets without a time (pcapng's
    simple packet blocks) get that of the packet before.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.form = ""
        self.began_ns: int | None = None
        self.packets = 0
        self.dropped: int | None = None
        self.faults: list[str] = []
        self._unpacked = ""
        self._untimed = 0
        self._left = -1  # of a file's size as it was opened: it may grow faster than it is read
        self._before = 0  # bytes before the data in hand
        self._file: IO[bytes] | _Unpacked

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

    def _batches(self, raw: BufferedReader) -> Iterator[Batch]:
        status = os.fstat(raw.fileno())
        if stat.S_ISREG(status.st_mode):
            self._left = status.st_size
        self._file = raw
        if raw.peek(2).startswith(_GZIP):
            self._file, self._unpacked, self._left = _Unpacked(raw), " unpacked", -1
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
        if self._untimed:
            self.faults.append(_UNTIMED.format(self._untimed))

    def _read(self, size: int) -> bytes:
        """Return the next bytes; none at the end. Raises _FaultError."""
        if self._left >= 0:
            size = min(size, self._left)
            self._left -= size
        try:
            return self._file.read(size)
        except zlib.error as error:
            assert isinstance(self._file, _Unpacked)
            raise _FaultError(f"{self._file.place}: the gzip data end here: {error}") from None

    def _place(self, at: int) -> str:
        return f"byte {self._before + at:,}{self._unpacked}"

    def _more(self, data: bytes, at: int, size: int = 0) -> bytes:
        """Return the rest of the data with more of the file, enough for ``size`` bytes.

        Raises _FaultError at its end.
        """
        more = self._read(max(CHUNK, at + size - len(data)))
        if not more:
            if isinstance(self._file, _Unpacked) and self._file.is_cut:
                raise _FaultError(f"{self._file.place}: the gzip data end here: {_CUT}")
            if at == len(data):
                return b""
            raise _FaultError(f"{self._place(at)}: {_CUT}")
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
        a_second, unit_s = 1_000_000_000 // unit_ns, unit_ns * 1e-9
        began, at = 0, 24
        while True:
            packets: list[Packet] = []
            append, fault, size = packets.append, "", len(data)
            while at <= size - 16:
                seconds, fraction, captured, length = record(data, at)
                start = at + 16
                end = start + captured
                if end > size:
                    if captured > LARGEST_PACKET:
                        fault = f"{self._place(at)}: no packet has {captured:,} bytes"
                    break
                if self.began_ns is None:
                    began = seconds * a_second + fraction
                    self.began_ns = began * unit_ns
                append(((seconds * a_second + fraction - began) * unit_s, start, end, length))
                at = end
            while packets and not packets[-1][3]:
                _, start, _, _ = packets.pop()
                fault = f"{self._place(start - 16)}: no packet has 0 bytes"
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
        drops: dict[tuple[int, int], int] = {}  # of an interface of a section
        packets: list[Packet] = []
        link, at, order, time_s, section = -1, 0, "<", 0.0, 0
        while True:
            kind, size = 0, 12
            if len(data) - at >= 12:
                if data.startswith(_SECTION, at):
                    order = ">" if data.startswith(b"\x1a\x2b\x3c\x4d", at + 8) else "<"
                    head, enhanced, obsolete, simple = _block_layouts(order)
                kind, size = head(data, at)
            if size < 12 or size % 4 or size > LARGEST_BLOCK:
                yield from self._flush(link, data, packets)
                raise _FaultError(
                    f"{self._place(at)}: no block has {size:,} bytes: the file is damaged here"
                )
            if at + size > len(data):
                yield from self._flush(link, data, packets)
                data, at = self._more(data, at, size), 0
                if not data:
                    return
                continue
            start = number = high = low = captured = length = 0
            if kind == 6 and size >= 32:
                start = at + 28
                number, high, low, captured, length = enhanced(data, at + 8)
            elif kind == 2 and size >= 32:
                start = at + 28
                number, lost, high, low, captured, length = obsolete(data, at + 8)
                if lost != _UNKNOWN_DROPS:
                    drops[section, number] = drops.get((section, number), 0) + lost
                    self.dropped = sum(drops.values())
            elif kind == 3 and size >= 16:
                start = at + 12
                (length,) = simple(data, at + 8)
                captured = min(length, size - 16)
            if start:
                if number >= len(interfaces) or start + captured > at + size - 4:
                    yield from self._flush(link, data, packets)
                    raise _FaultError(f"{self._place(at)}: the block of a packet is damaged")
                interface = interfaces[number]
                if interface.link != link:
                    yield from self._flush(link, data, packets)
                    link = interface.link
                if kind == 3:
                    self._untimed += 1
                    captured = min(captured, interface.snap_bytes or captured)
                else:
                    time_ns = (
                        (high << 32) + low
                    ) * interface.mul // interface.div + interface.offset_ns
                    if self.began_ns is None:
                        self.began_ns = time_ns
                    time_s = (time_ns - self.began_ns) * 1e-9
                packets.append((time_s, start, start + captured, length))
            elif kind == int.from_bytes(_SECTION):
                interfaces = []
                section += 1
            elif kind == 1 and size >= 20:
                interfaces.append(_interface(data[at : at + size - 4], order))
            elif kind == 5 and size >= 24:
                (number,) = Struct(f"{order}I").unpack_from(data, at + 8)
                drops[section, number] = _drops(data[at : at + size - 4], order)
                self.dropped = sum(drops.values())
            at += size

    def _flush(self, link: int, data: bytes, packets: list[Packet]) -> Iterator[Batch]:
        if packets:
            self.packets += len(packets)
            yield Batch(link, data, packets[:])
            packets.clear()


def _block_layouts(order: str) -> list[Callable[..., Any]]:
    """Return what unpacks the head of a block, and what follows it in blocks of packets.

    These are enhanced packet blocks, packet blocks as they were before, and simple packet blocks.
    """
    return [Struct(order + layout).unpack_from for layout in ("II", "IIIII", "HHIIII", "I")]


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
    link, snap_bytes = Struct(f"{order}H2xI").unpack_from(block, 8)
    mul, div, offset_ns = 1000, 1, 0
    for code, value in _options(block, 16, order):
        if code == 9 and value:  # if_tsresol: a negative power of 10, or of 2
            power = value[0] & 0x7F
            per_second = 2**power if value[0] & 0x80 else 10**power
            whole = 1_000_000_000 % per_second == 0
            mul, div = (1_000_000_000 // per_second, 1) if whole else (1_000_000_000, per_second)
        elif code == 14 and len(value) == 8:  # if_tsoffset, in seconds
            offset_ns = int.from_bytes(value, _NAMES[order], signed=True) * 1_000_000_000
    return _Interface(link, snap_bytes, mul, div, offset_ns)


def _drops(block: bytes, order: str) -> int:
    """Return the packets that an interface and the system have dropped: isb_ifdrop, isb_osdrop."""
    return sum(
        int.from_bytes(value, _NAMES[order])
        for code, value in _options(block, 20, order)
        if code in (5, 7)
    )
