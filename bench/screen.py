"""``benchctl tui`` in a pseudo terminal, watched from outside."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, repeat
from pathlib import Path

# Lines and columns.
SIZE = (40, 120)
# Longer than the parts of one reaction are apart.
QUIET_S = 0.1
# What comes new is a fifth of that, a history many times as much.
SETTLED_BPS = 2_000_000
# What is awaited longer does not come.
LONGEST_S = 30
# The time between two moves of the mouse.
MOVE_S = 0.02


class Screen:
    """``benchctl tui`` in a pseudo terminal, and all that it has written, with when."""

    def __init__(self, store: Path, *arguments: str, size: tuple[int, int] = SIZE) -> None:
        self._size = size
        self._argv = [sys.executable, "-m", "benchctl", "tui", "--store", str(store), *arguments]
        self.said: list[tuple[float, bytes]] = []
        self._new = threading.Condition()
        self._key = ""
        """The keys that were pressed last."""

    def __enter__(self) -> Screen:
        self._terminal, end = pty.openpty()
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", *self._size, 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        self._begun = time.monotonic()
        self._process = subprocess.Popen(
            self._argv, stdin=end, stdout=end, stderr=end, env=environment, start_new_session=True
        )
        os.close(end)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait()
        self._reader.join()
        os.close(self._terminal)

    def _read(self) -> None:
        while True:
            try:
                text = os.read(self._terminal, 65536)
            except OSError:  # the program has ended
                return
            with self._new:
                self.said.append((time.monotonic(), text))
                self._new.notify_all()

    def _wait(self, holds: Callable[[], bool], awaited: str) -> None:
        with self._new:
            if not self._new.wait_for(holds, LONGEST_S):
                key = f"after key {self._key!r}" if self._key else "from its start"
                raise TimeoutError(f"{awaited} in {LONGEST_S} s {key}: {' '.join(self._argv)}")

    def press(self, keys: str) -> int:
        """Press keys; returns how much was said before."""
        with self._new:
            before = len(self.said)
        self._key = keys
        os.write(self._terminal, keys.encode())
        return before

    def seen(self, text: str, after: int = 0) -> float:
        """Wait until a text is written, and return the time since the start."""
        wanted = text.encode()
        self._wait(
            lambda: wanted in b"".join(said for _, said in self.said[after:][-50:]),
            f"{text!r} was not written",
        )
        return self.said[-1][0] - self._begun

    def rest(self) -> None:
        """Wait until a frozen screen has read and written all that it had to.

        A key that hides what is not there yet has no effect to be seen.
        """
        before, read = -1, 0
        while (
            before != len(self.said)
            or self._read_bytes() - read > SETTLED_BPS * QUIET_S
            or self._stat()[0] != "S"
        ):
            before, read = len(self.said), self._read_bytes()
            time.sleep(QUIET_S)

    def reaction_s(self, key: str, text: str = "") -> float:
        """Press a key; return the time until the first reaction, or until a text is written."""
        self.rest()
        begun = time.monotonic()
        before = self.press(key)
        if text:
            self.seen(text, before)
            return self.said[-1][0] - begun
        self._wait(lambda: len(self.said) > before, "nothing was written")
        return self.said[before][0] - begun

    @contextmanager
    def mouse_moving(self) -> Iterator[None]:
        """Move the mouse over the plots, to and fro, until this ends."""
        stop = threading.Event()

        def move() -> None:
            places = chain.from_iterable(repeat((*range(12, 60), *range(60, 12, -1))))
            while not stop.wait(MOVE_S):
                os.write(self._terminal, f"\x1b[<35;{next(places)};12M".encode())

        mouse = threading.Thread(target=move)
        mouse.start()
        try:
            yield
        finally:
            stop.set()
            mouse.join()

    def freeze_s(self) -> float:
        """Freeze and unfreeze the screen; return the slower response time."""
        reactions = []
        for told in ("FROZEN", "running"):
            start = time.monotonic() - self._begun
            reactions.append(self.seen(told, self.press(" ")) - start)
        return max(reactions)

    def settle(self) -> None:
        """Wait until the history is read: only what comes new is read from the store then."""
        rates = [SETTLED_BPS]
        while max(rates[-3:]) >= SETTLED_BPS:
            before = self._read_bytes()
            time.sleep(1.0)
            rates.append(self._read_bytes() - before)

    def _read_bytes(self) -> int:
        counters = Path(f"/proc/{self._process.pid}/io").read_text()
        return int(counters.partition("rchar: ")[2].split()[0])

    def cpu_s(self) -> float:
        """Return the processor time used so far."""
        stat = self._stat()
        return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")

    def _stat(self) -> list[str]:
        """Return the state of its process, and the numbers after it (proc(5))."""
        numbers = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        if numbers[0] == "Z":
            raise SystemExit(f"the screen ended after {self._key!r}: {self.said[-1:]}")
        return numbers

    def peak_mb(self) -> float:
        """Return the most memory it had."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) / 1000
