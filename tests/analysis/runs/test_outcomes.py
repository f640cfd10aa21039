"""Expectations: met, not met, or undecided, by the interval of the mean."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from benchctl.analysis.runs.outcomes import Answer, outcomes_of
from benchctl.analysis.runs.summary import Measured, summarize
from benchctl.analysis.statistics import spread
from benchctl.run.condition import EventRule, Relative
from benchctl.run.planned import Expectation, Severity
from benchctl.run.record import Figure, FlowEvent, Happening

MET, NOT_MET, UNDECIDED = Answer
AROUND_100 = (99.0, 100.0, 101.0)
"""The interval of their mean is 97.5 to 102.5."""


def measured(value, metric="throughput_bps", flow="main", direction="send", p95=None, **point):
    figure = Figure(value, "tool", {} if p95 is None else {"p95": p95})
    return Measured(point, flow, {(direction, metric): figure})


def repeats(values, **more):
    return [measured(value, **more) for value in values]


def answers(found, wanted, *, beside=None, valid=True, baseline=()):
    rows = [replace(row, beside=beside or {}, valid=valid) for row in summarize(found)]
    expectation = Expectation(**{"metric": "throughput_bps", **wanted})
    return outcomes_of([expectation], found, rows, baseline)


def answer(found, wanted, **more):
    (one,) = answers(found, wanted, **more)
    return one.answer


@pytest.mark.parametrize(
    ("wanted", "met"),
    [
        ({"at_least": 5}, [True, True]),
        ({"at_least": 50}, [False, True]),
        ({"at_most": 50}, [True, False]),
        ({"at_least": 5, "where": {"streams": 2}}, [True]),
        ({"at_least": 5, "flow": "other"}, [False]),
        ({"at_least": 5, "metric": "rtt_s"}, [False]),
    ],
)
def test_a_single_repeat_is_held_against_a_bound_by_its_value(wanted, met):
    outcomes = answers([measured(11, streams=1), measured(99, streams=2)], wanted)
    assert [outcome.met for outcome in outcomes] == met
    assert [outcome.answer is MET for outcome in outcomes] == met
    assert [outcome.fails() for outcome in outcomes] == [not one for one in met]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"at_least": 97}, MET),
        ({"at_least": 99}, UNDECIDED),
        ({"at_least": 101}, UNDECIDED),
        ({"at_least": 103}, NOT_MET),
        ({"at_most": 103}, MET),
        ({"at_most": 100}, UNDECIDED),
        ({"at_most": 97}, NOT_MET),
        ({"at_least": 97, "at_most": 103}, MET),
        ({"at_least": 97, "at_most": 100}, UNDECIDED),
        ({"at_least": 90, "at_most": 97}, NOT_MET),
    ],
)
def test_a_bound_within_the_interval_leaves_it_undecided(wanted, expected):
    assert answer(repeats(AROUND_100), wanted) is expected


@given(
    st.lists(st.integers(0, 1000).map(float), min_size=2, max_size=8),
    st.integers(0, 1000).map(float),
)
def test_both_sides_of_a_bound_are_opposites(values, bound):
    interval = spread(values)
    least, most = (answer(repeats(values), {way: bound}) for way in ("at_least", "at_most"))
    assert (least is UNDECIDED) == (most is UNDECIDED) or bound in (
        interval.ci95_low, interval.ci95_high,
    )  # fmt: skip
    if NOT_MET in (least, most):
        assert {least, most} == {MET, NOT_MET}
        assert not interval.ci95_low < bound < interval.ci95_high


@pytest.mark.parametrize(
    ("factor", "reference", "expected"),
    [(0.9, 100, MET), (1, 100, UNDECIDED), (1.1, 100, NOT_MET), (0.5, 210, NOT_MET)],
)
@pytest.mark.parametrize("of", ["expected", "reported", "asked"])
def test_a_bound_may_be_a_multiple_of_a_value_beside_the_figure(of, factor, reference, expected):
    wanted = {"least": Relative(factor, of)}
    assert answer(repeats(AROUND_100), wanted, beside={of: reference}) is expected


def test_within_is_both_sides_of_a_reference():
    wanted = {"least": Relative(0.9, "expected"), "most": Relative(1.1, "expected")}
    near = {100: MET, 92: UNDECIDED, 109: UNDECIDED, 80: NOT_MET, 130: NOT_MET}
    for expected, verdict in near.items():
        assert answer(repeats(AROUND_100), wanted, beside={"expected": expected}) is verdict


def test_a_reference_that_is_not_known_leaves_it_undecided_and_is_named():
    for of in ("expected", "baseline"):
        (one,) = answers(repeats(AROUND_100), {"least": Relative(1, of)})
        assert (one.answer, one.met, one.fails()) == (UNDECIDED, None, False)
        assert one.why == f"100 bit/s ±2.5, no {of} value is known"


@pytest.mark.parametrize(
    ("before", "factor", "expected"),
    [
        (AROUND_100, 0.9, MET),
        (AROUND_100, 1.0, UNDECIDED),
        ((119.0, 120.0, 121.0), 1.0, NOT_MET),
        # The baseline scatters so much that 100 may well be 90 % of it.
        ((60.0, 120.0, 180.0), 0.9, UNDECIDED),
        # Nothing shows how much a single repeat scatters: it is a plain value.
        ((101.0,), 1.0, UNDECIDED),
        ((103.0,), 1.0, NOT_MET),
    ],
)
def test_the_scatter_of_the_baseline_counts_too(before, factor, expected):
    wanted = {"least": Relative(factor, "baseline")}
    assert answer(repeats(AROUND_100), wanted, baseline=repeats(before)) is expected


@pytest.mark.parametrize(
    ("found", "wanted", "expected"),
    [
        (AROUND_100, {"least": Relative(0.95, "baseline")}, MET),
        # The mean is as good, and that is no proof.
        ((90.0, 100.0, 110.0), {"least": Relative(0.95, "baseline")}, NOT_MET),
        ((100.0,), {"least": Relative(0.95, "baseline")}, NOT_MET),
        ((90.0, 91.0, 89.0), {"least": Relative(0.95, "baseline")}, NOT_MET),
        (AROUND_100, {"most": Relative(1, "baseline", 5.0)}, MET),
        (AROUND_100, {"most": Relative(1, "baseline", 0.5)}, NOT_MET),
    ],
)
def test_that_a_mean_is_no_worse_has_to_be_shown(found, wanted, expected):
    wanted = {**wanted, "proven": True}
    (one,) = answers(repeats(found), wanted, baseline=repeats(AROUND_100))
    assert one.answer is expected
    assert one.why.endswith("a worse mean cannot be excluded") == (
        expected is NOT_MET and found != (90.0, 91.0, 89.0)
    )
    assert answer(repeats(found), wanted) is UNDECIDED


def test_a_statistic_of_each_repeats_distribution_has_its_own_mean():
    found = [
        measured(0.01, "rtt_s", p95=p95, direction="round-trip") for p95 in (0.049, 0.05, 0.051)
    ]
    wanted = {"metric": "rtt_s", "aggregate": "p95"}
    (one,) = answers(found, {**wanted, "at_most": 0.06})
    assert (one.answer, one.text) == (MET, "rtt_s.p95 of main at its point")
    assert one.why.startswith("50.0 ms ±2.5, at most 60.0 ms")
    assert answer(found, {**wanted, "at_most": 0.04}) is NOT_MET
    (none,) = answers(found, {**wanted, "aggregate": "max", "at_most": 1.0})
    assert (none.text, none.answer) == ("rtt_s.max: nothing was measured", NOT_MET)


def test_what_a_run_under_way_has_not_measured_yet_is_undecided():
    expectation = Expectation(metric="rtt_s", aggregate="max", at_most=1.0)
    (none,) = outcomes_of([expectation], [], [], ended=False)
    assert (none.text, none.answer) == ("rtt_s.max: not yet measured", UNDECIDED)
    assert (none.met, none.fails()) == (None, False)


def test_fairness_is_of_a_whole_trial():
    found = [Measured({"n": 2}, "", {("", "fairness_jain"): Figure(0.9, "samples")})]
    (one,) = answers(found, {"metric": "fairness_jain", "at_least": 0.95})
    assert (one.text, one.answer) == ("fairness_jain at n=2", NOT_MET)


def test_a_lab_that_did_not_keep_up_proves_nothing():
    (one,) = answers(repeats(AROUND_100), {"at_least": 200}, valid=False)
    assert (one.answer, one.met) == (UNDECIDED, False)
    assert "the emulator did not keep up" in one.why


@pytest.mark.parametrize(
    ("values", "severity", "fails", "fails_strictly"),
    [
        ((90.0,), Severity.ERROR, True, True),
        ((90.0,), Severity.WARNING, False, True),
        (AROUND_100, Severity.ERROR, False, True),
        ((120.0,), Severity.ERROR, False, False),
    ],
)
def test_what_fails_depends_on_severity_and_strictness(values, severity, fails, fails_strictly):
    (one,) = answers(repeats(values), {"at_least": 100, "severity": severity})
    assert (one.fails(), one.fails(strict=True)) == (fails, fails_strictly)


# --- events ---------------------------------------------------------------------------------


DROP, STALL = Happening.DROP, Happening.STALL


def with_events(*kinds, flow="main", intervals=20, metric="throughput_bps"):
    events = [FlowEvent("send", metric, kind, 1.0, None, 2.0, 1.0) for kind in kinds]
    return Measured({}, flow, {("send", metric): Figure(1.0, "tool")}, events, intervals)


@pytest.mark.parametrize(
    ("rule", "counts", "expected"),
    [
        (EventRule("drop", False), ((), ()), MET),
        (EventRule("drop", False), ((), (DROP,)), NOT_MET),
        (EventRule("drop", False), ((STALL,), ()), MET),
        (EventRule("event", False), ((STALL,), ()), NOT_MET),
        (EventRule("drop", True), ((DROP,), (DROP,)), MET),
        (EventRule("drop", True), ((DROP,), ()), NOT_MET),
    ],
)
def test_events_must_not_happen_in_any_repeat_or_must_in_all(rule, counts, expected):
    found = [with_events(*kinds) for kinds in counts]
    (one,) = answers(found, {"metric": "", "events": (rule,)})
    assert (one.answer, one.text) == (expected, f"{rule} in main at its point")


@pytest.mark.parametrize(
    ("rule", "short", "long", "expected"),
    [
        (EventRule("drop", False), (), (), UNDECIDED),
        (EventRule("drop", False), (DROP,), (), NOT_MET),
        (EventRule("drop", False), (), (DROP,), NOT_MET),
        (EventRule("event", False), (), (), UNDECIDED),
        (EventRule("stall", False), (), (), MET),
        (EventRule("drop", True), (), (DROP,), UNDECIDED),
        (EventRule("drop", True), (), (), NOT_MET),
        (EventRule("drop", True), (DROP,), (DROP,), MET),
    ],
)
def test_a_repeat_too_short_to_show_an_event_proves_nothing(rule, short, long, expected):
    found = [with_events(*short, intervals=19), with_events(*long)]
    (one,) = answers(found, {"metric": "", "events": (rule,)})
    assert (one.answer, one.met) == (expected, {MET: True, NOT_MET: False}.get(expected))
    assert ("1 too short to show any: under 20 intervals" in one.why) is (expected is UNDECIDED)


def test_no_stall_needs_intervals_too_and_a_flow_without_a_rate_has_no_events():
    wanted = {"metric": "", "events": (EventRule("stall", False),)}
    assert answer([with_events(intervals=1)], wanted) is UNDECIDED
    both = [with_events(), with_events(flow="ping", metric="rtt_s", intervals=0)]
    assert [one.flow for one in answers(both, wanted)] == ["main"]


@pytest.mark.parametrize(
    ("kinds", "packets", "expected"),
    [((), 1200, MET), ((), 399, UNDECIDED), ((Happening.CLOCK_STEP,), 1200, NOT_MET)],
)
def test_steps_of_clocks_are_expected_of_flows_with_one_way_delays(kinds, packets, expected):
    probe = with_events(*kinds, flow="probe", metric="owd_s", intervals=0)
    figures = {**probe.figures, ("send", "packets_received"): Figure(packets, "samples")}
    found = [with_events(), replace(probe, figures=figures)]
    wanted = {"metric": "", "events": (EventRule("clock step", False),)}
    (one,) = answers(found, wanted)
    assert (one.flow, one.answer) == ("probe", expected)


def test_each_flow_and_each_rule_is_judged_alone():
    found = [with_events(DROP), with_events(flow="other")]
    rules = (EventRule("drop", False), EventRule("stall", False))
    outcomes = answers(found, {"metric": "", "events": rules})
    assert [(one.flow, one.figure, one.answer) for one in outcomes] == [
        ("main", "no drop", NOT_MET), ("main", "no stall", MET),
        ("other", "no drop", MET), ("other", "no stall", MET),
    ]  # fmt: skip
    assert outcomes[0].why == "1 in the only repeat"
    (none,) = answers(found, {"metric": "", "flow": "third", "events": rules})
    assert none.text == "no drop, no stall: nothing was measured"
