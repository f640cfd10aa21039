"""A fleet beside SSH: the same mesh of a lab, measured over SSH, by agents, and over SSH again.

The agents, the server and the coordinator are the real ones, and all of them share this machine.
The links are the limit, so both ways must find the same. How often SSH differs from itself shows
what the machine does. It takes numbers of hosts: ``python bench/fleet_mesh.py 8 20``.
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
import time
from pathlib import Path
from typing import Any

import table
from fleet import why_no_server
from parallel import gap_s, pairs_of, time_of, trials_of

from benchctl.lab.lab import Lab
from benchctl.lab.topology.topology import build_topology
from benchctl.toml.source import parse_toml

HOSTS = (20,)
GAP_S = 0.6
# Pairs of each host, and how often each is measured: three repeats show how figures scatter.
MOST_OF_EACH, REPEATS = 6, 3
AGENT_BYTES, AGENT_CORE = 64e6, 0.005
IDLE_S = 20.0
READY_S = 120.0
DESK, PORT = "desk", 4222
CERTAIN = ("better", "worse", "different")


def main(counts: tuple[int, ...] = HOSTS) -> None:
    if shutil.which("ssh") is None or shutil.which("sshd", path="/usr/sbin:/sbin") is None:
        print("\nfleet_mesh: no ssh or sshd here")
        return
    if why := why_no_server():
        print(f"\nfleet_mesh: {why}")
        return
    table.head("a mesh by the agents of a fleet, and over SSH (all in one lab)")
    for count in counts:
        names = [f"h{number}" for number in range(count)]
        topology = build_topology(parse_toml(_topology(names), Path("lab.toml")), {})
        with tempfile.TemporaryDirectory() as folder, Lab.build(topology) as lab:
            _measure(Path(folder), lab, names)


def _topology(names: list[str]) -> str:
    hosts = "".join(f"{name} = {{ services = [{{ ssh = 22 }}] }}\n" for name in names)
    links = "".join(
        f'{name} = {{ between = ["{name}", "middle"], rate = "2Mbit", delay = "{1 + at % 5}ms",'
        " queue = 20 }\n"
        for at, name in enumerate(names)
    )
    return (
        f"[hosts]\n{DESK} = {{}}\n{hosts}[routers]\nmiddle = {{}}\n"
        f'[links]\n{DESK} = {{ between = ["{DESK}", "middle"] }}\n{links}'
    )


def _profile(lines: dict[str, str]) -> str:
    hosts = "\n".join(f"{name} = {{ {line} }}" for name, line in lines.items())
    return (
        f'[hosts]\n{hosts}\n[flows.main]\nbackend = "simpleperf"\nduration = "2s"\n'
        f'[axes]\npair = {{ mesh = {[*lines]} }}\n[run]\nparallel = "hosts"\n'
        f"repeats = {REPEATS}\nseed = 1\n"
    )


def _measure(folder: Path, lab: Lab, names: list[str]) -> None:
    what = f"mesh of {len(names)} hosts"
    pairs = pairs_of(names, MOST_OF_EACH)
    desk = lab.nodes[DESK].prefix
    ways = {
        "ssh": {name: f'ssh = "{name}"' for name in names},
        "fleet": {name: f'fleet = true, address = "{lab.nodes[name].address}"' for name in names},
    }
    for way, lines in ways.items():
        (folder / f"{way}.toml").write_text(_profile(lines))
    agents = _bring_up(folder, lab, names)
    before = [_cpu_s(pid) for pid in agents]
    time.sleep(IDLE_S)
    idle = [_cpu_s(pid) - cpu_s for pid, cpu_s in zip(agents, before, strict=True)]
    table.row(f"{what}, an idle agent, median", statistics.median(idle) / IDLE_S, AGENT_CORE,
              "of a core")  # fmt: skip
    for way, tag in (("ssh", "a"), ("fleet", "b"), ("ssh", "c")):
        options = ["--fleet", str(folder / "ann.fleet")] if way == "fleet" else []
        options += ["--tag", tag]
        trials = trials_of(folder / f"{way}.toml", desk, pairs, *options, XDG_DATA_HOME=str(folder))
        failed = [one for one in trials if one["status"] != "ok"]
        for one in failed:
            print(f"  {way}: {one['point']['pair']}: {one['error']}")
        spans = [(time_of(one["started"]), time_of(one["finished"]), one) for one in trials]
        took_s = max(end for _, end, _ in spans) - min(start for start, *_ in spans)
        print(f"{what} by {way}: {len(trials)} trials, {len(failed)} failed, in {took_s:.0f} s;"
              f" between trials at a host {gap_s(spans):.2f} s")  # fmt: skip
        if way == "fleet":
            table.row(f"{what}, between trials at a host", gap_s(spans), GAP_S, "s")
    memory = [_memory_bytes(pid) for pid in agents]
    table.row(f"{what}, an agent's memory, largest", max(memory) / 1e6, AGENT_BYTES / 1e6, "MB")
    _compare(folder, what)


def _bring_up(folder: Path, lab: Lab, names: list[str]) -> list[int]:
    """Start server, coordinator and agents; returns the agents' processes."""
    from benchctl.fleet.admin.directory import FleetDirectory
    from benchctl.fleet.admin.joining import HOST_FILE
    from benchctl.fleet.trust.keys import SigningKey
    from benchctl.fleet.trust.membership import Membership, write_membership

    address = f"{lab.nodes[DESK].address}:{PORT}"
    fleet = FleetDirectory.make(folder / "fleet", "bench", address, f"0.0.0.0:{PORT}", time.time())
    fleet.invite_person("ann", "run", folder / "ann.fleet")
    for name in names:
        key, home = SigningKey.make(), folder / name
        fleet.invite_host(name, time.time() + 60)
        fleet.change(lambda now, name=name, key=key: now.join(name, key.nkey, time.time()))
        home.mkdir()
        write_membership(home / HOST_FILE, Membership(fleet.server(), name, key.text, fleet.keys()))
        (home / "agent.toml").write_text('networks = ["0.0.0.0/0"]\n')
    _start(lab, DESK, "fleet", "up", str(fleet.path))
    for name in names:
        _start(lab, name, "agent", "run", str(folder / name))
    argv = [*lab.nodes[DESK].prefix, *_words("fleet", "hosts", "--json", "--directory"), fleet.path]
    deadline = time.monotonic() + READY_S
    while True:
        said = subprocess.run(argv, capture_output=True, text=True, check=False)
        listed = [json.loads(line) for line in said.stdout.splitlines()]
        if len(listed) == len(names) and not any(host["is_away"] for host in listed):
            break
        assert time.monotonic() < deadline, f"the hosts of the fleet do not come: {said.stderr}"
        time.sleep(1)
    return [_agent(folder / name) for name in names]


