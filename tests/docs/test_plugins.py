"""docs/plugins.md, followed literally from an empty directory; and its tables are the API's."""

import ast
import inspect
import os
import re
import subprocess
import sys
from typing import get_type_hints

import pytest
from docs.documents import blocks_of, filled, names_in, section, table
from ports import lend_port

from benchctl import api
from benchctl.testing import EXPORTER_RULES, IMPORTER_RULES, RULES
from benchctl.testing.sample_runs import sample_runs

DOCUMENT = "plugins.md"
BACKEND, WRITTEN = "benchctl_echotime/echotime.py", "default_port=7007"


@pytest.fixture(scope="module")
def package(tmp_path_factory, shell_in):
    """Follow the page, and return the directory of the package that its reader has then."""
    shell = shell_in(tmp_path_factory.mktemp("empty"))
    texts, written, chosen = {}, set(), ""
    for block in blocks_of(DOCUMENT, "console", "python", "toml"):
        if block.language == "console":
            shell.check(block)
            backend = shell.directory / BACKEND
            if not chosen and backend.exists():  # on a port that no other test uses
                chosen = f"default_port={lend_port()}"
                backend.write_text(backend.read_text().replace(WRITTEN, chosen))
        elif block.file:
            before = texts.get(block.file)
            texts[block.file] = block.text if before is None else f"{before}\n\n{block.text}"
            path = shell.directory / block.file
            if block.file in written or not path.exists():
                path.write_text(texts[block.file], encoding="utf-8")
                written.add(block.file)
    for file, text in texts.items():
        there = (shell.directory / file).read_text(encoding="utf-8")
        assert there.replace(chosen, WRITTEN) == text, file
    return shell.directory


def test_the_page_can_be_followed_and_shows_what_new_writes(package):
    assert (package / BACKEND).exists()
    assert (package / "runs.sqlite").exists()


def test_the_example_imports_the_contract_and_nothing_else_of_benchctl(package):
    tree = ast.parse((package / BACKEND).read_text())
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name for name in modules if name.startswith("benchctl")} == {"benchctl.api"}


def test_the_package_is_found_when_it_is_installed(package, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    install = ["--no-deps", "--no-build-isolation", "--target", str(tmp_path), "."]
    for argv in (["pip", "install", *install], ["benchctl", "backends"]):
        done = subprocess.run(
            [sys.executable, "-m", *argv],
            cwd=package, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
    assert "echotime     1.0" in done.stdout
    assert "from benchctl-echotime 1.0.0, API 1" in done.stdout


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
    of_events = names_in(table(section("output-reference.md", "## Events"))[2:3], 1)
    described = names_in(table(text[text.index("| key | meaning |") - 1 :]))
    assert sorted({*described, *of_events}) == sorted(next(run.samples()))
