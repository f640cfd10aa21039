"""Lets any thread, and a signal handler, wake a loop that waits on sockets."""

from __future__ import annotations

import selectors
import signal
import socket
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

# Shorter waits poll the clock: a timer may be late, and poll(2) rounds up to whole milliseconds.
_SPIN_S = 0.003


class Interrupted(Exception):  # noqa: N818 - nothing is wrong
    """The user ended the program before there were any results."""


class Waker:
    """A socket pair: `wake` makes the reading end readable."""

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self.interrupted = False
        """Whether SIGINT or SIGTERM arrived since `catch_signals`."""

    def fileno(self) -> int:
        return self._reader.fileno()

    def wake(self) -> None:
        """Wake the loop; safe in every thread and in signal handlers."""
        try:
            self._writer.send(b"\0")
        except BlockingIOError:
            pass  # So many are pending that one more has no effect.
        except OSError:
            if self._writer.fileno() >= 0:
                raise
            # The loop has ended before a measurement did, so there is nothing to wake.

    def clear(self) -> None:
        """Discard the wake-ups so far."""
        with suppress(BlockingIOError):
            while self._reader.recv(4096):
                pass

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait for a wake-up, for a program that waits for nothing else."""
        await_readable([self], timeout_s)
        self.clear()

    def sleep_until(self, epoch_s: float) -> None:
        """Wait until a wall-clock time as exactly as possible. Raises Interrupted."""
        while (left_s := epoch_s - time.time()) > _SPIN_S:
            self.wait(left_s - _SPIN_S)
            if self.interrupted:
                raise Interrupted
        while time.time() < epoch_s:
            pass

    def catch_signals(self) -> None:
        """Turn the first SIGINT or SIGTERM into a wake-up; a second one acts as usual."""

        def interrupt(number: int, _: Any) -> None:
            self.interrupted = True
            signal.signal(number, signal.SIG_DFL)
            self.wake()

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, interrupt)
        # Python runs the handler between two steps of the main thread. A signal just before a wait
        # would go unnoticed until the wait's end, so the signal itself ends it.
        signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)

    def close(self) -> None:
        self._reader.close()
        self._writer.close()


def await_readable(sources: Iterable[Any], timeout_s: float | None) -> list[Any]:
    """Wait until sockets or wakers are readable, without limit if the time is None; return those.

    select(2) takes no descriptor above 1023, which a large server or test exceeds.
    """
    with selectors.PollSelector() as selector:
        for source in sources:
            selector.register(source, selectors.EVENT_READ)
        return [key.fileobj for key, _ in selector.select(timeout_s)]
