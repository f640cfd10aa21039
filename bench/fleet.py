"""A fleet: how near a coordinator over NATS comes to the bound of its hosts, and what it costs.

The hosts are simulated: one process has them all, each with a connection, a key and a spool's
numbers of its own. They answer as agents do, measure nothing, and send ten samples a second from
both ends of each flow. Server, coordinator, engine and store are the real ones. The bound is that
of the matcher, if a trial cost nothing but its time. ``python bench/fleet.py 60 200``.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import timeit
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any

import table
from msgspec.structs import replace

HOSTS = (60, 200)
SHARES = {60: 0.92, 200: 0.80}
LASTS_S = 2.0
EVERY_S = 0.1
# So many trials of each host: a run of half a minute, in which its begin counts little.
ROUNDS = 15
DISPATCH_S, RESULT_S = 0.010, 0.025
CPU_TRIAL_S, CPU_SAMPLE_S = 0.003, 0.00003
SERVER_BYTES = 100e6
# Heartbeats of all are heard, and their clocks timed.
READY_S = 15.0


def main(counts: tuple[int, ...] = HOSTS) -> None:
    if why := why_no_server():
        print(f"\nfleet: {why}")
        return
    table.head("a fleet of simulated hosts over NATS (their processes share this machine)")
    print(f"  {_signing()}")
    for count in counts:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(_measure(Path(folder), count))


def _signing() -> str:
    """Return what signatures cost here: a fifth of the coordinator's time."""
    from benchctl.fleet.trust.keys import SigningKey, is_signed

    key, data = SigningKey.make(), bytes(400)
    signature = key.sign(data)
    sign_s = min(timeit.repeat(lambda: key.sign(data), number=500)) / 500
    verify_s = min(timeit.repeat(lambda: is_signed(key.public, signature, data), number=500)) / 500
    return f"this machine signs in {sign_s * 1e6:.0f} us, and verifies in {verify_s * 1e6:.0f} us"


def why_no_server() -> str:
    """Return why nats-server cannot be started here, empty if it can."""
    from benchctl.errors import MissingError
    from benchctl.fleet.admin.server import find_server

    try:
        find_server()
    except MissingError as error:
        return error.message
    return ""


async def _measure(folder: Path, count: int) -> None:
    from benchctl.fleet.admin.directory import FleetDirectory
    from benchctl.fleet.admin.server import DEFAULT_PORT, TrialServer
    from benchctl.fleet.trust.keys import SigningKey
    from benchctl.fleet.trust.membership import read_membership
    from benchctl.hosts.sent.ports import free_ports

    address = f"127.0.0.1:{next(free_ports('127.0.0.1', DEFAULT_PORT))}"
    directory = FleetDirectory.make(folder / "bench", "bench", address, address, time.time())
    names = [f"h{number}" for number in range(count)]
    keys = {name: SigningKey.make() for name in names}

    def join(members: Any) -> Any:
        for name, key in keys.items():
            members = members.invite_host(name, key.nkey, time.time() + 60)
            members = members.join(name, key.nkey, time.time())
        return members

    def allow(members: Any) -> Any:
        ann = replace(members.people["ann"], hosts_at_once=count, trials_at_once=count)
        return replace(members, people={**members.people, "ann": ann})

    directory.change(join, at_once=False)
    directory.invite_person("ann", "admin", folder / "ann.fleet")
    directory.change(allow)
    for name, key in keys.items():
        key.write(folder / f"{name}.seed")
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(TrialServer(directory))
        assert server.process is not None
        coordinator = _start(stack, "-m", "benchctl", "fleet", "coordinator", str(directory.path))
        program = str(Path(__file__).with_name("fleet_hosts.py"))
        hosts = _start(stack, program, str(folder), str(count))
        member = read_membership(folder / "ann.fleet")
        run = await _run(folder, member, names)
        begun_s = _cpu_s(coordinator.pid)
        await _until_ended(directory.path / "benchctl.sqlite", run)
        cpu_s = _cpu_s(coordinator.pid) - begun_s
        server_bytes = _memory_bytes(server.process.pid)
        await asyncio.sleep(1.5)  # until the hosts have written the last times
        assert hosts.poll() is None, "the simulated hosts ended"
    _report(count, directory.path / "benchctl.sqlite", folder, cpu_s, server_bytes)


def _start(stack: AsyncExitStack, *words: str) -> subprocess.Popen[bytes]:
    argv = ["setpriv", "--pdeathsig", "TERM", sys.executable, "-P", *words]
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def end() -> None:
        process.kill()
        process.wait()

    stack.callback(end)
    return process


