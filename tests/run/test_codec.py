"""Every type of a run survives JSON unchanged; invalid data is rejected."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.run.codec import from_json, from_row, to_json
from benchctl.run.planned import (
    DeclaredNetwork,
    Expectation,
    ExternalServer,
    HostInterface,
    LabSettings,
    PlannedChange,
    PlannedFlow,
    PlannedTrial,
    Reported,
    Settings,
)
from benchctl.run.record import Note, Trial

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(max_size=5)
SCALARS = TEXTS | st.integers() | NUMBERS | st.booleans()
POINTS = st.dictionaries(TEXTS, SCALARS, max_size=3)
KNOWN = {
    PlannedFlow: {"parameters": POINTS},
    PlannedTrial: {"point": POINTS, "lab": POINTS, "flows": st.just(())},
    Expectation: {"where": POINTS},
    Reported: {"where": POINTS, "metrics": st.dictionaries(TEXTS, NUMBERS, max_size=3)},
}


def of(kind):
    """Draw values of a type from its annotations; those that JSON cannot tell apart by hand."""
    return st.builds(kind, **KNOWN.get(kind, {}))


st.register_type_strategy(float, NUMBERS)
SETTINGS = st.builds(
    Settings,
    values=st.dictionaries(TEXTS, st.lists(SCALARS, max_size=3).map(tuple), max_size=2),
    expect=st.lists(of(Expectation), max_size=2).map(tuple),
    reported=st.lists(of(Reported), max_size=2).map(tuple),
    network=st.builds(
        DeclaredNetwork,
        st.dictionaries(TEXTS, TEXTS, max_size=2),
        st.dictionaries(TEXTS, of(ExternalServer), max_size=2),
        st.dictionaries(TEXTS, of(HostInterface), max_size=2),
    ),
    lab=st.none()
    | st.builds(LabSettings, changes=st.lists(of(PlannedChange), max_size=2).map(tuple)),
)


@given(SETTINGS | of(PlannedTrial) | of(PlannedFlow))
def test_what_is_written_comes_back_equal(value):
    assert from_json(to_json(value), type(value)) == value


@given(SETTINGS, st.integers(0, 10_000), st.characters())
def test_a_damaged_text_is_refused_or_is_another_one_and_never_a_traceback(settings, where, other):
    text = to_json(settings)
    where %= len(text)
    try:
        found = from_json(text[:where] + other + text[where + 1 :], Settings)
    except ValueError:
        return
    assert isinstance(found, Settings)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"values": {}, "order": "", "expect": [{"metric": 3}]}', "expect[0].metric"),
        ('{"values": {}, "order": "", "expect": [], "attempts": "3"}', "attempts"),
        ('{"values": {}, "order": "", "expect": [], "backoff_s": 1e999}', "Expected `object`"),
        ('{"values": {}, "order": "", "expect": [], "backoff_s": NaN}', "Expected `object`"),
        ('{"values": {}, "order": "", "expect": [], "lab": {"path": ""}}', "lab"),
        ('{"order": "", "expect": []}', "missing required field `values`"),
        ("[" * 100_000, "Expected `object`"),
        ("{", "Expected `object`"),
        (b"{}", "Expected `object`"),
    ],
)
def test_a_damaged_value_is_named_by_its_place(text, place):
    with pytest.raises(ValueError, match=place.replace("[", r"\[").replace(".", r"\.")):
        from_json(text, Settings)


def test_what_a_later_version_added_is_passed_over():
    assert from_json('{"name": 1, "host": "a", "ports": null}', dict[str, object])["host"] == "a"
    text = json.dumps({"values": {}, "order": "", "expect": [], "strategy": {"name": "search"}})
    assert from_json(text, Settings) == Settings({}, "", ())


def test_a_rate_without_a_bound_is_read_as_version_0_1_0_wrote_it():
    assert from_json('{"at": 0, "link": "a", "rate": Infinity}', PlannedChange).rate == "unlimited"
    with pytest.raises(ValueError, match="delay"):
        from_json('{"at": 0, "link": "a", "delay": Infinity}', PlannedChange)


def test_what_json_does_not_know_is_not_written():
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_json(Expectation("rtt_s", at_most=math.inf))


NOTE = {"id": 1, "trial_id": None, "flow_id": None, "time": 0.5, "level": "info", "text": ""}


def test_a_row_is_read_by_its_columns():
    assert from_row({**NOTE, "later": 1}, Note) == Note(**NOTE)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"time": math.inf}, "note 1: time"),
        ({"text": b""}, "note 1: text"),
        ({"trial_id": "x"}, "note 1: trial_id"),
    ],
)
def test_a_column_that_cannot_have_been_written_is_named(change, what):
    with pytest.raises(ValueError, match=what):
        from_row({**NOTE, **change}, Note)


@pytest.mark.parametrize("status", ["died", "oj", 3])
def test_a_state_that_is_never_stored_is_damage(status):
    row = {
        "id": 1, "run_id": 1, "position": 0, "repeat": 1, "point": "{}", "flows": "[]", "lab": "{}",
        "duration_s": 1.0, "deadline_s": 1.0, "error": "", "started_time": None,
        "finished_time": None, "start_skew_s": None, "fairness_jain": None,
    }  # fmt: skip
    assert from_row({**row, "status": "ok"}, Trial).links == ()
    with pytest.raises(ValueError, match="trial 1: status"):
        from_row({**row, "status": status}, Trial)
