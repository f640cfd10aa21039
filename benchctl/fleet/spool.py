"""Keeps what a host has measured on its disk until the coordinator's store has it.

A broker's acknowledgement drops nothing: only `commit` does. The messages of an end have growing
numbers, and are committed up to a number. Results have room of their own, so that samples cannot
crowd them out. What has no room is counted.

A process that is killed leaves what it wrote to the kernel. Against a power cut, results are synced
to the disk at once, and samples by `unsynced`, which is called each second.

On the disk are segments of records, each record with its length and checksum. A segment is removed
when all its messages are committed. A new process finds what the one before left behind. A torn
record ends its segment. Committed messages of a segment that is still there come again; their
numbers show it.
"""

from __future__ import annotations

import os
import shutil
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from enum import IntEnum
from pathlib import Path

import msgspec
from msgspec import Struct

from benchctl.fleet.host_messages import SpoolState
from benchctl.fleet.messages import EndRef
from benchctl.units import format_size

MOST_BYTES = 256 << 20
# A result is some kilobytes at most, and there is one for each end.
RESERVED_BYTES = 32 << 20
SEGMENT_BYTES = 1 << 20
_HEAD = struct.Struct(">II")
# The bound of a message's body on the wire.
_MOST_RECORD = 1 << 21


_sync = getattr(os, "fdatasync", os.fsync)  # which macOS lacks


class Spooled(IntEnum):
    """What a message is to its spool."""

    MARK = 0
    """Says that an end was begun; sent to nobody."""
    SAMPLES = 1
    RESULT = 2


class SpooledMessage(Struct, frozen=True):
    """A message in the spool: whose, which, and where on the disk."""

    kind: Spooled
    ref: EndRef
    number: int
    segment: int
    offset: int
    size: int


class SpoolRecord(Struct, frozen=True, array_like=True):
    """A message as it is on the disk."""

    kind: Spooled
    ref: EndRef
    number: int
    body: bytes


