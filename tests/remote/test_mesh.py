"""A mesh of five hosts, also of an ordinary user, and when one of them dies in the middle."""

import asyncio
import json
import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from lab.lab_support import LABS, NOBODY, ordinary_user, processes_with
from remote.measured import Measured
from remote_lab import NEEDS, kill, remote_lab
from tui.driving import drive, open_live, shown, until
from waiting import COMMAND_S, wait_until

pytestmark = NEEDS

MESH = LABS.parent / "remote/mesh.toml"
# The host that dies has a server that may: without a service, the lab would have failed.
DYING = "tokyo"
SERVED = f"{DYING} = {{ services = [{{ ssh = 22 }}] }}"
PAIRS = (
    "lima:oslo", "lima:paris", "lima:sydney", "lima:tokyo",
    "oslo:lima", "oslo:tokyo", "tokyo:lima", "tokyo:oslo",
)  # fmt: skip
"""The fourth is the first with the host that dies, and the last is one with it."""
ORDINARY = f'{DYING} = {{ sysctl = {{ "net.ipv4.ip_unprivileged_port_start" = 0 }} }}'


@pytest.fixture
def lab(tmp_path):
    topology = (LABS / "remote.toml").read_text()
    assert SERVED in topology
    with remote_lab(tmp_path, topology.replace(SERVED, ORDINARY), here="desk") as lab:
        lab.serve(DYING, port=22)
        yield lab


@pytest.fixture
def mesh(lab, tmp_path):
    """A run of the mesh in progress."""
    profile = tmp_path / "mesh.toml"
    profile.write_text(MESH.read_text())
    options = ["--lab", "none", "--set", "duration=300ms", "--set", "run.attempts=1"]
    # One after another: which trial is the first with the host that dies is known then.
    options += ["--set", "run.parallel=1", "--only", f"pair={','.join(PAIRS)}"]
    run = Measured(lab, profile, options)
    yield run
    run.end()


def kill_one(lab):
    kill(lab.processes(DYING))


def test_the_screen_and_the_result_say_which_host_died_while_the_others_are_measured(lab, mesh):
    mesh.until("trial_ended", 4)  # the fourth is the first with the host that dies
    store = Path(mesh.store)

    def failures(shown):
        return re.findall(r"✗ trial (\d+) failed: (?:bulk: )?host (\w+): ", shown)

    async def ended(pilot):
        # The last trial is one with the host that died.
        await until(pilot, lambda: "✗ failed  trial 8/8" in shown(pilot))
        assert failures(shown(pilot)) == [("8", DYING)]

    async def script(pilot):
        await until(pilot, lambda: re.search(r"trial \d+/8", shown(pilot)))
        assert "▶ running" in shown(pilot)
        assert failures(shown(pilot)) == []
        kill_one(lab)
        await asyncio.to_thread(mesh.end)
        await ended(pilot)

    drive(store, open_live(store, 1, time.time), script, clock=time.time)
    drive(store, open_live(store, 1, time.time), ended, size=(200, 60), clock=time.time)
    result_says_which_host_died_and_has_all_that_the_others_measured(lab, mesh)


def result_says_which_host_died_and_has_all_that_the_others_measured(lab, run):
    assert run.end() == 1, run.told()
    trials = run.of("trial_ended")
    assert len(trials) == len(PAIRS)
    failed = [trial for trial in trials if trial["status"] != "ok"]
    assert failed
    for trial in trials:
        with_it = DYING in trial["point"]["pair"].split(":")
        assert trial["status"] == "ok" or (with_it and trial["index"] >= 4), trial
        if trial["status"] != "ok":
            assert trial["status"] == "failed"
            assert f"host {DYING}: " in trial["error"], trial
    # Each of the pairs without it, and no word of another host.
    whole = {trial["point"]["pair"] for trial in trials if trial["status"] == "ok"}
    assert {pair for pair in PAIRS if DYING not in pair} <= whole
    shown = lab.benchctl("show", "last", BENCHCTL_STORE=run.store).stdout
    assert re.findall(r"^trial .*failed: .*host (\w+): ", shown, flags=re.M) == [DYING] * len(
        failed
    )
    assert not any(lab.left(host) for host in lab.lab.topology.hosts)


ROUND = ("lima:oslo", "oslo:paris", "paris:sydney", "sydney:tokyo", "tokyo:lima")
"""Each host once at either end."""


def test_an_ordinary_user_measures_the_mesh_of_its_own_lab():
    prefix, mark = ordinary_user(), f"mesh {os.getpid()}"
    # Not in pytest's own directory, which nobody else may enter.
    with tempfile.TemporaryDirectory() as directory:
        if os.geteuid() == 0:
            os.chown(directory, NOBODY, NOBODY)
        out = Path(directory, "mesh.json")
        done = subprocess.run(
            [
                *prefix, "-m", "benchctl", "run", "remote/mesh", "--quiet", "-o", str(out),
                "--set", "duration=500ms", "--set", "lab.verify=false",
                "--only", f"pair={','.join(ROUND)}",
                "--store", str(out.with_suffix(".sqlite")),
            ],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            timeout=COMMAND_S, env={**os.environ, "HOME": directory, "BENCHCTL_MARK": mark},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        trials = json.loads(out.read_text())["trials"]
    wait_until(lambda: not processes_with(f"BENCHCTL_MARK={mark}"))
    assert sorted(trial["point"]["pair"] for trial in trials) == sorted(ROUND)
    for trial in trials:
        (flow,) = trial["flows"]
        assert (trial["status"], f"{flow['from']}:{flow['to']}") == ("ok", trial["point"]["pair"])
        assert flow["metrics"]["throughput_bps"] > 0
