"""stdin, stdout and stderr, which may be closed, full, or in an encoding with few characters.

Text that stderr rejects is dropped: a message that nobody sees ends no measurement. A result that
stdout rejects is an error, unless its reader has closed it.
"""

from __future__ import annotations

import atexit
import codecs
import io
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from benchctl.errors import BenchctlError, NoReaderError, UnwrittenError
from benchctl.visible import LIKE_IN_ASCII, VisibleText, width_of

_NAME = "benchctl.plainer"
# The last gap between two columns of a table.
_GAP = re.compile(r"(.*\S)  ")


def _plainer(error: UnicodeError) -> tuple[str | bytes, int]:
    """Replace characters that an encoding lacks by similar ones, else by their codes."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    known = (
        LIKE_IN_ASCII.get(c) or c.encode("ascii", "backslashreplace").decode() for c in missing
    )
    return "".join(known), error.end


class _PlainerText(VisibleText):
    """A text file of few characters: longer replacements take the space of gaps.

    That of the gap before them, as figures stand at the right of their column. Codes take what the
    gaps after them can spare.
    """

    def write(self, text: str) -> int:
        super().write("".join(map(self._fitted, text.splitlines(keepends=True))))
        return len(text)

    def _fitted(self, line: str) -> str:
        shown, owed, later = "", 0, 0
        for character in line:
            plain = character.encode(self.encoding, _NAME).decode(self.encoding)
            shown += plain
            if plain.startswith("\\") and plain != character:
                later += len(plain) - width_of(character)
            else:
                owed += len(plain) - 1
            if later and shown.endswith("   "):
                shown, later = shown[:-1], later - 1
            while owed and (gap := _GAP.match(shown)):
                shown, owed = f"{gap[1]} {shown[gap.end() :]}", owed - 1
        return shown


class _ConsoleText(io.TextIOWrapper):
    """A text file in the characters of the Linux console."""

    def write(self, text: str) -> int:
        from benchctl.tui.draw.text.glyphs import CONSOLE  # which few need

        super().write(CONSOLE.plain(text))
        return len(text)


class _VisibleConsoleText(_ConsoleText, VisibleText):
    """Such a file that shows every character of its lines."""


class _Said(io.FileIO):
    """stderr."""

    def write(self, data: object) -> int:
        try:
            return super().write(data)  # type: ignore[arg-type]
        except OSError:
            return memoryview(data).nbytes  # type: ignore[arg-type]


class _Result(io.FileIO):
    """stdout. Raises NoReaderError, or UnwrittenError, once."""

    def write(self, data: object) -> int:
        try:
            return super().write(data)  # type: ignore[arg-type]
        except OSError as error:
            # The rest of the buffer is dropped, without another error.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            if isinstance(error, BrokenPipeError):
                raise NoReaderError from None
            raise UnwrittenError("the result to stdout", error) from None


def prepare() -> None:
    """Make all three usable. A file that is opened later must not become one of them."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    codecs.register_error(_NAME, _plainer)
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open()  # noqa: SIM115
    sys.stdout = _text(_Result(1, "w", closefd=False), sys.stdout)
    sys.stderr = _text(_Said(2, "w", closefd=False), sys.stderr)
    sys.stderr.reconfigure(line_buffering=True)


def terminal() -> TextIO:
    """Return stderr for programs that draw there by control characters; see `prepare`."""
    raw = _Said(2, "w", closefd=False)
    kind = _ConsoleText if _is_console(raw) else io.TextIOWrapper
    return kind(io.BufferedWriter(raw), sys.stderr.encoding, errors=_NAME)


def page() -> None:
    """Show what follows on stdout in a pager, if that is a terminal. Raises BenchctlError."""
    if not sys.stdout.isatty():
        return
    pager = os.environ.get("PAGER") or "less"
    # Like git: end at once if all fits, keep colours, leave the text on the screen.
    environment = {"LESS": "FRX", **os.environ}
    try:
        process = subprocess.Popen(
            ["/bin/sh", "-c", f"exec {pager}"], stdin=subprocess.PIPE, env=environment
        )
    except OSError as error:
        raise BenchctlError(f"the pager cannot be started: {error.strerror}") from None
    assert process.stdin is not None
    os.dup2(process.stdin.fileno(), 1)
    process.stdin.close()

    def finish() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is for the pager
        with suppress(NoReaderError, BenchctlError):
            sys.stdout.flush()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        process.wait()

    atexit.register(finish)


def _text(raw: io.FileIO, before: object) -> io.TextIOWrapper:
    encoding = getattr(before, "encoding", None)  # None where the shell had closed it
    kind: type[VisibleText] = _PlainerText
    if "─".encode(encoding or "utf-8", "ignore"):
        kind = _VisibleConsoleText if _is_console(raw) else VisibleText
    return kind(io.BufferedWriter(raw), encoding, errors=_NAME, line_buffering=raw.isatty())


def _is_console(raw: io.FileIO) -> bool:
    """Whether a file is the console of Linux, which has the characters of code page 437."""
    return os.environ.get("TERM") == "linux" and raw.isatty()
