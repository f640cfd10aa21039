"""Prints what profiles measure beside theory: ``profiles.py kernel,user [PROFILE...]``.

A Markdown table: each of the profiles of `_PROFILES` or of those named, shortened, with these
emulators.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

_PING_FIRST = (
    "flows.ping.count=10",
    "flows.tcp.delay=2500ms",
    "flows.tcp.duration=5s",
)
_PROFILES = {
    "portfolio/a2-links": _PING_FIRST,
    "portfolio/a3-paths": _PING_FIRST,
    "portfolio/a4-multiplexing": ("defaults.duration=5s",),
    "congestion-control/b1-one-pair": ("flows.main.duration=5s",),
    "tcp-options/e6-walking-away": (),
}
_SHOWN = {"throughput_bps": ("Mbit/s", 1e-6), "rtt_s": ("ms", 1e3)}


def _measured(profile, settings, emulator):
    """Return figures by point, flow and metric, what theory says of each, and notes."""
    with tempfile.TemporaryDirectory() as scratch:
        output = Path(scratch, "run.json")
        words = [word for setting in settings for word in ("--set", setting)]
        argv = [
            "benchctl", "run", "-q", profile, "--set", f"lab.emulator={emulator}", *words,
            "--store", f"{scratch}/store", "--format", "json", "-o", output,
        ]  # fmt: skip
        ended = subprocess.run(argv, stderr=subprocess.PIPE, text=True, check=False)
        if not output.exists():
            return {}, {}, [ended.stderr.strip()]
        document = json.loads(output.read_text())

    measured = {}
    theory = {}
    notes = ended.stderr.strip().splitlines()
    for trial in document["trials"]:
        point = tuple(map(str, trial["point"].values()))
        if trial["links_kept"] is False:
            notes.append(f"{', '.join(point)}: links not kept")
        for flow in trial["flows"]:
            for metric in _SHOWN:
                row = (*point, flow["name"], metric)
                theory[row] = (flow["expected"] or {}).get(metric)
                value = (flow["metrics"] or {}).get(metric)
                measured[row] = value["mean"] if isinstance(value, dict) else value
    return measured, theory, notes


def main(emulators, profiles):
    print(f"| profile | point, flow | unit | theory | {' | '.join(emulators)} |", flush=True)
    print("|---|---|---|---|" + "---|" * len(emulators))
    notes = []
    for profile in profiles or _PROFILES:
        settings = _PROFILES[profile]
        figures = {}
        theory = {}
        for emulator in emulators:
            figures[emulator], expected, said = _measured(profile, settings, emulator)
            theory |= expected
            notes += [f"{profile}, {emulator}: {line}" for line in said]
        for row in theory:
            unit, scale = _SHOWN[row[-1]]
            values = [found.get(row) for found in (theory, *figures.values())]
            if not any(values[1:]):
                continue
            cells = ["-" if value is None else f"{value * scale:.2f}" for value in values]
            print(f"| {profile} | {', '.join(map(str, row[:-1]))} | {unit} | {' | '.join(cells)} |")
        sys.stdout.flush()
    print("\n".join(notes))


if __name__ == "__main__":
    main(sys.argv[1].split(","), sys.argv[2:])
