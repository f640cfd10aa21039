"""A process of our own, and the messages between it and this one.

It is forked, so one file without any other can do it, and ends when this one does, however that
ends: then the channel is at its end.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import struct
from collections import deque
from typing import Any, Callable

_LENGTH = struct.Struct("!I")
_READ_BYTES = 1 << 16
# Files that one read may bring: more messages than fit into one.
_FILES = 64


class Channel:
    """Passes values, and open files beside them, to the process at the other end and back."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._data = bytearray()
        self._files: deque[int] = deque()

    def fileno(self) -> int:
        return self.sock.fileno()

    def send(self, value: Any, *files: int) -> None:
        """Send a value, with descriptors of open files. Raises OSError if nobody is there."""
        body = pickle.dumps((value, len(files)))
        data = _LENGTH.pack(len(body)) + body
        sent = socket.send_fds(self.sock, [data], files) if files else 0
        self.sock.sendall(data[sent:])

    def receive(self) -> list[tuple[Any, list[int]]]:
        """Wait for data; returns the values that are complete, each with its files.

        Raises EOFError if the other end is closed.
        """
        data, files, _, _ = socket.recv_fds(self.sock, _READ_BYTES, _FILES)
        if not data:
            raise EOFError
        self._files += files
        self._data += data
        found = []
        while len(self._data) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(self._data)[0]
            if len(self._data) < end:
                break
            # Only this program writes here, so nothing foreign is unpickled.
            value, count = pickle.loads(memoryview(self._data)[_LENGTH.size : end])
            found.append((value, [self._files.popleft() for _ in range(count)]))
            del self._data[:end]
        return found

    def close(self) -> None:
        self.sock.close()


def fork(work: Callable[[Channel], None]) -> tuple[Channel, int]:
    """Start a process that does the work; returns the channel to it, and its process id."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid:
        theirs.close()
        return Channel(ours), pid
    code = 1
    try:
        ours.close()
        # Signals to the group reach this process, too, but the other one says when it ends.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        signal.set_wakeup_fd(-1)
        work(Channel(theirs))
        code = 0
    except Exception:
        import traceback  # Only imported if there is a bug.

        traceback.print_exc()
    finally:
        os._exit(code)
