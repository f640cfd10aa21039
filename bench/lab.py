"""Labs: whether emulated links keep their promises, their capacity, and their cost.

Needs ping and iperf3. Theoretical values come from the topology alone (`lab.topology.expect`).
"""

from __future__ import annotations

import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

import table

from benchctl.lab.lab import Lab
from benchctl.lab.topology.expect import path
from benchctl.lab.topology.model import Emulator, Topology
from benchctl.lab.topology.topology import build_topology, load_topology
from benchctl.lab.verify.verify import ceiling_bps
from benchctl.run.planned import Host
from benchctl.toml.source import parse_toml

PORTFOLIO = Path(__file__).parents[1] / "profiles/labs/portfolio.toml"
PATHS = {"L1": "h1-h7", "L2": "h7-h8", "L3": "h8-h9", "L1 L2": "h1-h4", "L2 L3": "h7-h9",
         "L1 L2 L3": "h1-h9"}  # fmt: skip
TRANSFER_S = 25
# The cases of the profile in which flows share one bottleneck.
SHARED = ("two pairs", "three pairs", "L2 shared")
REPEATS = 12
PACKETS = 20_000
LOSS = 0.02
BUILDS = 100
MANY_HOSTS, MANY_TIMES = 200, 5
IDLE_S = 10

CHAIN = """
[hosts]
a = {{}}
d = {{}}
[routers]
b = {{}}
c = {{}}
[links]
ab = {{ between = ["a", "b"], rate = "{rate}", delay = "{delay}", queue = {queue} }}
bc = {{ between = ["b", "c"], rate = "{rate}", delay = "{delay}", queue = {queue} }}
cd = {{ between = ["c", "d"], rate = "{rate}", delay = "{delay}", queue = {queue} }}
"""
PAIR = """
[hosts]
a = {{}}
b = {{}}
[links]
ab = {{ between = ["a", "b"], {settings} }}
"""
# Sends numbered datagrams slowly enough for any receiver; the last ones mark the end.
SEND = """
import socket, sys, time
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
start = time.monotonic()
for number in range({packets}):
    sock.sendto(b"x", ("b", 9000))
    if number % 20 == 0:
        time.sleep(max(0, start + number / 5000 - time.monotonic()))
for _ in range(100):
    sock.sendto(b"end", ("b", 9000))
"""
RECEIVE = """
import socket
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind(("", 9000))
print("ready", flush=True)
count = 0
while sock.recv(10) == b"x":
    count += 1
print(count)
"""


def main() -> None:
    for program in ("ping", "iperf3"):
        if shutil.which(program) is None:
            print(f"\nlab: {program} is not here")
            return
    _nine_hosts()
    _sharing()
    _capacity()
    _loss()
    _coming_and_going()
    _many_hosts()


def _nine_hosts() -> None:
    table.head(f"lab: nine hosts, links of 40, 30 and 20 Mbit/s (iperf3, {TRANSFER_S} s)")
    topology = load_topology(PORTFOLIO)
    with Lab.build(topology, Emulator.USER) as lab:
        for name, pair in PATHS.items():
            source, goal = pair.split("-")
            expected_s = path(topology, source, goal).rtt_s()
            rtts_s = _ping(lab.nodes[source], goal)
            least = (min(rtts_s) - expected_s) * 1e3
            typical = (statistics.median(rtts_s) - expected_s) * 1e3 / len(name.split())
            table.row(f"{name}: least RTT above theory", least, 0, "ms", at_least=True)
            table.row(f"{name}: median RTT above theory, per link", typical, 0.7, "ms")
        idle = _cpu_ratio(lab)
        for name, pair in PATHS.items():
            source, goal = pair.split("-")
            bound_bps = path(topology, source, goal).tcp_bps()
            goodput_bps = _transfer(lab.nodes[source], lab.nodes[goal], TRANSFER_S)
            table.row(f"{name}: TCP goodput of the bound ({bound_bps / 1e6:.1f} Mbit/s)",
                      goodput_bps / bound_bps * 100, 94, "%", at_least=True)  # fmt: skip
        table.row("all processes of the idle lab, of one core", idle * 100, 1, "%")


