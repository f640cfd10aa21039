"""The client of the plain protocol: sends data and BYE, and waits for the answer.

A plain server reports nothing, so the intervals show the sent rate (``sent_bps``). Each answer
proves that all bytes of its stream arrived. The final throughput is all bytes over the time from
the first byte to the last answer.
"""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from typing import Any

from benchctl_standalone.errors import Problem, describe_os_error
from benchctl_standalone.sockets import Target, address_text, connect
from benchctl_standalone.waker import Waker, await_readable

from ..measuring.measurement import Measurement
from ..measuring.options import set_options, unacknowledged_bytes
from ..measuring.sockets import NOT_OURS
from ..measuring.stream import Timeline
from ..measuring.tcp import PlainSender
from ..protocol.intervals import SECOND_NS, interval_figures, rate_bps
from ..protocol.plain import ANSWER, GOODBYE
from ..protocol.settings import MeasurementSettings
from .output import ResultOutput

# How long all bytes may take to arrive after the kernel has them, and then the answer.
_ARRIVAL_S = 30.0
_ANSWER_S = 10.0
_LOOK_S = 0.1
_SHOWN_BYTES = 60
_NOT_PLAIN = f"{NOT_OURS}; a server with a key, or without room, refuses plain clients"


def run_plain_client(
    target: Target,
    settings: MeasurementSettings,
    output: ResultOutput,
    waker: Waker,
    start_at_s: float | None = None,
) -> None:
    """Measure and report to `output`. Raises Problem, and Interrupted before the start."""
    sockets = _connect_all(target, settings)
    try:
        if start_at_s is not None:
            if time.time() > start_at_s:
                output.late(time.time() - start_at_s)
            waker.sleep_until(start_at_s)
        where = address_text((target.host, target.port))
        _measure(sockets, where, settings, output, waker)
    finally:
        for sock in sockets:
            sock.close()


def _connect_all(target: Target, settings: MeasurementSettings) -> list[socket.socket]:
    ports = [
        target.source_port + stream if target.source_port else 0
        for stream in range(settings.streams)
    ]
    unavailable: dict[str, str] = {}
    return [
        connect(target, port, lambda sock: set_options(sock, settings, unavailable))
        for port in ports
    ]


def _measure(
    sockets: list[socket.socket],
    where: str,
    settings: MeasurementSettings,
    output: ResultOutput,
    waker: Waker,
) -> None:
    names = [address_text(sock.getsockname()) for sock in sockets]
    timeline = Timeline(settings.schedule())
    streams = [PlainSender(index, timeline, sock, settings) for index, sock in enumerate(sockets)]
    measurement = Measurement(streams, timeline, waker.wake)
    start_ns = time.monotonic_ns()
    output.started({"epoch_s": time.time(), "protocol": "tcp", "plain": True, "streams": names})
    measurement.start()
    while measurement.totals is None:
        waker.wait()
        if waker.interrupted:
            measurement.stop()
        while measurement.rows:
            row = measurement.rows.popleft()
            output.interval(interval_figures("send", names[row.stream], {True: row}))
    if measurement.failure:
        raise _broken(sockets, where, measurement.failure)
    answered_ns = _say_goodbye(sockets, where)
    counts = [stream.moved_bytes for stream in streams]
    sent = [totals["bytes_sent"] for totals in measurement.totals.streams]
    sent_bps = [rate_bps(count, measurement.totals.duration_s) for count in sent]
    seconds = [(at_ns - start_ns) / SECOND_NS for at_ns in answered_ns]
    output.finished(_result(counts, sent_bps, seconds, names))


def _say_goodbye(sockets: list[socket.socket], where: str) -> list[int]:
    """Send BYE on every connection; returns when each answer arrived. Raises Problem."""
    answers = dict.fromkeys(sockets, b"")
    answered_ns = dict.fromkeys(sockets, 0)
    begun_s = arrived_s = time.monotonic()
    try:
        for sock in sockets:
            sock.sendall(GOODBYE)
            # The end of the stream shows the server that nothing follows the BYE.
            sock.shutdown(socket.SHUT_WR)
        while answers:
            ready = await_readable(answers, _LOOK_S)
            now_s = time.monotonic()
            if any(map(unacknowledged_bytes, answers)):
                arrived_s = now_s  # Data still in transit gets this additional time.
            if now_s > min(arrived_s + _ANSWER_S, begun_s + _ARRIVAL_S):
                message = f"the server took all bytes and says no {ANSWER.decode()!r}"
                raise Problem("peer", message, _NOT_PLAIN)
            for sock in ready:
                data = sock.recv(_SHOWN_BYTES)
                if not data:
                    message = f"the server closed without {ANSWER.decode()!r}"
                    raise Problem("peer", message, _NOT_PLAIN)
                answers[sock] += data
                _check_answer(where, answers[sock])
                if answers[sock].startswith(ANSWER):
                    answered_ns[sock] = time.monotonic_ns()
                    del answers[sock]
    except OSError as error:
        raise _broken(sockets, where, error) from error
    return list(answered_ns.values())


def _broken(sockets: list[socket.socket], where: str, error: OSError) -> Problem:
    """Return why a connection broke, from the server's last message if there is one."""
    for sock in sockets:
        sock.setblocking(False)
        try:
            with suppress(OSError):
                _check_answer(where, sock.recv(_SHOWN_BYTES))
        except Problem as problem:
            return problem
    return Problem("peer", f"while sending: {describe_os_error(error)}", _NOT_PLAIN)


def _check_answer(where: str, answer: bytes) -> None:
    """Raise Problem for a message that no plain server sends."""
    if not ANSWER.startswith(answer[: len(ANSWER)]):
        message = f"{where} is not a simpleperf server: it responds {answer[:_SHOWN_BYTES]!r}"
        raise Problem("refused", message, NOT_OURS)


def _result(
    counts: list[int], sent_bps: list[float], seconds: list[float], names: list[str]
) -> dict[str, Any]:
    def figures(count: int, sent: float, duration_s: float) -> dict[str, Any]:
        return {
            "end_s": duration_s,
            "bytes_sent": count,
            "bytes_received": count,
            "sent_bps": sent,
            "throughput_bps": rate_bps(count, duration_s),
        }

    whole = figures(sum(counts), sum(sent_bps), max(seconds))
    streams = [
        {"stream": index, "id": name, **figures(count, sent, duration_s)}
        for index, (name, count, sent, duration_s) in enumerate(
            zip(names, counts, sent_bps, seconds)
        )
    ]
    return {
        "throughput_bps": whole["throughput_bps"],
        "duration_s": max(seconds),
        "directions": {"send": {**whole, "streams": streams}},
    }
