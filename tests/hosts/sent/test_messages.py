"""What a host may say is in one table, and nothing else gets past it."""

import ast
import json
import math
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.hosts.sent import counters, facts, messages, ports, recorder
from benchctl.hosts.sent.frames import MOST_HEAD, frame
from benchctl.hosts.sent.messages import ANSWERS, ASKED, SAID, MessageReader, check_answer, packed
from benchctl.hosts.ssh.programs import AGENT

FITTING = {
    "hello": {"python": "3.9.2", "system": "linux", "pid": 1, "connection": ["::1", "1", "2"]},
    "pong": {"number": 1, "time_s": 1.8e9},
    "started": {"number": 1, "pid": 7},
    "refused": {"number": 1, "error": "no program x in the PATH"},
    "output": {"number": 1, "channel": 2, "time_s": 0.0},
    "ended": {"number": 1, "code": -9},
    "answer": {"number": 1, "value": None},
    "bye": {"why": "the connection was closed"},
}
# None of it fits in any field.
STRANGE = [math.nan, math.inf, -math.inf, 1e308, 2**70, -(2**70), "x" * 5000, "\ud800", {"a": 1}]


def heard(name, fields, body=b""):
    """Return what is read of a message that its sender does not check."""
    text = json.dumps({"is": name, **fields}).encode()
    octets = len(text).to_bytes(4, "big") + len(body).to_bytes(4, "big") + text + body
    return MessageReader(SAID).feed(octets)


def test_every_message_has_an_example_that_arrives():
    assert FITTING.keys() == SAID.keys()
    for name, fields in FITTING.items():
        assert heard(name, fields) == [(name, fields, b"")]
        assert MessageReader(SAID).feed(packed(SAID, name, **fields)) == [(name, fields, b"")]


@pytest.mark.parametrize("strange", STRANGE, ids=lambda value: repr(value)[:9])
def test_no_field_of_any_message_takes_what_it_cannot_be(strange):
    for name, fields in FITTING.items():
        for field in fields.keys() - {"value"}:
            with pytest.raises(ValueError, match=rf"^({name}: {field}: |'utf-8')"):
                heard(name, {**fields, field: strange})


@pytest.mark.parametrize("strange", [*STRANGE, True, None, "", [], [None], 0, -1, 1.5], ids=repr)
def test_no_message_lacks_a_field_or_has_one_of_another_kind(strange):
    """What fits one kind does not fit the others: true is no number, and no number is a text."""
    for name, fields in FITTING.items():
        for field, value in fields.items():
            with pytest.raises(ValueError, match=name):
                heard(name, {key: one for key, one in fields.items() if key != field} | {"x": 1})
            of_kind = isinstance(strange, type(value)) and not isinstance(strange, bool)
            if field == "value" or of_kind or (field == "time_s" and type(strange) is int):
                continue
            with pytest.raises(ValueError, match=rf"^({name}: {field}: |'utf-8')"):
                heard(name, {**fields, field: strange})


@pytest.mark.parametrize("name", ["", "nothing", None, 7, [], {}])
def test_a_message_that_nobody_knows_is_refused(name):
    with pytest.raises(ValueError, match="is not a message"):
        heard(name, {})


def test_a_body_is_as_long_as_its_message_may_have_it():
    fields = FITTING["output"]
    assert heard("output", fields, bytes(messages.MOST_PIECE))
    with pytest.raises(ValueError, match="not a frame"):
        heard("output", fields, bytes(messages.MOST_PIECE + 1))
    with pytest.raises(ValueError, match="bye: a body of 1 bytes"):
        heard("bye", FITTING["bye"], b"x")


@pytest.mark.parametrize("end", ["", "]" * 100_000], ids=["open", "closed"])
def test_what_is_nested_deeply_is_refused(end):
    text = b'{"is":"answer","number":1,"value":' + b"[" * 100_000 + end.encode() + b"}"
    with pytest.raises(ValueError, match=r"nested|delimiter|Expecting"):
        MessageReader(SAID).feed(len(text).to_bytes(4, "big") + bytes(4) + text)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=9,
)


@given(st.sampled_from(sorted(ANSWERS)), anything)
def test_no_answer_of_any_kind_is_more_than_refused(function, value):
    with suppress(ValueError):
        assert check_answer(function, value) is value


def test_what_this_machine_answers_is_in_the_table():
    check_answer("facts.collect", json.loads(json.dumps(facts.collect())))
    check_answer("counters.read", counters.read())
    check_answer("ports.is_own", ports.is_own("127.0.0.1"))
    check_answer("ports.first_free", ports.first_free("127.0.0.1", 5201, 3))
    check_answer("recorder.why_not", recorder.why_not())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("cpu", 7), ("load_1min", math.nan), ("interfaces", {"lo": {"mtu": "1500"}}),
        ("interfaces", {"lo": {"offloads": {"x": 1}}}), ("sysctls", {"tcp_rmem": ["4096"]}),
        ("clock", {"synchronized": True}), ("hostname", ["x"]), ("new", 1),
    ],
)  # fmt: skip
def test_facts_of_another_shape_are_refused(key, value):
    with pytest.raises(ValueError, match=rf"^facts\.collect: '?{key}"):
        check_answer("facts.collect", {**facts.collect(), key: value})


def test_the_facts_of_a_host_with_very_many_interfaces_fit():
    device = {
        "mtu": 1500, "state": "up", "speed_bps": 10_000_000_000, "driver": "veth",
        "offloads": dict.fromkeys(facts._OFFLOADS, True),
    }  # fmt: skip
    many = {**facts.collect(), "interfaces": {f"veth{n:08x}": device for n in range(3000)}}
    octets = packed(SAID, "answer", number=1, value=check_answer("facts.collect", many))
    assert len(octets) < MOST_HEAD


def test_a_sender_sends_nothing_that_the_other_end_would_refuse():
    for value in (math.nan, "x" * (MOST_HEAD + 1)):
        with pytest.raises(ValueError, match=r"."):
            frame({"value": value})
    with pytest.raises(ValueError, match="signal: name: 'SIGSTOP' is not one of"):
        packed(ASKED, "signal", number=1, name="SIGSTOP")
    with pytest.raises(ValueError, match="begin: at_s: "):
        packed(ASKED, "begin", number=1, at_s=math.nan)


def test_no_name_of_an_agents_modules_is_in_two_of_them():
    """They are one file there."""
    names = Counter()
    for module in AGENT:
        for node in ast.parse(Path(module.__file__).read_text()).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                names[node.name] += 1
            targets = node.targets if isinstance(node, ast.Assign) else []
            targets += [node.target] if isinstance(node, ast.AnnAssign) else []
            for name in {one.id for of in targets for one in ast.walk(of) if hasattr(one, "id")}:
                names[name] += 1
    assert [name for name, count in names.items() if count > 1] == []
    assert names["HELLO"] == 1
