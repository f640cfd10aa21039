"""Are the figures true? Each beside what tcpdump, ss, nstat and the emulator counted.

A lab of two hosts and one link that loses packets; tcpdump runs at both ends, whose clock is one.
simpleperf and iperf3 run under benchctl, over TCP and UDP, both ways, with and without an omitted
part, in short and long intervals: what benchctl reports is what is judged. Needs tcpdump, ss and
nstat, and iperf3 for its part.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import capture
import table

from benchctl.hosts.host import Host
from benchctl.lab.lab import Lab
from benchctl.lab.topology import build_topology
from benchctl.toml.source import parse_toml

SECONDS = 3.0
OMIT_S = 1.0
# iperf3 takes no interval below 0.1 s.
INTERVALS_S = {"simpleperf": (0.025, 1.0), "iperf3": (0.1, 1.0)}
LENGTH_BYTES = 1000
LATE_S = 0.002
# Four looks of ss, two on either side of a reading, tell of its window when they are so near.
_NEAR_S = 0.1
# iperf3 begins a connection with a cookie (iperf_api.h, COOKIE_SIZE).
_COOKIE_BYTES = {"simpleperf": 0, "iperf3": 37}
_TEST_START = b"\x01"
_PORTS = (7000, 7001)
_TRIES = 3
_NEEDED = ("tcpdump", "ss", "nstat", "iperf3")
# Stamps of simpleperf's datagrams from here on are of the measured part.
_SECOND_0 = 1 << 62

LINK = """
[hosts]
a = {}
b = {}
[links]
ab = { between = ["a", "b"], rate = "10Mbit", delay = "10ms", queue = 40, loss = "0.3%" }
"""
PROFILE = """
[servers.b]
host = "{host}"
port = {port}
[flows.main]
backend = "{backend}"
to = "b"
direction = "{direction}"
protocol = "{protocol}"
duration = "{seconds}s"
omit = "{omit}s"
interval = "{interval}s"
"""
# More than the link carries, so that its queue is full when the omitted part ends.
UDP = f'rate = "12Mbit"\nlength = "{LENGTH_BYTES}B"\n'
SECOND_FLOW = """
[flows.back]
backend = "{backend}"
to = "back"
direction = "receive"
duration = "{seconds}s"
interval = "1s"
[servers.back]
host = "{host}"
port = {port}
"""
# Looks at all connections as fast as it can; each look has the time before and after it.
LOOK = """
import subprocess, time
while True:
    before = time.time()
    told = subprocess.run(["ss", "-tinHO", "( sport = :7000 or dport = :7000 )"],
                          capture_output=True, text=True).stdout
    print(before, time.time(), told.replace("\\n", "|"), sep="\\t", flush=True)
"""


# A bare thread that wants to wake every 25 ms; each line is how late it was, in seconds.
NAP = """
import time
due = time.monotonic()
while True:
    due += 0.025
    time.sleep(max(due - time.monotonic(), 0))
    print(time.monotonic() - due, flush=True)
