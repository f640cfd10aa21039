"""Keeps the runs of all users apart: a run from elsewhere has a host for itself.

Runs that are started on the host share it: they know of each other by other means. A part of the
agent's text: Python 3.9 and the standard library only.
"""

from __future__ import annotations

import fcntl
import os
import socket
import sys
import threading
import time
from contextlib import suppress
from typing import TextIO, Union

NAME = "benchctl"
# A busy machine may take as long to say whose lock it is; an agent that asks is not silent as long.
ANSWER_S = 2.0
# Whoever gives a host back that another run wants leaves it for longer than that one takes to look.
LEAVE_S = 2.0


class HostLock:
    """A lock of the whole host, that ends with its process."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._path = f"/tmp/{name}.lock"
        """On systems without abstract names, the only thing that lies on the disk."""
        self._held: Union[socket.socket, TextIO, None] = None  # noqa: UP007 (Python 3.9)
        self._answering: Union[threading.Thread, None] = None  # noqa: UP007
        self.is_wanted = False
        """Whether somebody has asked for it since it was taken."""
        self._leave_until = 0.0

    def take(self, who: str, shared: bool = False) -> str:
        """Take the host; returns who has it instead, empty if it is taken.

        A ``shared`` host may be taken by others that share it. Who has it already is not in its own
        way. Who gave back what another wanted leaves it to that one first.
        """
        if self._held is not None:
            return ""
        taken = self._bind if sys.platform == "linux" else self._flock
        has = taken(who, shared)
        if not has and time.monotonic() < self._leave_until:
            self.is_wanted = False
            self.give_back()
            return "another run, whose turn it is"
        return has

    def _bind(self, who: str, shared: bool) -> str:
        # An abstract name is the host's, or its network namespace's, and has no owner. Those who
        # share the host have a name each.
        name = f"{self._name}/{os.urandom(8).hex()}" if shared else self._name
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.bind("\0" + name)
        except OSError:
            sock.close()
            return _holder(name)
        sock.listen(8)
        self._held = sock
        answers = threading.Thread(target=self._answer, args=(sock, who.encode()), daemon=True)
        answers.start()
        self._answering = answers
        # Each has its name before it looks for the other's, so at least one sees both.
        for other in _bound():
            rivals = other == self._name if shared else other.startswith(f"{self._name}/")
            if rivals and (has := _holder(other)) != who:
                self.give_back()
                return has
        return ""

    def _answer(self, sock: socket.socket, who: bytes) -> None:
        while True:
            try:
                with sock.accept()[0] as asks:
                    self.is_wanted = True
                    asks.sendall(who)
            except OSError:
                return  # given back

    def _flock(self, who: str, shared: bool = False) -> str:
        how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        while True:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            file = os.fdopen(os.open(self._path, flags, 0o666), "r+")
            try:
                fcntl.flock(file, how | fcntl.LOCK_NB)
                # Whoever had it may have removed it after we opened it.
                is_there = os.path.samestat(os.fstat(file.fileno()), os.stat(self._path))  # noqa: PTH116
            except BlockingIOError:
                with file:
                    return file.read(256) or "another run"
            except FileNotFoundError:
                is_there = False
            if is_there:
                break
            file.close()
        with suppress(PermissionError):  # it was another's, whose run was killed
            os.fchmod(file.fileno(), 0o666)
        file.truncate(0)
        file.write(who)
        file.flush()
        self._held = file
        return ""

    def give_back(self) -> None:
        """Leave the host to others."""
        held, self._held = self._held, None
        if held is None:
            return
        if self.is_wanted:
            self._leave_until = time.monotonic() + LEAVE_S
        self.is_wanted = False
        if isinstance(held, socket.socket):
            held.shutdown(socket.SHUT_RDWR)  # which wakes up the thread that accepts
            if self._answering is not None:
                self._answering.join()  # the name is taken for as long as it accepts
        else:
            with suppress(BlockingIOError):  # others share it: the last one removes it
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(self._path)  # noqa: PTH108
        held.close()


def _bound() -> set[str]:
    """Return the abstract names in use on this host."""
    try:
        with open("/proc/net/unix", errors="replace") as file:  # noqa: PTH123
            names = [line.split(None, 7)[7:] for line in file]
    except FileNotFoundError:  # no /proc: who shares the host is not seen
        return set()
    return {name[0].strip()[1:] for name in names if name and name[0].startswith("@")}


def _holder(name: str) -> str:
    """Return who has an abstract name."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(ANSWER_S)
        try:
            sock.connect("\0" + name)
            return sock.recv(256).decode("utf-8", "replace") or "another run"
        except OSError:
            return "another run"
