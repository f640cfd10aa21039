import pytest
from analysis.flow.probed import MS

from benchctl.analysis.clocks.clocks import (
    ClockPoint,
    ClockVerdict,
    are_apart,
    clocks_of,
    clocks_over,
)
from benchctl.run.record import Figure

LAB = {"send": {"owd_s": 10 * MS}, "receive": {"owd_s": 10 * MS}}
# C7 as its authors printed it: packets; least delay, median and greatest there and back, in ms.
C7 = (
    (1, (52.5, 52.5, 52.5), (-42.6, -42.5, -42.4)),
    (10, (50.2, 51.0, 53.3), (-49.0, -48.7, -47.1)),
    (20, (56.4, 57.1, 58.4), (-55.1, -54.7, -17.0)),
    (100, (57.0, 57.6, 61.2), (-55.9, -55.3, -18.8)),
    (300, (62.6, 63.5, 67.4), (-61.8, -61.3, -42.4)),
    (500, (63.9, 64.9, 68.8), (-63.4, -62.6, -28.3)),
)


def figures(send_s=None, receive_s=None, **more):
    """Return figures of least delays; ``more`` are other metrics of both directions."""
    told = {}
    for direction, least_s in (("send", send_s), ("receive", receive_s)):
        if least_s is not None:
            told[direction, "owd_s"] = Figure(least_s, "tool", {"min": least_s})
            told |= {(direction, name): Figure(value, "tool") for name, value in more.items()}
    return told


def seen(send_s=None, receive_s=None, expected=None, *, one_clock=False, **more):
    return clocks_of(figures(send_s, receive_s, **more), expected or {}, one_clock=one_clock)


def test_a_negative_delay_proves_that_the_clocks_differ():
    clocks = seen(50.2 * MS, -49 * MS)
    assert clocks.verdict is ClockVerdict.APART
    assert clocks.offset_s == pytest.approx(49.6 * MS)
    assert clocks.way_s == pytest.approx(0.6 * MS)
    # Even where there should be one clock only, as with one that was set apart for a test.
    assert seen(50.2 * MS, -49 * MS, one_clock=True).verdict is ClockVerdict.APART
    assert seen(-49 * MS).verdict is ClockVerdict.APART
    assert seen(-49 * MS).offset_s is None


def test_in_a_lab_a_delay_below_the_links_proves_it_and_a_longer_one_does_not():
    assert seen(15 * MS, 5 * MS, LAB, one_clock=True).verdict is ClockVerdict.APART
    assert seen(35 * MS, 10.2 * MS, LAB, one_clock=True) is None
    # Less is rounding, and what emulated links are exact to.
    assert seen(10.1 * MS, 9.95 * MS, LAB, one_clock=True) is None
    assert not are_apart({"send": 10 * MS}, {"send": 10 * MS})


def test_different_least_delays_are_clocks_or_the_path():
    clocks = seen(12 * MS, 9 * MS)
    assert clocks.verdict is ClockVerdict.CLOCKS_OR_PATH
    assert clocks.offset_s == pytest.approx(1.5 * MS)
    assert not clocks.synchronized
    assert seen(12 * MS, 9 * MS, one_clock=True) is None


def test_clocks_are_believed_within_their_claim():
    claim = {"clock_synchronized": 1.0, "owd_error_s": 2 * MS}
    assert seen(12 * MS, 9 * MS, **claim) is None
    clocks = seen(12 * MS, 7 * MS, **claim)
    assert (clocks.verdict, clocks.error_s) == (ClockVerdict.CLOCKS_OR_PATH, 2 * MS)
    assert seen(-50 * MS, 51 * MS, **claim).verdict is ClockVerdict.APART
    coarse = seen(1.2 * MS, 0.9 * MS, **claim)
    assert coarse.verdict is ClockVerdict.COARSE


def test_the_error_of_a_clock_that_claims_nothing_means_nothing():
    clocks = seen(12 * MS, clock_synchronized=0.0, owd_error_s=1e-9)
    assert clocks.verdict is ClockVerdict.UNKNOWN_OFFSET
    assert clocks.error_s is None


def test_nothing_is_said_without_delays():
    assert clocks_of({}, {}, one_clock=False) is None


def points(trials, apart_s=30.0):
    """Return trials of (packets, least delay there, back), or with medians, in milliseconds."""
    found = []
    for at, (packets, *ways) in enumerate(trials):
        told = {}
        for direction, way in zip(("send", "receive"), ways, strict=True):
            least, middle, *_ = way if isinstance(way, tuple) else (way, way)
            spread = {"min": least * MS, "median": middle * MS}
            told[direction, "owd_s"] = Figure(middle * MS, "tool", spread)
        clocks = clocks_of(told, {}, one_clock=False)
        found.append(ClockPoint(apart_s * at, packets, clocks))
    return found


def test_what_looked_like_congestion_is_named_a_drift_of_the_clocks():
    over = clocks_over(points(C7))
    # From 10 packets on.
    assert (over.first.least_s["send"], over.last.least_s["send"]) == (50.2 * MS, 63.9 * MS)
    assert over.offsets_s[0] == pytest.approx(49.6 * MS)
    assert over.offsets_s[-1] == pytest.approx(63.65 * MS)
    assert (min(over.usual_s), max(over.usual_s)) == (
        pytest.approx(1.1 * MS), pytest.approx(1.2 * MS)
    )  # fmt: skip


def test_an_even_drift_from_point_to_point_has_its_rate():
    trials = [(50, 65 + 0.5 * at, -45 - 0.5 * at) for at in range(5)]
    over = clocks_over(points(trials))
    assert over.drift * 60 == pytest.approx(1 * MS, abs=0.001 * MS)
    assert over.lasted_s == 120
    # In any order of the trials.
    assert clocks_over(points(trials)[::-1]).drift == pytest.approx(over.drift)


def test_clocks_that_jump_between_points_have_no_rate():
    trials = [(50, 65, -45), (50, 65, -45), (50, 95, -75), (50, 65, -45), (50, 65, -45)]
    assert clocks_over(points(trials)).drift is None


def test_congestion_from_point_to_point_is_not_said_to_be_clocks():
    assert clocks_over(points([(50, 65 + 5 * at, -45) for at in range(5)])) is None
    assert clocks_over(points([(50, 65, -45)] * 5)) is None
    assert clocks_over(points(C7[:2])) is None


def test_without_a_drift_the_way_is_half_of_the_sum_and_with_one_it_is_without_it():
    told = figures(65 * MS, -47 * MS)
    assert not clocks_of(told, {}, one_clock=False).moved
    for direction in ("send", "receive"):
        told[direction, "owd_offset_removed_s"] = Figure(0.011, "samples", {"min": 10 * MS})
    clocks = clocks_of(told, {}, one_clock=False)
    assert (clocks.way_s, clocks.moved) == (10 * MS, True)


def test_less_than_the_mean_of_a_path_with_jitter_proves_nothing():
    jittery = {way: {"owd_s": 3 * MS, "owd_least_s": MS} for way in ("send", "receive")}
    assert seen(1.2 * MS, 1.3 * MS, jittery, one_clock=True) is None
    assert seen(-1 * MS, 1.8 * MS, jittery, one_clock=True).verdict is ClockVerdict.APART
