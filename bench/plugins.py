"""Plugins: listing 50 of them, and what a trial costs with one from elsewhere.

The plugins are packages as pip installs them, in a directory of PYTHONPATH. The one that measures
is the bundled ping under another name: so only where a backend comes from differs.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import table

INSTALLED = 50
RUNS = 21
TRIALS = 40
ROUNDS = 7
LISTED_S = 0.25
# Pairs of runs with one backend differ by this much on a quiet machine.
NOISE_S = 0.001
STRANGER = """
from benchctl_ping.backend import Ping

class Stranger(Ping):
    name = "stranger"

BACKEND = Stranger()
"""
PROFILE = f"""
[flows.main]
backend = "ping"
count = 1
[run]
repeats = {TRIALS}
"""
Environment = dict[str, str]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "installed")
        place.mkdir()
        for number in range(INSTALLED - 1):
            _install(place, f"plugin{number:02}", "raise AssertionError('this was only listed')")
        _install(place, "stranger", STRANGER)
        environment = {
            **os.environ,
            "PYTHONPATH": str(place),
            "PYTHONPYCACHEPREFIX": f"{folder}/compiled",  # an installed program is compiled already
            "BENCHCTL_STORE": f"{folder}/runs.sqlite",
        }
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        _listing(environment)
        Path(folder, "p.toml").write_text(PROFILE)
        _trials(folder, environment)


def _install(place: Path, name: str, code: str) -> None:
    """Write a package with a backend, as an installer leaves it."""
    Path(place, f"of_{name}.py").write_text(code)
    information = Path(place, f"of_{name}-1.0.dist-info")
    information.mkdir()
    Path(information, "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: of_{name}\nVersion: 1.0\n"
    )
    Path(information, "entry_points.txt").write_text(
        f"[benchctl.backends]\n{name} = of_{name}:BACKEND\n"
    )


def _listing(environment: Environment) -> None:
    argv = [str(Path(sys.executable).with_name("benchctl")), "backends", "--names"]
    spent = [_spent(argv, environment) for _ in range(RUNS + 1)][1:]  # the first compiles
    names = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True)
    assert len(names.stdout.splitlines()) > INSTALLED
    table.head(f"plugins (medians of {RUNS})")
    wall_s, cpu_s = (statistics.median(each) for each in zip(*spent, strict=True))
    table.row(f"backends --names, {INSTALLED} plugins installed", wall_s, LISTED_S, "s")
    print(f"{'  of it CPU time':<58}{cpu_s:>12.3f} s")


def _trials(folder: str, environment: Environment) -> None:
    program = [sys.executable, "-m", "benchctl", "run", "-q", f"{folder}/p.toml"]
    ways = {"bundled": program, "stranger": [*program, "--set", "backend=stranger"]}
    pairs = [
        {way: _spent(argv, environment) for way, argv in ways.items()} for _ in range(ROUNDS + 1)
    ][1:]
    table.head(f"plugins (a trial of one ping; medians of {ROUNDS} runs of {TRIALS} trials)")
    for which, what in enumerate(("wall time", "CPU time")):
        bundled_s = statistics.median(pair["bundled"][which] for pair in pairs) / TRIALS
        print(f"{f'with the bundled backend, {what}':<58}{bundled_s * 1e3:>11.3g} ms")
        more_s = statistics.median(
            (pair["stranger"][which] - pair["bundled"][which]) / TRIALS for pair in pairs
        )
        table.row("  more with one from elsewhere", more_s * 1e3, NOISE_S * 1e3, "ms")


def _spent(argv: list[str], environment: Environment) -> tuple[float, float]:
    """Return the wall time and the CPU time of a command, in seconds."""
    before, start_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(argv, stdout=subprocess.DEVNULL, check=True, env=environment)
    wall_s = time.perf_counter() - start_s
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall_s, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