def _sharing() -> None:
    """Run the profile of pairs that share a link, as its users do.

    How Reno connections share a link in 25 s, five of their cycles, is partly chance. The one that
    loses more at the end of slow start begins with a smaller window, every common loss halves the
    difference, and a loss of only one increases it again. So a pair's share is the mean of many
    repeats, and Jain's index their median; the deviation of a single trial is printed beside them.
    """
    table.head(f"lab: pairs at the same time, means of {REPEATS} repeats of {TRANSFER_S} s")
    with tempfile.TemporaryDirectory() as folder:
        argv = [
            sys.executable, "-m", "benchctl", "run", "portfolio/a4-multiplexing", "--quiet",
            "--store", f"{folder}/runs.sqlite", "--format", "json", "--repeat", str(REPEATS),
            "--set", f"duration={TRANSFER_S}s", "--only", f"case={','.join(SHARED)}",
        ]  # fmt: skip
        told = json.loads(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)
    for case in SHARED:
        trials = [trial for trial in told["trials"] if trial["point"]["case"] == case]
        shares: dict[str, list[float]] = {}
        for flow in (flow for trial in trials for flow in trial["flows"]):
            if "throughput_bps" in flow["metrics"]:
                ratio = flow["metrics"]["throughput_bps"] / flow["expected"]["throughput_bps"]
                shares.setdefault(flow["name"], []).append(ratio)
        off = max(abs(statistics.mean(ratios) - 1) for ratios in shares.values())
        table.row(f"{case}: off the max-min share, the worst pair", off * 100, 15, "%")
        spread = max(statistics.stdev(ratios) for ratios in shares.values())
        single = max(abs(ratio - 1) for ratios in shares.values() for ratio in ratios)
        print(f"{'  of single trials: standard deviation':<58}{spread * 100:>12.3g} %")
        print(f"{'  of single trials: the worst':<58}{single * 100:>12.3g} %")
        jain = statistics.median(trial["fairness_jain"] for trial in trials)
        table.row(f"{case}: Jain's index, median", jain, 0.95, "", at_least=True)
    skew_s = max(trial["start_skew_s"] for trial in told["trials"])
    table.row("start skew, the worst", skew_s * 1e3, 20, "ms")


def _capacity() -> None:
    table.head("lab: capacity (iperf3, 5 s)")
    gigabit = _topology(PAIR.format(settings='rate = "1Gbit", delay = "100us", queue = 1000'))
    with Lab.build(gigabit, Emulator.USER) as lab:
        goodput_bps = _transfer(lab.nodes["a"], lab.nodes["b"], 5)
        table.row("one link of 1 Gbit/s", goodput_bps / 1e6, 900, "Mbit/s", at_least=True)
        table.row("frames missed", _missed(lab), 0, "")
    chain = _topology(CHAIN.format(rate="100Mbit", delay="2ms", queue=100))
    with Lab.build(chain, Emulator.USER) as lab:
        bound_bps = path(chain, "a", "d").tcp_bps()
        goodput_bps = _transfer(lab.nodes["a"], lab.nodes["d"], 5)
        table.row(f"three links of 100 Mbit/s, of {bound_bps / 1e6:.1f} Mbit/s",
                  goodput_bps / bound_bps * 100, 94, "%", at_least=True)  # fmt: skip
        table.row("frames missed", _missed(lab), 0, "")
    ceiling = ceiling_bps(Emulator.USER)
    print(f"{'ceiling: one link without a rate':<58}{ceiling / 1e6:>7.0f} Mbit/s")


