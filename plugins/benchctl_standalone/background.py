"""Writes a server's output from threads of their own: no reader can delay a measurement.

A pipe that nobody reads is full after 64 KiB, and a write to it then waits. So lines wait in memory
up to a limit, and beyond it they are left out. If the reader is gone, the server goes on.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Callable

from .saying import say

# Some thousand intervals: a reader that is away for a moment misses nothing.
_WAITING_BYTES = 1 << 20
# How long the last lines may take at the end, if the reader is slow.
_FINISH_S = 1.0


class _Background:
    """A text file whose writes return at once; text is passed on by `flush`."""

    def __init__(self, file: Any, on_full: Callable[[], None]) -> None:
        self.encoding = file.encoding
        self._descriptor = file.fileno()
        self._on_full = on_full
        self._text = ""
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._full = self._finished = False
        self._more = threading.Condition()
        self._thread = threading.Thread(target=self._pass_on, daemon=True)
        self._thread.start()

    def write(self, text: str) -> int:
        self._text += text
        return len(text)

    def flush(self) -> None:
        data = self._text.encode(self.encoding or "utf-8", "backslashreplace")
        self._text = ""
        with self._more:
            fits = self._waiting_bytes + len(data) <= _WAITING_BYTES
            if fits:
                self._waiting.append(data)
                self._waiting_bytes += len(data)
                self._more.notify()
            was_full, self._full = self._full, not fits
        if not fits and not was_full:
            self._on_full()

    def finish(self) -> None:
        """Wait for what is still to be written, but not long."""
        with self._more:
            self._finished = True
            self._more.notify()
        self._thread.join(_FINISH_S)

    def _pass_on(self) -> None:
        with suppress(OSError):  # The reader is gone.
            while True:
                with self._more:
                    self._more.wait_for(lambda: self._waiting or self._finished)
                    if not self._waiting:
                        return
                    data = self._waiting.popleft()
                # Past Python's own buffer: its end would wait for a thread that is in there.
                rest = data
                while rest:
                    rest = rest[os.write(self._descriptor, rest) :]
                with self._more:
                    self._waiting_bytes -= len(data)


@contextmanager
def background_output(program: str) -> Iterator[None]:
    """Let standard output and standard error of a program be written in the background."""
    files = sys.stdout, sys.stderr

    def warn() -> None:
        say(f"{program}: warning: nobody reads the output, so it is left out", sys.stderr)

    with suppress(OSError, AttributeError):  # Closed by the shell, or not a file.
        sys.stderr = _Background(sys.stderr, lambda: None)
    with suppress(OSError, AttributeError):
        sys.stdout = _Background(sys.stdout, warn)
    try:
        yield
    finally:
        for file in (sys.stdout, sys.stderr):
            if isinstance(file, _Background):
                file.finish()
        sys.stdout, sys.stderr = files
