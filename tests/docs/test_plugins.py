"""docs/plugins.md: its backend runs, its tests pass, its package is found."""

import ast
import importlib.util
import inspect
import os
import re
import subprocess
import sys
from typing import get_type_hints

import pytest
from docs.documents import blocks_of, filled, names_in, section, table, write_files

from benchctl import api
from benchctl.testing import EXPORTER_RULES, IMPORTER_RULES, RULES
from benchctl.testing.sample_runs import sample_runs

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


def test_the_package_is_found_and_passes_its_tests_laid_out_as_shown(shell, tmp_path):
    (layout,) = blocks_of(DOCUMENT, "text")
    package = lay_out(layout.text, shell.directory, tmp_path / "laid-out")
    installed = str(tmp_path / "installed")
    environment = {**os.environ, "PYTHONPATH": installed}
    install = ["pip", "install", "--no-deps", "--no-build-isolation", "--target", installed, "."]
    for module in (install, ["pytest", "-c", os.devnull, "--rootdir", ".", "tests"]):
        result = subprocess.run(
            [sys.executable, "-m", *module],
            cwd=package, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert result.returncode == 0, result.stdout + result.stderr
    assert "4 passed" in result.stdout
    listed = subprocess.run(
        [sys.executable, "-m", "benchctl", "backends"],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "echotime     1.0" in listed.stdout


def lay_out(layout, source, target):
    """Lay the page's files out as it shows; a line that imports takes the place of the file's."""
    folders = []
    for line in layout.splitlines():
        indent, name, note = re.fullmatch(r"( *)(\S+) *(.*)", line).groups()
        folders[len(indent) // 2 :] = [name]
        path = target.joinpath(*folders)
        if name.endswith("/"):
            path.mkdir(parents=True)
        elif name == "__init__.py":
            path.write_text(note)
        else:
            text = (source / name).read_text()
            if note.startswith("from "):
                imported = note.rpartition(" import ")[2]
                text, changed = re.subn(rf"^from .* import {imported}$", note, text, flags=re.M)
                assert changed == 1
            path.write_text(text)
    return target / folders[0]


def test_the_versions_of_the_api_are_those_that_the_page_names():
    text = " ".join(section(DOCUMENT, "## What may change").split())
    assert f"`benchctl.api.API_VERSION` is {api.API_VERSION}." in text
    assert f"`OLDEST_API_VERSION`, which is {api.OLDEST_API_VERSION}," in text


def test_every_event_kind_of_failure_fold_and_field_of_a_demand_is_described():
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
    demand = names_in(table(section(DOCUMENT, "### What a flow asks of the network")))
    assert demand == list(inspect.signature(api.Demand).parameters)


@pytest.mark.parametrize(
    ("marker", "rules", "head"),
    [
        ("rules", RULES, "rule"),
        ("rules of exporters", EXPORTER_RULES, "rule of exporters"),
        ("rules of importers", IMPORTER_RULES, "rule of importers"),
    ],
)
def test_the_rules_of_the_contracts_are_listed(request, marker, rules, head):
    rows = [f"| `{rule.name}` | {rule.claim} |" for rule in rules.values()]
    lines = [f"| {head} | what must hold |", "|---|---|", *rows]
    filled(DOCUMENT, marker, lines, request.config.getoption("--update-golden"))


def test_every_attribute_and_key_of_an_exporter_is_described():
    text = section(DOCUMENT, "### An exporter")
    assert sorted(names_in(table(text))) == sorted(get_type_hints(api.Exporter))
    (run, *_) = sample_runs(single_trial=False)
    of_events = names_in(table(section("output.md", "## Events"))[2:3], 1)
    described = names_in(table(text[text.index("| key | meaning |") - 1 :]))
    assert sorted([*described, *of_events]) == sorted(next(run.samples()))