"""


class Case(NamedTuple):
    """What is measured."""

    backend: str
    protocol: str
    direction: str
    omit_s: float
    interval_s: float

    def __str__(self) -> str:
        way = "->" if self.direction == "send" else "<-"
        return f"{self.backend} {self.protocol} {way} omit {self.omit_s:g} s {self.interval_s:g} s"


class Seen(NamedTuple):
    """What one run showed, and what others saw of it; packets at a and at b."""

    trial: dict[str, Any]
    samples: list[dict[str, str]]
    packets: tuple[list[capture.Packet], list[capture.Packet]]
    looks: str
    naps: str
    resent: int
    missing: int


def main() -> None:
    """Measure every case, and print what is off."""
    lacking = [name for name in _NEEDED if shutil.which(name) is None]
    for name in lacking:
        print(f"\ntruth: {name} is not here")
    if {"tcpdump", "ss", "nstat"} & set(lacking):
        return
    backends = [name for name in INTERVALS_S if name not in lacking]
    topology = build_topology(parse_toml(LINK, Path("bench.toml")), {})
    with Lab.build(topology) as lab, tempfile.TemporaryDirectory() as folder:
        print(f"\ntruth: {SECONDS:g} s each, links by the {lab.emulator} emulator;"
              f" 1-minute load {os.getloadavg()[0]:.1f}")  # fmt: skip
        for backend in backends:
            with _server(lab.nodes["b"], backend, 7000), _server(lab.nodes["b"], backend, 7001):
                for protocol, direction, omit_s, interval_s in itertools.product(
                    ("tcp", "udp"), ("send", "receive"), (0.0, OMIT_S), INTERVALS_S[backend]
                ):
                    case = Case(backend, protocol, direction, omit_s, interval_s)
                    table.head(f"truth: {case}")
                    seen = _run(lab, case, _profile(lab, case), Path(folder))
                    (_judge_tcp if protocol == "tcp" else _judge_udp)(case, seen)
                _judge_start(lab, backend, Path(folder))


def _judge_tcp(case: Case, seen: Seen) -> None:
    figures = seen.trial["flows"][0]["metrics"]
    sender, receiver = _streams(case, seen)
    mss_bytes = seen.trial["flows"][0]["effective"].get("mss_bytes", 1448)
    zero_s = _began(case, seen, receives=True) + case.omit_s
    length_s = figures["bytes_received"] * 8 / figures["throughput_bps"]
    arrived = receiver.bytes_by(zero_s + length_s)
    if case.omit_s:  # Otherwise the first packet, which begins the time, counts as well.
        arrived -= receiver.bytes_by(zero_s)
    off = abs(figures["bytes_received"] / arrived - 1) * 100
    table.row(f"bytes_received, of {arrived:,} seen by tcpdump: off by", off, 0.1, "%")
    start_s = _began(case, seen, receives=False) + case.omit_s
    resent = sender.resent_within(start_s, start_s + SECONDS, mss_bytes)
    off = abs(figures["retransmits"] - resent)
    table.row(f"retransmits, of {resent} seen by tcpdump: off by", off, 0, "")
    others = _resent_in_all(case, seen, mss_bytes) - resent
    off = abs(figures["retransmits"] + others - seen.resent)
    what = f"retransmits, of {seen.resent} by nstat less {others} of other times and connections"
    table.row(f"{what}: off by", off, 0, "")
    _judge_missing(case, seen)
    if case.interval_s == 0.025:
        _judge_readings(case, seen, start_s)


def _judge_readings(case: Case, seen: Seen, start_s: float) -> None:
    """Judge each reading of the sender's kernel: when it was, and by what ss showed around it."""
    intervals: dict[float, dict[str, float]] = defaultdict(dict)
    for sample in seen.samples:
        intervals[float(sample["end_s"])][sample["metric"]] = float(sample["value"])
    port = _main_ends(case, seen)[0][1]
    looks = list(_cwnds(seen.looks, port))
    times = [before_s for before_s, _, _ in looks]
    told = alike = looked = 0
    late_s = []
    for end_s, metrics in sorted(intervals.items()):
        if "throughput_bps" not in metrics and "cwnd_bytes" not in metrics:
            continue
        told += 1
        if "cwnd_bytes" not in metrics:
            continue
        late_s.append(metrics["reading_late_s"])
        at_s = start_s + end_s + metrics["reading_late_s"]
        at = bisect_right(times, at_s)
        around = looks[max(at - 2, 0) : at + 2]
        if len(around) == 4 and around[-1][1] - around[0][0] < _NEAR_S:
            windows = [window for _, _, window in around]
            looked += 1
            alike += min(windows) <= metrics["cwnd_bytes"] <= max(windows)
    on_time = sum(late <= LATE_S for late in late_s)
    what = f"of {told} intervals, the sender read within {LATE_S * 1e3:g} ms"
    table.row(what, on_time / told * 100, 99, "%", at_least=True)
    what = f"of {looked} readings beside which ss looked, cwnd as ss shows"
    table.row(what, alike / max(looked, 1) * 100, 99, "%", at_least=True)
    p99_s = statistics.quantiles(late_s, n=100)[98]
    print(f"  late: median {statistics.median(late_s) * 1e3:.2f} ms, p99 {p99_s * 1e3:.2f} ms,"
          f" none of its own: {told - len(late_s)}; ss looked {len(looks)} times")  # fmt: skip
    naps_s = [float(line) for line in seen.naps.splitlines()[:-1]]
    woken = sum(late <= LATE_S for late in naps_s) / max(len(naps_s), 1)
    print(f"  meanwhile a bare thread woke within {LATE_S * 1e3:g} ms in {woken:.1%} of its times")


