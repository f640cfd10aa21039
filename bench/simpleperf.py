"""simpleperf beside iperf3 on loopback: ``python bench/simpleperf.py``.

On two cores every program has two speeds, by where the scheduler puts its ends. So each is measured
twice: with both ends on one core, by the data that one second of both ends' processor time moves
(medians; the spread is a few per cent), and free, by the best of `FREE_ROUNDS` rounds. In a round
the programs take turns, so that a busy moment affects all of them. Every load ends by itself.

docs/evidence/simpleperf.md says where the time goes.

``BENCH_IPERF3`` is the path of an iperf3 from 3.21 on, for the comparison with its fastest ways
(``-Z --skip-rx-copy``, ``--gsro``).
"""

from __future__ import annotations

import json
import os
import resource
import selectors
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import table

from benchctl.hosts.sent.ports import free_ports

ROUNDS = 5
PINNED_ROUNDS = 5
FREE_ROUNDS = 10
SECONDS = 2.0
PACED_BPS = 100e6
DATAGRAM_BYTES = 1448
CLIENTS = 1000
CLIENT_BYTES = 1_000_000
STREAMS = 8
INTERVAL_S = 0.01

_TOOL = Path(__file__).parents[1] / "plugins/benchctl_simpleperf/simpleperf/__main__.py"
_SIMPLEPERF = (sys.executable, "-I", "-S", str(_TOOL))


def main() -> None:
    """Measure and print the table."""
    iperf3, new = shutil.which("iperf3"), os.environ.get("BENCH_IPERF3")
    versions = [_version((program,)) for program in (iperf3, new) if program]
    print(f"\n{_version(_SIMPLEPERF)} and {', '.join(versions) or 'no iperf3'}")
    print(f"medians of {ROUNDS} rounds of {SECONDS:g} s; 1-minute load {os.getloadavg()[0]:.1f}")
    before = _host_ticks()
    _throughput(iperf3, new)
    _paced()
    _many_clients()
    _short_intervals()
    ticks = [now - then for now, then in zip(_host_ticks(), before, strict=True)]
    print(f"meanwhile the hypervisor took {ticks[7] / sum(ticks):.0%} of the cores' time")


def _host_ticks() -> list[int]:
    """Return the clock ticks of all cores since boot; the 8th are stolen (proc(5))."""
    return [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]


class Speed(NamedTuple):
    """One measurement: how much arrived in a second, and the processor time of both ends for it.

    ``moved`` are bits (TCP) or datagrams (UDP) a second, ``cpu`` cores, ``loss`` a ratio.
    """

    moved: float
    cpu: float
    loss: float = 0.0


Run = Callable[[], Speed]
_DATAGRAMS = ("-u", "-l", str(DATAGRAM_BYTES))


def _throughput(iperf3: str | None, new: str | None) -> None:
    tcp: dict[str, Run] = {
        "simpleperf": lambda: _simpleperf_tcp(),
        "simpleperf -Z": lambda: _simpleperf_tcp("-Z"),
    }
    udp: dict[str, Run] = {"simpleperf": _simpleperf_udp}
    if iperf3:
        tcp["iperf3"] = lambda: _iperf3_tcp(iperf3)
    if new:
        tcp["new iperf3"] = lambda: _iperf3_tcp(new)
        tcp["new iperf3 -Z"] = lambda: _iperf3_tcp(new, "-Z")
        tcp["new iperf3 -Z --skip-rx-copy"] = lambda: _iperf3_tcp(new, "-Z", "--skip-rx-copy")
        udp["new iperf3 --gsro"] = lambda: _iperf3_udp(new, "--gsro")
    with _one_core():
        pinned = _rounds(tcp, PINNED_ROUNDS)
    free, datagrams = _rounds(tcp, FREE_ROUNDS), _rounds(udp, FREE_ROUNDS)

    per_core = {name: [one.moved / one.cpu for one in runs] for name, runs in pinned.items()}
    by_core = _shown("both ends on one core, per core of both", per_core, 1e9, "Gbit/s", median)
    best = _shown("free", _moved(free), 1e9, "Gbit/s", max)
    packets = _shown("free, datagrams that arrived", _moved(datagrams), 1e6, "M/s", max)
    table.head("simpleperf on loopback, beside iperf3")
    for where, figures, copying, zero in (
        ("one core", by_core, 1.1, 2.0),
        ("free", best, 1.3, 1.7),
    ):
        if iperf3:
            what = f"TCP copying, {where}: times iperf3"
            table.row(what, figures["simpleperf"] / figures["iperf3"], copying, "x", at_least=True)
        if new:
            fastest = max(figures[name] for name in figures if name.startswith("new"))
            what = f"TCP without copy, {where}: times the new iperf3's best"
            table.row(what, figures["simpleperf -Z"] / fastest, zero, "x", at_least=True)
    if new:
        what = f"UDP, {DATAGRAM_BYTES} B, free: times the new iperf3 --gsro"
        ratio = packets["simpleperf"] / packets["new iperf3 --gsro"]
        table.row(what, ratio, 0.9, "x", at_least=True)
    fastest_run = max(datagrams["simpleperf"], key=lambda one: one.moved)
    table.row("the same: loss at the receiver", fastest_run.loss * 100, 2.0, "%")


