"""The schemas, as a JSON schema's reference reads them and as the TOML language server does."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from jsonschema import Draft7Validator

from benchctl.backends import installed
from benchctl.lab.topology.schema import TopologyFile
from benchctl.plan.plan import make_plan
from benchctl.profile.find import packaged_profiles
from benchctl.profile.load import load_profile
from benchctl.profile.schema import json_schema, model_schema

PROFILES = sorted(
    path for path in packaged_profiles().rglob("*.toml") if path.parent.name != "labs"
)
TOPOLOGIES = sorted((packaged_profiles() / "labs").glob("*.toml"))
GOOD = """\
[servers]
paris = {host = "p", port = "9200-9240", capacity = "10Gbit"}
[interfaces]
wired = {device = "eth0"}
[defaults]
duration = "5s"
direction = "send"
[flows.main]
backend = "iperf3"
to = "paris"
window = "256K"
[flows.beside]
backend = "ping"
count = 10
delay = "250ms"
[axes]
streams = [1, 2, {label = "many", streams = 64, main.window = "1M", flows = ["main"]}]
server = {sets = ["main.to", "beside.to"], values = ["paris", "local"]}
"main.rate" = ["10Mbit", "unlimited"]
"lab.links.core.loss" = ["0%", "1%"]
[[zip]]
length = ["1448B", "64kB"]
congestion_control = ["bbr", "cubic"]
[[exclude]]
streams = [1, 2]
length = "64kB"
[[include]]
streams = 3
[run]
order = "shuffled"
pause = "1s"
[lab]
topology = "t.toml"
changes = [{at = "1s", link = "core", loss = "1%"}]
[[expect]]
metric = "throughput_bps"
at_least = "94Mbit"
[[reported]]
throughput_bps = "94Mbit"
"""


@pytest.fixture(scope="module")
def schema():
    registry = installed()
    return json_schema(registry.load(name) for name in sorted(registry.candidates))


@pytest.fixture(scope="module")
def topology_schema():
    return model_schema(TopologyFile, "topology")


@pytest.fixture(scope="module")
def problems(schema):
    """Return where a profile goes against the schema: the keys, dotted."""
    validator = Draft7Validator(schema)

    def problems(text):
        errors = validator.iter_errors(tomllib.loads(text))
        return [".".join(map(str, error.absolute_path)) for error in errors]

    return problems


def test_the_schema_is_itself_valid_and_plain_json(schema):
    Draft7Validator.check_schema(schema)
    assert json.loads(json.dumps(schema)) == schema


def test_a_good_profile_is_allowed(problems, load):
    assert problems(GOOD) == []
    assert len(make_plan(load(GOOD), installed())) == 33


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_every_profile_that_comes_with_benchctl_is_allowed(schema, path):
    """As it is written, and with what it extends."""
    validator = Draft7Validator(schema)
    validator.validate(tomllib.loads(path.read_text(encoding="utf-8")))
    validator.validate(load_profile(str(path)).overrides.data)


@pytest.mark.parametrize("path", TOPOLOGIES, ids=lambda path: path.stem)
def test_every_topology_that_comes_with_benchctl_is_allowed(topology_schema, path):
    Draft7Validator(topology_schema).validate(tomllib.loads(path.read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def taplo(tmp_path_factory, schema, topology_schema):
    """Return whether Taplo allows files."""
    directory = tmp_path_factory.mktemp("taplo")
    for name, one in (("profile", schema), ("topology", topology_schema)):
        (directory / f"{name}.json").write_text(json.dumps(one))

    def taplo(kind, *files):
        program = Path(sys.executable).with_name("taplo")
        rules = f"file://{directory}/{kind}.json"
        result = subprocess.run(
            [program, "lint", "--schema", rules, *files],
            cwd=directory, capture_output=True, check=False,
        )  # fmt: skip
        return result.returncode == 0

    return taplo


def test_taplo_allows_all_that_comes_with_benchctl(taplo, tmp_path):
    (tmp_path / "good.toml").write_text(GOOD)
    assert taplo("profile", tmp_path / "good.toml", *PROFILES)
    assert taplo("topology", *TOPOLOGIES)


MISTAKES = [
    ("[run]", "[runs]", ""),
    ("host =", "hots =", "servers.paris"),
    ('"9200-9240"', "70000", "servers.paris.port"),
    ('"9200-9240"', '"9200"', "servers.paris.port"),
    ('"10Gbit"', '"10Gbps"', "servers.paris.capacity"),
    ('{device = "eth0"}', '"eth0"', "interfaces.wired"),
    ('duration = "5s"', 'duration = "5m"', "defaults.duration"),
    ('duration = "5s"', "duration = 5", "defaults.duration"),
    ('duration = "5s"', 'duratoin = "5s"', "defaults"),
    ('duration = "5s"', 'backend = "ping"', "defaults"),
    ('backend = "ping"', 'backend = "pong"', "flows.beside.backend"),
    ('window = "256K"', 'windwo = "256K"', "flows.main"),
    ('window = "256K"', 'window = "256KB"', "flows.main.window"),
    ('window = "256K"', "count = 10", "flows.main"),
    ('window = "256K"', "streams = 129", "flows.main.streams"),
    ('window = "256K"', 'protocol = "dccp"', "flows.main.protocol"),
    ('window = "256K"', 'direction = "round-trip"', "flows.main.direction"),
    ('delay = "250ms"', 'delay = "250"', "flows.beside.delay"),
    ("streams = [1, 2, {", 'streams = [1, "2", {', "axes.streams"),
    ("streams = [1, 2, {", "streams = [1, 2, 0, {", "axes.streams"),
    ('{label = "many", ', "{", "axes.streams"),
    ("values = [", "value = [", "axes.server"),
    ('["10Mbit", "unlimited"]', "[]", "axes.main.rate"),
    ('["1448B", "64kB"]', '["1448", "64kB"]', "zip.0.length"),
    ('order = "shuffled"', 'order = "random"', "run.order"),
    ('pause = "1s"', "repeats = 0", "run.repeats"),
    ('loss = "1%"', "loss = 0.01", "lab.changes.0.loss"),
    ('at = "1s"', "at = 1", "lab.changes.0.at"),
    ('at = "1s"', 'at = "1"', "lab.changes.0.at"),
    ("throughput_bps", "throughput", "expect.0.metric"),
]


@pytest.mark.parametrize(("old", "new", "place"), MISTAKES)
def test_a_typical_mistake_is_marked_where_it_is(problems, old, new, place):
    assert place in problems(GOOD.replace(old, new, 1))


@pytest.mark.parametrize(("old", "new", "place"), MISTAKES)
def test_taplo_marks_a_typical_mistake(taplo, tmp_path, old, new, place):
    (tmp_path / "bad.toml").write_text(GOOD.replace(old, new, 1))
    assert not taplo("profile", tmp_path / "bad.toml")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[flows.main]\nwindow = '1M'", "flows.main"),
        ("[servers.paris]\nport = 5201\n[flows.main]\nbackend = 'ping'", "servers.paris"),
        ("[run]\nrepeats = 2", ""),
        ("[axes.rate]\nsets = ['main.rate']\n[flows.main]\nbackend = 'iperf3'", "axes.rate"),
    ],
)
def test_only_a_profile_that_extends_another_may_leave_out_what_that_has(
    problems, taplo, tmp_path, text, place
):
    path = tmp_path / "p.toml"
    path.write_text(text)
    assert place in problems(text)
    assert not taplo("profile", path)
    path.write_text(f"extends = 'other.toml'\n{text}")
    assert problems(path.read_text()) == []
    assert taplo("profile", path)


@pytest.mark.parametrize(
    "mistake",
    [
        'dealy = "1ms"', "delay = 1", 'between = ["a"]', 'emulator = "best"', "[host]",
        "mtu = 9001", 'toward = {b = {mtu = 1500}}', "[[hosts.a.services]]\nport = 1",
    ],
)  # fmt: skip
def test_a_typical_mistake_in_a_topology_is_marked(topology_schema, taplo, tmp_path, mistake):
    text = f"{mistake}\n" if "emulator" in mistake else ""
    text += "seed = 1\n[hosts.a]\n[hosts.b]\n[links.ab]\nqueue = 10\n"
    text += "" if "between" in mistake else 'between = ["a", "b"]\n'
    text += "" if "emulator" in mistake else mistake
    assert list(Draft7Validator(topology_schema).iter_errors(tomllib.loads(text)))
    (tmp_path / "bad.toml").write_text(text)
    assert not taplo("topology", tmp_path / "bad.toml")


@pytest.mark.parametrize("kind", ["schema", "topology_schema"])
def test_everything_that_can_be_written_is_described(request, kind):
    schema = request.getfixturevalue(kind)

    def check(node, where):
        if isinstance(node, dict):
            for name, inner in node.get("properties", {}).items():
                if {"if", "else"} & set(where):
                    continue
                told = "description" in inner or name == "direction"
                assert told, f"{'.'.join(where)}.{name} has no description"
            for name, inner in node.items():
                check(inner, [*where, name])
        elif isinstance(node, list):
            for one in node:
                check(one, where)

    check(schema, [])


def test_defaults_are_written_as_in_toml(schema):
    found = []

    def check(node):
        if isinstance(node, dict):
            if "default" in node and node.get("type") == "string":
                found.append(node["default"])
                Draft7Validator(node).validate(node["default"])
            for inner in node.values():
                check(inner)
        elif isinstance(node, list):
            for one in node:
                check(one)

    check(schema)
    assert {"0s", "2s"} < set(found)


def test_a_flow_is_offered_the_parameters_of_its_own_backend(registry):
    schema = json_schema([registry.load("stream"), registry.load("echo")])
    branches = {
        one["if"]["properties"]["backend"]["const"]: set(one["then"]["properties"])
        for one in schema["$defs"]["FlowTable"]["allOf"]
    }
    assert branches["echo"] == {"count", "interval", "duration", "direction"}
    assert {"streams", "window", "tags"} < branches["stream"]
    assert schema["$defs"]["FlowTable"]["properties"]["backend"]["enum"] == ["echo", "stream"]
    assert "stalls" in schema["$defs"]["ExpectTable"]["properties"]["metric"]["enum"]


def test_without_backends_there_is_still_a_schema():
    Draft7Validator.check_schema(json_schema([]))
