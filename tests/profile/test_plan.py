import itertools
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchctl.errors import ProfileError
from benchctl.run.condition import Relative
from benchctl.run.planned import Until

MATRIX = """
[flows.main]
backend = "stream"
duration = "2s"
[axes]
streams = [1, 2, 3]
omit = ["0s", "1s"]
[run]
order = "{order}"
repeats = {repeats}
seed = 7
pause = "1s"
"""
POINTS = list(itertools.product([1, 2, 3], ["0s", "1s"]))


def run_order(plan):
    return [(tuple(trial.point.values()), trial.repeat) for trial in plan]


def test_sequential_runs_all_repeats_of_a_point_then_the_next(plan):
    expected = [(point, repeat) for point in POINTS for repeat in (1, 2, 3)]
    assert run_order(plan(MATRIX.format(order="sequential", repeats=3))) == expected


def test_interleaved_runs_all_points_then_all_again(plan):
    expected = [(point, repeat) for repeat in (1, 2, 3) for point in POINTS]
    assert run_order(plan(MATRIX.format(order="interleaved", repeats=3))) == expected


def test_interleaved_is_the_default(plan):
    text = MATRIX.format(order="interleaved", repeats=2)
    assert run_order(plan(text)) == run_order(plan(text.replace('order = "interleaved"\n', "")))


# The fixtures only write a file, which every example writes anew.
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**63 - 1), repeats=st.integers(1, 4))
def test_shuffled_is_a_permutation_that_the_seed_decides(plan, seed, repeats):
    text = MATRIX.format(order="shuffled", repeats=repeats)
    first = run_order(plan(text, f"run.seed={seed}"))
    again = run_order(plan(text, f"run.seed={seed}"))
    assert first == again
    assert sorted(first) == sorted(itertools.product(POINTS, range(1, repeats + 1)))


def test_another_seed_is_another_order(plan):
    text = MATRIX.format(order="shuffled", repeats=3)
    orders = {tuple(run_order(plan(text, f"run.seed={seed}"))) for seed in range(5)}
    assert len(orders) == 5


def test_a_seed_stays_the_same_order_in_every_version(plan):
    # A run that is repeated years later with the recorded seed must get the recorded order.
    trials = run_order(plan(MATRIX.format(order="shuffled", repeats=1)))
    assert [point for point, _ in trials] == [
        (3, "0s"), (1, "0s"), (3, "1s"), (2, "1s"), (1, "1s"), (2, "0s"),
    ]  # fmt: skip


def test_the_seed_is_the_profiles_else_the_one_given_else_drawn(plan):
    text = MATRIX.format(order="shuffled", repeats=1)
    assert plan(text, draw_seed=3).seed == 7
    assert plan(text.replace("seed = 7\n", ""), draw_seed=3).seed == 3
    assert 0 <= plan(text.replace("seed = 7\n", "")).seed < 2**31


def test_trials_are_numbered_as_they_run_and_can_be_asked_for_one_by_one(plan):
    made = plan(MATRIX.format(order="shuffled", repeats=2))
    assert [trial.position for trial in made] == list(range(12))
    assert made.trial(5).plan == list(made)[5]


def test_the_expected_time_is_that_of_all_trials_and_the_pauses_between_them(plan):
    # Six points of 2 s, three of them with 1 s of omit; three repeats; 17 pauses of 1 s.
    made = plan(MATRIX.format(order="sequential", repeats=3))
    assert made.duration_s == 3 * (6 * 2 + 3 * 1) + 17


def test_repeats_given_go_before_the_profiles(plan):
    assert len(plan(MATRIX.format(order="sequential", repeats=3), repeats=1)) == 6


def test_the_axes_that_vary_are_those_with_more_than_one_value_left(plan):
    text = MATRIX.format(order="sequential", repeats=1)
    assert plan(text).varying == ("streams", "omit")
    assert plan(text, only=["streams=2"]).varying == ("omit",)
    assert plan(text, only=["streams=2", "omit=1s"]).varying == ()


def test_the_values_that_occur_are_in_the_order_of_the_points(plan):
    text = (
        MATRIX.format(order="shuffled", repeats=1)
        + """
[[exclude]]
omit = "0s"
[[include]]
streams = 9
[[include]]
streams = 9
omit = "9s"
"""
    )
    assert plan(text).values == {"streams": (1, 2, 3, 9), "omit": ("1s", "9s")}
    assert plan(text, only=["streams=9"]).values == {"streams": (9,), "omit": ("9s",)}


