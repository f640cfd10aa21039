import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from benchctl.errors import BenchctlError
from benchctl.profile.load import load_profile

PROFILE = """\
title = "before"
[servers]
paris = {host = "p", port = 5201}
"a.b" = {host = "q"}
[flows.main]
backend = "stream"
[axes]
streams = [1, 2]
server = {sets = "to", values = ["paris", "a.b"]}
rtt = [
  {label = "short", omit = "1s"},
  {label = "long", omit = "2s"},
]
[[zip]]
window = ["1M", "2M"]
rate = ["1Mbit", "2Mbit"]
[[exclude]]
streams = 2
rtt = "long"
[lab]
topology = "t.toml"
"""


def points(plan, axis):
    return list(dict.fromkeys(trial.point[axis] for trial in plan))


def test_a_key_of_the_file_is_set(load):
    model = load(
        PROFILE,
        "title=after",
        "run.repeats=3",
        "run.pause=2s",
        "servers.paris.port=9200-9240",
        'servers."a.b".host=r',
        "lab.verify=false",
        "lab.topology=u.toml",
    ).model
    assert model.title == "after"
    assert (model.run.repeats, model.run.pause) == (3, 2.0)
    assert (model.servers["paris"].host, model.servers["paris"].port) == ("p", (9200, 9240))
    assert model.servers["a.b"].host == "r"
    assert (model.lab.verify, model.lab.topology) == (False, "u.toml")


def test_a_table_that_was_not_there_is_made(load):
    model = load(PROFILE, "servers.new.host=x", "servers.new.port=1", "defaults.omit=1s").model
    assert (model.servers["new"].host, model.servers["new"].port) == ("x", (1, 1))
    assert model.defaults.model_extra == {"omit": "1s"}


def test_a_whole_table_is_laid_over(load):
    model = load(PROFILE, 'run={repeats = 2, order = "sequential"}', "run.repeats=3").model
    assert (model.run.repeats, model.run.order) == (3, "sequential")


def test_a_parameter_of_one_flow_is_set_in_its_table_or_as_a_target(plan):
    for text in ("flows.main.duration=3s", "main.duration=3s", "duration=3s"):
        assert {flow.parameters["duration"] for t in plan(PROFILE, text) for flow in t.flows} == {
            "3s"
        }


def test_an_axis_gets_other_values(plan):
    assert points(plan(PROFILE, "streams=4"), "streams") == [4]
    assert points(plan(PROFILE, "streams=4,8"), "streams") == [4, 8]
    assert points(plan(PROFILE, "streams=[4, 8]"), "streams") == [4, 8]
    assert points(plan(PROFILE, "axes.streams=4,8"), "streams") == [4, 8]
    assert points(plan(PROFILE, "axes.omit=1s,2s", "axes.rtt=[{label = 'x'}]"), "omit") == [
        "1s",
        "2s",
    ]


def test_an_axis_keeps_what_it_sets(plan):
    made = plan(PROFILE, "server=paris")
    assert {flow.to for trial in made for flow in trial.flows} == {"paris"}


def test_a_label_of_an_axis_keeps_its_meaning(plan):
    made = plan(PROFILE, "rtt=long", "streams=1")
    assert {flow.parameters["omit"] for trial in made for flow in trial.flows} == {"2s"}


def test_a_rule_for_values_that_were_taken_away_does_nothing(plan):
    assert points(plan(PROFILE, "streams=4"), "rtt") == ["short", "long"]


def test_values_are_read_as_toml_and_as_text_where_they_are_not(load):
    def extra(text):
        return load(PROFILE, f"flows.main.x={text}").model.flows["main"].model_extra["x"]

    assert [extra(text) for text in ("4", "4.5", "true", '"4"', "[1, 2]", "5s", " 5 s ", "")] == [
        4, 4.5, True, "4", [1, 2], "5s", "5 s", "",
    ]  # fmt: skip
    assert extra("a=b") == "a=b"
    assert extra("[" * 100_000) == "[" * 100_000
    assert extra("1" * 5000) == "1" * 5000


def test_what_was_set_belongs_to_the_text_and_its_hash(load):
    plain, changed = load(PROFILE), load(PROFILE, "run.repeats=3")
    assert changed.text == f"{plain.text}\n# --set run.repeats=3"
    assert changed.text != plain.text


