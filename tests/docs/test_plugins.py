"""docs/plugins.md: its backend runs, its tests pass, its package is found."""

import ast
import importlib.util
import inspect
import os
import re
import shutil
import subprocess
import sys
import zipfile

import pytest
from docs.documents import blocks_of, names_in, section, table, write_files

from benchctl import api

DOCUMENT = "plugins.md"


@pytest.fixture
def shell(tmp_path, shell_in):
    write_files(DOCUMENT, tmp_path)
    return shell_in(tmp_path)


def test_the_example_runs_as_shown(shell):
    for block in blocks_of(DOCUMENT, "console"):
        shell.check(block)


def test_the_examples_own_tests_pass(tmp_path, monkeypatch):
    write_files(DOCUMENT, tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    spec = importlib.util.spec_from_file_location("test_echotime", tmp_path / "test_echotime.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    tests = [test for name, test in vars(module).items() if name.startswith("test_")]
    assert len(tests) == 4
    for test in tests:
        test()


def test_the_example_imports_the_contract_and_nothing_else_of_benchctl(tmp_path):
    write_files(DOCUMENT, tmp_path)
    tree = ast.parse((tmp_path / "echotime.py").read_text())
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name for name in modules if name.startswith("benchctl")} == {"benchctl.api"}


def test_the_package_is_found_by_its_entry_point(shell):
    package = shell.directory / "benchctl_echotime"
    package.mkdir()
    for name in ("echotime.py", "echotime_tool.py"):
        shutil.move(shell.directory / name, package / name)
    (layout,) = blocks_of(DOCUMENT, "text")
    package.joinpath("__init__.py").write_text(re.search(r"from .* import BACKEND", layout.text)[0])
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel"],
        cwd=shell.directory, check=True, capture_output=True,
    )  # fmt: skip
    (wheel,) = shell.directory.glob("dist/*.whl")
    zipfile.ZipFile(wheel).extractall(shell.directory / "installed")
    listed = subprocess.run(
        [sys.executable, "-m", "benchctl", "backends"], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(shell.directory / "installed")},
    )  # fmt: skip
    assert "echotime     1.0" in listed.stdout


def test_every_event_kind_of_failure_and_fold_is_described():
    events = names_in(table(section(DOCUMENT, "### Events")))
    told = {event: inspect.signature(getattr(api, event.partition("(")[0])) for event in events}
    for event, signature in told.items():
        fields = re.findall(r"\w+", event.partition("(")[2])
        assert fields == list(signature.parameters), event
    assert {event.partition("(")[0] for event in events} == {
        kind.__name__ for kind in api.Event.__args__
    }
    kinds = table(section(DOCUMENT, "### Failures"))
    assert {row[0].strip("`"): row[2].startswith("yes") for row in kinds} == {
        kind.name: kind.retryable for kind in api.FailureKind
    }
    folds = names_in(table(section(DOCUMENT, "### Metrics and folds")))
    assert folds == [f"Fold.{fold.name}" for fold in api.Fold]
