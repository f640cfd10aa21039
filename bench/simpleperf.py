"""simpleperf and iperf3 on loopback, alternating: ``python bench/simpleperf.py``.

Each figure is the median of `ROUNDS` rounds. In a round the programs take turns, so that a busy
moment of the machine affects all of them. Every load ends by itself.
"""

from __future__ import annotations

import json
import os
import resource
import selectors
import shutil
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import table

ROUNDS = 5
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
    iperf3 = shutil.which("iperf3")
    print(f"\n{_version(_SIMPLEPERF)} and {_version((iperf3,)) if iperf3 else 'no iperf3'}")
    print(f"medians of {ROUNDS} rounds of {SECONDS:g} s; 1-minute load {os.getloadavg()[0]:.1f}")
    before = _host_ticks()
    _throughput(iperf3)
    _paced()
    _many_clients()
    _short_intervals()
    ticks = [now - then for now, then in zip(_host_ticks(), before, strict=True)]
    print(f"meanwhile the hypervisor took {ticks[7] / sum(ticks):.0%} of the cores' time")


def _host_ticks() -> list[int]:
    """Return the clock ticks of all cores since boot; the 8th are stolen (proc(5))."""
    return [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]


def _throughput(iperf3: str | None) -> None:
    datagrams = ("-u", "-l", str(DATAGRAM_BYTES))
    runs: dict[str, Callable[[], float]] = {
        "tcp": lambda: _simpleperf()["throughput_bps"],
        "tcp -Z": lambda: _simpleperf("-Z")["throughput_bps"],
    }
    if iperf3:
        runs["iperf3 tcp"] = lambda: _iperf3()["end"]["sum_received"]["bits_per_second"]
        runs["iperf3 udp"] = lambda: _iperf3_packets_s(_iperf3(*datagrams, "-b", "0"))
    found: dict[str, list[float]] = {name: [] for name in (*runs, "udp", "udp loss")}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            found[name].append(run())
        udp = _simpleperf(*datagrams, "-r", "unlimited")["directions"]["send"]
        found["udp"].append(udp["packets_received"] / udp["end_s"])
        found["udp loss"].append(udp["loss_ratio"])
    median = {name: statistics.median(values) for name, values in found.items()}

    table.head("simpleperf on loopback, beside iperf3")
    for name, scale, unit in (("tcp", 1e9, "Gbit/s"), ("tcp -Z", 1e9, "Gbit/s"),
                              ("iperf3 tcp", 1e9, "Gbit/s"), ("udp", 1e6, "M/s"),
                              ("iperf3 udp", 1e6, "M/s")):  # fmt: skip
        if name in median:
            spread = " ".join(f"{value / scale:.3g}" for value in sorted(found[name]))
            print(f"  {name:<12}{median[name] / scale:>8.3g} {unit:<8} of {spread}")
    if iperf3:
        what = "TCP, one stream, copying on both sides: times iperf3"
        table.row(what, median["tcp"] / median["iperf3 tcp"], 1.0, "x", at_least=True)
        what = "TCP, one stream, without copy: times iperf3"
        table.row(what, median["tcp -Z"] / median["iperf3 tcp"], 1.8, "x", at_least=True)
        what = f"UDP, {DATAGRAM_BYTES} bytes, received packets: times iperf3"
        table.row(what, median["udp"] / median["iperf3 udp"], 5.0, "x", at_least=True)
    table.row("UDP, unlimited: loss at the receiver", median["udp loss"] * 100, 5.0, "%")


def _paced() -> None:
    off, worst = [], []
    for _ in range(ROUNDS):
        rate = f"{PACED_BPS:.0f}"
        udp = _simpleperf("-u", "-l", str(DATAGRAM_BYTES), "-r", rate)["directions"]["send"]
        off.append(abs(udp["throughput_bps"] / PACED_BPS - 1) * 100)
        worst.append(udp["packet_gap_s"]["p99"] / udp["packet_gap_s"]["mean"])
    table.row("UDP at 100 Mbit/s: rate off by", statistics.median(off), 0.1, "%")
    table.row("UDP at 100 Mbit/s: p99 gap over mean gap", statistics.median(worst), 2.0, "x")


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
    took_s = statistics.median(seconds)
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
    with_bps, without_bps, missing = [], [], []
    streams = ("-P", str(STREAMS))
    for _ in range(ROUNDS):
        without_bps.append(_simpleperf(*streams)["throughput_bps"])
        told = _simpleperf(*streams, "-i", str(INTERVAL_S))
        with_bps.append(told["throughput_bps"])
        whole = [each for each in told["intervals"] if "throughput_bps" in each]
        missing.append(round(SECONDS / INTERVAL_S) * STREAMS - len(whole))
    what = f"{INTERVAL_S * 1e3:g} ms intervals on {STREAMS} streams: intervals lost"
    table.row(what, max(missing), 0, "")
    cost = 1 - statistics.median(with_bps) / statistics.median(without_bps)
    table.row("the same: throughput they cost", cost * 100, 10.0, "%")


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


def _iperf3(*flags: str) -> dict[str, Any]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = ["iperf3", "-s", "-1", "-B", "127.0.0.1", "-p", port, "--forceflush"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        while "listening" not in server.stdout.readline():
            pass
        client = ["iperf3", "-c", "127.0.0.1", "-p", port, "-t", f"{SECONDS:.0f}", "-J", *flags]
        done = subprocess.run(client, capture_output=True, text=True, check=True, timeout=60)
        server.communicate(timeout=10)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def _iperf3_packets_s(told: dict[str, Any]) -> float:
    whole = told["end"]["sum"]
    return float((whole["packets"] - whole["lost_packets"]) / whole["seconds"])


if __name__ == "__main__":
    print(table.machine())
    main()
