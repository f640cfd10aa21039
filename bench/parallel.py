"""Trials side by side: how near a mesh over SSH comes to the bound of its hosts.

The hosts are those of a lab with OpenSSH's server. The tool is ping, which sleeps and prints, so
that the processors do not decide. The bound is the time of all trials divided by half the hosts.
It takes numbers of hosts: ``python bench/parallel.py 8 20``.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any

import table

from benchctl.lab.lab import Lab
from benchctl.lab.topology.topology import build_topology
from benchctl.run.planned import PATIENCE_S
from benchctl.toml.source import parse_toml

HOSTS = (8,)
LASTS_S = 2.0
# It is known by name, and nobody answers there.
AWAY_NAME = "away"
# The share of the bound that must be reached, by the most hosts that it is for.
SHARES = {20: 0.88, 60: 0.80}
# A mesh of more hosts measures only so many trials of each: all would take many minutes.
MOST_OF_EACH = 20
CORE, MEMORY_MB = 0.25, 150
GAP_S = 0.15
# How much longer it may take if one more host is away from the start, or one is killed.
LOST = 1.1
LINKS = """
[hosts]
a = {}
b = {}
c = {}
d = {}
[routers]
middle = {}
[links]
a = { between = ["a", "middle"], rate = "20Mbit", delay = "5ms", queue = 100 }
b = { between = ["b", "middle"], rate = "20Mbit", delay = "10ms", queue = 100 }
c = { between = ["c", "middle"], rate = "10Mbit", delay = "5ms", queue = 100 }
d = { between = ["d", "middle"], rate = "20Mbit", delay = "2ms", queue = 100 }
"""
MESH = """
[lab]
topology = "links.toml"
[flows.main]
backend = "simpleperf"
duration = "2s"
[axes]
pair = { mesh = ["a", "b", "c", "d"] }
[run]
repeats = 3
seed = 1
"""
# Kills what SSH has started on a host, and takes it off the network. Its server is the lab's, and
# stays: its parent is the lab's init.
KILL = """
own=$(readlink /proc/self/ns/net)
for process in /proc/[0-9]*; do
    number=${process#/proc/}
    [ "$number" != $$ ] && [ "$(readlink $process/ns/net)" = "$own" ] || continue
    set -- $(cat $process/stat)
    [ "$4" = 1 ] || kill -9 "$number" 2> /dev/null
done
sleep 0.1
ip link set group default down
"""


def main(counts: tuple[int, ...] = HOSTS) -> None:
    if shutil.which("ssh") is None or shutil.which("sshd", path="/usr/sbin:/sbin") is None:
        print("\nparallel: no ssh or sshd here")
        return
    table.head("trials side by side (ping over OpenSSH in a lab)")
    for count in counts:
        alone_s = _mesh(count)
        whole_s = _mesh(count, away=True)
        what = f"mesh of {count} hosts and one that is away, time over that without"
        table.row(what, whole_s / alone_s, LOST, "")
        whole_s = _mesh(count, killed=f"h{count // 2}")
        what = f"mesh of {count} hosts, one killed in the middle"
        # The host that measured with it has to wait until it counts as lost.
        table.row(f"{what}, later", whole_s - alone_s, PATIENCE_S, "s")
        if count <= 20:
            table.row(f"{what}, time over that without", whole_s / alone_s, LOST, "")
    _alike()


def _alike() -> None:
    """Compare a mesh whose links are the limit, measured side by side, with one after another."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "links.toml").write_text(LINKS)
        Path(folder, "mesh.toml").write_text(MESH)

        def said(*words: str) -> str:
            argv = [sys.executable, "-m", "benchctl", *words]
            env = {**os.environ, "BENCHCTL_STORE": str(Path(folder, "runs.sqlite"))}
            return subprocess.run(
                argv, cwd=folder, env=env, stdout=subprocess.PIPE, text=True, check=True
            ).stdout

        for parallel in ("1", "hosts"):
            said("run", "mesh.toml", "-q", "--set", f"run.parallel={parallel}", "--tag", parallel)
        rows = [json.loads(line) for line in said("compare", "1", "hosts", "--json").splitlines()]
    # The hosts of a lab share one processor, so its load is that of all trials at that time.
    rows = [row for row in rows if row["mean_a"] and not row["metric"].endswith("_host_ratio")]
    rates = [row for row in rows if row["metric"] == "throughput_bps"]
    certain = [row for row in rows if row["verdict"] in ("better", "worse", "different")]
    for row in certain:
        print(row["verdict"], row["point"], row["metric"], row["direction"], row["mean_a"],
              row["mean_b"], row["p_adjusted"])  # fmt: skip
    table.row(f"links are the limit: verdicts of {len(rows)} figures", len(certain), 0, "")
    ratio = statistics.median(row["mean_b"] / row["mean_a"] for row in rates)
    table.row("side by side over one after another, rates, median", ratio, 0.99, "", at_least=True)
    table.row("the same", ratio, 1.01, "")


def _topology(names: list[str]) -> str:
    hosts = "".join(f"{name} = {{ services = [{{ ssh = 22 }}] }}\n" for name in names)
    hosts += f"{AWAY_NAME} = {{}}\n"
    ends = [*names, AWAY_NAME]
    links = "".join(f'{name} = {{ between = ["{name}", "middle"] }}\n' for name in ends)
    return (
        f"[hosts]\ndesk = {{}}\n{hosts}[routers]\nmiddle = {{}}\n"
        f'[links]\ndesk = {{ between = ["desk", "middle"] }}\n{links}'
    )


def _profile(names: list[str]) -> str:
    hosts = "\n".join(f'{name} = {{ ssh = "{name}" }}' for name in names)
    count = round(LASTS_S / 0.1)
    return (
        f'[hosts]\n{hosts}\n[flows.main]\nbackend = "ping"\ncount = {count}\ninterval = "100ms"\n'
        f'[axes]\npair = {{ mesh = {names} }}\n[run]\nparallel = "hosts"\nseed = 1\n'
    )


def pairs_of(names: list[str], most: int = MOST_OF_EACH) -> list[str]:
    """Return all pairs of a mesh, or if it is large ``most`` pairs of each host."""
    rounds = len(names) - 1
    if rounds <= most:
        return [f"{a}:{b}" for a in names for b in names if a != b]
    found = []
    for step in range(most):  # all meet another once in a round, as in a tournament
        turned = [names[(place + step) % rounds] for place in range(rounds)]
        ends = zip(turned[1 : len(names) // 2], reversed(turned), strict=False)
        found += [f"{a}:{b}" for a, b in [(names[-1], turned[0]), *ends]]
    return found


def _mesh(count: int, *, away: bool = False, killed: str = "") -> float:
    """Measure a mesh, perhaps with one more host that is away, or with one that is killed.

    Returns how long it took.
    """
    names = [f"h{number}" for number in range(count)]
    topology = build_topology(parse_toml(_topology(names), Path("lab.toml")), {})
    with Lab.build(topology) as lab, tempfile.TemporaryDirectory() as folder:
        profile = Path(folder, "mesh.toml")
        profile.write_text(_profile([*names, AWAY_NAME] if away else names))
        pairs = pairs_of(names)
        bound_s = len(pairs) * LASTS_S / (count // 2)
        first = None if away or killed else _cost(profile, lab, pairs[: count // 2])
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.monotonic()
        argv = [*lab.nodes[killed].prefix, "sh", "-c", KILL] if killed else ["true"]
        timer = threading.Timer(bound_s / 2, subprocess.run, [argv], {"check": False})
        timer.start()
        if away:
            pairs += [
                pair for name in names for pair in (f"{name}:{AWAY_NAME}", f"{AWAY_NAME}:{name}")
            ]
        trials = trials_of(profile, lab.nodes["desk"].prefix, pairs)
        timer.cancel()
        whole_s = time.monotonic() - began
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    failed = [one for one in trials if one["status"] != "ok"]
    lost = killed or AWAY_NAME
    assert all(lost in one["point"]["pair"].split(":") for one in failed), "another trial failed"
    assert len(failed) == 2 * count if away else bool(failed) == bool(killed), "not as expected"
    measured = [one for one in trials if one["status"] == "ok"]
    spans = [(time_of(one["started"]), time_of(one["finished"]), one) for one in measured]
    took_s = max(end for _, end, _ in spans) - min(start for start, _, _ in spans)
    if away or killed:
        print(f"{lost}: {len(failed)} trials failed, {len(measured)} measured in {took_s:.1f} s,"
              f" whole {whole_s:.1f} s")  # fmt: skip
        return took_s
    planned_s = statistics.fmean(end - start for start, end, _ in spans)
    least = next((share for most, share in SHARES.items() if count <= most), 0.0)
    print(
        f"{count} hosts: {len(trials)} trials of {LASTS_S:g} s, mean {planned_s:.2f} s from start"
        f" to end, took {took_s:.1f} s of a bound of {bound_s:.1f} s, whole {whole_s:.1f} s"
    )
    table.row(f"mesh of {count} hosts, time over the bound", took_s / bound_s, 1 / least, "")
    table.row(f"mesh of {count} hosts, between trials at a host", gap_s(spans), GAP_S, "s")
    cpu_s = _cpu_s(after) - _cpu_s(before)
    what = f"mesh of {count} hosts with ssh"
    print(f"{f'{what}, all of it':<58}{cpu_s / whole_s:>14.3g} of a core")
    assert first is not None, "neither away nor killed"
    first_cpu_s, first_s = first
    table.row(
        f"{what}, beyond its start", (cpu_s - first_cpu_s) / (whole_s - first_s), CORE,
        "of a core",
    )  # fmt: skip
    table.row(f"{what}, largest process", after.ru_maxrss / 1024, MEMORY_MB, "MB")
    return took_s


def _cost(profile: Path, lab: Lab, pairs: list[str]) -> tuple[float, float]:
    """Return the processor's time and the time of a run of one trial of each host.

    It is mostly that of the connections and the start.
    """
    before, began = _cpu_s(resource.getrusage(resource.RUSAGE_CHILDREN)), time.monotonic()
    trials_of(profile, lab.nodes["desk"].prefix, pairs)
    took_s = time.monotonic() - began
    return _cpu_s(resource.getrusage(resource.RUSAGE_CHILDREN)) - before, took_s


def _cpu_s(used: resource.struct_rusage) -> float:
    return used.ru_utime + used.ru_stime


def gap_s(spans: list[tuple[float, float, dict[str, Any]]]) -> float:
    """Return the median time from the end of a trial to the start of the next at its hosts."""
    of_host = defaultdict(list)
    for start, end, trial in spans:
        for name in trial["point"]["pair"].split(":"):
            of_host[name].append((start, end))
    gaps = [
        later[0] - earlier[1]
        for each in of_host.values()
        for earlier, later in zip(sorted(each), sorted(each)[1:], strict=False)
    ]
    return statistics.median(gaps)


def time_of(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def trials_of(
    profile: Path, over: tuple[str, ...], pairs: list[str], *options: str, **environment: str
) -> list[dict[str, Any]]:
    """Run some pairs of a profile on the desk of a lab; returns its trials."""
    argv = [*over, sys.executable, "-m", "benchctl", "run", str(profile), "-q", "--events",
            "--only", f"pair={','.join(pairs)}", *options]  # fmt: skip
    store = str(profile.with_suffix(".sqlite"))
    env = {**os.environ, "BENCHCTL_STORE": store, **environment}
    done = subprocess.run(
        argv, env=env, capture_output=True, text=True, check=False, start_new_session=True
    )
    if done.returncode not in (0, 1):
        raise SystemExit(f"benchctl run ended with {done.returncode}: {done.stderr}")
    events = map(json.loads, done.stdout.splitlines())
    return [event for event in events if event["event"] == "trial_ended"]


if __name__ == "__main__":
    main(tuple(map(int, sys.argv[1:])) or HOSTS)