async def _run(folder: Path, member: Any, names: list[str]) -> str:
    """Submit a mesh in which each host has some trials; returns the run's name."""
    from benchctl.cli.shared.fleet_run import submission
    from benchctl.fleet.carrier.opening import open_carrier
    from benchctl.fleet.person import PersonLink
    from benchctl.fleet.person_messages import HostList, ListHosts, Submitted

    profile = folder / "mesh.toml"
    profile.write_text(_profile(names))
    async with open_carrier(member.server, member.key, member.name) as carrier:
        await carrier.wait_connected(30)
        link = PersonLink(carrier, member)
        async with asyncio.timeout(120):
            while True:
                await asyncio.sleep(1)
                try:
                    told = await link.ask(ListHosts(), HostList, 5)
                except Exception:
                    continue
                if told.hosts and not any(host.is_away for host in told.hosts):
                    break
        await asyncio.sleep(READY_S)
        asked = submission(str(profile), (), (), None, (), yes=True)
        return (await link.ask(asked, Submitted, 120)).run


def _profile(names: list[str]) -> str:
    hosts = "".join(f'[hosts.{name}]\nfleet = true\naddress = "127.0.0.1"\n' for name in names)
    pairs = [
        (one, names[(at + step) % len(names)])
        for step in range(
            1, min(2 * ROUNDS, len(names)), 2
        )  # so that each round uses each host once
        for at, one in enumerate(names)
        if at % 2 == 0
    ]
    values = ", ".join(
        f'{{ label = "{one}:{to}", from = "{one}", to = "{to}" }}' for one, to in pairs
    )
    return (
        f'{hosts}[flows.main]\nbackend = "simpleperf"\nduration = "{LASTS_S:g}s"\n'
        f'interval = "{EVERY_S:g}s"\nrate = "1Mbit"\n[axes]\npair = [{values}]\n'
        '[run]\nparallel = "hosts"\nseed = 1\n'
    )


async def _until_ended(store: Path, run: str) -> None:
    async with asyncio.timeout(600):
        while True:
            await asyncio.sleep(0.5)
            with closing(sqlite3.connect(store)) as connection:
                query = "SELECT status FROM run WHERE name = ?"
                (status,) = connection.execute(query, (run,)).fetchone()
            if status not in ("planned", "running"):
                return


def _report(count: int, store: Path, folder: Path, cpu_s: float, server_bytes: float) -> None:
    with closing(sqlite3.connect(store)) as connection:
        rows = connection.execute(
            "SELECT status, started_time, finished_time, error, position, point FROM trial"
            " ORDER BY position"
        ).fetchall()
        (samples,) = connection.execute("SELECT count(*) FROM sample").fetchone()
    failed = [error for status, _, _, error, *_ in rows if status != "ok"]
    if len(failed) == len(rows):
        print(f"{count} hosts: all trials failed: {failed[0]}")
        return
    begun = min(row[1] for row in rows if row[1])
    ended = max(row[2] for row in rows if row[2])
    bound_s = _bound_s([frozenset(json.loads(row[5])["pair"].split(":")) for row in rows])
    share = bound_s / (ended - begun)
    print(
        f"{count} hosts: {len(rows)} trials of {LASTS_S:g} s, {len(failed)} failed, took"
        f" {ended - begun:.1f} s of a bound of {bound_s:.1f} s, {samples} samples"
    )
    for error in sorted(set(failed))[:3]:
        print(f"  {error}")
    least = SHARES.get(count, 0.0)
    table.row(f"{count} hosts, share of the bound", share, least, "", at_least=True)
    times = (folder / "dispatch").read_text().split() if (folder / "dispatch").exists() else []
    if times:
        dispatch_s = statistics.median(map(float, times))
        table.row(
            f"{count} hosts, a go from its signature to its host, p50", dispatch_s, DISPATCH_S, "s"
        )
    ended_times = json.loads((folder / "ended").read_text())
    spans = [row[2] - row[1] for row in rows if row[1] and row[2]]
    print(f"  from start to end of a trial, p50: {statistics.median(spans):.2f} s")
    late = [row[2] - ended_times[str(row[4])] for row in rows if str(row[4]) in ended_times]
    if late:
        what = f"{count} hosts, from the last end to the trial's result, p50"
        table.row(what, statistics.median(late), RESULT_S, "s")
    cpu_sample_s = CPU_SAMPLE_S * samples
    per_trial_s = max(0.0, cpu_s - cpu_sample_s) / len(rows)
    what = f"{count} hosts, coordinator's CPU a trial, less samples"
    table.row(what, per_trial_s, CPU_TRIAL_S, "s")
    table.row(f"{count} hosts, memory of nats-server", server_bytes / 1e6, SERVER_BYTES / 1e6, "MB")


def _bound_s(trials: list[frozenset[str]]) -> float:
    """Return how long the matcher takes for trials in this order that cost nothing beside."""
    from benchctl.plan.matching import Matching, OpenTrial
    from benchctl.run.planned import Network, Parallel

    matching = Matching(Parallel(None), Network({}), len(trials), spreads=True)
    for position, hosts in enumerate(trials):
        matching.add(OpenTrial(position, hosts, position))
    rounds = 0
    while matching.open:
        started = list(iter(matching.start, None))
        for trial in started:
            matching.ended(trial.position)
        rounds += 1
    return rounds * LASTS_S


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory_bytes(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


if __name__ == "__main__":
    main(tuple(map(int, sys.argv[1:])) or HOSTS)
