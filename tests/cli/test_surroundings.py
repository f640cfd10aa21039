"""On machines that lack something, one line says what is missing, never a traceback."""

import re
import shlex
import subprocess
import sys
import tempfile
from contextlib import closing

import pytest
from store.store_support import new_run
from waiting import COMMAND_S

from benchctl.engine.runner.launch import launch
from benchctl.errors import surroundings

OK = '[flows.main]\nbackend = "toy"\n[axes]\nplan = ["ok"]\n'
pytestmark = pytest.mark.tool("bash")


def limited(benchctl, limit, args, **environment):
    """Run benchctl in a shell with a limit."""
    line = f"{limit}; exec {shlex.quote(sys.executable)} -m benchctl {args}"
    return subprocess.run(
        ["bash", "-c", line], cwd=benchctl.directory, env=benchctl.environment | environment,
        capture_output=True, text=True, timeout=COMMAND_S, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("limit", [9, 12, 16, 20])
def test_too_few_descriptors_are_named(benchctl, limit):
    told = limited(benchctl, f"ulimit -n {limit}", f"run {benchctl.profile(OK)}")
    assert "Traceback" not in told.stderr
    if told.returncode not in (0, 1):
        assert re.search("Too many open files|No such file|unable to open", told.stderr)


@pytest.mark.parametrize("limit", [44_000, 54_000, 60_000, 100_000, 200_000, 400_000])
def test_too_little_memory_is_named(benchctl, limit):
    told = limited(benchctl, f"ulimit -v {limit}", f"run {benchctl.profile(OK)}")
    assert "this is a bug" not in told.stderr


def test_a_library_without_room_is_no_bug_and_one_that_is_missing_is():
    full = ImportError("libffi.so.8: failed to map segment from shared object")
    assert surroundings(full) == surroundings(MemoryError())
    for words in ("error return without exception set",
                  "<function f at 0x7f> returned NULL without setting an exception"):  # fmt: skip
        assert surroundings(SystemError(words)) == surroundings(MemoryError())
    assert not surroundings(SystemError("bad argument to internal function"))
    assert not surroundings(ImportError("libffi.so.8: cannot open shared object file"))


def test_a_machine_without_programs_is_looked_at_all_the_same(benchctl):
    benchctl.environment["PATH"] = "/nowhere"
    told = benchctl("doctor")
    assert told.returncode == 0
    assert told.stdout.startswith("ok   kernel")
    lab = benchctl("lab", "exec", "portfolio", "h1", "--", "true")
    assert (lab.returncode, "unshare" in lab.stderr) == (3, True)
    assert "Traceback" not in lab.stderr


IN_A_LAB = (
    '[lab]\ntopology = "pair"\n[flows.main]\nbackend = "toy"\nfrom = "sender"\nto = "receiver"\n'
)


@pytest.mark.netns
@pytest.mark.tool("sh")
def test_who_cannot_build_a_lab_is_told_before_anything_begins(benchctl, tmp_path):
    profile = benchctl.profile(f"{IN_A_LAB}[run]\nattempts = 1\n")
    everything = benchctl.environment["PATH"]
    (tmp_path / "sh").symlink_to("/bin/sh")
    benchctl.environment["PATH"] = str(tmp_path)
    missing = (
        "benchctl: the lab cannot be built: no program unshare in the PATH\n  install util-linux\n"
    )
    run = benchctl("run", profile)
    assert (run.returncode, run.stdout, run.stderr) == (3, "", missing)
    assert not benchctl.store.exists()
    plan = benchctl("plan", profile)
    assert (plan.returncode, plan.stderr) == (3, missing)
    assert "missing  lab: the lab cannot be built: no program unshare in the PATH" in plan.stdout
    benchctl.environment["PATH"] = everything
    settings = ("--set", "flows.main.plan=fail", "--set", "lab.verify=false")
    failed = benchctl("run", profile, *settings)
    assert failed.returncode == 1
    benchctl.environment["PATH"] = str(tmp_path)
    resume = benchctl("resume", "--failed")
    assert (resume.returncode, resume.stdout, resume.stderr) == (3, "", missing)


@pytest.mark.netns
def test_a_store_on_a_full_disk_says_what_to_look_at(benchctl):
    small = benchctl.directory / "small"
    small.mkdir()
    profile = benchctl.profile('[flows.main]\nbackend = "simpleperf"\nduration = "100ms"\n')
    assert benchctl("run", "-q", profile, "--store", "full.sqlite").returncode == 0
    script = f"""
        mount -t tmpfs -o size=400k none {small}
        cp full.sqlite {small}; dd if=/dev/zero of={small}/rest 2>&1
        {sys.executable} -m benchctl run -q {profile} --store {small}/full.sqlite
        echo "end: $?"
    """
    told = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script],
        cwd=benchctl.directory, env=benchctl.environment, capture_output=True, text=True,
        timeout=COMMAND_S, check=False,
    )  # fmt: skip
    assert "end: 4" in told.stdout, told
    assert "the disk is full" in told.stderr


