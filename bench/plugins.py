"""Plugins: listing 50 of them, what a trial costs with one from elsewhere, and parsing.

The plugins are packages as pip installs them, in a directory of PYTHONPATH. The one that measures
is the bundled ping under another name: so only where a backend comes from differs.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import table

from benchctl.api import Direction, Flow, Tool
from benchctl_iperf3 import BACKEND

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
SAMPLES = 20_000
PIECE_BYTES = 1 << 16  # what a pipe holds
# Of iperf3 3.21, as in tests/iperf3/samples/3.21/json_stream_P4.out.
START = {
    "event": "start",
    "data": {"connected": [], "version": "iperf 3.21", "test_start": {"protocol": "TCP"}},
}
STREAM = {
    "socket": 5, "start": 0, "end": 1.000643, "seconds": 1.0006430149078369, "bytes": 4397858816,
    "bits_per_second": 35160261955.399231, "retransmits": 10, "snd_cwnd": 916762,
    "snd_wnd": 1540096, "rtt": 31, "rttvar": 6, "pmtu": 65535, "reorder": 3, "omitted": False,
    "sender": True,
}  # fmt: skip
OF_STREAMS = ("socket", "snd_cwnd", "snd_wnd", "rtt", "rttvar", "pmtu", "reorder")


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
    _parsing()


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


def _parsing() -> None:
    """Print how fast a parser over the contract is beside `json.loads` alone on the same lines."""
    table.head(f"plugins (iperf3's json-stream, {SAMPLES:,} samples; CPU time, medians of {RUNS})")
    for streams in (1, 8):
        lines = _json_stream(streams)
        output = b"".join(lines)
        rounds = [(_cpu_s(_load, lines), _cpu_s(_parse, output, streams)) for _ in range(RUNS)]
        speed = statistics.median(alone_s / parser_s for alone_s, parser_s in rounds)
        what = f"speed of the parser / json.loads alone, streams: {streams}"
        table.row(what, speed, 0.5, "x", at_least=True)


def _json_stream(streams: int) -> list[bytes]:
    """Return the lines of a long measurement."""
    total = {name: value for name, value in STREAM.items() if name not in OF_STREAMS}
    events = [START]
    for second in range(SAMPLES // streams):
        at = {"start": second, "end": second + 1.000643}
        rows = [{**STREAM, **at, "socket": 5 + 2 * number} for number in range(streams)]
        events.append({"event": "interval", "data": {"streams": rows, "sum": {**total, **at}}})
    return [json.dumps(event, separators=(",", ":")).encode() + b"\n" for event in events]


def _load(lines: list[bytes]) -> None:
    for line in lines:
        json.loads(line)


def _parse(output: bytes, streams: int) -> None:
    tool = Tool("3.21", frozenset({"json-stream"}))
    params = BACKEND.parameters(streams=streams)
    parser = BACKEND.client(Flow(params, Direction.SEND, "127.0.0.1", 5201, tool)).parser
    pieces = (output[at : at + PIECE_BYTES] for at in range(0, len(output), PIECE_BYTES))
    assert sum(len(parser.feed(piece)) for piece in pieces) > SAMPLES


def _cpu_s(action: Callable[..., None], *arguments: Any) -> float:
    before_s = time.process_time()
    action(*arguments)
    return time.process_time() - before_s
