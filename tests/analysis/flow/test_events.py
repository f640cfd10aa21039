"""What happened within a flow is found by its rate, and named."""

import math
import random

import pytest

from benchctl.analysis.flow.events import events_of, find_events
from benchctl.analysis.flow.figures import FlowFold, MetricSeries
from benchctl.analysis.flow.regular import Regular, regular
from benchctl.api import Sample
from benchctl.run.record import Happening

RAMP_UP, DROP, RECOVERY = Happening.RAMP_UP, Happening.DROP, Happening.RECOVERY


def fold_of(rates, *, length_s=1.0, streams=1, **others):
    """Return a flow of equal streams with these rates, and other metrics as lists."""
    rng = random.Random(64)
    fold = FlowFold()
    for place, rate in enumerate(rates):
        more = {name: values[place] for name, values in others.items()}
        for stream in range(streams):
            metrics = {"throughput_bps": rate / streams * rng.gauss(1, 0.01), **more}
            start_s = place * length_s
            fold.add_sample("client", Sample(start_s, start_s + length_s, metrics, stream))
    return fold


def happened(rates, **options):
    return [(one.kind, round(one.at_s)) for one in events_of(fold_of(rates, **options))]


def test_a_plateau_and_a_step_up_are_a_delayed_ramp_up():
    (event,) = events_of(fold_of([20e6] * 20 + [90e6] * 40))
    assert (event.kind, event.at_s) == (RAMP_UP, pytest.approx(20))
    assert (event.level_before, event.level_after) == pytest.approx((20e6, 90e6), rel=0.02)
    assert (event.direction, event.metric) == ("send", "throughput_bps")
    assert event.confidence > 0.998


def test_a_drop_and_the_recovery_from_it():
    rates = [90e6] * 30 + [30e6] * 20 + [90e6] * 30
    assert happened(rates) == [(DROP, 30), (RECOVERY, 50)]
    assert happened(rates, streams=8) == [(DROP, 30), (RECOVERY, 50)]
    assert happened(rates, length_s=0.1) == [(DROP, 3), (RECOVERY, 5)]


def test_a_small_step_is_found_beside_a_large_one():
    # A link of 100 Mbit/s that gets 5 and then 20, as a lab showed it.
    rates = [95.6e6] * 14 + [46e6, 2.6e6, 7.0e6, 4.8e6, 2.4e6, 7.2e6, 4.0e6]
    rates += [4.8e6] * 17 + [9.2e6] + [19.1e6] * 21
    events = events_of(fold_of(rates, length_s=0.5))
    assert (events[0].kind, events[0].at_s) == (DROP, pytest.approx(7))
    assert (events[-1].kind, events[-1].at_s) == (RECOVERY, pytest.approx(19.5, abs=0.5))
    assert events[-1].level_after == pytest.approx(19.1e6, rel=0.05)


def test_a_small_step_before_a_ramp_up_is_no_drop_that_it_recovers_from():
    assert happened([21.5e6] * 15 + [20e6] * 25 + [90e6] * 40) == [(RAMP_UP, 40)]


def test_slow_start_is_no_delayed_ramp_up():
    assert happened([1e6, 4e6, 16e6, 60e6] + [90e6] * 60, length_s=0.25) == []


def noisy_flow(draw, levels, start, *, step_s=1.0):
    """Return a rate with these levels after a start of such shares, with AR(1) noise."""
    phi, deviation = draw.choice((0.0, 0.2, 0.4, 0.6, 0.8)), draw.choice((0.01, 0.02, 0.035, 0.05))
    value, rates = draw.gauss(0, 1), []
    for place, level in enumerate(levels):
        share = start[place] if place < len(start) else 1.0
        rates.append(90e6 * level * share * (1 + deviation * value))
        value = phi * value + draw.gauss(0, math.sqrt(1 - phi * phi))
    return Regular(0.0, step_s, rates)


def slow_start(draw, step_s=1.0):
    """Return the shares of a level in its first samples: a geometric ramp, or two low samples."""
    samples = round(draw.randrange(5) / step_s)
    if not samples:
        return [0.3, 0.8]
    least = draw.uniform(0.02, 0.6)
    return [least ** (1 - place / samples) for place in range(samples)]


@pytest.mark.parametrize(("n", "found_share"), [(30, 0.8), (60, 0.95), (120, 0.95)])
def test_a_drop_of_five_deviations_is_found_after_slow_start(n, found_share):
    draw = random.Random(n)
    found = 0
    for _ in range(300):
        start = slow_start(draw)
        at = draw.randrange(len(start) + 10, n - 9)
        levels = [1.0] * at + [0.75] * (n - at)  # five of the largest deviations
        rate = noisy_flow(draw, levels, start)
        drops = [one for one in find_events(rate) if one.kind is DROP]
        found += any(abs(one.at_s - at) <= 2 for one in drops)
    assert found >= found_share * 300


@pytest.mark.parametrize(("n", "step_s"), [(20, 1.0), (60, 1.0), (300, 1.0), (300, 0.1)])
def test_a_flat_flow_with_slow_start_has_no_events(n, step_s):
    draw = random.Random(n)
    shown = 0
    for _ in range(200):
        start = slow_start(draw, step_s)
        rate = noisy_flow(draw, [1.0] * n, start, step_s=step_s)
        shown += any(find_events(rate))
    assert shown <= 2