class Account:
    """What lies in which segment, and what fits; pure.

    A segment counts with all its bytes until it is dropped, as it does on the disk.
    """

    def __init__(self, most_bytes: int, reserved_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._reserved_bytes = reserved_bytes
        self.sizes: dict[int, int] = {}
        """The bytes of each segment."""
        self._live: dict[int, int] = {}
        self.kept: dict[EndRef, list[SpooledMessage]] = {}
        """What is not committed, by end, in the order of the numbers."""
        self.dropped = 0
        self.messages = 0
        """How many wait to be committed."""

    @property
    def sample_bytes(self) -> int:
        """How much of it samples may take."""
        return self.most_bytes - self._reserved_bytes

    @property
    def used_bytes(self) -> int:
        """How much of the disk it takes."""
        return sum(self.sizes.values())

    def fits(self, kind: Spooled, size: int) -> bool:
        """Return whether there is room for a record; counts it as dropped if not."""
        room = self.sample_bytes if kind is Spooled.SAMPLES else self.most_bytes
        fits = self.used_bytes + size <= room
        self.dropped += not fits
        return fits

    def add(self, kept: SpooledMessage) -> None:
        """Note what was written to the end of a segment."""
        self.sizes[kept.segment] = kept.offset + kept.size
        self._live[kept.segment] = self._live.get(kept.segment, 0) + 1
        self.kept.setdefault(kept.ref, []).append(kept)
        self.messages += kept.kind is not Spooled.MARK

    def commit(self, ref: EndRef, number: int) -> list[int]:
        """Forget the messages of an end up to a number; returns the segments that are dead.

        Not its mark: until the end is closed, it may still be to be judged.
        """
        kept = self.kept.get(ref, [])
        return self._forget(
            ref,
            [
                message
                for message in kept
                if message.kind is Spooled.MARK or message.number > number
            ],
        )

    def close(self, ref: EndRef) -> list[int]:
        """Forget all of an end; returns the segments that are dead."""
        return self._forget(ref, [])

    def _forget(self, ref: EndRef, left: list[SpooledMessage]) -> list[int]:
        stays = {message.number for message in left if message.kind is not Spooled.MARK}
        marks = any(message.kind is Spooled.MARK for message in left)
        touched = set()
        for message in self.kept.pop(ref, []):
            if not (marks if message.kind is Spooled.MARK else message.number in stays):
                self._live[message.segment] -= 1
                self.messages -= message.kind is not Spooled.MARK
                touched.add(message.segment)
        if left:
            self.kept[ref] = left
        dead = [segment for segment in touched if not self._live[segment]]
        for segment in dead:
            del self._live[segment], self.sizes[segment]
        return dead


def packed_record(record: SpoolRecord) -> bytes:
    """Return a record as it is on the disk."""
    body = msgspec.msgpack.encode(record)
    return _HEAD.pack(len(body), zlib.crc32(body)) + body


def records_in(data: bytes) -> Iterator[tuple[int, int, SpoolRecord]]:
    """Yield the records of a segment with their offsets and sizes, up to the first torn one."""
    offset = 0
    while len(data) - offset >= _HEAD.size:
        length, checksum = _HEAD.unpack_from(data, offset)
        body = data[offset + _HEAD.size : offset + _HEAD.size + length]
        if length > _MOST_RECORD or len(body) < length or zlib.crc32(body) != checksum:
            return
        try:
            record = _RECORDS.decode(body)
        except msgspec.MsgspecError:
            return
        yield offset, _HEAD.size + length, record
        offset += _HEAD.size + length


_RECORDS = msgspec.msgpack.Decoder(SpoolRecord)


class Spool:
    """The spool of one host; its folder belongs to one process at a time."""

    def __init__(
        self,
        folder: Path,
        most_bytes: int = MOST_BYTES,
        reserved_bytes: int = RESERVED_BYTES,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        """Find what is there. Raises OSError."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder, self._segment_bytes = folder, segment_bytes
        self.account = Account(most_bytes, reserved_bytes)
        for path in sorted(folder.glob("*.segment")):
            segment, is_whole = int(path.stem), False
            for offset, size, record in records_in(path.read_bytes()):
                is_whole = True
                kept = SpooledMessage(record.kind, record.ref, record.number, segment, offset, size)
                self.account.add(kept)
            if not is_whole:
                path.unlink()
        self._segment = max(self.account.sizes, default=-1) + 1
        self._file = self._open(self._segment)
        self._is_synced = True

    def _open(self, segment: int) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        opened = os.open(self._path(segment), flags, 0o600)
        folder = os.open(self._folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(folder)  # a file that its folder does not have is lost with its data
        finally:
            os.close(folder)
        return opened

    def _path(self, segment: int) -> Path:
        return self._folder / f"{segment:012d}.segment"

    def add(self, kind: Spooled, ref: EndRef, number: int, body: bytes) -> SpooledMessage | None:
        """Write a message; None if there is no room, or the disk does not take it."""
        data = packed_record(SpoolRecord(kind, ref, number, body))
        if not self.account.fits(kind, len(data)):
            return None
        at = self.account.sizes.get(self._segment, 0)
        try:
            if at and at + len(data) > self._segment_bytes:
                _sync(self._file)
                file = self._open(self._segment + 1)
                os.close(self._file)
                self._file, self._segment, at = file, self._segment + 1, 0
            written = os.write(self._file, data)
            if written < len(data):
                raise OSError("the disk is full")
            if kind is Spooled.RESULT:
                _sync(self._file)
            self._is_synced = kind is Spooled.RESULT
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._file, at)
            self.account.dropped += 1
            return None
        kept = SpooledMessage(kind, ref, number, self._segment, at, len(data))
        self.account.add(kept)
        return kept

    def unsynced(self) -> int | None:
        """Return a descriptor for `sync_and_close`, None if the disk has all that was written."""
        if self._is_synced:
            return None
        self._is_synced = True
        return os.dup(self._file)

    def body(self, kept: SpooledMessage) -> bytes:
        """Return a message's own bytes. Raises OSError if the disk lost them."""
        with self._path(kept.segment).open("rb") as file:
            file.seek(kept.offset)
            for _, _, record in records_in(file.read(kept.size)):
                return record.body
        raise OSError(f"{self._path(kept.segment)} has lost a record")

    def pending(self) -> list[SpooledMessage]:
        """Return what is to be sent and was not committed, in the order of the disk."""
        all_kept = (message for kept in self.account.kept.values() for message in kept)
        wanted = [message for message in all_kept if message.kind is not Spooled.MARK]
        return sorted(wanted, key=lambda message: (message.segment, message.offset))

    def has(self, kept: SpooledMessage) -> bool:
        """Return whether a message is still to be committed."""
        left = self.account.kept.get(kept.ref, [])
        first = next((message for message in left if message.kind is not Spooled.MARK), None)
        return first is not None and first.number <= kept.number

    def commit(self, ref: EndRef, number: int) -> None:
        """Forget the messages of an end up to a number: the coordinator's store has them."""
        self._remove(self.account.commit(ref, number))

    def close_end(self, ref: EndRef) -> None:
        """Forget all of an end, its mark too."""
        self._remove(self.account.close(ref))

    def _remove(self, segments: list[int]) -> None:
        for segment in segments:
            if segment == self._segment:
                os.ftruncate(self._file, 0)  # a full disk may have no room for another one
            else:
                self._path(segment).unlink(missing_ok=True)

    @property
    def why_full(self) -> str:
        """Why it may not take what an end says that begins now; empty if it has room."""
        state = self.state
        if state.free_bytes < self._segment_bytes:
            return f"its disk is full: {format_size(state.free_bytes)} are left for its spool"
        if state.used_bytes + self._segment_bytes > self.account.sample_bytes:
            return f"its spool is full: it holds {format_size(state.used_bytes)} that wait"
        return ""

    @property
    def state(self) -> SpoolState:
        """What is told of it."""
        account = self.account
        return SpoolState(
            account.used_bytes, account.most_bytes, account.messages, account.dropped,
            shutil.disk_usage(self._folder).free,
        )  # fmt: skip

    def close(self) -> None:
        """Close its file; what is in it stays."""
        os.close(self._file)


def sync_and_close(file: int) -> None:
    """Have the disk keep what was written to a descriptor. It may take long. Raises OSError."""
    try:
        _sync(file)
    finally:
        os.close(file)