def test_every_way_and_backend_of_the_plan_is_known_without_making_its_trials(plan):
    text = """
[servers]
paris = {host = "p"}
oslo = {host = "o"}
[flows.main]
backend = "stream"
[flows.beside]
backend = "echo"
count = 1
[axes]
streams = [1, 2, 3]
server = {sets = "to", values = ["paris", "oslo"]}
"""
    ways = [(flow.name, flow.backend, flow.to) for flow in plan(text, only=["server=oslo"]).routes]
    assert sorted(ways) == [("beside", "echo", "oslo"), ("main", "stream", "oslo")]
    assert len(plan(text).routes) == 4


# --- size ------------------------------------------------------------------------------------

LARGE = """
[flows.main]
backend = "stream"

[axes]
streams = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
tags = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]

[[zip]]
omit = ["1s", "2s"]
duration = ["1s", "2s"]
"""


def test_a_large_matrix_is_shown_and_refused(refusal):
    error = refusal(LARGE, repeats=5000)
    assert error.message == (
        "p.toml:5: axes: a matrix of 1,000,000 trials: "
        "10 streams x 10 tags x 2 omit+duration x 5000 repeats"
    )
    assert error.hint == "more than 100,000 need --yes; narrow it with --only, or remove an axis"


def test_a_large_matrix_may_be_asked_for_or_narrowed(plan, refusal):
    text = LARGE.replace("tags = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]", 'rate = ["1Mbit", "2Mbit"]')
    assert refusal(text, most_trials=39).kind == "ProfileError"
    assert len(plan(text, most_trials=40)) == 40
    assert len(plan(text, most_trials=None)) == 40
    assert len(plan(text, most_trials=4, only=["streams=3"])) == 4


def test_only_that_leaves_nothing_is_refused(refusal):
    text = MATRIX.format(order="sequential", repeats=1) + "[[exclude]]\nstreams = 1\n"
    error = refusal(text, only=["streams=1"])
    assert error.kind == "UsageError"
    assert error.message == "--only streams=1: no point of the matrix is left"


# --- expectations ----------------------------------------------------------------------------


def test_expectations_are_read_in_si_units(plan):
    text = (
        MATRIX.format(order="sequential", repeats=1)
        + """
[[expect]]
metric = "throughput_bps"
flow = "main"
at_least = "94Mbit"
where = {streams = 2}
[[expect]]
metric = "stalls"
at_most = 3
[[expect]]
metric = "loss_ratio"
at_least = "0%"
at_most = "2%"
"""
    )
    first, second, third = plan(text).expected
    assert (first.metric, first.flow, first.where) == ("throughput_bps", "main", {"streams": 2})
    assert (first.at_least, first.at_most) == (94e6, None)
    assert (second.flow, second.where, second.at_most) == (None, {}, 3.0)
    assert (third.at_least, third.at_most) == (0.0, 0.02)


def test_what_must_not_be_worse_is_a_bound_on_the_side_of_its_metric(plan):
    text = MATRIX.format(order="sequential", repeats=1)
    for metric in ("throughput_bps", "rtt_s", "loss_ratio"):
        text += f'[[expect]]\nmetric = "{metric}"\nnot_worse_than = "5%"\n'
    rate, delay, loss = plan(text + 'of = "expected"\n').expected
    assert (rate.least, rate.most, rate.proven) == (Relative(0.95, "baseline"), None, True)
    assert (delay.least, delay.most) == (None, Relative(1.05, "baseline"))
    # Differences of ratios are in percentage points.
    assert loss.most == Relative(1, "expected", 0.05)


def test_reported_figures_are_read_in_si_units(plan):
    text = """
[flows.main]
backend = "stream"
[axes]
streams = [1, 2]
[[reported]]
fairness_jain = 0.993
[[reported]]
flow = "main"
direction = "receive"
where = {streams = 2}
throughput_bps = "14.4Mbit"
stalls = 3
"""
    whole, one = plan(text).reported
    assert (whole.flow, whole.direction, whole.where) == (None, None, {})
    assert whole.metrics == {"fairness_jain": 0.993}
    assert (one.flow, one.direction, one.where) == ("main", "receive", {"streams": 2})
    assert one.metrics == {"throughput_bps": 14.4e6, "stalls": 3.0}


def test_nothing_is_expected_of_points_that_only_leaves_out(plan):
    text = MATRIX.format(order="sequential", repeats=1)
    for where in ("{streams = 2}", "{streams = 1}", "{}"):
        text += f'[[expect]]\nmetric = "rtt_s"\nat_most = "1s"\nwhere = {where}\n'
    assert [one.where for one in plan(text, only=["streams=1"]).expected] == [{"streams": 1}, {}]
    assert len(plan(text).expected) == 3


