"""simpleowamp: how exact its delays are, whether its schedule is kept, and what its server bears.

Needs namespaces for the lab. Where owping and owampd are here, both measure the same path.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import table

from benchctl.lab.lab import Lab
from benchctl.lab.topology.model import Emulator
from benchctl.lab.topology.topology import build_topology
from benchctl.toml.source import parse_toml
from benchctl_owamp.simpleowamp.measuring import sender
from benchctl_owamp.simpleowamp.measuring.channel import Channel, fork
from benchctl_owamp.simpleowamp.measuring.clock import Clock
from benchctl_owamp.simpleowamp.measuring.endpoint import PACKET_LIMIT, open_endpoint
from benchctl_owamp.simpleowamp.measuring.receiving import Receiving
from benchctl_owamp.simpleowamp.measuring.reception import Reception
from benchctl_owamp.simpleowamp.protocol.control_client import ControlClient
from benchctl_owamp.simpleowamp.protocol.messages import (
    Greeting,
    ServerStarted,
    SessionAccepted,
    SessionRequest,
    SessionsStarted,
    Stopped,
    StoppedSession,
    make_sid,
)
from benchctl_owamp.simpleowamp.protocol.packets import owamp_format
from benchctl_owamp.simpleowamp.protocol.records import SkipRange
from benchctl_owamp.simpleowamp.protocol.schedule import EXPONENTIAL, Slot
from benchctl_owamp.simpleowamp.protocol.timestamps import from_timestamp, to_interval, to_timestamp

TOOL = (sys.executable, "-m", "benchctl_owamp")
FLAGS = ("--protocol", "--max-sessions", "--max-sessions-per-client")
"""Of the server, here: what is before them starts it elsewhere."""
LINK = """
[hosts]
a = {}
b = {}
[links]
ab = { between = ["a", "b"], delay = "10ms" }
"""
PROMISE_S = 0.01
LAB_PACKETS = 1000
PACKETS = 10_000
SESSIONS = 100
SESSION_RATE = 100
SESSION_S = 10
HALF_OPEN = 5000
MEMORY_MB = 150.0
TIMEOUT_NS = 2_000_000_000


class Way(NamedTuple):
    """One direction: the delay of each packet, and what the tool says at its end."""

    delays_s: list[float]
    end: dict[str, Any]

    @property
    def median_s(self) -> float:
        return statistics.median(self.delays_s)


def main() -> None:
    _lab()
    _schedule()
    _loopback()
    _beside_owping()
    _many_sessions()
    _half_open()


def _lab() -> None:
    table.head(f"owamp: a lab with {PROMISE_S * 1e3:g} ms each way, {LAB_PACKETS:,} packets")
    topology = build_topology(parse_toml(LINK, Path("bench.toml")), {})
    with Lab.build(topology, Emulator.USER) as lab:
        near, far = lab.nodes["a"], lab.nodes["b"]
        with serving(*far.prefix, bind=far.address) as (_, port):
            ways = _measure(far.address, port, LAB_PACKETS, 0.01, prefix=near.prefix)
    ours_s = ways["send"].end["kernel_s_median"]
    for name, way in ways.items():
        least_ms, typical_ms = (
            (value - PROMISE_S) * 1e3 for value in (min(way.delays_s), way.median_s)
        )
        table.row(f"{name}: minimum above the link's promise", least_ms, 0.3, "ms")
        table.row(f"{name}: minimum, not below it", least_ms, 0, "ms", at_least=True)
        table.row(f"{name}: median above it", typical_ms, 0.5, "ms")
        shares = f"ours {ours_s * 1e3:.3f} ms, the emulator's {typical_ms - ours_s * 1e3:.3f} ms"
        print(f"  of that median: {shares}")
        table.row(f"{name}: lost", way.end["lost"], 0, "")


def _schedule() -> None:
    table.head(f"owamp: {PACKETS:,} packets at 1 kHz each way, loopback")
    with serving() as (_, port):
        ways = _measure("127.0.0.1", port, PACKETS, 0.001)
    for name, way in ways.items():
        table.row(f"{name}: lost", way.end["lost"], 0, "")
        table.row(f"{name}: never sent", way.end["skipped"], 0, "")
        late_ms = way.end["late_s_p99"] * 1e3
        table.row(f"{name}: late, p99", late_ms, 1.0, "ms")
        table.row(f"{name}: late, p99, with nothing else running", late_ms, 0.2, "ms")


class _Recorded(sender.Sending):
    """A session that writes down when the kernel passed each packet to the device."""

    file = Path()

    def __init__(self, *given: Any) -> None:
        self._left: list[tuple[int, int]] = []
        super().__init__(*given)

    def left(self, number: int, stamp_ns: int, left_ns: int) -> None:
        self._left.append((number, left_ns))
        super().left(number, stamp_ns, left_ns)

    def outcome(self) -> sender.Outcome:
        outcome = super().outcome()
        self.file.write_text(json.dumps(self._left))
        return outcome


def _send_recorded(channel: Channel) -> None:
    """Send as usual, in a process of its own, and write down what is noted."""
    sender.Sending = _Recorded  # type: ignore[misc]
    sender.run_sender(channel, Clock())


def _loopback() -> None:
    """Compare our median with the kernel's own: receive less transmit, of the same packets."""
    table.head(f"owamp: bare loopback, {PACKETS // 10:,} packets at 100 a second")
    with tempfile.TemporaryDirectory() as folder:
        _Recorded.file = Path(folder, "left.json")
        count, interval = PACKETS // 10, to_interval(10_000_000)
        sid, slots = os.urandom(16), (Slot(EXPONENTIAL, interval),)
        start_ns = time.time_ns() + 300_000_000
        near, far = open_endpoint(("127.0.0.1", 0)), open_endpoint(("127.0.0.1", 0))
        near.connect(far.getsockname())
        far.connect(near.getsockname())
        channel, pid = fork(_send_recorded)
        channel.send(sender.Order(0, sid, slots, count, start_ns, TIMEOUT_NS), near.fileno())
        channel.receive()
        channel.close()
        os.waitpid(pid, 0)
        left = dict(json.loads(_Recorded.file.read_text()))
        start, timeout = to_timestamp(start_ns), to_interval(TIMEOUT_NS)
        # All have arrived; what is compared are the kernel's times of them.
        receiving = Receiving(sid, slots, count, start, 60 * timeout)
        reception = Reception(far, receiving, owamp_format(), Clock())
        records = list(reception.take(memoryview(bytearray(PACKET_LIMIT)), count))
        near.close()
        far.close()
    ours, kernels = [], []
    for record in records:
        if record.seq in left:
            received_ns = from_timestamp(record.receive_time)
            ours.append(received_ns - from_timestamp(record.send_time))
            kernels.append(received_ns - left[record.seq])
    table.row("packets with all three times", len(ours), count * 0.9, "", at_least=True)
    print(f"  our median {statistics.median(ours) / 1e3:.1f} us, ", end="")
    print(f"the kernel's {statistics.median(kernels) / 1e3:.1f} us")
    above_us = (statistics.median(ours) - statistics.median(kernels)) / 1e3
    table.row("our median above the kernel's", above_us, 20, "us")


