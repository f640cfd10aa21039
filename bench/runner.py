"""The runner: the time it adds to a trial beyond the tool's own, and its own CPU time.

Fifty one-second iperf3 trials on loopback. The time of a trial is measured from the end of one to
the end of the next, so everything between two trials counts. The tool's own time is that of the
same command run by itself, with its server already waiting.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import table

TRIALS = 50
PROFILE = f"""
[flows.main]
backend = "iperf3"
duration = "1s"
interval = "1s"
[run]
repeats = {TRIALS}
"""
LONG = """
[flows.main]
backend = "iperf3"
duration = "20s"
interval = "1s"
rate = "10Mbit"
"""


def main() -> None:
    table.head(f"runner ({TRIALS} one-second iperf3 trials on loopback)")
    if shutil.which("iperf3") is None:
        print("iperf3 is not here")
        return
    with tempfile.TemporaryDirectory() as folder:
        os.environ["BENCHCTL_STORE"] = str(Path(folder) / "runs.sqlite")
        events = _run(folder, PROFILE)
        ended = [e for e in events if e["event"] == "trial_ended"]
        flows = [e for e in events if e["event"] == "flow_ended"]
        times = [datetime.fromisoformat(e["finished"]).timestamp() for e in ended]
        steps = [b - a for a, b in pairwise(times)]
        own_s = statistics.median(_alone_s(flows[0]["command"]) for _ in range(9))
        added_s = statistics.median(steps) - own_s
        table.row("added to a trial, median", added_s, 0.15, "s")
        print(f"{'the tool by itself, median of 9':<58}{own_s:>12.3f} s")
        cpu = _cpu_ratio(folder)
        table.row("the runner's CPU while a trial runs, 1 s intervals", cpu * 100, 2, "%")


def _run(folder: str, text: str) -> list[dict[str, object]]:
    profile = Path(folder) / "p.toml"
    profile.write_text(text)
    argv = [sys.executable, "-m", "benchctl", "run", str(profile), "-q", "--events"]
    result = subprocess.run(argv, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in result.stdout.splitlines()]


def _alone_s(command: list[str]) -> float:
    port = command[command.index("-p") + 1]
    server = subprocess.Popen(
        ["iperf3", "-s", "-1", "-p", port, "-B", "127.0.0.1", "--forceflush"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stdout is not None
    for line in server.stdout:
        if "listening" in line:
            break
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    elapsed_s = time.perf_counter() - start
    server.stdout.read()
    server.wait()
    return elapsed_s


def _cpu_ratio(folder: str) -> float:
    """Return the CPU time of the runner's process per second, in the middle of a trial."""
    profile = Path(folder) / "long.toml"
    profile.write_text(LONG)
    argv = [sys.executable, "-m", "benchctl", "run", str(profile), "-q"]
    command = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    time.sleep(4)
    listed = subprocess.run(
        ["ps", "--ppid", str(command.pid), "-o", "pid="], capture_output=True, text=True, check=True
    )
    runner = int(listed.stdout.split()[0])
    before, start = _cpu_s(runner), time.monotonic()
    time.sleep(12)
    ratio = (_cpu_s(runner) - before) / (time.monotonic() - start)
    command.wait()
    return ratio


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
