"""Whatever TOML holds, a profile is planned or refused in one line, never a traceback."""

import copy
import datetime
import math
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from benchctl.errors import MissingError, ProfileError
from benchctl.plan.plan import make_plan
from benchctl.profile.load import load_profile
from benchctl.profile.schema import json_schema
from benchctl.toml.source import TomlSource

GOOD = {
    "title": "x",
    "servers": {"paris": {"host": "p", "port": "1-2", "capacity": "1Gbit"}},
    "interfaces": {"wired": {"device": "eth0"}},
    "hosts": {"h1": {"address": "10.0.0.1"}},
    "defaults": {"duration": "1s", "from": "h1", "delay": "1s"},
    "flows": {
        "main": {"backend": "stream", "to": "paris", "direction": "send", "tags": [1]},
        "echo": {"backend": "echo", "count": 4, "interface": "wired"},
    },
    "axes": {
        "streams": [1, 2],
        "server": {"sets": ["main.to"], "values": ["paris", "local"]},
        "load": [{"label": "x", "omit": "1s", "echo": {"count": 3}}, {"label": "y"}],
        "flows": ["main", "echo"],
        "lab.links.core.loss": ["1%", "2%"],
        "backend": {"sets": "echo.backend", "values": ["echo"]},
        "delay": ["0s", "1s"],
    },
    "zip": [{"window": ["1M", "2M"], "rate": ["1Mbit", "unlimited"]}],
    "exclude": [{"streams": 2, "load": ["x", "y"], "server": "local"}],
    "include": [{"streams": 7, "load": "x"}],
    "run": {"repeats": 2, "order": "shuffled", "seed": 1, "pause": "1s", "deadline": "60s"},
    "lab": {
        "topology": "t.toml",
        "changes": [{"at": "1s", "link": "l", "ramp": "5%", "rate": "1Mbit"}],
    },
    "expect": [{"metric": "rtt_s", "at_most": "1s", "where": {"streams": 1}, "flow": "echo"}],
    "reported": [{"rtt_s": "1s", "where": {"streams": 1}, "flow": "echo"}],
}


def places(node, path=()):
    yield path
    for key, inner in node.items() if isinstance(node, dict) else enumerate(node):
        if isinstance(inner, dict | list):
            yield from places(inner, (*path, key))
        else:
            yield (*path, key)


junk = st.sampled_from(
    ["", "x", "a\nb", "1s", "1M", "paris", "echo", "main", "5", "\u2028", "lab.x"]
) | st.sampled_from(
    [0, 1, -1, 2**70, True, 1.5, math.nan, math.inf, datetime.date(2026, 1, 1), datetime.time(1)]
)
junk = st.recursive(
    junk,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["label", "values", "sets", "a b", "x\ny", "[key]", "main", "Axis"]),
            inner,
            max_size=2,
        )
    ),
    max_leaves=4,
)


@st.composite
def mutated(draw):
    data = copy.deepcopy(GOOD)
    for _ in range(draw(st.integers(1, 3))):
        *path, last = draw(st.sampled_from([place for place in places(data) if place]))
        node = data
        for key in path:
            node = node[key]
        match draw(st.sampled_from(["replace", "remove", "add"])):
            case "replace":
                node[last] = draw(junk)
            case "remove":
                del node[last]
            case "add" if isinstance(node, dict):
                node[draw(st.sampled_from(["x", "label", "a\nb", "omit", "host"]))] = draw(junk)
            case "add":
                node.append(draw(junk))
    return data


@pytest.fixture
def plan_data(registry):
    """Plan a profile's data as if it had been read from ``p.toml``."""

    def plan_data(data):
        source = TomlSource(Path("p.toml"), "", data, {})
        return make_plan(load_profile(source), registry, interfaces=["wired"])

    return plan_data


@pytest.fixture
def check_schema(registry):
    """Raise unless the schema allows a profile's data."""
    schema = json_schema([registry.load("stream"), registry.load("echo")])
    validator = Draft202012Validator(schema)
    return lambda data: validator.validate(data)


def test_the_profile_that_is_mutated_is_good(plan_data):
    assert len(plan_data(GOOD)) > 50


# The fixture replaces the same two functions for every example.
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=300
)
@given(mutated())
def test_any_data_is_planned_or_refused_in_one_line(plan_data, check_schema, data):
    try:
        list(plan_data(data))
    except (ProfileError, MissingError) as error:
        said, hint = error.message, error.hint
    else:
        said = hint = ""
        check_schema(data)  # an editor must not mark what is right
    assert (said + hint).isprintable()
    assert said == "" or said.startswith("p.toml:1: ")
