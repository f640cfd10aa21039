"""The versions that the tests are run with: of Python, and of what benchctl depends on."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run_pythons(*directories):
    path = os.pathsep.join(map(str, [*directories, "/usr/bin", "/bin"]))
    return subprocess.run(
        ["bash", ROOT / ".ci/pythons"], env={"PATH": path}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip


def program(path, script):
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_every_python_that_works_is_found_once(tmp_path):
    for name in ("a/python3.94", "b/python3.94", "a/python3.9", "a/python3.100-config"):
        program(tmp_path / name, f'exec {sys.executable} "$@"')
    found = run_pythons(tmp_path / "a", tmp_path / "b")
    assert found.stdout.splitlines().count(sys.executable) == 1


def test_a_python_that_does_not_work_is_passed_over_with_its_reason(tmp_path):
    said = "pyenv: python3.94: command not found\n\nThe command exists in these versions:"
    program(tmp_path / "shims/python3.94", f"echo '{said}' >&2; exit 127")
    program(tmp_path / "bare/python3.95", f"exec {sys.executable} -S -c 'import no_ensurepip'")
    found = run_pythons(tmp_path / "shims", tmp_path / "bare")
    assert found.stderr.splitlines()[-2:] == [
        f"passed over: {tmp_path}/shims/python3.94: pyenv: python3.94: command not found",
        f"passed over: {tmp_path}/bare/python3.95: ModuleNotFoundError: No module named "
        "'no_ensurepip'",
    ]
    assert str(tmp_path) not in found.stdout
    # The next of that name in the PATH may well work.
    program(tmp_path / "later/python3.94", f'exec {sys.executable} "$@"')
    found = run_pythons(tmp_path / "shims", tmp_path / "later")
    assert (found.stderr, found.stdout.splitlines()[-1]) == ("", sys.executable)


def test_the_lowest_versions_that_are_tested_are_those_that_are_promised():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    promised = [*project["dependencies"], *extras["build"], *extras["dev"]]
    locked = re.findall(
        r"^([\w-]+)==([\d.]+)", (ROOT / "requirements-lowest.lock").read_text(), flags=re.M
    )
    lowest = {name: version.split(".") for name, version in locked}
    for one in promised:
        name, bound = re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)(?:,<[\d.]+)?", one).groups()
        assert lowest[name][: bound.count(".") + 1] == bound.split("."), one


@pytest.fixture
def history(tmp_path):
    """Return a function that makes a repository with a commit at each of some hours."""

    def git(*words, **environment):
        argv = ["git", "-C", tmp_path, "-c", "user.name=x", "-c", "user.email=x@x.example", *words]
        done = subprocess.run(argv, env={**os.environ, **environment}, capture_output=True,
                              text=True, check=True)  # fmt: skip
        return done.stdout.strip()

    def make(*hours):
        git("init", "--quiet", "--initial-branch", "main")
        for hour in hours:
            date = f"{1_700_000_000 + hour * 3600} +0000"
            git(
                "commit",
                "--quiet",
                "--allow-empty",
                "--message",
                str(hour),
                GIT_COMMITTER_DATE=date,
            )
        return git

    return make


def compared_with(git):
    """Return the message of the commit with which the gate compares."""
    base = subprocess.run([ROOT / ".ci/base"], cwd=git("rev-parse", "--show-toplevel"),
                          capture_output=True, text=True, check=True).stdout.strip()  # fmt: skip
    return git("log", "-1", "--format=%s", base) if base else None


@pytest.mark.tool("git")
@pytest.mark.parametrize(
    ("hours", "base"),
    [
        ((0, 10, 30, 40, 54, 55), "30"),
        ((0, 1, 2), None),
        ((0, 30, 20, 60), "20"),
        ((0, 40, 20, 50), None),
    ],
    ids=["days", "hours", "out of order, long ago", "out of order"],
)
def test_the_gate_sees_the_work_of_a_day(history, hours, base):
    assert compared_with(history(*hours)) == base


@pytest.mark.tool("git")
def test_the_gate_sees_the_whole_of_a_branch(history):
    git = history(0, 10)
    git("checkout", "--quiet", "-b", "branch")
    for hour in (20, 50, 100):
        date = f"{1_700_000_000 + hour * 3600} +0000"
        git("commit", "--quiet", "--allow-empty", "--message", str(hour), GIT_COMMITTER_DATE=date)
    assert compared_with(git) == "10"


@pytest.mark.tool("git")
def test_without_a_history_the_gate_looks_at_everything(tmp_path):
    done = subprocess.run([ROOT / ".ci/base"], cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout == b""