def _judge_missing(case: Case, seen: Seen) -> None:
    """Judge the emulator by tcpdump: what left the sender and did not come is what it counted."""
    sent, came = (
        sum(_is_of_sender(case, packet) for packet in packets) for packets in _ordered(case, seen)
    )
    off = abs(sent - came - seen.missing)
    table.row(f"packets missing, of {seen.missing} by the emulator: off by", off, 0, "")


def _judge_udp(case: Case, seen: Seen) -> None:
    figures = seen.trial["flows"][0]["metrics"]
    sent, received, lost = (
        figures.get(f"packets_{what}", float("nan")) for what in ("sent", "received", "lost")
    )
    at_sender, at_receiver = _datagrams(case, seen)
    known, whole = at_sender.keys(), sent
    if case.backend == "iperf3":
        # Its receiver finds a loss by the next number that comes (iperf_udp.c).
        known = {number for number in at_sender if number <= max(at_receiver)}
        unknown = len(at_sender) - len(known)
        whole -= unknown
        print(f"  sent after the last that came, of which iperf3 cannot know: {unknown}")
    if received == received and lost == lost:
        what = f"received + lost, of {whole:,.0f} sent: off by"
        table.row(what, abs(received + lost - whole), 0, "")
        missing = len(known - at_receiver.keys())
        table.row(f"lost, of {missing} missing by tcpdump: off by", abs(lost - missing), 0, "")
    else:
        print("  lost: no figure, because the tool's own contradicts its others")
    table.row(f"sent, of {len(at_sender):,} seen by tcpdump: off by",
              abs(sent - len(at_sender)), 0, "")  # fmt: skip
    _judge_missing(case, seen)
    pdv_s = figures.get("pdv_p95_p50_s")
    if pdv_s is not None:
        transits = sorted(at_receiver[n] - at_sender[n] for n in at_receiver.keys() & at_sender)
        truth_s = _nearest_rank(transits, 0.95) - _nearest_rank(transits, 0.5)
        off = abs(pdv_s / truth_s - 1) * 100
        table.row(f"pdv_p95_p50, of {truth_s * 1e3:.4g} ms by tcpdump: off by", off, 1, "%")


def _judge_start(lab: Lab, backend: str, folder: Path) -> None:
    """Judge the start skew of two flows in opposite directions."""
    case = Case(backend, "tcp", "send", 0.0, 1.0)
    table.head(f"truth: {backend}, two flows at the same time")
    host = lab.nodes["b"].address
    second = SECOND_FLOW.format(backend=backend, host=host, port=7001, seconds=SECONDS)
    seen = _run(lab, case, _profile(lab, case) + second, folder)
    firsts = []
    for port, sender in ((7000, 0), (7001, 1)):
        ends = _main_ends(case, seen, port)
        own = [p for p in seen.packets[sender] if p.ends == (ends if not sender else ends[::-1])]
        skip = 0 if sender else _COOKIE_BYTES[backend]
        firsts.append(capture.Stream(own, skip).times_s[0])
    skew_s = abs(firsts[1] - firsts[0])
    if seen.trial["start_skew_s"] is None:
        print(f"  start skew: no figure; {skew_s * 1e3:.2f} ms by tcpdump")
        return
    off = abs(seen.trial["start_skew_s"] - skew_s) * 1e3
    table.row(f"start skew, of {skew_s * 1e3:.2f} ms by tcpdump: off by", off, 1, "ms")


# --- what was seen --------------------------------------------------------------------------


def _streams(case: Case, seen: Seen) -> tuple[capture.Stream, capture.Stream]:
    """Return the measured connection as its sender and as its receiver saw it."""
    ends = _main_ends(case, seen)
    skip = _COOKIE_BYTES[case.backend] if case.direction == "send" else 0
    if case.direction == "receive":
        ends = ends[::-1]
    sender, receiver = (
        capture.Stream((p for p in packets if p.tcp and p.ends == ends), skip)
        for packets in _ordered(case, seen)
    )
    return sender, receiver


def _ordered(case: Case, seen: Seen) -> tuple[list[capture.Packet], ...]:
    """Return the packets at the sender and those at the receiver."""
    return seen.packets if case.direction == "send" else seen.packets[::-1]


def _is_of_sender(case: Case, packet: capture.Packet) -> bool:
    """Whether a packet goes the way of what is measured; servers are at b."""
    return (packet.ends[1][1] in _PORTS) == (case.direction == "send")


