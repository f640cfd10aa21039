"""Runs that nobody waits for: detached, watched from another process, stopped, killed."""

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import closing

import pytest
from store.store_support import new_run
from waiting import COMMAND_S, wait_until

from benchctl.engine.runner.launch import launch, launch_detached
from benchctl.errors import StoreError
from benchctl.store.locks import Liveness
from benchctl.store.read import Reader

SLOW = """\
[flows.main]
backend = "toy"
[axes]
plan = ["ok", "hang"]
[run]
seed = 1
order = "sequential"
deadline = "10min"
"""


@pytest.fixture
def detached(benchctl):
    """Start a run that hangs in its second trial; returns its name. It is stopped in the end."""
    started = benchctl("run", benchctl.profile(SLOW), "--detach")
    assert started.returncode == 0, started.stderr
    yield started.stdout.strip()
    benchctl("runs", "stop", started.stdout.strip())
    wait_until(lambda: not Liveness(benchctl.store).is_alive(1))


def status(benchctl, name):
    with closing(Reader(benchctl.store)) as reader:
        return reader.find(name).status


def hangs(benchctl, name):
    """Return whether the second trial of the run has begun."""
    with closing(Reader(benchctl.store)) as reader:
        return [trial.status for trial in reader.trials(reader.find(name).id)][1] == "running"


def test_detach_prints_the_name_alone_and_the_run_continues(benchctl, detached):
    assert re.fullmatch(r"\d{8}-\d{6}-[0-9a-f]{6}", detached)
    wait_until(lambda: hangs(benchctl, detached))
    assert status(benchctl, detached) == "running"


def test_attach_shows_what_was_and_ends_with_the_run(benchctl, detached):
    watch = benchctl.start("run", "--attach", detached[-6:])
    told = iter(watch.stderr.readline, "")
    assert any(line.startswith("[1/2] plan=ok: ok main send 9.00 kbit/s") for line in told)
    wait_until(lambda: hangs(benchctl, detached))
    assert benchctl("runs", "stop", detached).returncode == 0
    stdout, stderr = watch.communicate(timeout=COMMAND_S)
    assert "9.00 kbit/s" in stdout
    assert f"continue with: benchctl resume {detached}" in stderr
    assert watch.returncode == 1


def test_ctrl_c_leaves_the_run_and_not_the_run_its_trial(benchctl, detached):
    watch = benchctl.start("run", "--attach", detached, "--events", "-q")
    events = (json.loads(line)["event"] for line in watch.stdout)
    # A run that something else on this machine measures is a note.
    assert next(event for event in events if event != "note") == "trial_started"
    watch.send_signal(signal.SIGINT)
    _, stderr = watch.communicate(timeout=COMMAND_S)
    assert watch.returncode == 130
    assert f"benchctl run --attach {detached}" in stderr
    wait_until(lambda: hangs(benchctl, detached))


def test_a_killed_runner_ends_the_watch_and_the_run_can_be_resumed(benchctl, detached):
    wait_until(lambda: hangs(benchctl, detached))
    watch = benchctl.start("run", "--attach", detached)
    watch.stderr.readline()
    with closing(Reader(benchctl.store)) as reader:
        os.kill(reader.find(detached).runner_pid, signal.SIGKILL)
    stdout, stderr = watch.communicate(timeout=COMMAND_S)
    assert (watch.returncode, "9.00 kbit/s" in stdout) == (4, True)
    assert "the runner died" in stderr
    assert status(benchctl, detached) == "died"
    again = benchctl("resume", "--detach")
    assert again.stdout.strip() == detached
    wait_until(lambda: hangs(benchctl, detached))


def test_an_ended_run_is_shown_and_a_run_that_nobody_started_is_rejected(benchctl):
    profile = benchctl.profile(SLOW.replace('"hang"', '"ok"').replace('"ok", "ok"', '"ok"'))
    benchctl("run", profile, "-q")
    result = benchctl("run", "--attach", "last")
    assert (result.returncode, "9.00 kbit/s" in result.stdout) == (0, True)
    _, name = new_run(benchctl.store)
    result = benchctl("run", "--attach", name)
    assert result.returncode == 2
    assert f"start it: benchctl resume {name}" in result.stderr


