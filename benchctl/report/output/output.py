"""The destination of a result: stdout, or a file that is opened before anything is measured."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from benchctl.errors import NoReaderError, UnwrittenError, UsageError
from benchctl.visible import VisibleText


class Output:
    """Takes a result as text; use as a context manager.

    A file is written under a temporary name and renamed when it is complete, so an older one stays
    until then. Pipes, devices, and files in a directory that is not writable are written in place.
    """

    def __init__(self, path: Path | None, option: str = "-o") -> None:
        """Open a file, or stdout for None. Raises UsageError if it cannot be written."""
        self._path = path
        self._beside: Path | None = None
        self._file = sys.stdout
        if path is None:
            return
        try:
            self._file = self._open(path)
        except OSError as error:
            hint = "" if path.parent.is_dir() else f"there is no directory {path.parent}"
            raise UsageError(f"{option} {path}: {error.strerror}", hint) from None

    def _open(self, path: Path) -> TextIO:
        there = path.exists()
        if there and not path.is_file():
            return _text(os.open(path, os.O_WRONLY))
        target = path.resolve()  # the target of a link
        if there and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        beside = target.with_name(f".benchctl-{secrets.token_hex(8)}.part")
        try:
            file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        except PermissionError:
            if not there:
                raise
            return _text(os.open(target, os.O_WRONLY))
        if there:
            os.fchmod(file, target.stat().st_mode & 0o777)
        self._beside, self._target = beside, target
        return _text(file)

    def write(self, piece: str | bytes) -> None:
        """Write text, or bytes as they are.

        Raises UnwrittenError if the disk is full, NoReaderError if nobody reads.
        """
        with self._errors():
            if isinstance(piece, str):
                self._file.write(piece)
            else:
                self._file.flush()
                self._file.buffer.write(piece)

    def publish(self) -> None:
        """Give the file its name, with the text so far; raises as `write` does."""
        with self._errors():
            self._file.flush()
            if self._path is not None and stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
                self._file.truncate()  # in place, the file may have been longer before
            if self._beside is not None:
                self._beside.replace(self._target)
                self._beside = None

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            raise NoReaderError from None
        except OSError as error:
            raise UnwrittenError(str(self._path), error) from None

    def __enter__(self) -> Output:
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the file; one without its name yet is removed."""
        if self._path is not None:
            with suppress(OSError):  # a full disk is reported already
                self._file.close()
        if self._beside is not None:
            with suppress(OSError):
                self._beside.unlink()


def _text(descriptor: int) -> TextIO:
    return VisibleText(open(descriptor, "wb"), encoding="utf-8", newline="")