@pytest.mark.parametrize("repeats", [1, 3])
def test_a_profile_without_axes_is_one_point(plan, repeats):
    (point,) = plan('[flows.main]\nbackend = "stream"\n', repeats=repeats).points
    assert point == ()


UNTIL = """
[flows.main]
backend = "stream"
duration = "2s"
[axes]
streams = [1, 2]
[run]
repeats = { until = "2%", of = "throughput_bps", most = 9 }
"""


def test_repeats_until_a_figure_is_known_begin_with_the_least(plan):
    found = plan(UNTIL)
    assert (len(found), found.until) == (6, Until("throughput_bps", 0.02, 3, 9))


def test_a_number_of_repeats_on_the_command_line_is_that_number(plan):
    found = plan(UNTIL, repeats=2)
    assert (len(found), found.until) == (4, None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("throughput_bps", "throughput"), 'no metric "throughput"'),
        (("most = 9", "most = 2"), "most"),
        (("most = 9", "least = 9, most = 5"), "least is greater than most"),
        (('"2%"', '"2"'), "no unit"),
        (('"2%"', '"0%"'), "until"),
    ],
)
def test_repeats_until_something_that_cannot_be_are_rejected(plan, change, message):
    with pytest.raises(ProfileError, match=message):
        plan(UNTIL.replace(*change))


SEARCH = """
[flows.main]
backend = "stream"
duration = "2s"
[axes]
streams = [1, 2]
[search]
rate = "1Mbit..1Gbit"
while = "loss_ratio < 0.1%"
[run]
repeats = 2
"""


def test_a_search_begins_with_one_trial_of_each_point_and_repeat_in_the_middle_of_its_range(plan):
    found = plan(SEARCH)
    assert {trial.point["rate"] for trial in found} == {"31.62Mbit"}
    assert [trial.flows[0].parameters["rate"] for trial in found] == ["31.62Mbit"] * 4
    assert found.values == {"streams": (1, 2), "rate": ("1Mbit..1Gbit",)}
    assert (found.search.axis, found.search.sets) == ("rate", {"main": "rate"})
    assert (found.search.low_bps, found.search.high_bps) == (1e6, 1e9)
    assert (found.search.precision, found.search.confirm, found.search.most) == (0.01, 2, 20)
    assert found.most_duration_s == 20 * found.duration_s


def test_set_only_and_repeat_change_a_search(plan):
    found = plan(SEARCH, "search.rate=10Mbit..20Mbit", "search.most=11")
    assert found.trial(0).plan.point["rate"] == "14.14Mbit"
    assert found.search.most == 11


def test_an_included_point_is_searched_too(plan):
    found = plan(SEARCH + "[[include]]\nstreams = 8\n")
    assert [trial.point["rate"] for trial in found if trial.point["streams"] == 8] != []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('"1Mbit..1Gbit"', '"1Mbit"'), 'search.rate: "1Mbit" is not a range'),
        (('"1Mbit..1Gbit"', '"1Gbit..1Mbit"'), "does not go from a rate to a higher one"),
        (('"1Mbit..1Gbit"', '"1Mbit..unlimited"'), "does not go from a rate to a higher one"),
        (('"1Mbit..1Gbit"', '"1..2Mbit"'), "no unit"),
        (("rate =", "rat ="), 'search.rat: no flow takes "rat"'),
        (("rate =", "streams ="), "search.streams: an axis has this name, too"),
        (("rate =", '"main.rate" = "1Mbit..2Mbit"\nrate ='), "search: give one rate to search"),
        (("< 0.1%", "< 0.001"), "no unit; a ratio is in %"),
        (("loss_ratio <", "los_ratio <"), 'search.while: no metric "los_ratio"'),
        (("loss_ratio <", "loss_ratio.p95 <"), "search.while: loss_ratio is one figure"),
        (("[run]", "most = 8\n[run]"), "search.most: 8 tries are not enough"),
        (("[run]", 'precision = "0%"\n[run]'), "search.precision: must be at least"),
        (
            ("repeats = 2", 'repeats = { until = "1%", of = "throughput_bps" }'),
            "run.repeats: a search is repeated a number of times",
        ),
    ],
)
def test_a_search_that_cannot_be_is_rejected(plan, change, message):
    with pytest.raises(ProfileError, match=re.escape(message)):
        plan(SEARCH.replace(*change))


def test_a_rate_that_is_searched_cannot_be_set(plan):
    with pytest.raises(ProfileError) as error:
        plan(SEARCH, "rate=5Mbit")
    assert error.value.hint == "set its range: --set search.rate=1Mbit..1Gbit"