def _beside_owping() -> None:
    if not (shutil.which("owping") and shutil.which("owampd")):
        print("\nowamp: owping and owampd are not here")
        return
    count = 500
    table.head(f"owamp: beside owping, loopback, {count} packets each way")
    with serving() as (_, port):
        ours = _measure("127.0.0.1", port, count, 0.01)
    with _owampd() as port:
        theirs = {name: _owping(port, flag, count) for name, flag in
                  (("send", "-t"), ("receive", "-f"))}  # fmt: skip
    for name, way in ours.items():
        print(f"  {name}: ours {way.median_s * 1e6:.1f} us, owping's {theirs[name] * 1e6:.1f} us")
        apart_ms = abs(way.median_s - theirs[name]) * 1e3
        table.row(f"{name}: medians apart", apart_ms, 0.1, "ms")


def _many_sessions() -> None:
    table.head(f"owamp: {SESSIONS} sessions of {SESSION_RATE} packets/s on one server")
    count = SESSION_RATE * SESSION_S
    with serving("--max-sessions-per-client", str(SESSIONS)) as (server, port):
        crowd = _Crowd(port, count)
        before_s = _cpu_s(server.pid)
        lost, skipped, late_s = crowd.run()
        used = (_cpu_s(server.pid) - before_s) / SESSION_S
    table.row(f"packets lost, of {SESSIONS * count:,}", lost, 0, "")
    table.row("packets never sent", skipped, 0, "")
    table.row("late, p99 of the worst session sent from here", late_s * 1e3, 1.0, "ms")
    print(f"  the server's two processes use {used:.2f} cores")


