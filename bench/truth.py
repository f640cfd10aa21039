"""Compares the figures with what tcpdump, ss, nstat and the emulator counted.

A lab has two hosts and one link that loses packets; tcpdump runs at both ends, which share a clock.
simpleperf and iperf3 run under benchctl, over TCP and UDP, both ways, with and without an omitted
part, in short and long intervals. Each figure that benchctl reports is compared with one of the
same meaning. A run in which the machine stalled, or tcpdump missed packets, is repeated. Needs
tcpdump, ss and nstat, and iperf3 for its part.
"""

from __future__ import annotations

import itertools
import math
import os
import shutil
import statistics
import tempfile
from bisect import bisect_left, bisect_right
from collections import defaultdict
from pathlib import Path

import capture
import table
from looking import SECONDS, profile, run, server
from seen import (
    COOKIE_BYTES,
    PORTS,
    SECOND_0,
    TEST_END,
    Case,
    Datagram,
    Seen,
    began,
    cwnds,
    datagrams,
    is_of_sender,
    main_ends,
    nearest_rank,
    ordered,
    resent_in_all,
    state_came,
    streams,
)

from benchctl.lab.lab import Lab
from benchctl.lab.topology.topology import build_topology
from benchctl.toml.source import parse_toml

OMIT_S = 1.0
# iperf3 takes no interval below 0.1 s.
INTERVALS_S = {"simpleperf": (0.025, 1.0), "iperf3": (0.1, 1.0)}
LATE_S = 0.002
# Four looks of ss, two on either side of a reading, tell of its window when they are so near.
_NEAR_S = 0.1
# iperf3's error of its second 0 and its end (docs/output-reference.md).
_IPERF3_S = 0.006
_NEEDED = ("tcpdump", "ss", "nstat", "iperf3")

_DELAY_S = 0.01

LINK = """
[hosts]
a = {}
b = {}
[links]
ab = { between = ["a", "b"], rate = "10Mbit", delay = "10ms", queue = 40, loss = "0.3%" }
"""
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
            with server(lab.nodes["b"], backend, 7000), server(lab.nodes["b"], backend, 7001):
                for protocol, direction, omit_s, interval_s in itertools.product(
                    ("tcp", "udp"), ("send", "receive"), (0.0, OMIT_S), INTERVALS_S[backend]
                ):
                    case = Case(backend, protocol, direction, omit_s, interval_s)
                    table.head(f"truth: {case}")
                    seen = run(lab, case, profile(lab, case), Path(folder))
                    (_judge_tcp if protocol == "tcp" else _judge_udp)(case, seen)
                _judge_start(lab, backend, Path(folder))


def _judge_tcp(case: Case, seen: Seen) -> None:
    figures = seen.trial["flows"][0]["metrics"]
    sender, receiver = streams(case, seen)
    mss_bytes = seen.trial["flows"][0]["effective"].get("mss_bytes", 1448)
    zero_s = began(case, seen, receives=True) + case.omit_s
    length_s = figures["bytes_received"] * 8 / figures["throughput_bps"]
    arrived = receiver.bytes_by(zero_s + length_s)
    if case.omit_s:  # Otherwise the first packet, which begins the time, counts as well.
        arrived -= receiver.bytes_by(zero_s)
    off = abs(figures["bytes_received"] / arrived - 1) * 100
    table.row(f"bytes_received, of {arrived:,} seen by tcpdump: off by", off, 0.1, "%")
    start_s = began(case, seen, receives=False) + case.omit_s
    resent = sender.resent_within(start_s, start_s + SECONDS, mss_bytes)
    off = abs(figures["retransmits"] - resent)
    table.row(f"retransmits, of {resent} seen by tcpdump: off by", off, 0, "")
    others = resent_in_all(case, seen, mss_bytes) - resent
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
    port = main_ends(case, seen)[0][1]
    looks = list(cwnds(seen.looks, port))
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
        sum(is_of_sender(case, packet) for packet in packets) for packets in ordered(case, seen)
    )
    off = abs(sent - came - seen.missing)
    table.row(f"packets missing, of {seen.missing} by the emulator: off by", off, 0, "")


