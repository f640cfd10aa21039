"""Planning 100,000 trials: time from a process's start to its end, and its peak memory.

Five axes of ten values on one iperf3 flow, so that all points have different parameters and each
must be checked. The bytecode is compiled before, as by an installer.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import table

PROFILE = """
[flows.main]
backend = "iperf3"

[axes]
duration = ["1s", "2s", "3s", "4s", "5s", "10s", "15s", "20s", "30s", "60s"]
streams = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
window = ["16K", "32K", "64K", "128K", "256K", "512K", "1M", "2M", "4M", "8M"]
rate = ["1Mbit", "2Mbit", "5Mbit", "10Mbit", "20Mbit", "50Mbit", "100Mbit", "200Mbit", "500Mbit",
  "1Gbit"]
congestion_control = ["reno", "cubic", "bbr", "vegas", "westwood", "htcp", "illinois", "bic",
  "dctcp", "yeah"]
"""
CHILD = """
import resource, sys
from benchctl.backends import installed
from benchctl.profile.load import load_profile
from benchctl.plan.plan import make_plan

plan = make_plan(load_profile(sys.argv[1]), installed())
assert len(plan) == 100_000
# Linux counts in kibibytes, macOS in bytes.
unit = 1 if sys.platform == "darwin" else 1024
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6)
"""
RUNS = 5
CHECKED = PROFILE.replace(', "5s", "10s", "15s", "20s", "30s", "60s"]', ', "5s"]').replace(
    "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]", "[1, 2]"
)
"""The profile with 10,000 points: 5 durations and 2 streams."""


def main() -> None:
    table.head(f"plan (100,000 trials, best of {RUNS})")
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder, "large.toml")
        profile.write_text(PROFILE)
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, "-c", CHILD, str(profile)]
        times_s = []
        for _ in range(RUNS + 1):  # the first compiles
            start = time.perf_counter()
            child = subprocess.run(command, env=environment, capture_output=True, check=True)
            times_s.append(time.perf_counter() - start)
        table.row("process start to end", min(times_s[1:]), 2.0, "s")
        table.row("peak memory", float(child.stdout), 200, "MB")
        profile.write_text(CHECKED)
        command = [sys.executable, "-m", "benchctl", "check", str(profile)]
        times_s = []
        for _ in range(RUNS + 1):
            start = time.perf_counter()
            subprocess.run(command, env=environment, check=True)
            times_s.append(time.perf_counter() - start)
        table.row("benchctl check, 10,000 points", min(times_s[1:]), 0.5, "s")


if __name__ == "__main__":
    main()
