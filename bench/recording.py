"""Recording packets: what the recorder loses, and what it costs the lab that it records."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import table

LAB = """
[hosts]
a = {}
b = {}
[links]
ab = { between = ["a", "b"], delay = "1ms", queue = 4000 }
"""
PROFILE = """
[lab]
topology = "pair.toml"
verify = false
[flows.main]
backend = "simpleperf"
from = "a"
to = "b"
"""
# 500 Mbit/s of frames that carry 1500 bytes: 1472 of payload.
UDP = """
protocol = "udp"
length = "1472B"
rate = "486Mbit"
duration = "10s"
capture = true
"""
CEILING = """
duration = "5s"
"""
ROUNDS = 5


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        (at / "pair.toml").write_text(LAB)
        table.head("recording, 500 Mbit/s of 1500-byte packets, snaplen 96, both ends")
        flow = _run(at, UDP)["flows"][0]
        print(f"  {flow['metrics']['throughput_bps'] / 1e6:.0f} Mbit/s arrived")
        for one in flow["captures"]:
            table.row(f"lost by the recorder of {one['host']}", one["dropped"], 0, "")
        received = flow["captures"][-1]["packets"] - flow["metrics"]["packets_received"]
        table.row("recorded beside the datagrams that arrived", received, 0, "", at_least=True)
        table.head("recording, TCP at the lab's ceiling")
        late_s: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(ROUNDS):
            for recorded, found in late_s.items():
                trial = _run(at, CEILING + "capture = true\n" * recorded)
                flow = trial["flows"][0]
                lost = sum(one["dropped"] for one in flow["captures"])
                rate_bps = flow["metrics"]["throughput_bps"]
                found.append(max(link["late_max_s"] for link in trial["links"]))
                how = f"{'recorded' if recorded else 'plain':>8}"
                print(f"  {how}: {rate_bps / 1e6:.0f} Mbit/s, {lost} lost by the recorders")
        without_s, with_s = (statistics.median(late_s[recorded]) for recorded in (False, True))
        print(f"  greatest lateness, median: {without_s * 1e3:.2f}, {with_s * 1e3:.2f} ms")
        table.row("the emulator's lateness, ratio", with_s / without_s, 1.1, "")


def _run(folder: Path, flow: str) -> dict[str, Any]:
    """Measure a flow; returns its trial as JSON has it."""
    (folder / "profile.toml").write_text(PROFILE + flow)
    command = [sys.executable, "-m", "benchctl", "run", "profile.toml", "--quiet"]
    done = subprocess.run(
        [*command, "--format", "json"], cwd=folder, stdout=subprocess.PIPE, check=True,
        env={**os.environ, "BENCHCTL_STORE": str(folder / "store")},
    )  # fmt: skip
    trial: dict[str, Any] = json.loads(done.stdout)["trials"][0]
    return trial


if __name__ == "__main__":
    print(table.machine())
    main()
