"""Ctrl-C ends a command once: further ones do not cut its end short.

Python raises `KeyboardInterrupt` at each, wherever it is, so also in what puts things in order
after the first. What has to be finished first, such as the start of a run, notes it instead.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

# What takes longer has swallowed the first, such as a plugin with a bare `except`.
_END_S = 5.0
# Until the code that cannot be interrupted has been left.
_AGAIN_S = 0.01


class _Interrupt:
    """Handles SIGINT."""

    def __init__(self) -> None:
        self._deaf_until_s = 0.0
        self._unraisable = sys.unraisablehook

    def __call__(self, number: int, _: object) -> None:
        now_s = time.monotonic()
        if now_s >= self._deaf_until_s:
            self._deaf_until_s = now_s + _END_S
            raise KeyboardInterrupt

    def unraisable(self, raised: sys.UnraisableHookArgs) -> None:
        """Raise it again soon, if it came where Python can raise nothing: in a destructor."""
        if raised.exc_type is not KeyboardInterrupt:
            self._unraisable(raised)
            return
        self._deaf_until_s = 0.0
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)


class Asked:
    """The signals that asked this process to end while it was `listening`."""

    def __init__(self) -> None:
        self.by: signal.Signals | None = None
        """The first one."""
        self.times = 0

    @contextmanager
    def listening(
        self, numbers: Iterable[signal.Signals] = (signal.SIGINT, signal.SIGTERM)
    ) -> Iterator[None]:
        """Note signals instead of ending; only in the main thread."""
        before = {number: signal.signal(number, self._note) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _note(self, number: int, _: object) -> None:
        self.by = self.by or signal.Signals(number)
        self.times += 1


@contextmanager
def held() -> Iterator[None]:
    """Let the block end before a signal ends this process; only in the main thread."""
    asked = Asked()
    try:
        with asked.listening((signal.SIGINT, signal.SIGTERM, signal.SIGHUP)):
            yield
    finally:
        if asked.by is not None:
            signal.raise_signal(asked.by)


def interrupt_once() -> None:
    """Let SIGINT raise `KeyboardInterrupt` once, from now on; one that is ignored stays so."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        interrupt = _Interrupt()
        signal.signal(signal.SIGALRM, interrupt)
        signal.signal(signal.SIGINT, interrupt)
        sys.unraisablehook = interrupt.unraisable