@pytest.mark.netns
def test_a_run_that_fills_the_disk_says_so_and_leaves_a_store_that_opens(benchctl):
    small = benchctl.directory / "small"
    small.mkdir()
    flow = 'backend = "simpleperf"\nduration = "60s"\ninterval = "10ms"\nstreams = 16\n'
    profile = benchctl.profile(f"[flows.main]\n{flow}")
    script = f"""
        mount -t tmpfs -o size=400k none {small}
        for command in "run {profile}" runs; do
            {sys.executable} -m benchctl $command --store {small}/runs.sqlite
            echo "end: $?"
        done
    """
    told = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script],
        cwd=benchctl.directory, env=benchctl.environment, capture_output=True, text=True,
        timeout=COMMAND_S, check=False,
    )  # fmt: skip
    assert "the runner died (exit code 4)" in told.stderr
    assert "disk is full; free some space" in told.stderr
    assert re.findall("^end: (.)", told.stdout, re.MULTILINE) == ["4", "0"]
    assert "Traceback" not in told.stderr


def test_a_run_needs_no_directory_for_temporary_files(tmp_path, monkeypatch):
    def nowhere():
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_get_default_tempdir", nowhere)
    run_id, _ = new_run(tmp_path / "runs.sqlite")
    with closing(launch(tmp_path / "runs.sqlite", run_id)) as runner:
        assert (runner.exit_code, runner.error()) == (0, [])


def test_a_matrix_beyond_all_measure_is_refused_at_once_with_yes_too(benchctl):
    counts = {"streams": 100, "duration": 1000, "window": 1000, "length": 1000}
    units = {"streams": "{}", "duration": '"{}s"', "window": '"{}B"', "length": '"{}B"'}
    axes = [
        f"{name} = [{','.join(units[name].format(n + 100) for n in range(count))}]\n"
        for name, count in counts.items()
    ]
    profile = benchctl.profile('[flows.main]\nbackend = "simpleperf"\n[axes]\n' + "".join(axes))
    for args in (["plan", profile, "--yes"], ["run", profile, "--yes"], ["plan", profile]):
        told = benchctl(*args)
        assert told.returncode == 2
        assert "a matrix of 100,000,000,000 trials: 100 streams x 1000 duration" in told.stderr
        assert "the limits are 1,000,000 points and 20,000,000 trials" in told.stderr
    assert not benchctl.store.exists()


def test_a_file_of_too_many_values_is_refused_with_yes_too(benchctl):
    values = ",".join(map(str, range(500_000)))
    profile = benchctl.profile(OK.replace('["ok"]', f"[{values}]"))
    told = benchctl("plan", profile, "--yes")
    assert (told.returncode, "larger than 500,000 characters" in told.stderr) == (2, True)