def _rounds(runs: Mapping[str, Run], count: int) -> dict[str, list[Speed]]:
    found: dict[str, list[Speed]] = {name: [] for name in runs}
    for _ in range(count):
        for name, run in runs.items():
            found[name].append(run())
    return found


def _moved(found: Mapping[str, Sequence[Speed]]) -> dict[str, list[float]]:
    return {name: [one.moved for one in runs] for name, runs in found.items()}


def _shown(
    what: str,
    found: Mapping[str, list[float]],
    scale: float,
    unit: str,
    chosen: Callable[[list[float]], float],
) -> dict[str, float]:
    """Print the figures of all rounds; returns the one that counts of each program."""
    print(f"\n{what}, {unit}: {chosen.__name__} of the rounds")
    for name, values in found.items():
        rounds = " ".join(f"{value / scale:.3g}" for value in sorted(values))
        print(f"  {name:<30}{chosen(values) / scale:>8.3g} of {rounds}")
    return {name: chosen(values) for name, values in found.items()}


@contextmanager
def _one_core() -> Iterator[None]:
    """Let what is started meanwhile run on one core only."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def _simpleperf_tcp(*flags: str) -> Speed:
    told = _simpleperf(*flags)
    return Speed(told["throughput_bps"], _cores(told))


def _simpleperf_udp() -> Speed:
    told = _simpleperf(*_DATAGRAMS, "-r", "unlimited")
    way = told["directions"]["send"]
    return Speed(way["packets_received"] / way["end_s"], _cores(told), way["loss_ratio"])


def _cores(told: Mapping[str, Any]) -> float:
    return float(sum(end["process_ratio"] for end in told["cpu"].values()))


def _iperf3_tcp(program: str, *flags: str) -> Speed:
    end = _iperf3(program, *flags)["end"]
    return Speed(end["sum_received"]["bits_per_second"], _iperf3_cores(end))


def _iperf3_udp(program: str, *flags: str) -> Speed:
    end = _iperf3(program, *_DATAGRAMS, "-b", "0", *flags)["end"]
    whole = end["sum"]
    arrived = whole["packets"] - whole["lost_packets"]
    loss = whole["lost_packets"] / whole["packets"]
    return Speed(arrived / whole["seconds"], _iperf3_cores(end), loss)


def _iperf3_cores(end: Mapping[str, Any]) -> float:
    told = end["cpu_utilization_percent"]
    return float(told["host_total"] + told["remote_total"]) / 100


def _paced() -> None:
    off, worst = [], []
    for _ in range(ROUNDS):
        rate = f"{PACED_BPS:.0f}"
        udp = _simpleperf("-u", "-l", str(DATAGRAM_BYTES), "-r", rate)["directions"]["send"]
        off.append(abs(udp["throughput_bps"] / PACED_BPS - 1) * 100)
        worst.append(udp["packet_gap_s"]["p99"] / udp["packet_gap_s"]["mean"])
    table.row("UDP at 100 Mbit/s: rate off by", median(off), 0.1, "%")
    table.row("UDP at 100 Mbit/s: p99 gap over mean gap", median(worst), 2.0, "x")


def _many_clients() -> None:
    answered, peak_mb, seconds = [], [], []
    for _ in range(ROUNDS):
        with _server("--max-clients", str(CLIENTS + 24)) as (server, port):
            start_s = time.monotonic()
            answered.append(_plain_clients(port))
            seconds.append(time.monotonic() - start_s)
            status = Path(f"/proc/{server.pid}/status").read_text()
        peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        peak_mb.append(int(peak.split()[1]) / 1024)
    what = f"{CLIENTS} plain clients of 1 MB at once: answered"
    table.row(what, min(answered), CLIENTS, "", at_least=True)
    took_s = median(seconds)
    table.row(f"the same in {took_s:.1f} s: server's peak memory", max(peak_mb), 200.0, "MB")


def _plain_clients(port: int) -> int:
    """Connect all clients, then let them send; returns how many were answered.

    The server answers none that it rejects.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(hard, CLIENTS + 64)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    payload = memoryview(bytes(CLIENT_BYTES) + b"BYE")
    waiting = selectors.DefaultSelector()
    sent: dict[socket.socket, int] = {}
    for _ in range(CLIENTS):
        sock = socket.create_connection(("127.0.0.1", port))
        sock.setblocking(False)
        sent[sock] = 0
        waiting.register(sock, selectors.EVENT_WRITE)
    answered = 0
    while sent:
        ready = waiting.select(30)
        if not ready:
            break
        for key, events in ready:
            client: Any = key.fileobj
            try:
                if events & selectors.EVENT_WRITE:
                    sent[client] += client.send(payload[sent[client] : sent[client] + 65536])
                    if sent[client] == len(payload):
                        waiting.modify(client, selectors.EVENT_READ)
                    continue
                answered += client.recv(100) == b"ACK: BYE"
            except ConnectionError:
                pass
            waiting.unregister(client)
            client.close()
            del sent[client]
    waiting.close()
    return answered


