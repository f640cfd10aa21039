"""Reads files of others, within bounds: of any size, of any name, packed or not."""

from __future__ import annotations

import codecs
import os
import stat
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from benchctl.api import ParserError

# An hour of iperf3 on one stream, ten times a second, is 16 MB. Python needs up to eight times as
# much to read JSON.
MOST_BYTES = 100 << 20
# More trials than a profile has without --yes.
MOST_FILES = 100_000
_GZIP = b"\x1f\x8b"
SQLITE = b"SQLite format 3\0"
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"),
          (codecs.BOM_UTF16_BE, "utf-16"))  # fmt: skip


@dataclass(frozen=True, slots=True)
class File:
    """A file and its content, unpacked; ``sha256`` is of the file as it is."""

    path: Path
    data: bytes
    sha256: str
    changed_time: float

    @property
    def name(self) -> str:
        """Its path as text that can be stored."""
        return name_of(self.path)


def name_of(path: Path) -> str:
    """Return a path as text that can be stored: names of files may be any bytes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def files_in(folder: Path) -> Iterator[Path]:
    """Yield the files in a folder and in those within, without hidden ones, in order of names."""
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(root, name)
            if not name.startswith(".") and path.is_file():
                yield path


def is_store(path: Path) -> bool:
    """Return whether a file is a SQLite database. Raises OSError."""
    with _open(path) as file:
        return file.read(len(SQLITE)) == SQLITE


def read(path: Path) -> File:
    """Read a file. Raises OSError, and ParserError if it is too large or cannot be unpacked."""
    with _open(path) as file:
        packed = file.read(MOST_BYTES + 1)
        changed_time = os.fstat(file.fileno()).st_mtime
    if len(packed) > MOST_BYTES:
        raise ParserError(_too_large("it"))
    data = _unpacked(packed) if packed.startswith(_GZIP) else packed
    for mark, encoding in _MARKS:
        if data.startswith(mark):  # a shell of Windows wrote it
            data = data.decode(encoding, "replace").encode()
            break
    return File(path, data, sha256(packed).hexdigest(), changed_time)


def _open(path: Path) -> BinaryIO:
    # A pipe without a writer must not block.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ParserError("it is not a regular file")
    return os.fdopen(descriptor, "rb")


def _unpacked(packed: bytes) -> bytes:
    """Return the content of a gzip file, as far as it goes if its end is missing."""
    pieces, left = [], MOST_BYTES
    while packed.startswith(_GZIP):
        unpacker = zlib.decompressobj(wbits=31)
        try:
            piece = unpacker.decompress(packed, left + 1)
        except zlib.error as error:
            raise ParserError(f"it cannot be unpacked: {error}") from None
        left -= len(piece)
        if left < 0:
            raise ParserError(_too_large("what it unpacks to"))
        pieces.append(piece)
        packed = unpacker.unused_data if unpacker.eof else b""
    return b"".join(pieces)


def _too_large(what: str) -> str:
    return f"{what} has more than {MOST_BYTES >> 20} MiB"
