"""What happened within a flow is found by its rate, and named."""

import math
import random

import pytest

from benchctl.analysis.events import events_of, find_events
from benchctl.analysis.figures import FlowFold, MetricSeries
from benchctl.analysis.regular import regular
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