def _began(case: Case, seen: Seen, receives: bool) -> float:
    """Return when an end of the flow began its time.

    simpleperf's begins with the first data. Both ends of iperf3 begin theirs when the server says
    so on the control connection (iperf_init_test in iperf_api.c).
    """
    if case.backend == "simpleperf":
        return _streams(case, seen)[receives].times_s[0]
    return next(
        packet.time_s
        for packet in _ordered(case, seen)[receives]
        if packet.tcp and packet.ends[0][1] in _PORTS and packet.payload == _TEST_START
    )


def _resent_in_all(case: Case, seen: Seen, mss_bytes: int) -> int:
    """Return how many segments the sender's connections sent again, at any time."""
    connections = defaultdict(list)
    for packet in _ordered(case, seen)[0]:
        if packet.tcp and _is_of_sender(case, packet):
            connections[packet.ends].append(packet)
    return sum(
        capture.Stream(packets, 0).resent_within(0, math.inf, mss_bytes)
        for packets in connections.values()
    )


def _main_ends(case: Case, seen: Seen, port: int = 7000) -> tuple[Any, Any]:
    """Return the client's and the server's end of the connection that carried most."""
    carried: Counter[tuple[Any, Any]] = Counter()
    for packet in seen.packets[0]:
        if packet.tcp == (case.protocol == "tcp") and port in (e[1] for e in packet.ends):
            here = packet.ends if packet.ends[1][1] == port else packet.ends[::-1]
            carried[here] += packet.length
    return carried.most_common(1)[0][0]


def _datagrams(case: Case, seen: Seen) -> tuple[dict[int, float], dict[int, float]]:
    """Return when each measured datagram left its sender and came to its receiver, by number."""
    ends = _main_ends(case, seen)
    if case.direction == "receive":
        ends = ends[::-1]
    found: list[dict[int, float]] = []
    stamps: dict[int, float] = {}
    for packets in _ordered(case, seen):
        times: dict[int, float] = {}
        for packet in packets:
            if packet.tcp or packet.ends != ends or packet.length != LENGTH_BYTES:
                continue
            if case.backend == "simpleperf":
                number = int.from_bytes(packet.payload[:8], "big")
                stamp = float(int.from_bytes(packet.payload[8:16], "big") >= _SECOND_0)
            else:
                # Seconds, microseconds, number from 1, of 32 or of 64 bits (iperf_udp.c).
                short = int.from_bytes(packet.payload[8:12], "big")
                number = short or int.from_bytes(packet.payload[8:16], "big")
                stamp = packet.time_s
            times.setdefault(number, packet.time_s)
            stamps.setdefault(number, stamp)
        found.append(times)
    sent, received = found
    limit = 1.0
    if case.backend == "iperf3":
        limit = _began(case, seen, receives=False) + case.omit_s
    measured = {number for number in sent if stamps[number] >= limit}
    return (
        {number: at_s for number, at_s in sent.items() if number in measured},
        {number: at_s for number, at_s in received.items() if number in measured},
    )


def _cwnds(looks: str, port: int) -> Iterator[tuple[float, float, int]]:
    """Yield when ss began and ended to look, and the window in bytes of a connection then."""
    for line in looks.splitlines():
        fields = line.split("\t")
        if len(fields) < 3:
            continue
        for told in "\t".join(fields[2:]).split("|"):
            words = told.split()
            if len(words) > 4 and any(word.endswith(f":{port}") for word in words[3:5]):
                values = dict(word.split(":", 1) for word in words[5:] if ":" in word)
                if "cwnd" in values:
                    window = int(values["cwnd"]) * int(values.get("mss", 0))
                    yield float(fields[0]), float(fields[1]), window


