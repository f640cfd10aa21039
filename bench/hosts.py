"""Remote hosts: what SSH adds to a trial, how well clocks are known, what a connection costs.

Needs OpenSSH's client and server. The hosts are those of a lab, which all have this machine's
clock; agents add to it what they are given, so the truth is known.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import ExitStack
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import table

from benchctl.hosts.hosts import Hosts
from benchctl.hosts.local.spawn import run
from benchctl.lab.lab import Lab
from benchctl.lab.topology.topology import build_topology
from benchctl.run.planned import LOCAL, Host, SshTarget
from benchctl.toml.source import parse_toml

TRIALS = 12
LOGINS = 9
STARTS = 40
LEAD_S = 0.2
MANY = 20
RTT_S = 0.02
SKEWS_S = (3.25, -1.75)
MS = 1e3


def main() -> None:
    if shutil.which("ssh") is None or shutil.which("sshd", path="/usr/sbin:/sbin") is None:
        print("\nhosts: no ssh or sshd here")
        return
    table.head("hosts over SSH (simpleperf and OpenSSH in a lab)")
    _trials()
    asyncio.run(_first())
    asyncio.run(_many())
    asyncio.run(_starts())
    asyncio.run(_clocks())
    _own_traffic()
    _samples()


# --- labs of hosts around a desk -----------------------------------------------------------------


def _topology(names: list[str], link: str = "") -> str:
    """Return a topology: hosts with SSH, each on a link with these settings, around ``desk``."""
    hosts = "".join(f"{name} = {{ services = [{{ ssh = 22 }}] }}\n" for name in names)
    links = "".join(f'{n} = {{ between = ["{n}", "middle"]{link} }}\n' for n in names)
    return (
        f"[hosts]\ndesk = {{}}\n{hosts}[routers]\nmiddle = {{}}\n"
        f'[links]\ndesk = {{ between = ["desk", "middle"] }}\n{links}'
    )


def _lab(names: list[str], link: str = "") -> Lab:
    return Lab.build(build_topology(parse_toml(_topology(names, link), Path("lab.toml")), {}))


def _host(lab: Lab, name: str) -> Host:
    node = lab.nodes[name]
    return Host(name, node.address, reach=SshTarget(name, over=lab.nodes["desk"].prefix))


def _profile(flows: list[tuple[str, str]], settings: str, run: str = "") -> str:
    """Return a profile with a flow for each pair, all at the same time."""
    parts = [f'[hosts.{name}]\nssh = "{name}"' for name in dict.fromkeys(sum(flows, ()))]
    for source, to in flows:
        ends = f'backend = "simpleperf"\nfrom = "{source}"\nto = "{to}"'
        parts.append(f"[flows.{source}]\n{ends}\n{settings}")
    return "\n".join([*parts, "[run]", run, ""])


def _command(folder: str, text: str) -> tuple[list[str], dict[str, str]]:
    profile = Path(folder, "profile.toml")
    profile.write_text(text)
    argv = [sys.executable, "-m", "benchctl", "run", str(profile), "-q", "--events"]
    return argv, {**os.environ, "BENCHCTL_STORE": str(Path(folder, "runs.sqlite"))}


def _events(text: str, over: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Run a profile, on a host of a lab, and return its events."""
    with tempfile.TemporaryDirectory() as folder:
        argv, env = _command(folder, text)
        done = subprocess.run(
            [*over, *argv], env=env, capture_output=True, text=True, check=False,
            start_new_session=True,
        )  # fmt: skip
        if done.returncode:
            raise SystemExit(done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]


# --- figures -------------------------------------------------------------------------------------


def _trials() -> None:
    names = ["near", "far"]
    link = f', delay = "{RTT_S / 2 * MS:g}ms"'
    text = _profile([("near", "far")], 'duration = "1s"\nrate = "1Mbit"', f"repeats = {TRIALS}")
    with tempfile.TemporaryDirectory() as folder:
        topology = Path(folder, "lab.toml")
        topology.write_text(_topology(names, link).replace("{ services = [{ ssh = 22 }] }", "{}"))
        # In a lab's own way, without SSH.
        here = text.replace('ssh = "near"', "").replace('ssh = "far"', "")
        local_s = _step_s(_events(f'[lab]\ntopology = "{topology}"\nverify = false\n{here}'))
    with _lab(names, link) as lab:
        remote_s = _step_s(_events(text, lab.nodes["desk"].prefix))
    what = f"added to a trial over the local case, least, RTT {RTT_S * MS:g} ms"
    table.row(what, remote_s - local_s, 0.15 + 2 * RTT_S, "s")


def _step_s(events: list[dict[str, Any]]) -> float:
    """Return the least time from the end of a trial to the end of the next."""
    ends = [one["finished"] for one in events if one["event"] == "trial_ended"]
    times = [datetime.fromisoformat(end).timestamp() for end in ends]
    return min(b - a for a, b in pairwise(times))


async def _first() -> None:
    with _lab(["far"], f', delay = "{RTT_S / 2 * MS:g}ms"') as lab:
        host = _host(lab, "far")
        logins, firsts = [], []
        for _ in range(LOGINS):
            start = time.perf_counter()
            argv = (*lab.nodes["desk"].prefix, "ssh", "-o", "BatchMode=yes", "far", "true")
            subprocess.run(argv, check=True, start_new_session=True)
            logins.append(time.perf_counter() - start)
            async with Hosts() as hosts:
                start = time.perf_counter()
                await run(hosts, host, ["true"], 30)
                firsts.append(time.perf_counter() - start)
    login_s = statistics.median(logins)
    what = f"first command on a host, login {login_s:.2f} s"
    table.row(what, statistics.median(firsts), login_s + 0.3, "s")


