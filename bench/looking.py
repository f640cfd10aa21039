"""Measures in a lab while tcpdump, ss and a bare thread look on."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import capture
from seen import LENGTH_BYTES, Case, Seen

from benchctl.lab.lab import Lab
from benchctl.run.planned import Host

SECONDS = 3.0
# A bare thread that wakes later than this tells that the machine stood still.
_STILL_S = 0.02
_TRIES = 3

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


def profile(lab: Lab, case: Case) -> str:
    text = PROFILE.format(
        host=lab.nodes["b"].address, port=7000, backend=case.backend, direction=case.direction,
        protocol=case.protocol, seconds=SECONDS, omit=case.omit_s, interval=case.interval_s,
    )  # fmt: skip
    return text + (UDP if case.protocol == "udp" else "")


def run(lab: Lab, case: Case, profile: str, folder: Path) -> Seen:
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
def server(host: Host, backend: str, port: int) -> Iterator[None]:
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