def _loss() -> None:
    table.head(f"lab: loss of 2 % over {PACKETS:,} packets")
    lossy = _topology(PAIR.format(settings=f'loss = "{LOSS:.0%}"'))
    with Lab.build(lossy, Emulator.USER) as lab:
        receive = [*lab.nodes["b"].prefix, sys.executable, "-c", RECEIVE]
        with subprocess.Popen(receive, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()
            _run(lab.nodes["a"], sys.executable, "-c", SEND.format(packets=PACKETS))
            lost = PACKETS - int(process.stdout.read())
    # The normal approximation of the binomial: 2.576 standard deviations hold 99 %.
    interval = 2.576 * math.sqrt(PACKETS * LOSS * (1 - LOSS))
    table.row(f"lost ({lost}), away from {PACKETS * LOSS:.0f}", abs(lost - PACKETS * LOSS),
              round(interval), "")  # fmt: skip


def _coming_and_going() -> None:
    table.head(f"lab: nine hosts, {BUILDS} times up and down")
    topology = load_topology(PORTFOLIO)
    mark = f"bench-{uuid.uuid4()}"
    os.environ["BENCHCTL_MARK"] = mark
    ups_s, downs_s = [], []
    for _ in range(BUILDS):
        start_s = time.perf_counter()
        lab = Lab.build(topology, Emulator.USER)
        ups_s.append(time.perf_counter() - start_s)
        start_s = time.perf_counter()
        lab.close()
        downs_s.append(time.perf_counter() - start_s)
    left = _marked(mark)
    table.row("until it stands, median", statistics.median(ups_s), 2, "s")
    table.row("until it stands, worst", max(ups_s), 2, "s")
    table.row("until it is gone, worst", max(downs_s), 1, "s")
    table.row("processes left", left, 0, "")


def _many_hosts() -> None:
    """One command in a lab of many hosts on a switch, each with a link of its own to emulate."""
    table.head(f"lab: {MANY_HOSTS} hosts on one switch, {MANY_TIMES} times")
    mark = f"bench-{uuid.uuid4()}"
    os.environ["BENCHCTL_MARK"] = mark
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "many.toml")
        hosts = range(1, MANY_HOSTS + 1)
        file.write_text("\n".join([
            "[hosts]", *(f"h{n} = {{}}" for n in hosts), "[switches]", "s = {}", "[links]",
            *(f'l{n} = {{ between = ["h{n}", "s"], rate = "100Mbit", delay = "1ms" }}'
              for n in hosts),
        ]))  # fmt: skip
        pinging = ("exec", "--emulator", "user", str(file), "h1", "--", "ping", "-c", "1", "h2")
        pings = [_timed(*pinging) for _ in range(MANY_TIMES)]
        left = _marked(mark)
        shows = [_timed("show", str(file)) for _ in range(MANY_TIMES)]
    table.row("lab exec, a ping: median", statistics.median(took for took, _ in pings), 3, "s")
    table.row("lab show, median", statistics.median(took for took, _ in shows), 2, "s")
    table.row("processes left when lab exec has ended", left, 0, "")
    cpu_s = statistics.median(used for _, used in pings)
    print(f"{'  processor time of lab exec, median':<58}{cpu_s:>12.3g} s")


def _timed(*words: str) -> tuple[float, float]:
    """Run `benchctl lab`; returns how long it took, and the processor time that it used."""
    before, begun_s = os.times(), time.perf_counter()
    argv = [sys.executable, "-m", "benchctl", "lab", *words]
    subprocess.run(argv, capture_output=True, check=True)
    took_s, after = time.perf_counter() - begun_s, os.times()
    return took_s, (after[2] + after[3]) - (before[2] + before[3])


def _marked(mark: str) -> int:
    """Return how many other processes have the mark in their environment."""
    return sum(
        mark.encode() in _read(entry / "environ")
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and int(entry.name) != os.getpid()
    )


def _topology(text: str) -> Topology:
    return build_topology(parse_toml(text, Path("bench.toml")), {})


def _run(host: Host, *argv: str) -> str:
    result = subprocess.run([*host.prefix, *argv], capture_output=True, text=True, check=True)
    return result.stdout


def _ping(host: Host, goal: str) -> list[float]:
    output = _run(host, "ping", "-c", "25", "-i", "0.1", goal)
    return [float(line.split("time=")[1].split()[0]) / 1e3
            for line in output.splitlines() if "time=" in line]  # fmt: skip


def _transfer(source: Host, goal: Host, seconds: int) -> float:
    server = [*goal.prefix, "iperf3", "-s", "-1", "--forceflush"]
    with subprocess.Popen(server, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while "listening" not in process.stdout.readline():
            pass
        # One second omitted: TCP's start does not show the link's capacity.
        output = _run(source, "iperf3", "-c", goal.address, "-t", str(seconds), "-O", "1", "-J")
        process.stdout.read()
    bps: float = json.loads(output)["end"]["sum_received"]["bits_per_second"]
    return bps


def _missed(lab: Lab) -> int:
    counters = [
        lab.counters(link.name, end.node)
        for link in lab.topology.links.values()
        for end in link.ends
    ]
    return sum(one.missed + one.refused for one in counters if one)


def _cpu_ratio(lab: Lab) -> float:
    children = Path(f"/proc/{lab.keeper_pid}/task/{lab.keeper_pid}/children").read_text().split()
    processes = [lab.keeper_pid, *map(int, children)]

    def used_s() -> float:
        fields = [_read(Path(f"/proc/{pid}/stat")).rsplit(b")", 1)[1].split() for pid in processes]
        return sum(int(one[11]) + int(one[12]) for one in fields) / os.sysconf("SC_CLK_TCK")

    before_s = used_s()
    time.sleep(IDLE_S)
    return (used_s() - before_s) / IDLE_S


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""


if __name__ == "__main__":
    main()
