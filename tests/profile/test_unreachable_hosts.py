"""A host that nobody can connect to is always the client; its flows still go the way asked for."""

import pytest

from benchctl.api import Direction

PROFILE = """\
[hosts]
home = { ssh = "home", reachable = false }
paris = { ssh = "paris", interfaces = { wired = { device = "eth0" } } }
away = { ssh = "away", reachable = false }
[flows.main]
backend = "stream"
from = "paris"
to = "home"
"""


@pytest.mark.parametrize(
    ("asked", "runs"), [("send", "receive"), ("receive", "send"), ("both", "both")]
)
def test_the_ends_change_places_and_the_direction_turns_round(plan, asked, runs):
    (trial,) = plan(f'{PROFILE}direction = "{asked}"\n')
    (flow,) = trial.flows
    assert (flow.source, flow.to, flow.direction) == ("home", "paris", Direction(runs))


def test_packets_are_recorded_at_the_hosts_that_were_asked_for(plan):
    (trial,) = plan(f'{PROFILE}capture = {{ hosts = ["to"] }}\n')
    assert trial.flows[0].capture.ends == ("from",)


def test_a_flow_from_a_host_that_nobody_reaches_is_left_as_it_is(plan):
    text = PROFILE.replace('"paris"\nto = "home"', '"home"\nto = "paris"')
    (trial,) = plan(text)
    (flow,) = trial.flows
    assert (flow.source, flow.to, flow.direction) == ("home", "paris", Direction.SEND)


def test_a_mesh_with_such_a_host_has_all_its_pairs(plan):
    text = PROFILE.replace('from = "paris"\nto = "home"\n', "")
    made = plan(f'{text}[axes]\npair = {{ mesh = ["home", "paris"] }}\n')
    assert [(trial.point["pair"], trial.flows[0].source, str(trial.flows[0].direction))
            for trial in made] == [
        ("home:paris", "home", "send"), ("paris:home", "home", "receive"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "message", "hint"),
    [
        ('"stream"', '"echo"\ncount = 1',
         '9: flows.main.to: "home" is not reachable, and echo has no other end that could begin',
         'measure from "home"'),
        ('"paris"\n', '"away"\n',
         '8: flows.main.to: "home" is not reachable, and neither is "away"',
         "leave this pair out"),
        ('"paris"\n', '"paris"\ninterface = "wired"\n',
         '9: flows.main.to: "home" is not reachable, so it is the client: '
         'an interface of "paris" has no use', 'measure from "home"'),
    ],
)  # fmt: skip
def test_what_no_tool_can_do_is_refused_with_its_line(refusal, old, new, message, hint):
    assert PROFILE.count(old) == 1
    error = refusal(PROFILE.replace(old, new))
    assert (error.message, error.hint) == (f"p.toml:{message}", hint)
