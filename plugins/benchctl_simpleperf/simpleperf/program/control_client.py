"""The client of the control protocol: requests a measurement, takes part in it, and reports it."""

from __future__ import annotations

import socket
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from benchctl_standalone.errors import Problem, describe_os_error
from benchctl_standalone.sockets import Target, address_text, connect
from benchctl_standalone.waker import Interrupted, Waker, await_readable

from .. import __version__
from ..measuring.cpu import CpuMeter
from ..measuring.options import set_options
from ..measuring.probes import ResponseProbes, responsiveness
from ..measuring.side import Side
from ..measuring.sockets import NOT_OURS, bind_again, connect_again
from ..protocol.auth import new_secret, prove
from ..protocol.conversation import CLIENT, CONTROL_PREAMBLE, VERSION, Conversation, stream_preamble
from ..protocol.intervals import IntervalMerger, decode_rows
from ..protocol.plain import ANSWER, GOODBYE
from ..protocol.results import check_figures, direction_result
from ..protocol.settings import MeasurementSettings
from .output import ResultOutput

# How long the server may take for its result, and how long a stream may stall.
_PATIENCE_S = 30.0
# How long a server may take for any other answer after its greeting.
_ANSWER_S = 10.0
# How long an interrupted measurement may take to end on both sides.
_STOP_S = 3.0
# UDP streams repeat their greeting, since each datagram may be lost.
_PRESENT_EVERY_S = 0.2
_PRESENT_S = 5.0
# After so many times each was among the first. All streams of both directions are 256.
_TURNS = 16
_CLOSED = "is its port open for UDP too?"
# The client connects this long before a future start: the server's wait is limited.
_START_LEAD_S = 5.0
_READ_BYTES = 1 << 16
# A server answers a hello at once. This is added to the path's delay for a busy server.
_SILENCE_S = 4.0
_LAST_WORD_S = 1.0
_DELAYS = 4
# A measurement without an end keeps the newest: those of 2.7 hours at 10 each second.
_KEPT_TIMES = 100_000

Message = tuple[str, dict[str, Any]]


def run_control_client(
    target: Target,
    settings: MeasurementSettings,
    output: ResultOutput,
    waker: Waker,
    key: bytes | None = None,
    start_at_s: float | None = None,
    asked: MeasurementSettings | None = None,
    probe_s: float = 0.0,
) -> None:
    """Measure and report to `output`. Raises Problem, and Interrupted before any measurement.

    ``asked`` are the server's settings, if they differ: it may have other buffers. ``probe_s`` is
    the interval of probes beside the load, 0 for none.
    """
    if start_at_s is not None:
        waker.sleep_until(start_at_s - _START_LEAD_S)
    client = _ControlClient(target, settings, asked or settings, output, waker)
    try:
        client.greet(key)
        client.prepare()
        client.start(start_at_s, probe_s)
        client.measure()
    finally:
        client.close()


