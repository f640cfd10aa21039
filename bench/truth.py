"""Compares the figures with what tcpdump, ss, nstat and the emulator counted.

A lab has two hosts and one link that loses packets; tcpdump runs at both ends, which share a clock.
simpleperf and iperf3 run under benchctl, over TCP and UDP, both ways, with and without an omitted
part, in short and long intervals. Each figure that benchctl reports is compared with one of the
same meaning. A run in which the machine stalled, or tcpdump missed packets, is repeated. Needs
tcpdump, ss and nstat, and iperf3 for its part.
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
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import capture
import table

from benchctl.lab.lab import Lab
from benchctl.lab.topology import build_topology
from benchctl.run.planned import Host
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
# Its states (iperf_api.h): the server begins, the client ends.
_TEST_START, _TEST_END = b"\x01", b"\x04"
_PORTS = (7000, 7001)
# So well does iperf3 keep to its own second 0 and its end (docs/output.md).
_IPERF3_S = 0.006
# A bare thread that wakes later than this tells that the machine stood still.
_STILL_S = 0.02
_TRIES = 3
_NEEDED = ("tcpdump", "ss", "nstat", "iperf3")
# Stamps of simpleperf's datagrams from here on are of the measured part.
_SECOND_0 = 1 << 62

_DELAY_S = 0.01

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
    spoilt: str
    packets: tuple[list[capture.Packet], list[capture.Packet]]
    looks: str
    naps: str
    resent: int
    missing: int


class Datagram(NamedTuple):
    """A datagram of simpleperf's, its time by tcpdump; iperf3's stamp means something else."""

    time_s: float
    stamp_ns: int


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
    if case.backend == "simpleperf":
        _judge_stamped(seen, *_datagrams(case, seen))
    else:
        _judge_unstamped(case, seen, *_datagrams(case, seen))
    _judge_missing(case, seen)


def _judge_stamped(seen: Seen, at_sender: dict[int, Datagram], came: dict[int, Datagram]) -> None:
    """Judge simpleperf, whose datagrams say themselves whether they are of the measured part."""
    figures = seen.trial["flows"][0]["metrics"]
    sent, lost = figures["packets_sent"], figures["packets_lost"]
    left = {number: one for number, one in at_sender.items() if one.stamp_ns >= _SECOND_0}
    what = f"received + lost, of {sent:,.0f} sent: off by"
    table.row(what, abs(figures["packets_received"] + lost - sent), 0, "")
    table.row(f"sent, of {len(left):,} seen by tcpdump: off by", abs(sent - len(left)), 0, "")
    missing = len(left.keys() - came.keys())
    table.row(f"lost, of {missing} missing by tcpdump: off by", abs(lost - missing), 0, "")
    # As it is defined: from the stamp, which a datagram bears, to the kernel's time of arrival.
    transits_s = sorted(
        one.time_s - (one.stamp_ns - _SECOND_0) / 1e9
        for number, one in came.items()
        if number in left
    )
    truth_s = _nearest_rank(transits_s, 0.95) - _nearest_rank(transits_s, 0.5)
    off = abs(figures["pdv_p95_p50_s"] / truth_s - 1) * 100
    table.row(f"pdv_p95_p50, of {truth_s * 1e3:.4g} ms by tcpdump: off by", off, 1, "%")


def _judge_unstamped(
    case: Case, seen: Seen, at_sender: dict[int, Datagram], came: dict[int, Datagram]
) -> None:
    """Judge iperf3: by all that was sent, or by what went by in the time that it measured.

    Where a timer of iperf3 begins or ends what it counts, nobody else knows when that was: then
    tcpdump has to have seen the same within `_IPERF3_S` of the time that was asked for.
    """
    figures = seen.trial["flows"][0]["metrics"]
    sent, received, lost = (
        figures.get(f"packets_{what}", math.nan) for what in ("sent", "received", "lost")
    )
    if case.omit_s:
        zero_s = _began(case, seen, receives=False) + case.omit_s
        first_s = sorted(one.time_s for one in at_sender.values())[-int(sent)]
        what = f"the first of {sent:,.0f} sent left at second 0: off by"
        table.row(what, abs(first_s - zero_s) * 1e3, _IPERF3_S * 1e3, "ms")
    else:
        what = f"sent, of {len(at_sender):,} seen by tcpdump: off by"
        table.row(what, abs(sent - len(at_sender)), 0, "")
    if math.isnan(received + lost):
        print("  lost: no figure, because the tool's own contradicts its others")
        return
    off = _off_the_nearest(case, seen, came, received + lost, lost)
    what = f"received {received:,.0f} and lost {lost:,.0f}, as seen by tcpdump: off by"
    table.row(what, off, 0, "")


def _off_the_nearest(
    case: Case, seen: Seen, came: dict[int, Datagram], counted: float, lost: float
) -> float:
    """Return how far counts are off what came in the nearest of the times that they may mean.

    A receiver counts from the highest number at its second 0 to the highest at its end: that of
    its own clock where it is the client, otherwise when the client says so.
    """
    zero_s = _began(case, seen, receives=True) + case.omit_s
    end_s = zero_s + SECONDS
    if case.direction == "send":
        end_s = _state_came(case, seen, _TEST_END, at_receiver=True)
    arrivals = sorted((one.time_s, number) for number, one in came.items())
    times_s = [time_s for time_s, _ in arrivals]
    highest = list(itertools.accumulate((number for _, number in arrivals), max, initial=0))

    def around(at_s: float) -> range:
        return range(
            bisect_left(times_s, at_s - _IPERF3_S), bisect_right(times_s, at_s + _IPERF3_S) + 1
        )

    starts = around(zero_s) if case.omit_s else range(1)
    return min(
        abs(highest[end] - highest[start] - counted)
        + abs(highest[end] - highest[start] - (end - start) - lost)
        for start in starts
        for end in around(end_s)
    )


def _judge_start(lab: Lab, backend: str, folder: Path) -> None:
    """Judge the start skew of two flows in opposite directions."""
    case = Case(backend, "tcp", "send", 0.0, 1.0)
    table.head(f"truth: {backend}, two flows at the same time")
    host = lab.nodes["b"].address
    second = SECOND_FLOW.format(backend=backend, host=host, port=7001, seconds=SECONDS)
    seen = _run(lab, case, _profile(lab, case) + second, folder)
    # What comes from a host with another clock left it a path's delay before, of which iperf3 shows
    # nothing where it receives (docs/output.md).
    delay_s, bound_s = (_DELAY_S, 0.001) if backend == "simpleperf" else (0.0, _IPERF3_S)
    firsts = []
    for port in _PORTS:
        sends = port == _PORTS[0]
        ends = _main_ends(case, seen, port)
        own = [p for p in seen.packets[0] if p.ends == (ends if sends else ends[::-1])]
        first_s = capture.Stream(own, _COOKIE_BYTES[backend] if sends else 0).times_s[0]
        firsts.append(first_s if sends else first_s - delay_s)
    skew_s = abs(firsts[1] - firsts[0])
    if seen.trial["start_skew_s"] is None:
        print(f"  start skew: no figure; {skew_s * 1e3:.2f} ms by tcpdump")
        return
    off = abs(seen.trial["start_skew_s"] - skew_s) * 1e3
    what = f"start skew, of {skew_s * 1e3:.2f} ms by tcpdump: off by"
    table.row(what, off, bound_s * 1e3, "ms")


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
    return _state_came(case, seen, _TEST_START, receives)


def _state_came(case: Case, seen: Seen, state: bytes, at_receiver: bool) -> float:
    """Return when an end of the flow saw iperf3's control connection say a state."""
    return next(
        packet.time_s
        for packet in _ordered(case, seen)[at_receiver]
        if packet.tcp and packet.payload == state
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


def _datagrams(case: Case, seen: Seen) -> tuple[dict[int, Datagram], dict[int, Datagram]]:
    """Return each datagram as it left its sender and as it came to its receiver, by number."""
    ends = _main_ends(case, seen)
    if case.direction == "receive":
        ends = ends[::-1]
    sent, came = (
        {
            number: Datagram(packet.time_s, int.from_bytes(packet.payload[8:16], "big"))
            for packet in reversed(packets)  # The first of those that are there twice.
            if not packet.tcp and packet.ends == ends and packet.length == LENGTH_BYTES
            for number in [_number(case, packet.payload)]
        }
        for packets in _ordered(case, seen)
    )
    return sent, came


def _number(case: Case, payload: bytes) -> int:
    if case.backend == "simpleperf":
        return int.from_bytes(payload[:8], "big")
    # Seconds, microseconds, number from 1, of 32 or of 64 bits (iperf_udp.c).
    return int.from_bytes(payload[8:12], "big") or int.from_bytes(payload[8:16], "big")


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
    """Measure once; again where the link lost a packet that iperf3 waits for without end.

    And where something else spoilt it, unless it does so every time.
    """
    seen = None
    for _ in range(_TRIES):
        found, problem = _try(lab, case, profile, folder)
        seen = found or seen
        if found and not found.spoilt:
            return found
        print(f"  measured again: {(found.spoilt if found else problem).strip()}")
    if not seen:
        raise SystemExit(f"truth: {case}: {problem}")
    print(f"  judged all the same: {seen.spoilt}")
    return seen


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
        _spoilt(captures, naps.read_text()),
        tuple(list(capture.read(file.read_bytes())) for file in captures),  # type: ignore[arg-type]
        looks.read_text(),
        naps.read_text(),
        _resent(sender) - before[0],
        _missing(lab, case) - before[1],
    )
    return seen, ""


def _spoilt(captures: Sequence[Path], naps: str) -> str:
    """Return what makes a comparison worthless, if anything does."""
    for file in captures:
        words = file.with_suffix(".words").read_text().split()
        dropped = int(words[words.index("dropped") - 2])  # "0 packets dropped by kernel"
        if dropped:
            return f"tcpdump missed {dropped} packets"
    still_s = max(map(float, naps.splitlines()[1:-1]))
    return f"the machine stood still for {still_s * 1e3:.0f} ms" if still_s > _STILL_S else ""


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
    words = file.with_suffix(".words")
    # In its immediate mode nothing waits in the kernel for more to come, and is lost at the end.
    argv = [*host.prefix, "tcpdump", "-i", "eth0", "-w", "-", "-s", str(capture.SNAP_BYTES),
            "-B", "65536", "--immediate-mode", "--time-stamp-precision", "nano", "ip"]  # fmt: skip
    with (
        file.open("wb") as output,
        words.open("wb") as errors,
        _started(argv, output, errors) as process,
    ):
        while "listening on" not in words.read_text():
            if process.poll() is not None:
                raise SystemExit("truth: tcpdump does not listen")
            time.sleep(0.01)
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
