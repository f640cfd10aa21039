"""The reference of profiles is correct: its examples are planned, its tables compared."""

import re
import shlex
import tomllib
from pathlib import Path
from typing import get_args

import pytest
from jsonschema import Draft202012Validator

from benchctl.backends import installed
from benchctl.errors import ProfileError
from benchctl.lab.topology.topology import load_topology
from benchctl.plan.plan import MOST_TRIALS, make_plan
from benchctl.profile import figures, model, places
from benchctl.profile.find import packaged_profiles
from benchctl.profile.load import load_profile
from benchctl.profile.schema import json_schema
from benchctl.units import parse_duration, parse_rate, parse_ratio, parse_size

PAGE = Path(__file__).parents[2] / "docs" / "profile.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\S+) ?(\S*)\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
FILES = {name: text for kind, name, text in BLOCKS if kind == "toml" and name}
PIECES = [text for kind, name, text in BLOCKS if kind == "toml" and not name]
COMMANDS = [
    line.split("#")[0]
    for kind, _, text in BLOCKS
    if kind == "sh"
    for line in text.splitlines()
    if line.strip()
]


@pytest.fixture
def written(here):
    """A directory with the page's files and the topologies that come with benchctl."""
    for name, text in FILES.items():
        (here / name).write_text(text, encoding="utf-8")
    for topology in (packaged_profiles() / "labs").glob("*.toml"):
        (here / topology.name).write_bytes(topology.read_bytes())
    return here


@pytest.fixture(scope="module")
def schema():
    registry = installed()
    return Draft202012Validator(json_schema(registry.load(name) for name in registry.candidates))


def plan(document, **options):
    hosts = []
    if document.topology is not None:
        hosts = load_topology(document.topology).hosts
    return make_plan(document, installed(), hosts=hosts, **options)


def test_the_page_has_examples_of_every_kind():
    assert set(FILES) == {"start.toml", "mesh.toml", "wrong.toml"}
    assert len(PIECES) >= 14
    assert len(COMMANDS) >= 6


def test_the_first_example_has_as_many_trials_as_the_page_says(written):
    made = plan(load_profile("start.toml"))
    assert (len(made.points), len(made)) == (4, 12)


def test_the_mesh_has_every_ordered_pair(written, schema):
    document = load_profile("mesh.toml")
    pairs = [point["pair"] for point in (trial.point for trial in plan(document))]
    assert pairs[:3] == ["oslo:lima", "oslo:bonn", "lima:oslo"]
    assert len({*pairs}) == 6
    schema.validate(document.overrides.data)


@pytest.mark.parametrize("piece", PIECES, ids=lambda piece: piece.split("\n")[0])
def test_every_example_is_planned_and_allowed_by_the_schema(written, schema, piece):
    (written / "p.toml").write_text(f'extends = "start.toml"\n{piece}', encoding="utf-8")
    document = load_profile("p.toml")
    assert len(plan(document)) > 0
    schema.validate(document.overrides.data)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_planned(written, command):
    program, verb, profile, *words = shlex.split(command)
    assert (program, verb in ("plan", "run")) == ("benchctl", True)
    given = {"--set": [], "--only": [], "--repeat": []}
    for option, value in zip(words[::2], words[1::2], strict=True):
        given[option].append(value)
    document = load_profile(profile, given["--set"])
    repeats = int(given["--repeat"][0]) if given["--repeat"] else None
    assert len(plan(document, only=given["--only"], repeats=repeats)) > 0


def test_the_mistake_is_told_as_the_page_says(written):
    (message,) = [text.strip() for kind, _, text in BLOCKS if kind == "text"]
    with pytest.raises(ProfileError, match=f"^{re.escape(message)}$"):
        plan(load_profile("wrong.toml"))


# --- tables ----------------------------------------------------------------------------------


def tables():
    """Return the rows of every table of keys, by the heading or sentence before it."""
    found = {}
    head, rows = "", None
    for line in TEXT.splitlines():
        if line.startswith("#"):
            head, rows = line.lstrip("# "), None
        elif line.startswith("Each of `[[lab.changes]]`"):
            head = "lab.changes"
        elif line == "| key | value | default | meaning |":
            rows = found[head] = {}
        elif rows is not None and line.startswith("| `"):
            _, key, value, default, _, _ = re.split(r" *\| *", line)
            rows[key.strip("`")] = (value, default.strip("`"))
        elif not line.startswith("|"):
            rows = None
    return found


MODELS = {
    "The profile itself": model.Profile,
    "servers": places.ServerTable,
    "interfaces": places.InterfaceTable,
    "hosts": places.HostTable,
    "defaults": model.DefaultsTable,
    "Packets": model.CaptureTable,
    "run": model.RunTable,
    "lab": model.LabTable,
    "lab.changes": model.ChangeTable,
    "A table with sets and values": model.AxisTable,
    "Searching for a rate": model.SearchTable,
    "Expectations": figures.ExpectTable,
    "Reported figures": figures.ReportedTable,
}


@pytest.mark.parametrize("head", MODELS)
def test_every_key_is_listed_with_its_default(head):
    rows = tables()[head]
    fields = {info.alias or name: info for name, info in MODELS[head].model_fields.items()}
    assert list(rows) == list(fields)
    written = json_schema([])["$defs"].get(MODELS[head].__name__) or json_schema([])
    for name, info in fields.items():
        default = rows[name][1]
        if info.is_required():
            assert default == "", name
        elif default == "—":
            assert "default" not in written["properties"][name], name
        else:
            assert tomllib.loads(f"a = {default}")["a"] == written["properties"][name]["default"]


def test_a_flow_has_the_keys_of_defaults_and_backend():
    assert [*tables()["flows"]] == ["backend"]
    assert {*model.FLOW_KEYS} == {"backend", *tables()["defaults"]}


def test_choices_are_all_listed():
    for head, key, choices in (
        ("run", "order", model.Order),
        ("defaults", "direction", model.Direction),
        (
            "lab",
            "emulator",
            get_args(get_args(model.LabTable.model_fields["emulator"].annotation)[0]),
        ),
    ):
        assert re.findall(r'"([^"]+)"', tables()[head][key][0]) == [*choices]


def test_quantities_are_read_as_the_table_says():
    parsers = {
        "duration": parse_duration,
        "rate": parse_rate,
        "size, SI": parse_size,
        "size, binary": parse_size,
        "ratio": parse_ratio,
    }
    rows = re.findall(
        r"^\| ([a-z]+(?:, \w+)?) \| (`\".*?) \| .*? \| (.*?) ?\|$", TEXT, re.MULTILINE
    )
    assert {what for what, _, _ in rows} == set(parsers)
    for what, written, refused in rows:
        for quantity in re.findall(r'`"(.*?)"`', written):
            parsers[what](quantity)
        for text in re.findall(r"`(.*?)`:", refused):
            with pytest.raises(ValueError, match=r"could be|no unit"):
                parsers[what](tomllib.loads(f"a = {text}")["a"])


def test_limits_are_as_the_page_says():
    assert f"more than {MOST_TRIALS:,} trials" in TEXT