def _judge_udp(case: Case, seen: Seen) -> None:
    if case.backend == "simpleperf":
        _judge_stamped(seen, *datagrams(case, seen))
    else:
        _judge_unstamped(case, seen, *datagrams(case, seen))
    _judge_missing(case, seen)


def _judge_stamped(seen: Seen, at_sender: dict[int, Datagram], came: dict[int, Datagram]) -> None:
    """Judge simpleperf, whose datagrams say themselves whether they are of the measured part."""
    figures = seen.trial["flows"][0]["metrics"]
    sent, lost = figures["packets_sent"], figures["packets_lost"]
    left = {number: one for number, one in at_sender.items() if one.stamp_ns >= SECOND_0}
    what = f"received + lost, of {sent:,.0f} sent: off by"
    table.row(what, abs(figures["packets_received"] + lost - sent), 0, "")
    table.row(f"sent, of {len(left):,} seen by tcpdump: off by", abs(sent - len(left)), 0, "")
    missing = len(left.keys() - came.keys())
    table.row(f"lost, of {missing} missing by tcpdump: off by", abs(lost - missing), 0, "")
    # As it is defined: from the stamp, which a datagram bears, to the kernel's time of arrival.
    transits_s = sorted(
        one.time_s - (one.stamp_ns - SECOND_0) / 1e9
        for number, one in came.items()
        if number in left
    )
    truth_s = nearest_rank(transits_s, 0.95) - nearest_rank(transits_s, 0.5)
    off = abs(figures["pdv_p95_p50_s"] / truth_s - 1) * 100
    table.row(f"pdv_p95_p50, of {truth_s * 1e3:.4g} ms by tcpdump: off by", off, 1, "%")


def _judge_unstamped(
    case: Case, seen: Seen, at_sender: dict[int, Datagram], came: dict[int, Datagram]
) -> None:
    """Judge iperf3: by all that was sent, or by what went by in the time that it measured.

    Where a timer of iperf3 begins or ends what it counts, nobody else knows when that was: then
    tcpdump has to have seen the same within `_IPERF3_S` of the time that was asked for.
    """
    flow = seen.trial["flows"][0]
    # What cannot be, and that nothing replaces, counts nowhere.
    wrong = {name for name, how in flow["broken"].items() if how["rejected"] is None}
    figures = {name: one for name, one in flow["metrics"].items() if name not in wrong}
    sent, received, lost = (
        figures.get(f"packets_{what}", math.nan) for what in ("sent", "received", "lost")
    )
    if case.omit_s:
        zero_s = began(case, seen, receives=False) + case.omit_s
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
    zero_s = began(case, seen, receives=True) + case.omit_s
    end_s = zero_s + SECONDS
    if case.direction == "send":
        end_s = state_came(case, seen, TEST_END, at_receiver=True)
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
    seen = run(lab, case, profile(lab, case) + second, folder)
    # What comes from a host with another clock left it a path's delay before, of which iperf3 shows
    # nothing where it receives (docs/output-reference.md).
    delay_s, bound_s = (_DELAY_S, 0.001) if backend == "simpleperf" else (0.0, _IPERF3_S)
    firsts = []
    for port in PORTS:
        sends = port == PORTS[0]
        ends = main_ends(case, seen, port)
        own = [p for p in seen.packets[0] if p.ends == (ends if sends else ends[::-1])]
        first_s = capture.Stream(own, COOKIE_BYTES[backend] if sends else 0).times_s[0]
        firsts.append(first_s if sends else first_s - delay_s)
    skew_s = abs(firsts[1] - firsts[0])
    if seen.trial["start_skew_s"] is None:
        print(f"  start skew: no figure; {skew_s * 1e3:.2f} ms by tcpdump")
        return
    off = abs(seen.trial["start_skew_s"] - skew_s) * 1e3
    what = f"start skew, of {skew_s * 1e3:.2f} ms by tcpdump: off by"
    table.row(what, off, bound_s * 1e3, "ms")


if __name__ == "__main__":
    print(table.machine())
    main()