class _Crowd:
    """A client with many sessions on one connection, half of them in each direction."""

    def __init__(self, port: int, count: int) -> None:
        self._sock = socket.create_connection(("127.0.0.1", port), 30)
        self._talk = ControlClient()
        self._events: list[Any] = []
        self._count = count
        self._slots = (Slot(EXPONENTIAL, to_interval(round(1e9 / SESSION_RATE))),)
        # Enough for the conversation about all sessions.
        self._start_ns = time.time_ns() + 2_000_000_000
        self._channel, self._pid = fork(lambda theirs: sender.run_sender(theirs, Clock()))

    def run(self) -> tuple[int, int, float]:
        """Measure; returns packets lost, packets skipped, and the worst p99 of lateness."""
        self._hear(Greeting)
        self._say(self._talk.set_up())
        self._hear(ServerStarted)
        sending = [self._request(True) for _ in range(SESSIONS // 2)]
        receiving = [self._request(False) for _ in range(SESSIONS // 2)]
        self._say(self._talk.start_sessions())
        self._hear(SessionsStarted)
        for number, (request, sock) in enumerate(sending):
            self._order(number, request, sock)
        arrived = _Arrivals(receiving, self._count)
        outcomes: dict[int, sender.Outcome] = {}
        while len(outcomes) < len(sending):
            outcomes.update((outcome.number, outcome) for outcome, _ in self._channel.receive())
        time.sleep(TIMEOUT_NS / 1e9)
        stopped = []
        for number, (request, _) in enumerate(sending):
            outcome = outcomes[number]
            skips = tuple(SkipRange(*skip) for skip in outcome.skipped)
            stopped.append(StoppedSession(request.sid, outcome.next_seq, skips))
        self._say(self._talk.stop_sessions(stopped))
        theirs = {each.sid: each for each in self._hear(Stopped).sessions}
        lost = 0
        for request, _ in receiving:
            said = theirs[request.sid]
            lost += said.next_seq - _skipped(said.skips) - arrived.of(request.sid)
        for request, _ in sending:
            self._say(self._talk.fetch_session(request.sid))
            lost += self._count_lost()
        skipped = sum(_skipped(each.skips) for each in (*stopped, *theirs.values()))
        late_s = max(outcome.late_s["p99"] for outcome in outcomes.values() if outcome.late_s)
        self._sock.close()
        self._channel.close()
        os.waitpid(self._pid, 0)
        return lost, skipped, late_s

    def _request(self, sends: bool) -> tuple[SessionRequest, socket.socket]:
        sock = open_endpoint(("127.0.0.1", 0))
        port, now = sock.getsockname()[1], to_timestamp(time.time_ns())
        request = SessionRequest(
            conf_sender=not sends,
            conf_receiver=sends,
            packet_count=self._count,
            slots=self._slots,
            sender_address="127.0.0.1",
            sender_port=port if sends else 0,
            receiver_address="127.0.0.1",
            receiver_port=0 if sends else port,
            start_time=to_timestamp(self._start_ns),
            timeout=to_interval(TIMEOUT_NS),
            sid=bytes(16) if sends else make_sid("127.0.0.1", now, os.urandom(4)),
        )
        self._say(self._talk.request_session(request))
        answer = self._hear(SessionAccepted)
        assert not answer.accept
        sock.connect(("127.0.0.1", answer.port))
        return request._replace(sid=answer.sid if sends else request.sid), sock

    def _order(self, number: int, request: SessionRequest, sock: socket.socket) -> None:
        order = sender.Order(
            number, request.sid, self._slots, self._count, self._start_ns, TIMEOUT_NS
        )
        self._channel.send(order, sock.fileno())
        sock.close()

    def _say(self, data: bytes) -> None:
        self._sock.sendall(data)

    def _more(self) -> Any:
        while not self._events:
            data = self._sock.recv(1 << 16)
            assert data
            self._events += self._talk.receive(data)
        return self._events.pop(0)

    def _hear(self, kind: type[Any]) -> Any:
        event = self._more()
        assert isinstance(event, kind), event
        return event

    def _count_lost(self) -> int:
        records = self._more().record_count
        self._more()
        lost = sum(self._more().lost for _ in range(records))
        self._more()
        return lost


class _Arrivals:
    """Takes the packets of sessions in a thread."""

    def __init__(
        self, sessions: Sequence[tuple[SessionRequest, socket.socket]], count: int
    ) -> None:
        self._seen: dict[bytes, set[int]] = {request.sid: set() for request, _ in sessions}
        self._sessions = sessions
        self._count = count
        threading.Thread(target=self._take, daemon=True).start()

    def of(self, sid: bytes) -> int:
        return len(self._seen[sid])

    def _take(self) -> None:
        buffer = memoryview(bytearray(PACKET_LIMIT))
        receptions = [
            (
                self._seen[request.sid],
                Reception(
                    sock,
                    Receiving(
                        request.sid, request.slots, self._count, request.start_time,
                        request.timeout,
                    ),
                    owamp_format(),
                    Clock(),
                ),
            )
            for request, sock in self._sessions
        ]  # fmt: skip
        while True:
            for seen, reception in receptions:
                seen.update(record.seq for record in reception.take(buffer, self._count))
            time.sleep(0.02)


def _skipped(skips: Sequence[SkipRange]) -> int:
    return sum(last - first + 1 for first, last in skips)


def _half_open() -> None:
    table.head(f"owamp: {HALF_OPEN:,} half-open control connections")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, HALF_OPEN + 256), hard))
    with serving() as (server, port):
        before_mb = _memory_mb(server.pid)
        held = [socket.create_connection(("127.0.0.1", port), 30) for _ in range(HALF_OPEN)]
        began_s = time.monotonic()
        ways = _measure("127.0.0.1", port, 100, 0.001, "-L", "0.5")
        took_s = time.monotonic() - began_s
        peak_mb = _memory_mb(server.pid)
        for sock in held:
            sock.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    lost = sum(way.end["lost"] for way in ways.values())
    table.row(f"a client of 100 packets each way, in {took_s:.1f} s: lost", lost, 0, "")
    print(f"  the server's peak before them: {before_mb:.1f} MB")
    table.row("the server's peak memory", peak_mb, MEMORY_MB, "MB")


# --- programs -------------------------------------------------------------------------------


@contextmanager
def serving(*words: str, bind: str = "127.0.0.1") -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Start a server; words before the first flag are what starts it elsewhere."""
    at = next((i for i, word in enumerate(words) if word in FLAGS), len(words))
    command = [*words[:at], *TOOL, "serve", "-b", bind, "-p", "0", *words[at:]]
    # What starts it in a lab passes no signals on, so its group gets them.
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process, int(process.stdout.readline().rpartition(":")[2])
        finally:
            os.killpg(process.pid, signal.SIGTERM)


def _measure(
    host: str, port: int, count: int, interval_s: float, *flags: str, prefix: Sequence[str] = ()
) -> dict[str, Way]:
    command = [*prefix, *TOOL, "ping", host, "-p", str(port), "-c", str(count)]
    command += ["-i", f"{interval_s:g}", "--json", *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    delays: dict[str, list[float]] = {"send": [], "receive": []}
    ends = {}
    for line in map(json.loads, done.stdout.splitlines()):
        if line["event"] == "packet":
            delay_ns = line["received_ns"] - line["sent_ns"]
            delays[line["direction"]].append(delay_ns / 1e9)
        elif line["event"] == "end":
            ends[line["direction"]] = line
    return {name: Way(delays[name], ends[name]) for name in ("send", "receive")}


@contextmanager
def _owampd() -> Iterator[int]:
    with socket.socket() as free, tempfile.TemporaryDirectory() as folder:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        for name in ("conf", "data", "var"):
            Path(folder, name).mkdir()
        Path(folder, "conf", "owamp-server.conf").touch()
        limits = "limit root with disk=0, bandwidth=0\nassign default root\n"
        Path(folder, "conf", "owamp-server.limits").write_text(limits)
        command = ["owampd", "-Z", "-f", "-c", f"{folder}/conf", "-d", f"{folder}/data",
                   "-R", f"{folder}/var", "-S", f"127.0.0.1:{port}"]  # fmt: skip
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            _await_port(port)
            try:
                yield port
            finally:
                process.terminate()


def _await_port(port: int) -> None:
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionRefusedError:
            time.sleep(0.05)


def _owping(port: int, flag: str, count: int) -> float:
    """Return the median delay of one direction."""
    command = ["owping", "-R", flag, "-c", str(count), "-i", "0.01", f"127.0.0.1:{port}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    delays = []
    for fields in map(str.split, done.stdout.splitlines()):
        if len(fields) == 8 and int(fields[4]):
            delays.append((int(fields[4]) - int(fields[1])) / 2**32)
    return statistics.median(delays)


def _memory_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(peak.split()[1]) / 1024


def _cpu_s(pid: int) -> float:
    """Return the processor time of a process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    used = 0
    for each in (str(pid), *children):
        fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        used += int(fields[11]) + int(fields[12])
    return used / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    print(table.machine())
    main()
