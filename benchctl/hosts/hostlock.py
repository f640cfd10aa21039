"""Keeps the runs of all users apart: one at a time has a host.

A part of the agent's text: Python 3.9 and the standard library only.
"""

from __future__ import annotations

import fcntl
import os
import socket
import sys
import threading
from contextlib import suppress
from typing import TextIO, Union


class HostLock:
    """A lock of the whole host, that ends with its process."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._path = f"/tmp/{name}.lock"
        """On systems without abstract names, the only thing that lies on the disk."""
        self._held: Union[socket.socket, TextIO, None] = None  # noqa: UP007 (Python 3.9)
        self._answering: Union[threading.Thread, None] = None  # noqa: UP007

    def take(self, who: str) -> str:
        """Take the host; returns who has it instead, empty if it is taken."""
        if self._held is None:
            taken = self._bind if sys.platform == "linux" else self._flock
            return taken(who)
        return ""

    def _bind(self, who: str) -> str:
        # An abstract name is the host's, or its network namespace's, and has no owner.
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.bind("\0" + self._name)
        except OSError:
            with sock:
                return self._holder(sock)
        sock.listen(8)
        self._held = sock
        answers = threading.Thread(target=self._answer, args=(sock, who.encode()), daemon=True)
        answers.start()
        self._answering = answers
        return ""

    def _holder(self, sock: socket.socket) -> str:
        sock.settimeout(0.5)
        try:
            sock.connect("\0" + self._name)
            return sock.recv(256).decode("utf-8", "replace") or "another run"
        except OSError:
            return "another run"

    def _answer(self, sock: socket.socket, who: bytes) -> None:
        while True:
            try:
                with sock.accept()[0] as asks:
                    asks.sendall(who)
            except OSError:
                return  # given back

    def _flock(self, who: str) -> str:
        while True:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            file = os.fdopen(os.open(self._path, flags, 0o666), "r+")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
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
        if isinstance(held, socket.socket):
            held.shutdown(socket.SHUT_RDWR)  # which wakes up the thread that accepts
            if self._answering is not None:
                self._answering.join()  # the name is taken for as long as it accepts
        else:
            os.unlink(self._path)  # noqa: PTH108
        held.close()
