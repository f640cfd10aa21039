import json
import tomllib

import pytest
from jsonschema import Draft202012Validator

from benchctl.backends import installed
from benchctl.profile.load import load_profile, packaged_profiles
from benchctl.profile.plan import make_plan
from benchctl.profile.schema import json_schema

PROFILES = sorted(
    path for path in packaged_profiles().rglob("*.toml") if path.parent.name != "labs"
)
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
def problems(schema):
    """Return where a profile goes against the schema: the keys, dotted."""
    validator = Draft202012Validator(schema)

    def problems(text):
        errors = validator.iter_errors(tomllib.loads(text))
        return [".".join(map(str, error.absolute_path)) for error in errors]

    return problems


def test_the_schema_is_itself_valid_and_plain_json(schema):
    Draft202012Validator.check_schema(schema)
    assert json.loads(json.dumps(schema)) == schema


def test_a_good_profile_is_allowed(problems, load):
    assert problems(GOOD) == []
    assert len(make_plan(load(GOOD), installed())) == 33


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_every_profile_that_comes_with_benchctl_is_allowed(schema, path):
    Draft202012Validator(schema).validate(load_profile(str(path)).settings.data)


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
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
        ('window = "256K"', 'protocol = "sctp"', "flows.main.protocol"),
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
        ("throughput_bps", "throughput", "expect.0.metric"),
    ],
)
def test_a_typical_mistake_is_marked_where_it_is(problems, old, new, place):
    assert problems(GOOD.replace(old, new, 1)) != []
    assert place in problems(GOOD.replace(old, new, 1))


def test_everything_that_can_be_written_is_described(schema):
    def check(node, where):
        if isinstance(node, dict):
            for name, inner in node.get("properties", {}).items():
                if where[-1:] == ["if"]:
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
                Draft202012Validator(node).validate(node["default"])
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
    assert "stalls" in schema["$defs"]["Expectation"]["properties"]["metric"]["enum"]


def test_without_backends_there_is_still_a_schema():
    Draft202012Validator.check_schema(json_schema([]))