def test_a_long_path_ramps_up_and_drops_whatever_its_plateau_and_noise_are():
    draw = random.Random(600)
    for _ in range(20):
        up, lasts, down = draw.randrange(100, 300), draw.randrange(6), draw.randrange(400, 500)
        low, left = draw.uniform(0.1, 0.6), draw.uniform(0.3, 0.7)
        climb = [low + (1 - low) * (place + 1) / (lasts + 1) for place in range(lasts)]
        levels = [low] * up + climb + [1.0] * (down - up - lasts) + [left] * (600 - down)
        rate = noisy_flow(draw, levels, slow_start(draw))
        ramp, drop = (one for one in find_events(rate) if one.kind is not Happening.STALL)
        assert (ramp.kind, drop.kind) == (RAMP_UP, DROP)
        assert up - 3 <= ramp.at_s <= up + lasts + 3
        assert drop.at_s == pytest.approx(down, abs=2)
        assert ramp.level_after == pytest.approx(90e6, rel=0.1)


@pytest.mark.parametrize("length_s", [0.1, 1.0])
def test_a_climb_without_a_plateau_is_no_delayed_ramp_up(length_s):
    count = round(20 / length_s)
    even = [10e6 + 80e6 * place / count for place in range(count)]
    by_factors = [9e6 * 10 ** (place / count) for place in range(count)]
    for climb in (even, by_factors):
        assert happened(climb + [90e6] * 4 * count, length_s=length_s) == []


def test_steps_of_one_fall_are_one_drop_to_the_last_level():
    (event,) = events_of(fold_of([90e6] * 60 + [60e6] * 10 + [30e6] * 60, length_s=0.1))
    assert (event.kind, event.at_s) == (DROP, pytest.approx(6))
    assert (event.level_before, event.level_after) == pytest.approx((90e6, 30e6), rel=0.02)


def test_a_certain_but_small_step_is_not_reported():
    assert happened([100e6] * 50 + [93e6] * 50) == []


def test_a_stall_has_its_length_and_is_neither_drop_nor_recovery():
    (event,) = events_of(fold_of([90e6] * 30 + [0.0] * 5 + [90e6] * 30))
    assert (event.kind, event.at_s, event.until_s) == (Happening.STALL, 30, 35)
    assert (event.level_before, event.level_after) == (pytest.approx(90e6, rel=0.05), 0)
    assert event.confidence is None


def test_a_stall_in_few_samples_is_seen_and_a_short_gap_is_none():
    assert happened([90e6, 90e6, 0.0, 90e6]) == [(Happening.STALL, 2)]
    short = happened([90e6] * 9 + [0.0] * 5 + [90e6] * 9, length_s=0.1)
    assert Happening.STALL not in [kind for kind, _ in short]


def test_a_flow_that_never_moved_data_has_no_events():
    assert happened([0.0] * 50) == []


@pytest.mark.parametrize("shape", ["sine", "square", "saw"])
@pytest.mark.parametrize("period", [5, 12.5, 40])
def test_a_regular_swing_is_one_oscillation(shape, period):
    def level(place):
        phase = place / period % 1
        return {"sine": math.sin(2 * math.pi * phase), "square": 1 if phase < 0.5 else -1,
                "saw": 2 * phase - 1}[shape]  # fmt: skip

    rates = [80e6 + 20e6 * level(place) for place in range(200)]
    (event,) = events_of(fold_of(rates))
    assert event.kind is Happening.OSCILLATION
    assert event.period_s == pytest.approx(period, rel=0.06)
    assert event.level_before < 75e6 < 85e6 < event.level_after


def test_one_step_is_no_oscillation():
    assert happened([90e6] * 100 + [20e6] * 100) == [(DROP, 100)]


def test_an_event_has_the_other_metrics_of_its_time():
    retransmits = [0.0] * 60
    retransmits[29:32] = [3.0, 40.0, 2.0]
    rtts = [0.02] * 30 + [0.2] * 30
    (event,) = events_of(
        fold_of([90e6] * 30 + [30e6] * 30, retransmits=retransmits, tcp_rtt_s=rtts)
    )
    assert event.beside["retransmits"] == 45
    assert event.beside["tcp_rtt_s"] == pytest.approx((0.02 + 0.2 + 0.2) / 3)


def test_intervals_of_other_lengths_keep_what_was_carried():
    series = MetricSeries()
    for start, end, value in ((0, 1, 10.0), (1, 2, 20.0), (2, 3, 30.0), (3, 3.5, 40.0)):
        series.starts_s.append(start)
        series.ends_s.append(end)
        series.values.append(value)
    rate = regular(series)
    assert sum(rate.values) * rate.step_s == pytest.approx(10 + 20 + 30 + 20)


def test_samples_without_length_have_no_events():
    series = MetricSeries()
    for values in (series.starts_s, series.ends_s, series.values):
        values.extend([1.0, 1.0])
    assert regular(series) is None


def test_noise_has_no_events():
    rng = random.Random(12)
    for _ in range(40):
        fold = fold_of([rng.gauss(90e6, 20e6) for _ in range(120)])
        assert list(find_events(regular(fold.measured()["send", "throughput_bps"]))) == []