async def _many() -> None:
    names = [f"h{number}" for number in range(MANY)]
    with _lab(names) as lab:
        async with Hosts() as hosts:
            start = time.perf_counter()
            await asyncio.gather(*(hosts.link(_host(lab, name)) for name in names))
            table.row(f"{MANY} hosts connected", time.perf_counter() - start, 5, "s")


async def _starts() -> None:
    for jitter_s in (0.0, 0.005):
        names = ["a", "b"]
        link = f', delay = "25ms", jitter = "{jitter_s * MS:g}ms"'
        with _lab(names, link) as lab:
            skews = await _start_skews(lab, names)
        bound = 2 + jitter_s / 10 * MS
        what = f"start skew of two hosts, RTT 50 ms, jitter {jitter_s * MS:g} ms"
        table.row(f"{what}, median", statistics.median(skews) * MS, bound, "ms")
        table.row(f"{what}, p90", _p90(skews) * MS, bound, "ms")


async def _start_skews(lab: Lab, names: list[str]) -> list[float]:
    """Return how far apart commands began that were to begin together, on clocks that differ."""
    async with Hosts(skew_s=SKEWS_S[0]) as one, Hosts(skew_s=SKEWS_S[1]) as other:
        both = [(hosts, _host(lab, name)) for hosts, name in zip((one, other), names, strict=True)]
        for hosts, host in both:
            await hosts.clock_of(host)
        here = [await _start_skew([(one, LOCAL)] * 2) for _ in range(STARTS)]
        what = "start skew of two commands here, median and p90"
        told = [f"{part * MS:.3g}" for part in (statistics.median(here), _p90(here))]
        print(f"{what:<58}{' and '.join(told):>12} ms")
        return [await _start_skew(both) for _ in range(STARTS)]


def _p90(values: list[float]) -> float:
    return statistics.quantiles(values, n=10)[-1]


async def _start_skew(both: list[tuple[Hosts, Host]]) -> float:
    told: list[bytes] = []
    processes = [
        await hosts.start(host, ["date", "+%s.%N"], {}, lambda _, data: told.append(data))
        for hosts, host in both
    ]
    at = time.time() + LEAD_S
    for process in processes:
        process.begin(at)
    for process in processes:
        await process.wait()
    first, second = map(float, told)
    return abs(first - second)


async def _clocks() -> None:
    cases = {
        "RTT 0 ms": "",
        "RTT 20 ms": ', delay = "10ms"',
        "RTT 50 ms": ', delay = "25ms"',
        "RTT 50 ms, jitter 5 ms": ', delay = "25ms", jitter = "5ms"',
        "10 ms there, 30 ms back": ', delay = "10ms", toward.middle = { delay = "30ms" }',
    }
    for what, link in cases.items():
        with _lab(["far"], link) as lab:
            errors, beyond = [], []
            for skew_s in SKEWS_S * 3:
                async with Hosts(skew_s=skew_s) as hosts:
                    clock = await hosts.clock_of(_host(lab, "far"))
                    reading = clock.reading(time.time())
                    errors.append(abs(reading.offset_s - skew_s))
                    beyond.append(errors[-1] - reading.error_s)
        if "jitter" not in what and "there" not in what:
            table.row(
                f"offset of a clock, worst of {len(errors)}, {what}", max(errors) * MS, 0.3, "ms"
            )
        table.row(f"its error beyond the stated one, {what}", max(beyond) * MS, 0, "ms")


def _own_traffic() -> None:
    names = ["near", "far"]
    text = _profile([("near", "far")], 'duration = "16s"\ninterval = "1s"\nrate = "1Mbit"')
    with _lab(names) as lab, tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        over = lab.nodes["desk"].prefix
        argv, env = _command(folder, text)
        process = stack.enter_context(
            subprocess.Popen(
                [*over, *argv], env=env, stdout=subprocess.PIPE, text=True, start_new_session=True
            )
        )
        assert process.stdout is not None
        samples = (line for line in process.stdout if '"sample"' in line)
        for _ in range(3):
            next(samples)
        before, start = _octets(over), time.monotonic()
        time.sleep(10)
        octets, passed_s = _octets(over) - before, time.monotonic() - start
        process.stdout.read()
    rate = octets * 8 / passed_s / len(names) / 1e3
    table.row("the connection's own traffic, per host, 1 s intervals", rate, 20, "kbit/s")


def _octets(over: tuple[str, ...]) -> int:
    """Return the octets that a host has sent and received."""
    files = [f"/sys/class/net/eth0/statistics/{way}_bytes" for way in ("rx", "tx")]
    done = subprocess.run(
        [*over, "cat", *files], capture_output=True, text=True, check=True, start_new_session=True
    )
    return sum(map(int, done.stdout.split()))


def _samples() -> None:
    names = [f"h{number}" for number in range(8)]
    ring = list(zip(names, [*names[1:], names[0]], strict=True))
    text = _profile(ring, 'duration = "10s"\ninterval = "100ms"\nrate = "1Mbit"')
    with _lab(names, ', delay = "10ms"') as lab:
        events = _events(text, lab.nodes["desk"].prefix)
    found = defaultdict(list)
    for one in events:
        if one["event"] == "sample" and one["told_by"] == "client":
            found[one["flow"]].append(one["start_s"])
    lost = sum(abs(100 - len(found[name])) for name in names)
    turned = sum(a >= b for starts in found.values() for a, b in pairwise(starts))
    table.row("samples lost, eight hosts at 10 Hz", lost, 0, "")
    table.row("samples out of order", turned, 0, "")


if __name__ == "__main__":
    main()