def _nearest_rank(ordered: Sequence[float], ratio: float) -> float:
    return ordered[max(-(-int(ratio * 1000) * len(ordered) // 1000), 1) - 1]


# --- programs -------------------------------------------------------------------------------


def _profile(lab: Lab, case: Case) -> str:
    text = PROFILE.format(
        host=lab.nodes["b"].address, port=7000, backend=case.backend, direction=case.direction,
        protocol=case.protocol, seconds=SECONDS, omit=case.omit_s, interval=case.interval_s,
    )  # fmt: skip
    return text + (UDP if case.protocol == "udp" else "")


def _run(lab: Lab, case: Case, profile: str, folder: Path) -> Seen:
    """Measure once; again where the link lost a packet that iperf3 waits for without end."""
    for _ in range(_TRIES):
        seen, problem = _try(lab, case, profile, folder)
        if seen:
            return seen
        print(f"  measured again: {problem.strip()}")
    raise SystemExit(f"truth: {case}: {problem}")


def _try(lab: Lab, case: Case, profile: str, folder: Path) -> tuple[Seen | None, str]:
    file, store = folder / "profile.toml", folder / f"{time.monotonic_ns()}.sqlite"
    file.write_text(profile)
    a, b = lab.nodes["a"], lab.nodes["b"]
    sender = a if case.direction == "send" else b
    benchctl = [*a.prefix, sys.executable, "-P", "-m", "benchctl"]
    before = _resent(sender), _missing(lab, case)
    with ExitStack() as stack:
        captures = [stack.enter_context(_capturing(host, folder)) for host in (a, b)]
        looks = stack.enter_context(_noting(sender, LOOK, folder / "looks"))
        naps = stack.enter_context(_noting(sender, NAP, folder / "naps"))
        argv = [*benchctl, "run", str(file), "--quiet", "--store", str(store), "--format", "json"]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
        time.sleep(0.5)  # What is still under way is seen as well.
    if done.returncode:
        told = json.loads(done.stdout or "{}").get("trials", [{}])[0]
        return None, told.get("error") or done.stderr
    argv = [*benchctl, "export", "--samples", "--store", str(store)]
    samples = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    seen = Seen(
        json.loads(done.stdout)["trials"][0],
        [s for s in csv.DictReader(io.StringIO(samples)) if s["omitted"] == "0"],
        tuple(list(capture.read(file.read_bytes())) for file in captures),  # type: ignore[arg-type]
        looks.read_text(),
        naps.read_text(),
        _resent(sender) - before[0],
        _missing(lab, case) - before[1],
    )
    return seen, ""


def _resent(host: Host) -> int:
    argv = [*host.prefix, "nstat", "-asz", "TcpRetransSegs"]
    told = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    return int(float(told.split("TcpRetransSegs")[1].split()[0]))


def _missing(lab: Lab, case: Case) -> int:
    counters = lab.counters("ab", "a" if case.direction == "send" else "b")
    return counters.dropped + counters.lost if counters else 0


@contextmanager
def _server(host: Host, backend: str, port: int) -> Iterator[None]:
    argv = {
        "simpleperf": [sys.executable, "-P", "-m", "benchctl_simpleperf", "-s", "-b", "0.0.0.0",
                       "--max-rate", "unlimited", "-p", str(port)],
        "iperf3": ["iperf3", "-s", "--forceflush", "-p", str(port)],
    }  # fmt: skip
    with _started([*host.prefix, *argv[backend]], subprocess.PIPE) as process:
        assert process.stdout is not None
        while b"istening" not in process.stdout.readline():
            if process.poll() is not None:
                raise SystemExit(f"truth: {backend} does not listen")
        # What it tells later nobody reads; it is less than a pipe holds.
        yield


@contextmanager
def _capturing(host: Host, folder: Path) -> Iterator[Path]:
    """Let tcpdump write down what goes through a host, until the block ends."""
    file = folder / f"{host.address}.pcap"
    argv = [*host.prefix, "tcpdump", "-i", "eth0", "-w", "-", "-s", str(capture.SNAP_BYTES),
            "-B", "65536", "--time-stamp-precision", "nano", "ip"]  # fmt: skip
    with (
        file.open("wb") as output,
        _started(argv, output, subprocess.PIPE) as process,
    ):
        assert process.stderr is not None
        while b"listening on" not in process.stderr.readline():
            if process.poll() is not None:
                raise SystemExit("truth: tcpdump does not listen")
        yield file


@contextmanager
def _noting(host: Host, program: str, file: Path) -> Iterator[Path]:
    """Let a program look on and write down what it finds, until the block ends."""
    with (
        file.open("wb") as output,
        _started([*host.prefix, sys.executable, "-I", "-c", program], output, subprocess.DEVNULL),
    ):
        yield file


@contextmanager
def _started(argv: Sequence[str], output: Any, errors: Any = None) -> Iterator[subprocess.Popen]:  # type: ignore[type-arg]
    """Run a command beside the block; its whole group gets SIGINT at the end."""
    with subprocess.Popen(argv, stdout=output, stderr=errors, start_new_session=True) as process:
        try:
            yield process
        finally:
            os.killpg(process.pid, signal.SIGINT)
            try:
                process.communicate(timeout=5)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


if __name__ == "__main__":
    print(table.machine())
    main()
