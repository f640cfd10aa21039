"""Delay that rises through a flow is found, with its slope, and nothing else is."""

from __future__ import annotations

import math
import random

import pytest

from benchctl.analysis.flow.figures import FlowFold
from benchctl.analysis.flow.rising import delay_trend_events, excess_of
from benchctl.metrics import Direction, Sample


def fold(delays_s: list[float], metric: str = "rtt_s", step_s: float = 0.1) -> FlowFold:
    """Return a flow with one probe every ``step_s``."""
    found = FlowFold()
    for number, delay_s in enumerate(delays_s):
        sample = Sample(
            number * step_s, (number + 1) * step_s, {metric: delay_s},
            direction=Direction.ROUND_TRIP,
        )  # fmt: skip
        found.add_sample("client", sample)
    return found


def delays(excess: float, noise_s: float = 0.001, count: int = 50, seed: int = 1) -> list[float]:
    draw = random.Random(seed)
    return [0.06 + excess * 0.1 * n + abs(draw.gauss(0, noise_s)) for n in range(count)]


@pytest.mark.parametrize("metric", ["rtt_s", "owd_s"])
@pytest.mark.parametrize("excess", [0.01, 0.05])
def test_a_queue_that_fills_shows_the_excess_as_the_slope_of_the_delay(
    metric: str, excess: float
) -> None:
    (event,) = delay_trend_events(fold(delays(excess), metric))
    assert event.metric == metric
    assert excess_of(event) == pytest.approx(excess, rel=0.1)
    assert event.level_after > event.level_before


def test_noise_alone_rarely_rises_and_never_as_much_as_half_a_per_cent() -> None:
    found = [
        one
        for seed in range(500)
        for one in delay_trend_events(fold(delays(0.0, 0.002, seed=seed)))
    ]
    assert len(found) < 25
    assert all(excess_of(one) < 0.005 for one in found)


def test_a_queue_that_is_full_or_drains_does_not_rise() -> None:
    full = [0.1 + 0.001 * math.sin(n) for n in range(50)]
    assert not list(delay_trend_events(fold(full)))
    assert not list(delay_trend_events(fold(delays(0.01)[::-1])))


def test_too_few_probes_show_no_trend() -> None:
    assert not list(delay_trend_events(fold(delays(0.05, count=24))))


def test_the_delay_of_tcp_itself_is_no_probe() -> None:
    assert not list(delay_trend_events(fold(delays(0.05), "tcp_rtt_s")))
