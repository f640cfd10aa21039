"""Commands of hosts around trials and runs: they run, are kept, fail trials, and need trust."""

import json
import os
import pwd
import signal
from contextlib import closing, suppress

import pytest
from waiting import COMMAND_S, wait_until

from benchctl.errors import StoreError
from benchctl.store.read import Reader

HOOKED = """\
[hosts.local]
prepare_run = "echo run begins >> log; echo from prepare_run"
prepare = "echo prepare >> log; {prepare}"
cleanup = "echo cleanup >> log; {cleanup}"
cleanup_run = "echo run ends >> log"
[flows.main]
backend = "toy"
plan = "{plan}"
[run]
repeats = {repeats}
attempts = 1
deadline = "10min"
"""


@pytest.fixture
def run_hooked(benchctl):
    def run_hooked(*options, prepare="true", cleanup="true", plan="ok", repeats=2):
        text = HOOKED.format(prepare=prepare, cleanup=cleanup, plan=plan, repeats=repeats)
        return benchctl(
            "run", benchctl.profile(text), "-q", "--trust", "--format", "json", *options
        )

    return run_hooked


def log(benchctl):
    return (benchctl.directory / "log").read_text().splitlines()


AROUND = ["prepare", "cleanup"]


def test_commands_run_in_order_and_are_kept_with_trial_and_run(benchctl, run_hooked):
    report = json.loads(run_hooked(prepare="echo ready; echo aside >&2").stdout)
    assert log(benchctl) == ["run begins", *AROUND, *AROUND, "run ends"]
    assert [one["when"] for one in report["run"]["hooks"]] == ["prepare_run", "cleanup_run"]
    assert report["run"]["hooks"][0]["output"] == "from prepare_run\n"
    for trial in report["trials"]:
        before, after = trial["hooks"]
        assert (before["host"], before["when"], before["exit_code"]) == ("local", "prepare", 0)
        assert sorted(before["output"].split()) == ["aside", "ready"]
        assert after["when"] == "cleanup"
    shown = benchctl("show", "last", "--trials").stdout
    assert shown.count("  prepare on local $ echo prepare >> log; ") == 2
    assert shown.count("    output: ready") == 2
    assert "    output: from prepare_run" in shown


def test_a_prepare_that_fails_fails_its_trial_with_its_output_and_cleanup_runs(
    benchctl, run_hooked
):
    result = run_hooked(prepare="test -e before || { touch before; echo no luck; exit 7; }")
    first, second = json.loads(result.stdout)["trials"]
    assert (result.returncode, second["status"]) == (1, "ok")
    assert first["error"] == "prepare on local ended with code 7: no luck"
    assert (first["hooks"][0]["exit_code"], first["flows"]) == (7, [])
    assert log(benchctl) == ["run begins", *AROUND, *AROUND, "run ends"]
    again = benchctl("resume", "--failed", "-q", "--format", "json")
    first = json.loads(again.stdout)["trials"][0]
    assert (again.returncode, first["status"], first["error"]) == (0, "ok", "")
    assert [one["exit_code"] for one in first["hooks"]] == [7, 0, 0, 0]


def test_a_failed_measurement_is_cleaned_up_and_a_failed_cleanup_is_a_warning(benchctl, run_hooked):
    run_hooked(plan="fail", cleanup="echo stuck; exit 2", repeats=1)
    assert log(benchctl) == ["run begins", *AROUND, "run ends"]
    shown = benchctl("show").stdout
    assert "failed: main: sh ended with code 3" in shown
    assert "warning: cleanup on local ended with code 2: stuck" in shown


def test_a_run_that_cannot_be_prepared_measures_nothing_and_can_be_resumed(benchctl):
    text = HOOKED.format(prepare="true", cleanup="true", plan="ok", repeats=1)
    text = text.replace("echo from prepare_run", "test -e mended")
    result = benchctl("run", benchctl.profile(text), "-q", "--trust")
    assert result.returncode == 1
    assert "prepare_run on local ended with code 1" in result.stderr
    assert log(benchctl) == ["run begins", "run ends"]
    (benchctl.directory / "mended").touch()
    assert benchctl("resume", "-q").returncode == 0
    assert log(benchctl)[2:] == ["run begins", *AROUND, "run ends"]


def test_a_stopped_run_is_cleaned_up(benchctl):
    text = HOOKED.format(prepare="true", cleanup="true", plan="hang", repeats=1)
    process = benchctl.start("run", benchctl.profile(text), "-q", "--trust")

    def measures():
        with suppress(StoreError), closing(Reader(benchctl.store)) as reader:
            return any(list(reader.samples_of_trial(trial.id)) for trial in reader.trials(1))
        return False

    wait_until(measures)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=COMMAND_S)
    assert log(benchctl) == ["run begins", *AROUND, "run ends"]


