"""The versions that the tests are run with: of Python, and of what benchctl depends on."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

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
        name, bound = re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", one).groups()
        assert lowest[name][: bound.count(".") + 1] == bound.split("."), one