class _ControlClient:
    """One measurement, from the control connection to the result; the steps in order."""

    def __init__(
        self,
        target: Target,
        settings: MeasurementSettings,
        asked: MeasurementSettings,
        output: ResultOutput,
        waker: Waker,
    ) -> None:
        self._target = target
        self._where = address_text((target.host, target.port))
        self._settings = settings
        self._asked = asked
        self._output = output
        self._waker = waker
        before_s = time.monotonic()
        self._control = connect(target)
        self._delays_s = _DELAYS * (time.monotonic() - before_s)
        """What the path may take for a question, its answer, and one repeat of either."""
        self._control.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._conversation = Conversation(CLIENT)
        self._heard: deque[Message] = deque()
        self._sockets: dict[str, list[socket.socket]] = {}
        self._names: dict[str, list[str]] = {}
        self._sides: dict[str, Side] = {}
        self._mergers: dict[str, IntervalMerger] = {}
        self._unavailable: dict[str, str] = {}
        self._cpu = CpuMeter()
        self._started_s = 0.0
        self._second_0_s = 0.0
        """When the measured part began, in Unix time, once it is announced."""
        self._announced = False
        self._agent = ""
        """The server's program and version."""
        self._probes: ResponseProbes | None = None
        self._probed: deque[dict[str, Any]] = deque(maxlen=_KEPT_TIMES)
        self._loaded_rtts_s: deque[float] = deque(maxlen=_KEPT_TIMES)

    def greet(self, key: bytes | None) -> None:
        """Say hello, and prove the key if the server requires one."""
        self._hear_first(_hello(self._conversation))
        kind, members = self._await("welcome", "challenge")
        if kind == "welcome":
            self._agent = members["agent"]
            return
        if key is None:
            raise Problem(
                "refused", "the server requires a key", "give --key-file or SIMPLEPERF_KEY"
            )
        nonce = new_secret(32)
        self._say("proof", nonce=nonce, mac=prove(key, members["nonce"], nonce))
        self._agent = self._await("welcome")[1]["agent"]

    def _hear_first(self, hello: bytes) -> None:
        """Greet the server and take its first message.

        Raises Problem that identifies the server if it does not use this protocol.
        """
        where = self._where
        said = self._ask(hello, _SILENCE_S + self._delays_s)
        if said is None:
            # For a plain server the hello is payload, and it waits for the end of it.
            said = self._ask(GOODBYE, _LAST_WORD_S + self._delays_s)
            if said and said.startswith(b"{"):
                raise Problem("peer", f"{where} answered after more than {_SILENCE_S:g} s")
        if said is None:
            raise Problem("peer", f"{where} accepts the connection and does not respond", NOT_OURS)
        if said.startswith(ANSWER):
            message = f"{where} speaks only the plain protocol of the first simpleperf"
            raise Problem("refused", message, "use --plain (in a profile: plain = true)")
        if not said:
            raise Problem("peer", f"{where} closed the connection without a response", NOT_OURS)
        if not said.startswith(b"{"):
            message = f"{where} is not a simpleperf server: it responds {said[:60]!r}"
            raise Problem("refused", message, NOT_OURS)
        self._heard.extend(self._conversation.receive(said))

    def _ask(self, question: bytes, patience_s: float) -> bytes | None:
        """Return the server's answer, empty if it closes; None if it is silent."""
        with suppress(ConnectionError):  # It may have given a reason, and closed.
            self._control.sendall(question)
        until_s = time.monotonic() + patience_s
        while (left_s := until_s - time.monotonic()) > 0:
            ready = await_readable([self._control, self._waker], left_s)
            self._waker.clear()
            self._stop_if_interrupted()
            if self._control in ready:
                try:
                    return self._control.recv(_READ_BYTES)
                except ConnectionError:
                    return b""
        return None

    def prepare(self) -> None:
        """Request the measurement, connect its streams and prepare them."""
        settings = self._settings
        for direction in settings.directions:
            self._sockets[direction] = []
            for _ in range(settings.streams):
                self._sockets[direction].append(self._bind_stream())
        self._say("test", **self._asked._asdict(), known_by=self._known_by())
        accepted = self._await("accepted")[1]
        for sock in (sock for sockets in self._sockets.values() for sock in sockets):
            connect_again(sock, self._control, self._target)
        self._present(accepted["token"], bool(accepted["known"]))
        for direction, sockets in self._sockets.items():
            sends = direction == "send"
            self._names[direction] = [address_text(sock.getsockname()) for sock in sockets]
            side = Side(sends, sockets, settings, _PATIENCE_S, self._waker.wake)
            self._sides[direction] = side
            self._mergers[direction] = IntervalMerger(direction, self._names[direction])

    def _known_by(self) -> dict[str, Any] | None:
        """Return how the server recognizes TCP streams that send without a preamble."""
        if self._settings.protocol != "tcp" or "send" not in self._sockets:
            return None
        return {
            "control": address_text(self._control.getsockname()),
            "ports": [sock.getsockname()[1] for sock in self._sockets["send"]],
        }

    def _bind_stream(self) -> socket.socket:
        udp = self._settings.protocol == "udp"
        taken = sum(map(len, self._sockets.values()))
        port = self._target.source_port + taken if self._target.source_port else 0
        return bind_again(
            self._control,
            socket.SOCK_DGRAM if udp else socket.SOCK_STREAM,
            self._target,
            port,
            lambda sock: set_options(sock, self._settings, self._unavailable),
        )

    def _present(self, token: str, known: bool) -> None:
        """Identify each connection to the server, until it is ready.

        Streams that send, and that the server recognizes, are left out: the acknowledgement of a
        preamble may increase TCP's initial window, and its loss decreases it.
        """
        streams = [
            (sock, stream_preamble(token, direction, number))
            for direction, sockets in self._sockets.items()
            for number, sock in enumerate(sockets)
            if not (known and direction == "send")
        ]
        if self._settings.protocol == "tcp":
            for sock, preamble in streams:
                sock.sendall(preamble)
            self._await("ready")
            return
        # A short queue drops the last of many: each time others are the first.
        turn = -(-len(streams) // _TURNS)
        until_s = time.monotonic() + _PRESENT_S
        while not self._heard:
            try:
                for sock, preamble in streams:
                    sock.send(preamble)
            except OSError as error:
                words = f"UDP to {self._where}: {describe_os_error(error)}"
                raise Problem("unreachable", words, _CLOSED) from error
            if time.monotonic() > until_s:
                raise Problem("unreachable", f"{self._where} receives no UDP", _CLOSED)
            streams = streams[turn:] + streams[:turn]
            self._hear(_PRESENT_EVERY_S)
            self._stop_if_interrupted()
        self._await("ready")

    def start(self, start_at_s: float | None, probe_s: float) -> None:
        """Start the streams, at a wall-clock time if one is given, and probes beside them."""
        if start_at_s is not None:
            if time.time() > start_at_s:
                self._output.late(time.time() - start_at_s)
            self._waker.sleep_until(start_at_s)
        self._cpu = CpuMeter()
        self._say("start")
        self._started_s = time.time()
        for side in self._sides.values():
            side.start()
        if probe_s:
            remote = self._control.getpeername()
            hello = _hello(Conversation(CLIENT))
            self._probes = ResponseProbes(self._bind_probe, remote, hello, probe_s)
            self._probes.start()

    def _bind_probe(self) -> socket.socket:
        return bind_again(self._control, socket.SOCK_STREAM, self._target, 0, lambda _: None)

    def measure(self) -> None:
        """Take part until the server sends its result, and report to the output."""
        settings = self._settings
        until_s = float("inf")
        if settings.duration_s is not None:
            until_s = time.monotonic() + settings.omit_s + settings.duration_s + _PATIENCE_S
        stopped = False
        result = None
        while True:
            self._hear(until_s - time.monotonic())
            result = self._take_messages() or result
            over = all(side.over for side in self._sides.values())
            self._pass_on(everything=over and result is not None)
            if over and result is not None:
                self._output.finished(self._result(result))
                return
            self._look_for_failures()
            if self._waker.interrupted and not stopped:
                stopped = True
                until_s = min(until_s, time.monotonic() + _STOP_S)
                self._say("stop")
                for side in self._sides.values():
                    side.stop()
            if time.monotonic() > until_s:
                raise Problem("peer", "the server did not send a result in time")
            if until_s == float("inf") and over:
                until_s = time.monotonic() + _PATIENCE_S

    def close(self) -> None:
        """Close everything."""
        if self._probes is not None:
            self._probes.stop()
        for side in self._sides.values():
            side.close()
        for direction, sockets in self._sockets.items():
            if direction not in self._sides:
                for sock in sockets:
                    sock.close()
        self._control.close()

    # --- during the measurement ---

    def _take_messages(self) -> dict[str, Any] | None:
        """Handle a message of the server; returns its result when that has arrived."""
        while self._heard:
            kind, members = self._heard.popleft()
            if kind == "result":
                return members  # Nothing follows it.
            if kind == "problem":
                raise Problem(**members)
            direction = members["direction"]
            side = self._sides.get(direction)
            if side is None:
                raise Problem("peer", f"nobody asked for direction {direction}")
            if kind == "sent":
                if side.sends:
                    raise Problem("peer", "the server counts what it does not send")
                side.expect(members["packets"], members["omitted"], members["duration_s"])
            elif kind == "samples":
                rows = decode_rows(members, not side.sends, self._settings.streams)
                self._mergers[direction].add(not side.sends, rows)
        return None

    def _pass_on(self, everything: bool) -> None:
        """Send the counts to the server, and the figures so far to the output."""
        begun_s = [side.start_epoch_s for side in self._sides.values() if side.start_epoch_s]
        if not self._announced and (begun_s or everything):
            self._announced = True
            self._second_0_s = min(begun_s or [self._started_s]) + self._settings.omit_s
            self._output.started(
                {
                    "epoch_s": self._second_0_s,
                    "protocol": self._settings.protocol,
                    "streams": self._names,
                }
            )
        for direction, side in self._sides.items():
            if side.over and side.sends and not side.counts_known:
                side.counts_known = True
                self._say("sent", direction=direction, **side.counts)
            merger = self._mergers[direction]
            merger.add(side.sends, [side.rows.popleft() for _ in range(len(side.rows))])
            if self._settings.interval_s:
                for interval in merger.take(everything):
                    self._output.interval(interval)
                    if not interval["omitted"] and "tcp_rtt_s" in interval:
                        self._loaded_rtts_s.append(interval["tcp_rtt_s"])
        if self._probes is not None and self._announced:
            self._pass_on_probes(self._probes)

    def _pass_on_probes(self, probes: ResponseProbes) -> None:
        if any(side.over for side in self._sides.values()):
            probes.stop()
        duration_s = self._settings.duration_s
        for probe in probes.take(self._second_0_s):
            if duration_s is not None and probe["start_s"] >= duration_s:
                continue  # it was not under load
            probe["omitted"] = probe["start_s"] < 0
            self._output.probe({"direction": self._settings.directions[0], **probe})
            if not probe["omitted"]:
                self._probed.append(probe)

    def _look_for_failures(self) -> None:
        failure = next((side.failure for side in self._sides.values() if side.failure), None)
        if failure is None:
            return
        # The server may have closed the stream, and may be sending the reason.
        self._hear(1.0)
        self._take_messages()
        raise Problem("peer", f"a stream broke: {describe_os_error(failure)}")

    def _result(self, server_result: dict[str, Any]) -> dict[str, Any]:
        """Return the whole result, from the server's figures and our own."""
        settings = self._settings
        directions = {}
        for direction, side in self._sides.items():
            self._unavailable.update(side.unavailable)
            theirs = server_result["directions"].get(direction)
            if theirs is None:
                raise Problem("peer", f"no figures for direction {direction}")
            check_figures(theirs, not side.sends, settings.streams, settings.protocol)
            sender, receiver = (side.figures(), theirs) if side.sends else (theirs, side.figures())
            directions[direction] = direction_result(sender, receiver, self._names[direction])
            self._note_time(direction, receiver)
        return {
            "throughput_bps": sum(whole["throughput_bps"] for whole in directions.values()),
            "directions": directions,
            **responsiveness([*self._probed], self._loaded_rtts_s),
            "cpu": {"client": self._cpu.read(), "server": server_result["cpu"]},
            "unavailable": {"client": self._unavailable, "server": server_result["unavailable"]},
        }

    def _note_time(self, direction: str, receiver: Mapping[str, Any]) -> None:
        """Warn if the time of a receiver over UDP is not the sender's, because one is too old."""
        if self._settings.protocol == "udp" and receiver["effective"].get("timed_by") != "sender":
            self._output.warning(
                f"the server is {self._agent}, so the receiver's time of direction {direction} goes"
                " from its first datagram to its last: throughput is too high at low rates"
            )

    # --- the control connection ---

    def _say(self, kind: str, /, **members: Any) -> None:
        try:
            self._control.sendall(self._conversation.send(kind, **members))
        except OSError as error:
            raise Problem(
                "peer", f"lost the connection to the server: {describe_os_error(error)}"
            ) from error

    def _hear(self, timeout_s: float) -> None:
        """Wait for the server, for our own measurements or for a signal."""
        limit_s = None if timeout_s == float("inf") else max(timeout_s, 0.0)
        sources: list[Any] = [self._waker]
        if self._conversation.state != "done":
            sources.append(self._control)
        ready = await_readable(sources, limit_s)
        if self._waker in ready:
            self._waker.clear()
        if self._control in ready:
            try:
                data = self._control.recv(_READ_BYTES)
            except OSError as error:
                raise Problem(
                    "peer", f"lost the connection to the server: {describe_os_error(error)}"
                ) from error
            if not data:
                raise Problem("peer", "the server closed the connection")
            self._heard.extend(self._conversation.receive(data))

    def _await(self, *kinds: str) -> Message:
        """Return the next message, which must be one of some kinds."""
        until_s = time.monotonic() + _ANSWER_S + self._delays_s
        while not self._heard:
            self._hear(until_s - time.monotonic())
            self._stop_if_interrupted()
            if time.monotonic() > until_s:
                raise Problem("peer", "the server no longer responds")
        kind, members = self._heard.popleft()
        if kind == "problem":
            raise Problem(**members)
        if kind not in kinds:
            raise Problem("peer", f"the server said {kind} instead of {' or '.join(kinds)}")
        return kind, members

    def _stop_if_interrupted(self) -> None:
        if self._waker.interrupted:
            raise Interrupted


def _hello(conversation: Conversation) -> bytes:
    """Return the first bytes of a control connection."""
    hello = conversation.send("hello", version=VERSION, agent=f"simpleperf {__version__}")
    return CONTROL_PREAMBLE + hello
