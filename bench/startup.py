"""Start-up: ``benchctl --version`` beside a bare ``python -c pass``, paired, medians of 21."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

import table

RUNS = 21


def main() -> None:
    script = Path(sys.executable).with_name("benchctl")
    bare, version, help_text = [], [], []
    for _ in range(RUNS):
        bare.append(_time_s(sys.executable, "-c", "pass"))
        version.append(_time_s(str(script), "--version"))
        help_text.append(_time_s(str(script), "--help"))
    table.head(f"start-up (medians of {RUNS})")
    ratio = statistics.median(v / b for v, b in zip(version, bare, strict=True))
    table.row("benchctl --version / python -c pass", ratio, 3, "x")
    print(f"{'python -c pass':<58}{statistics.median(bare) * 1e3:>11.3g} ms")
    print(f"{'benchctl --version':<58}{statistics.median(version) * 1e3:>11.3g} ms")
    print(f"{'benchctl --help':<58}{statistics.median(help_text) * 1e3:>11.3g} ms")


def _time_s(*argv: str) -> float:
    start = time.perf_counter()
    subprocess.run(argv, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start