def test_a_stop_ends_a_prepare_that_takes_long(benchctl):
    text = HOOKED.format(prepare="exec sleep 600", cleanup="true", plan="ok", repeats=1)
    process = benchctl.start("run", benchctl.profile(text), "-q", "--trust")
    wait_until(lambda: (benchctl.directory / "log").exists() and "prepare" in log(benchctl))
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=COMMAND_S)
    assert process.returncode == 130
    assert log(benchctl) == ["run begins", *AROUND, "run ends"]


def test_the_plan_lists_the_commands_and_as_whom_they_run(benchctl):
    name = benchctl.profile(HOOKED.format(prepare="p", cleanup="c", plan="ok", repeats=1))
    shown = benchctl("plan", name).stdout
    assert f"run as {pwd.getpwuid(os.geteuid()).pw_name}" in shown
    assert "local, before each trial: echo prepare >> log; p" in shown
    assert "local, after the run: echo run ends >> log" in shown
    entry = json.loads(benchctl("plan", name, "--json").stdout)
    assert [one["when"] for one in entry["hooks"]] == [
        "prepare_run", "prepare", "cleanup", "cleanup_run",
    ]  # fmt: skip
    assert not (benchctl.directory / "log").exists()


def test_commands_that_others_may_have_written_need_a_word(benchctl, run_hooked):
    assert run_hooked().returncode == 0
    (benchctl.directory / "p.toml").chmod(0o666)
    (benchctl.directory / "log").unlink()
    refused = benchctl("run", "p.toml")
    assert refused.returncode == 2
    assert "p.toml: its prepare and cleanup are commands, and" in refused.stderr
    assert "they need --trust" in benchctl("plan", "p.toml").stdout
    with (benchctl.directory / "p.toml").open() as profile:
        piped = benchctl.start("run", "-", stdin=profile)
        assert (
            "stdin: its prepare and cleanup are commands" in piped.communicate(timeout=COMMAND_S)[1]
        )
    assert not (benchctl.directory / "log").exists()
    assert benchctl("run", "p.toml", "--trust").returncode == 0
    typed = ("--set", "hosts.local.prepare=echo typed >> log")
    benchctl.profile('[flows.main]\nbackend = "toy"\n', "q.toml")
    (benchctl.directory / "q.toml").chmod(0o666)
    assert benchctl("run", "q.toml", *typed).returncode == 0
    assert log(benchctl)[-1] == "typed"


def test_a_host_without_an_address_and_commands_without_a_host_are_rejected(benchctl):
    text = '[flows.main]\nbackend = "toy"\n[hosts.a]\nprepare = "true"\n'
    assert "hosts.a.address: is missing" in benchctl("plan", benchctl.profile(text)).stderr
    (benchctl.directory / "t.toml").write_text("[hosts]\nh1 = {}\n")
    lab = text + '[lab]\ntopology = "t.toml"\n'
    told = benchctl("plan", benchctl.profile(lab)).stderr
    assert 'hosts.a: the lab has no host "a" to run its commands' in told


@pytest.mark.netns
def test_in_a_lab_the_commands_run_on_its_hosts_and_again_when_it_is_built_again(benchctl):
    (benchctl.directory / "t.toml").write_text(
        '[hosts]\nh1 = {}\nh2 = {}\n[links.l]\nbetween = ["h1", "h2"]\ndelay = "1ms"\n'
    )
    profile = benchctl.profile(
        """\
[lab]
topology = "t.toml"
verify = false
[hosts.h2]
prepare_run = "ip address add 192.0.2.77/32 dev lo"
prepare = "ip -o -4 address"
cleanup_run = "ip address del 192.0.2.77/32 dev lo"
[flows.main]
backend = "toy"
from = "h1"
to = "h2"
[axes]
"lab.links.l.delay" = ["1ms", "2ms"]
"""
    )
    result = benchctl("run", profile, "-q", "--trust", "--format", "json")
    report = json.loads(result.stdout)
    assert result.returncode == 0, result.stderr
    for trial in report["trials"]:
        assert "192.0.2.77" in trial["hooks"][0]["output"]
    assert [(one["when"], one["exit_code"]) for one in report["run"]["hooks"]] == [
        ("prepare_run", 0), ("prepare_run", 0), ("cleanup_run", 0),
    ]  # fmt: skip
