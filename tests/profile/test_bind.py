import pytest

from benchctl.api import Direction
from benchctl.plan.bind import DEADLINE_SLACK_S

FLOW = '[flows.main]\nbackend = "stream"\n'


def parameters(plan):
    return [flow.parameters for trial in plan for flow in trial.flows]


# --- precedence ------------------------------------------------------------------------------

DEFAULTS = "[defaults]\nstreams = 2\n"
WRITTEN = "streams = 3\n"
AXES = "[axes]\nstreams = [4]\n"


@pytest.mark.parametrize(
    ("text", "settings", "value"),
    [
        (FLOW, [], None),
        (DEFAULTS + FLOW, [], 2),
        (DEFAULTS + FLOW + WRITTEN, [], 3),
        (DEFAULTS + FLOW + WRITTEN, ["main.streams=5"], 5),
        (DEFAULTS + FLOW + WRITTEN, ["streams=5"], 5),
        (DEFAULTS + FLOW + WRITTEN, ["streams=5", "main.streams=6"], 6),
        (DEFAULTS + FLOW + WRITTEN, ["main.streams=6", "streams=5"], 6),
        (DEFAULTS + FLOW + WRITTEN, ["flows.main.streams=5"], 5),
        (DEFAULTS + FLOW + WRITTEN, ["defaults.streams=5"], 3),
        (DEFAULTS + FLOW + WRITTEN + AXES, [], 4),
        (DEFAULTS + FLOW + WRITTEN + AXES, ["streams=5"], 5),
        (DEFAULTS + FLOW + WRITTEN + AXES, ["flows.main.streams=5"], 4),
    ],
)
def test_axes_go_before_set_before_the_flow_before_defaults(plan, text, settings, value):
    (found,) = parameters(plan(text, *settings))
    assert found.get("streams") == value


def test_a_target_of_one_flow_goes_before_one_of_all_flows_whatever_the_order(plan):
    text = FLOW + '[flows.other]\nbackend = "stream"\n[axes]\n'
    for value in ('"main.streams" = 2, streams = 1', "streams = 1, main = {streams = 2}"):
        found = parameters(plan(text + f'load = [{{label = "x", {value}}}]'))
        assert [p["streams"] for p in found] == [2, 1]


# --- who takes what --------------------------------------------------------------------------

TWO = FLOW + '[flows.beside]\nbackend = "echo"\ncount = 5\n'


def test_a_parameter_reaches_the_flows_that_take_it(plan):
    found = parameters(plan('[defaults]\nstreams = 4\ninterval = "2s"\nduration = "3s"\n' + TWO))
    assert found == [
        {"streams": 4, "duration": "3s"}, {"interval": "2s", "duration": "3s", "count": 5},
    ]  # fmt: skip
    found = parameters(plan(TWO + '[axes]\nduration = ["1s", "2s"]\nomit = ["1s"]\n'))
    assert found == [
        {"duration": "1s", "omit": "1s"}, {"count": 5, "duration": "1s"},
        {"duration": "2s", "omit": "1s"}, {"count": 5, "duration": "2s"},
    ]  # fmt: skip


def test_a_direction_reaches_the_flows_that_can_choose(plan):
    for text in (
        '[defaults]\ndirection = "receive"\n' + TWO,
        TWO + '[axes]\ndirection = ["receive"]',
    ):
        (trial,) = plan(text)
        assert [flow.direction for flow in trial.flows] == [Direction.RECEIVE, Direction.ROUND_TRIP]


def test_the_default_direction_is_the_backends_first(plan):
    (trial,) = plan(TWO)
    assert [flow.direction for flow in trial.flows] == [Direction.SEND, Direction.ROUND_TRIP]


def test_places_and_delay_are_bound_and_are_no_parameters(plan):
    text = """
        [servers]
        paris = {host = "p"}
        [hosts]
        h1 = {address = "10.0.0.1"}
        [interfaces]
        wired = {device = "eth0"}
        [defaults]
        from = "h1"
        delay = "1s"
        [flows.main]
        backend = "stream"
        to = "paris"
        [flows.other]
        backend = "stream"
        delay = "2s"
        interface = "wired"
        [axes]
        "main.interface" = ["wired", "lan"]
    """
    first, second = plan(text, hosts=["h2"], interfaces=["lan"])
    main, other = first.flows
    assert (main.source, main.to, main.interface, main.delay_s) == ("h1", "paris", "wired", 1.0)
    assert (other.source, other.to, other.interface, other.delay_s) == ("h1", "local", "wired", 2.0)
    assert second.flows[0].interface == "lan"
    assert main.parameters == {}


def test_hosts_and_interfaces_of_a_lab_are_known(plan):
    text = FLOW + 'from = "h1"\nto = "h2"\ninterface = "wan"\n'
    (trial,) = plan(text, hosts=["h1", "h2"], interfaces=["wan"])
    assert (trial.flows[0].source, trial.flows[0].to) == ("h1", "h2")