def _words(*words: str) -> list[str]:
    return [sys.executable, "-P", "-m", "benchctl", *words]


def _start(lab: Lab, host: str, *words: str) -> None:
    """Start a command that ends with the lab."""
    subprocess.Popen(
        [*lab.nodes[host].prefix, *_words(*words)], start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def _agent(folder: Path) -> int:
    words = "\0".join(_words("agent", "run", str(folder))).encode() + b"\0"
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes() == words:
                return int(path.parent.name)
        except OSError:
            continue
    raise SystemExit(f"no agent runs in {folder}")


def _compare(folder: Path, what: str) -> None:
    """Print what `compare` finds between the ways, and between SSH and itself."""

    def said(*words: str) -> str:
        env = {**os.environ, "BENCHCTL_STORE": str(folder / "ssh.sqlite")}
        return subprocess.run(
            _words(*words), env=env, stdout=subprocess.PIPE, text=True, check=True
        ).stdout

    (copy,) = (folder / "benchctl" / "fleets").glob("*.sqlite")
    said("import", "-q", str(copy), "--tag", "b")
    for first, second in (("a", "b"), ("a", "c"), ("c", "b")):
        rows = [json.loads(line) for line in said("compare", first, second, "--json").splitlines()]
        # All share this machine, so what processors do is that of all trials at that time.
        rows = [one for one in rows if one["mean_a"] and not one["metric"].startswith("cpu_")]
        certain = [one for one in rows if one["verdict"] in CERTAIN]
        for one in certain:
            print(f"  {_verdict(one)}")
        rates = [one for one in rows if one["metric"] == "throughput_bps"]
        ratio = statistics.median(one["mean_b"] / one["mean_a"] for one in rates)
        if (first, second) == ("a", "b"):
            of = f"{what}, fleet beside SSH: verdicts of {len(rows)} figures"
            table.row(of, len(certain), 0, "")
            # What agents say shares the links: some kilobits a second.
            table.row(f"{what}, rates by the fleet over those by SSH", ratio, 0.99, "",
                      at_least=True)  # fmt: skip
            table.row("the same", ratio, 1.01, "")
        else:
            ways = "SSH beside itself" if second == "c" else "fleet beside the second SSH"
            print(f"{what}, {ways}: {len(certain)} verdicts of {len(rows)}, rates {ratio:.4f}")


def _verdict(row: dict[str, Any]) -> str:
    names = ("verdict", "point", "metric", "direction", "mean_a", "mean_b", "p_adjusted")
    return " ".join(str(row[name]) for name in names)


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


if __name__ == "__main__":
    main(tuple(map(int, sys.argv[1:])) or HOSTS)