WRONG = {
    "no value": ("duration", "duration: expected KEY=VALUE", "for example: --set duration=5s"),
    "no key": ("=5s", "=5s: expected KEY=VALUE", "for example: --set duration=5s"),
    "half a key": ("run.=5", "run.=5: expected KEY=VALUE", "for example: --set duration=5s"),
    "an unknown key": ("run.repeat=3", "run.repeat: unknown key", 'did you mean "repeats"?'),
    "an unknown target": ("strems=3", 'strems: no flow takes "strems"', 'did you mean "streams"?'),
    "a key without its table": (
        "repeats=3", 'repeats: no flow takes "repeats"', 'did you mean "run.repeats"?',
    ),
    "an unknown flow": (
        "mian.omit=3s", 'mian.omit: no flow takes "mian.omit"', 'did you mean "main.omit"?',
    ),
    "a new flow without a backend": ("flows.new.omit=3s", "flows.new.backend: is missing", ""),
    "a wrong value of a key": (
        "run.repeats=many", "run.repeats: must be a whole number", "",
    ),
    "a wrong value of a target": (
        "duration=5", 'duration: 5 has no unit; write a duration as in "10s" or "250ms"', "",
    ),
    "a wrong value of a flow": (
        "flows.main.duration=5m",
        'flows.main.duration: "5m" could be minutes or milliseconds; write "min" or "ms"', "",
    ),
    "a wrong value of an axis": (
        "streams=1,0", "axes.streams[1]: must be at least 1", "",
    ),
    "a wrong port": (
        "servers.paris.port=0", "servers.paris.port: port 0 is not between 1 and 65535", "",
    ),
    "a date": (
        "duration=2026-11-21",
        "duration=2026-11-21: must be a string, a number, true or false", "",
    ),
    "a table for a parameter": (
        "duration={a = 1}",
        """duration: {'a': 1} is not a duration; write it as in "10s" or "250ms\"""", "",
    ),
    "a key within a value": ("title.x=1", "title.x=1: title is not a table", ""),
    "an axis that goes with others": (
        "window=1M", "window: this axis is part of a [[zip]]", "choose values with --only",
    ),
    "a value that an axis replaces": (
        "main.to=paris", 'main.to: axis "server" sets it at every point',
        "choose values with --only",
    ),
    "a base": ("extends=x.toml", "extends=x.toml: extends can only be set in the file", ""),
    "a delay": ("delay=5", 'delay: 5 has no unit; write a duration as in "10s" or "250ms"', ""),
    "a backend": ("backend=steam", 'backend: no backend "steam"', 'did you mean "stream"?'),
    "flows that are not there": ("flows=mian", 'flows: no flow "mian"', 'did you mean "main"?'),
    "no flow": ("flows=[]", "flows: selects no flow", ""),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_setting_is_told_so(refusal, case):
    text, message, hint = WRONG[case]
    error = refusal(PROFILE, text)
    assert error.message == f"--set {message}"
    assert error.hint == hint


def test_a_setting_of_a_lab_needs_one(refusal):
    error = refusal('[flows.main]\nbackend = "stream"\n', "lab.links.core.loss=2%")
    assert error.message == '--set lab.links.core.loss: "lab.links.core.loss" needs a [lab]'


keys = st.lists(
    st.sampled_from(
        ["axes", "zip", "flows", "main", "run", "lab", "servers", "exclude", "streams", "rtt", "0"]
    )
    | st.text(max_size=3),
    max_size=3,
).map(".".join)
values = st.sampled_from(
    ["1", "[1]", "{a = 1}", "{label = [1]}", "[[1]]", "[{}]", "nan"]
) | st.text(max_size=5)


# The fixture only writes a file, which every example writes anew.
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.builds("{}={}".format, keys, values), max_size=3))
@example(["axes={label = [1]}", "flows={a = 1}"])
@example(["#=1"])
def test_any_setting_is_taken_or_refused_in_one_line(plan, texts):
    try:
        plan(PROFILE, *texts)
        said = ""
    except BenchctlError as error:
        said = error.message + error.hint
    assert said.isprintable()


def test_without_its_lab_a_profile_has_no_axes_of_it(tmp_path):
    (tmp_path / "p.toml").write_text("""
        [lab]
        topology = "access.toml"
        [flows.main]
        backend = "iperf3"
        to = "server"
        [axes]
        queue = { sets = "lab.links.access.queue", values = [33, 200] }
        streams = [1, 2]
        """)
    loaded = load_profile(str(tmp_path / "p.toml"), lab=False)
    assert loaded.model.lab is None
    assert [*loaded.model.axes] == ["streams"]