def test_no_wait_fails_where_another_run_is_measured_and_records_nothing(benchctl, detached):
    asked = ["run", "p.toml"], ["run", "p.toml", "--detach"], ["run", "-"], ["resume", "none"]
    for words in asked:  # also before a plan is made, or a run looked for
        result = benchctl(*words, "--no-wait")
        assert result.returncode == 2
        assert f"run {detached} is being measured" in result.stderr
    assert len(benchctl("runs").stdout.splitlines()) == 2


def test_no_wait_fails_where_a_run_of_another_store_is_measured(benchctl):
    process = benchctl.start_anew("run", benchctl.profile(SLOW), "-q")
    wait_until(lambda: Liveness(benchctl.store).is_alive(1))
    other = benchctl("run", "p.toml", "--no-wait", "--store", "other.sqlite")
    assert other.returncode == 2
    assert "a run of store /" in other.stderr  # this one, or that of another test
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=COMMAND_S)


@pytest.mark.parametrize(
    "words",
    [
        ["--attach", "last", "p.toml"],
        ["--attach", "last", "--detach"],
        ["--attach", "last", "--set", "a=b"],
        ["p.toml", "--detach", "-o", "x.json"],
        ["p.toml", "--detach", "--events"],
    ],
)
def test_options_that_would_be_ignored_are_rejected(benchctl, words):
    benchctl.profile(SLOW)
    result = benchctl("run", *words)
    assert result.returncode == 2
    assert "exclude each other" in result.stderr
    assert not benchctl.store.exists()


def test_default_tags_are_not_in_the_way_of_attach(benchctl):
    settings = benchctl.directory / "settings.toml"
    settings.write_text('tags = ["mine"]\n')
    benchctl.environment["BENCHCTL_SETTINGS"] = str(settings)
    benchctl("run", benchctl.profile(SLOW.replace('"ok", "hang"', '"ok"')), "-q")
    assert benchctl("run", "--attach", "last").returncode == 0
    assert "mine" in benchctl("runs").stdout


def test_a_profile_is_needed_unless_a_run_is_watched(benchctl):
    result = benchctl("run", "--detach")
    assert result.returncode == 2
    assert "give a profile to run" in result.stderr


def test_a_runner_that_cannot_begin_is_reported_by_detach(tmp_path, monkeypatch):
    monkeypatch.setattr("benchctl.engine.runner.launch.sys.executable", "/bin/false")
    store = tmp_path / "runs.sqlite"
    run_id, _ = new_run(store)
    with pytest.raises(StoreError, match="the runner ended with code 1"):
        launch_detached(store, run_id, wait=True)
    with closing(Reader(store)) as reader:
        assert reader.run(run_id).status == "interrupted"


@pytest.mark.parametrize("start", [launch, launch_detached])
def test_a_run_whose_runner_cannot_be_started_is_interrupted(tmp_path, monkeypatch, start):
    monkeypatch.setattr("benchctl.engine.runner.launch.sys.executable", "/no/python")
    store = tmp_path / "runs.sqlite"
    run_id, _ = new_run(store)
    with pytest.raises(FileNotFoundError):
        start(store, run_id)
    with closing(Reader(store)) as reader:
        assert reader.run(run_id).status == "interrupted"


def test_a_server_that_starts_late_is_waited_for(benchctl, port):
    profile = benchctl.profile(
        f"""\
[servers.late]
host = "127.0.0.1"
port = {port}
[flows.main]
backend = "simpleperf"
to = "late"
duration = "300ms"
[run]
attempts = 1
backoff = "200ms"
"""
    )
    run = benchctl.start("run", profile, "--wait-for-server", "10min")
    line = ""
    while "attempt" not in line:
        line = run.stderr.readline()
        assert line, run.stdout.read()
    server = subprocess.Popen(
        [sys.executable, "-m", "benchctl_simpleperf", "-s", "-p", str(port)],
        stdout=subprocess.DEVNULL,
    )
    try:
        stdout, stderr = run.communicate(timeout=COMMAND_S)
    finally:
        server.terminate()
        server.wait()
    assert run.returncode == 0, stderr
    assert "throughput" in stdout
