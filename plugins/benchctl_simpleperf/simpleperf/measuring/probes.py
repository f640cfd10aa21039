"""Response times beside a load: a new control connection at an interval, until it is welcomed.

These are the "foreign probes" of draft-ietf-ippm-responsiveness-09, section 4.3, without TLS: the
``hello`` takes the place of the request, and the ``welcome`` that of its answer. Instead of "self
probes" on the connections that carry the load, their senders' smoothed round-trip time counts.
"""

from __future__ import annotations

import errno
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Callable

# A thread that ends looks up this often.
_STEP_S = 0.05
# More probes at once are not needed where an answer takes this many intervals.
_AT_ONCE = 32
# The share of the lowest values that count: outliers are cut off at the high end (section 4.4.1).
_TRIMMED = 0.95
_MINUTE_S = 60.0

Figures = dict[str, Any]


class ResponseProbes:
    """Opens connections from a thread of its own while a measurement runs.

    ``connecting`` returns a socket that may connect to ``remote``; ``hello`` is what a client says
    first. Probes whose answer is missing at the end have no figure.
    """

    def __init__(
        self, connecting: Callable[[], socket.socket], remote: Any, hello: bytes, interval_s: float
    ) -> None:
        self._connecting, self._remote, self._hello = connecting, remote, hello
        self._interval_s = interval_s
        self._answered: deque[Figures] = deque()
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, and close what is open."""
        self._ends.set()
        if self._thread.is_alive():
            self._thread.join()

    def take(self, second_0: float) -> list[Figures]:
        """Return the answered probes not yet taken; times count from ``second_0`` (Unix time)."""
        taken = [self._answered.popleft() for _ in range(len(self._answered))]
        for probe in taken:
            probe["start_s"] -= second_0
            probe["end_s"] -= second_0
        return taken

    def _run(self) -> None:
        due_s = time.monotonic()
        with selectors.DefaultSelector() as selector:
            while not self._ends.is_set():
                now_s = time.monotonic()
                if now_s >= due_s:
                    due_s += self._interval_s * (1 + (now_s - due_s) // self._interval_s)
                    if len(selector.get_map()) < _AT_ONCE:
                        self._open(selector)
                for key, _ in selector.select(max(0.0, min(_STEP_S, due_s - time.monotonic()))):
                    self._go_on(selector, key)
            for key in list(selector.get_map().values()):
                _drop(selector, key.fileobj)

    def _open(self, selector: selectors.BaseSelector) -> None:
        # A path that refuses one probe may take the next: the load tells of its own failure.
        with suppress(OSError):
            sock = self._connecting()
            sock.setblocking(False)
            probe = {"start_s": time.time(), "begun": time.perf_counter()}
            if sock.connect_ex(self._remote) not in (0, errno.EINPROGRESS):
                sock.close()
                return
            selector.register(sock, selectors.EVENT_WRITE, probe)

    def _go_on(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
        sock, probe, now = key.fileobj, key.data, time.perf_counter()
        assert isinstance(sock, socket.socket)
        try:
            if "connect_s" not in probe:
                if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
                    probe["connect_s"] = now - probe.pop("begun")
                    probe["asked"] = time.perf_counter()
                    sock.sendall(self._hello)
                    selector.modify(sock, selectors.EVENT_READ, probe)
                    return
            elif sock.recv(1 << 12).startswith(b"{"):
                probe["response_s"] = now - probe.pop("asked")
                probe["end_s"] = time.time()
                self._answered.append(probe)
        except OSError:
            pass  # the same as no answer
        _drop(selector, sock)


def _drop(selector: selectors.BaseSelector, sock: Any) -> None:
    selector.unregister(sock)
    sock.close()


def responsiveness(probes: Sequence[Mapping[str, float]], rtts_s: Iterable[float]) -> Figures:
    """Return ``responsiveness_rpm``: the estimated responsiveness in round trips per minute.

    ``probes`` have ``connect_s`` and ``response_s``; ``rtts_s`` are smoothed round-trip times of
    connections that carry the load. By section 4.4.2 of draft-ietf-ippm-responsiveness-09 (TCP
    only): the mean of 60 s over the mean of both times of new connections, and of 60 s over the
    round-trip time of loaded ones. Empty without either.
    """
    loaded = list(rtts_s)
    if not (probes and loaded):
        return {}
    connect_s = trimmed_mean([probe["connect_s"] for probe in probes])
    response_s = trimmed_mean([probe["response_s"] for probe in probes])
    foreign = _MINUTE_S / ((connect_s + response_s) / 2)
    return {"responsiveness_rpm": (foreign + _MINUTE_S / trimmed_mean(loaded)) / 2}


def trimmed_mean(values: Sequence[float]) -> float:
    """Return the mean of the lowest 95 % of values, at least of one."""
    kept = sorted(values)[: max(1, int(len(values) * _TRIMMED))]
    return sum(kept) / len(kept)
