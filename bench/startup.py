"""Start-up of the commands, paired, medians of 21: ``--version`` beside ``python -c pass``.

The others are in CPU time, which other load disturbs least. ``BENCH_BEFORE=/path/benchctl`` names
the program of another version, such as the last release's: each row is the time beyond its own.
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

RUNS = 21
BEFORE = "BENCH_BEFORE"
STORE = "BENCHCTL_STORE"
Environment = dict[str, str]
# The most that a command may take beyond the version before.
MORE_S = 0.025
RUN = "run quickstart -q --only streams=1 --repeat 1 --set duration=100ms"
COMMANDS = (
    "--help", "run --help", "runs", "show", "plan quickstart", "export --format json",
    "tui --screen history --screenshot {}/history.txt",
    "tui --replay last --screenshot {}/replay.txt",
)  # fmt: skip


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        # An installed program is compiled already.
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        _measure(folder, environment)


def _measure(folder: str, environment: Environment) -> None:
    script = str(Path(sys.executable).with_name("benchctl"))
    pairs = ([sys.executable, "-c", "pass"], [script, "--version"])
    times = [[_wall_s(argv, environment) for argv in pairs] for _ in range(RUNS + 1)]
    del times[0]  # compiles
    bare, version = (statistics.median(each) for each in zip(*times, strict=True))
    table.head(f"start-up (medians of {RUNS})")
    ratio = statistics.median(mine / least for least, mine in times)
    table.row("benchctl --version / python -c pass", ratio, 3, "x")
    print(f"{'python -c pass':<58}{bare * 1e3:>11.3g} ms")
    print(f"{'benchctl --version':<58}{version * 1e3:>11.3g} ms")
    before = os.environ.get(BEFORE)
    places = {script: _stored(script, {**environment, STORE: f"{folder}/now.sqlite"})}
    if before:
        places[before] = _stored(before, {**environment, STORE: f"{folder}/before.sqlite"})
    for command in COMMANDS:
        argv = command.format(folder).split()
        rounds = [[_cpu_s([one, *argv], places[one]) for one in places] for _ in range(RUNS + 1)]
        del rounds[0]  # compiles
        spent = [statistics.median(each) for each in zip(*rounds, strict=True)]
        name = " ".join(argv[:3])
        print(f"{f'benchctl {name}, CPU time':<58}{spent[0] * 1e3:>11.3g} ms")
        if before:
            more_s = statistics.median(mine - other for mine, other in rounds)
            table.row("  more than before", more_s * 1e3, MORE_S * 1e3, "ms")


def _stored(script: str, environment: Environment) -> Environment:
    """Measure one run with a version, into the store of an environment; returns that."""
    subprocess.run([script, *RUN.split()], stdout=subprocess.DEVNULL, check=True, env=environment)
    return environment


def _wall_s(argv: list[str], env: Environment) -> float:
    start = time.perf_counter()
    subprocess.run(argv, stdout=subprocess.DEVNULL, check=True, env=env)
    return time.perf_counter() - start


def _cpu_s(argv: list[str], env: Environment) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, stdout=subprocess.DEVNULL, check=True, env=env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