def test_an_axis_may_change_the_backend_of_a_flow(plan):
    text = """
        [defaults]
        streams = 4
        duration = "1s"
        [flows.main]
        backend = "stream"
        [axes]
        tool = [
          {label = "one", backend = "stream", omit = "1s"},
          {label = "two", backend = "echo", count = 9},
        ]
    """
    one, two = plan(text)
    assert (one.flows[0].backend, two.flows[0].backend) == ("stream", "echo")
    assert one.flows[0].parameters == {"streams": 4, "duration": "1s", "omit": "1s"}
    assert two.flows[0].parameters == {"duration": "1s", "count": 9}
    assert two.flows[0].direction is Direction.ROUND_TRIP
    (trial,) = plan(FLOW, "backend=echo", "count=2")
    assert (trial.flows[0].backend, trial.flows[0].parameters) == ("echo", {"count": 2})


# --- which flows a point has -----------------------------------------------------------------

PAIRS = """
    [flows.a]
    backend = "stream"
    [flows.b]
    backend = "stream"
    [flows.b2]
    backend = "stream"
    duration = "30s"
"""


def names(trial):
    return [flow.name for flow in trial.flows]


def test_an_axis_chooses_the_flows_of_a_point(plan):
    text = (
        PAIRS
        + """
        [axes]
        pairs = [
          {label = "one", flows = ["a"]},
          {label = "two", flows = ["b", "a"]},
          {label = "long name only", flows = "b2"},
          {label = "all"},
        ]
    """
    )
    trials = list(plan(text))
    assert [names(trial) for trial in trials] == [["a"], ["a", "b"], ["b2"], ["a", "b", "b2"]]
    assert [trial.duration_s for trial in trials] == [10.0, 10.0, 30.0, 30.0]


def test_a_plain_axis_of_flows_has_one_flow_a_point(plan):
    assert [names(trial) for trial in plan(PAIRS + '[axes]\nflows = ["b2", "a"]')] == [
        ["b2"],
        ["a"],
    ]


def test_set_chooses_the_flows(plan):
    assert [names(trial) for trial in plan(PAIRS, "flows=b2")] == [["b2"]]
    assert [names(trial) for trial in plan(PAIRS, 'flows=["b", "a"]')] == [["a", "b"]]


# --- the trial -------------------------------------------------------------------------------


def test_a_trial_lasts_as_long_as_its_flow_that_ends_last(plan):
    text = FLOW + 'omit = "1s"\n[flows.late]\nbackend = "stream"\nduration = "4s"\ndelay = "9s"\n'
    (trial,) = plan(text)
    assert trial.duration_s == 13.0
    assert trial.deadline_s == 13.0 + DEADLINE_SLACK_S
    (trial,) = plan(text + '[run]\ndeadline = "20s"\n')
    assert trial.deadline_s == 20.0


@pytest.mark.parametrize(
    ("keys", "patience_s"),
    [("", 25.0), ('patience = "40s"', 40.0), ('[run]\npatience = "5s"', 5.0)],
)
def test_a_trial_on_a_remote_host_has_the_patience_with_it_besides(plan, keys, patience_s):
    host = f'[hosts.far]\nssh = "far"\n{keys}\n'
    (trial,) = plan(host + FLOW + '[defaults]\nfrom = "far"\n')
    assert trial.deadline_s == trial.duration_s + DEADLINE_SLACK_S + patience_s


def test_settings_of_the_lab_are_kept_for_the_point(plan):
    text = FLOW + '[lab]\ntopology = "t.toml"\n[axes]\n"lab.links.core.loss" = ["0%", "2%"]\n'
    made = plan(text + "streams = [1, 2]\n", "lab.links.core.delay=5ms")
    lossless = {"links.core.delay": "5ms", "links.core.loss": "0%"}
    lossy = {"links.core.delay": "5ms", "links.core.loss": "2%"}
    assert [trial.lab for trial in made] == [lossless, lossless, lossy, lossy]
    assert made.labs == (lossless, lossy)
    assert plan(FLOW).labs == ({},)


def test_a_broken_plugin_is_named(refusal):
    error = refusal('[flows.main]\nbackend = "broken"\n')
    assert error.kind == "PluginError"
    assert error.message == (
        'backend "broken" cannot be loaded: ImportError: no module of that kind'
    )


def test_flows_that_no_axis_touches_are_checked_once(plan, registry, monkeypatch):
    calls = []
    echo = registry.load("echo")
    monkeypatch.setattr(type(echo), "duration_s", lambda self, params: calls.append(params) or 1.0)
    assert len(plan(TWO + "[axes]\nstreams = [1, 2, 3, 4, 5, 6, 7, 8]\n")) == 8
    assert len(calls) == 1


@pytest.mark.parametrize("value", ["2026-11-22", "nan", "inf"])
def test_a_parameter_that_no_store_can_hold_is_refused_where_it_is_written(refusal, value):
    error = refusal(f"{FLOW}since = {value}\n")
    assert error.message.startswith("p.toml:3: flows.main.since: ")
    assert "JSON" in error.message