def _short_intervals() -> None:
    """Compare intervals of 10 ms with those of 1 s, on one core for both ends.

    What the short ones take is the processor time beyond that for the same bytes with long ones: on
    a core without other work, that share of the throughput. Free rounds differ by more, but more
    intervals may be lost there, so they are counted there.
    """
    streams = ("-P", str(STREAMS))
    short = (*streams, "-i", str(INTERVAL_S))
    missing = []
    for _ in range(ROUNDS):
        told = _simpleperf(*short)["intervals"]
        whole = [each for each in told if "throughput_bps" in each]
        missing.append(round(SECONDS / INTERVAL_S) * STREAMS - len(whole))
    what = f"{INTERVAL_S * 1e3:g} ms intervals on {STREAMS} streams: intervals lost"
    table.row(what, max(missing), 0, "")
    runs = {"short": lambda: _simpleperf_tcp(*short), "long": lambda: _simpleperf_tcp(*streams)}
    with _one_core():
        found = _rounds(runs, PINNED_ROUNDS)
    cpu_per_bit = median(one.cpu / one.moved for one in found["long"])
    cost = median(one.cpu - one.moved * cpu_per_bit for one in found["short"])
    table.row("the same: share of the core they take, of both ends", cost * 100, 10.0, "%")


# --- programs -------------------------------------------------------------------------------


def _version(command: tuple[str, ...]) -> str:
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    return " ".join(done.stdout.split()[:2])


@contextmanager
def _server(*flags: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    command = [*_SIMPLEPERF, "-s", "-p", "0", "--events", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = json.loads(process.stdout.readline())["port"]
        # It reports each measurement, and would block on a full pipe in the middle of the next.
        reader = threading.Thread(target=process.stdout.read)
        reader.start()
        try:
            yield process, port
        finally:
            process.terminate()
            reader.join()


def _simpleperf(*flags: str) -> dict[str, Any]:
    with _server("--one-off", "--max-rate", "unlimited") as (_, port):
        command = [*_SIMPLEPERF, "-c", "-p", str(port), "-t", str(SECONDS), "--json", *flags]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def _iperf3(program: str, *flags: str) -> dict[str, Any]:
    port = str(next(free_ports("127.0.0.1", 5201)))
    command = [program, "-s", "-1", "-B", "127.0.0.1", "-p", port, "--forceflush"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        while "listening" not in server.stdout.readline():
            pass
        client = [program, "-c", "127.0.0.1", "-p", port, "-t", f"{SECONDS:.0f}", "-J", *flags]
        done = subprocess.run(client, capture_output=True, text=True, check=True, timeout=60)
        server.communicate(timeout=10)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


if __name__ == "__main__":
    print(table.machine())
    main()
