"""Trials side by side as a profile declares them: what is rejected, their order, and the plan."""

import pytest

from benchctl.engine.prepare.planning import planned
from benchctl.errors import ProfileError
from benchctl.report.lines.plan import plan_lines
from benchctl.report.lines.spans import to_text
from benchctl.toml.source import parse_toml

NAMES = [f"h{n}" for n in range(6)]
# As in the documents: nothing is sent to them, and a plan asks only the configuration of ssh.
MESH = "\n".join(
    [
        "[hosts]",
        *(f'{name} = {{ ssh = "192.0.2.{n + 1}" }}' for n, name in enumerate(NAMES)),
        '[flows.main]\nbackend = "simpleperf"\nduration = "2s"',
        f"[axes]\npair = {{ mesh = {NAMES} }}",
        '[run]\nseed = 7\nrepeats = 3\nparallel = "hosts"',
    ]
)


def plan_of(tmp_path, text=MESH, *assignments):
    file = tmp_path / "p.toml"
    file.write_text(text)
    return planned(parse_toml(text, file), assignments, (), None, yes=False)


@pytest.mark.tool("ssh")
def test_the_plan_says_how_many_run_at_once_and_the_least_time(tmp_path):
    prepared = plan_of(tmp_path)
    assert prepared.plan.parallel.at_once == 3
    assert prepared.plan.duration_s == 90 * 2.0 / 3
    text = "\n".join(to_text([line]) for line in plan_lines(prepared))
    assert "3 trials at once, at least 60.0 s" in text


@pytest.mark.tool("ssh")
def test_each_repeat_has_every_point_in_an_order_whose_neighbours_share_no_host(tmp_path):
    trials = [one.point["pair"] for one in plan_of(tmp_path).plan]
    rounds = trials[:30], trials[30:60], trials[60:]
    assert rounds[0] == rounds[1] == rounds[2]
    assert len(set(rounds[0])) == 30
    assert len({name for pair in trials[:3] for name in pair.split(":")}) == 6
    other = plan_of(tmp_path, MESH, "run.seed=8").plan
    assert [one.point["pair"] for one in other] != trials


@pytest.mark.tool("ssh")
def test_limits_lengthen_the_least_time(tmp_path):
    least = lambda *given: plan_of(tmp_path, MESH, *given).plan.duration_s  # noqa: E731
    assert least("run.parallel=2") == 90.0
    assert least("run.per_host=2", "run.parallel=100") < 60.0
    rate = ("main.protocol=udp", "main.rate=10Mbit")
    assert plan_of(tmp_path, MESH, "run.total_rate=20Mbit", *rate).plan.parallel.at_once == 2
    # Half of the pairs cross the uplink, one at a time.
    site = MESH + '\n[sites.here]\nhosts = ["h0", "h1", "h2"]'
    assert plan_of(tmp_path, site).plan.duration_s == 54 * 2.0


@pytest.mark.tool("ssh")
def test_one_trial_at_a_time_is_the_default(tmp_path):
    plan = plan_of(tmp_path, MESH, "run.parallel=1").plan
    assert plan.parallel is None
    assert plan.duration_s == 180.0
    assert [one.point["pair"] for one in plan][:2] == ["h0:h1", "h0:h2"]


@pytest.mark.tool("ssh")
@pytest.mark.parametrize(
    ("more", "given", "said"),
    [
        ("", ["run.parallel=0"], "run.parallel: must be at least 1"),
        ("", ["run.parallel=all"], "run.parallel: "),
        ("", ["run.total_rate=1Gbit"], "run.total_rate: the flows have no rate of their own"),
        (
            "",
            ["run.total_rate=1Mbit", "main.protocol=udp", "main.rate=2Mbit"],
            "run.total_rate: a trial alone sends 2.00 Mbit/s",
        ),
        ('[sites.a]\nhosts = ["h9"]', [], 'sites.a.hosts: no host "h9"'),
        (
            '[hosts.router]\nssh = "192.0.2.9"\nprepare = "true"',
            [],
            "hosts.router.prepare: runs around each trial, but no flow ends at this host",
        ),
        ("", ['hosts.h0.cleanup="true"', "run.per_host=2"], "hosts.h0.cleanup: runs around each"),
    ],
)
def test_what_does_not_go_together_is_one_clear_line(tmp_path, more, given, said):
    with pytest.raises(ProfileError) as error:
        plan_of(tmp_path, f"{MESH}\n{more}", *given)
    assert said in error.value.message


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('[axes]\n"lab.links.core.loss" = ["0%", "1%"]', "an axis changes the lab"),
        ('[[lab.changes]]\nat = "1s"\nlink = "core"\nloss = "1%"', "lab.changes"),
        ('[search]\nrate = "1Mbit..10Mbit"\nwhile = "loss_ratio < 1%"', "a search tries one rate"),
    ],
)
def test_a_lab_that_is_built_again_and_a_search_run_one_trial_at_a_time(tmp_path, more, said):
    (tmp_path / "lab.toml").write_text(
        '[hosts]\nlocal = {}\nfar = {}\n[links]\ncore = { between = ["local", "far"] }'
    )
    text = (
        '[flows.main]\nbackend = "simpleperf"\nto = "far"\nprotocol = "udp"\n'
        '[lab]\ntopology = "lab.toml"\n[run]\nparallel = 2\n'
    )
    with pytest.raises(ProfileError) as error:
        plan_of(tmp_path, text + more)
    assert f"run.parallel: {said}" in error.value.message
