"""Round-trip times under load are told from those of the idle path."""

import pytest

from benchctl.analysis.figures import FlowFold
from benchctl.analysis.loaded import loaded_figures
from benchctl.api import Direction, Sample

SECOND_0 = 1000.0


def pings(rtts, interval_s=1.0):
    fold = FlowFold()
    for at, rtt_s in enumerate(rtts):
        start_s = at * interval_s
        metrics = {"rtt_s": rtt_s}
        direction = Direction.ROUND_TRIP
        fold.add_sample("client", Sample(start_s, start_s + rtt_s, metrics, direction=direction))
    return fold


def figures_of(rtts, *loads, **options):
    spans = [(SECOND_0 + begin, SECOND_0 + end) for begin, end in loads]
    found = loaded_figures(pings(rtts, **options), SECOND_0, spans)
    return {metric: figure for (_, metric), figure in found.items()}


def test_the_increase_is_the_time_under_load_less_the_idle_median():
    rtts = [0.02] * 5 + [0.06, 0.07, 0.08, 0.09, 0.1] + [0.021] * 6
    found = figures_of(rtts, (5, 10))
    assert found["rtt_idle_s"].spread["median"] == pytest.approx(0.0205)
    assert found["rtt_under_load_s"].value == pytest.approx(0.08)
    assert found["rtt_increase_s"].value == pytest.approx(0.08 - 0.0205)
    assert found["rtt_increase_s"].spread["max"] == pytest.approx(0.1 - 0.0205)


def test_probes_count_as_loaded_while_all_flows_send_and_as_idle_while_none_does():
    rtts = [0.01] * 6 + [0.5] * 2 + [0.1] * 6 + [0.5] * 2 + [0.01] * 6
    found = figures_of(rtts, (6, 16), (8, 14))
    assert found["rtt_idle_s"].spread["max"] == 0.01
    assert set(found["rtt_under_load_s"].spread.values()) == {0.1}


def test_what_is_still_queued_when_the_load_ends_is_not_idle():
    # Half a second of queue, probed every 100 ms: five replies still wait in it.
    rtts = [0.02] * 10 + [0.52] * 10 + [0.42, 0.32, 0.22, 0.12, 0.03, 0.02] + [0.02] * 10
    found = figures_of(rtts, (1, 2), interval_s=0.1)
    assert found["rtt_idle_s"].spread["max"] == 0.02


def test_without_an_idle_phase_or_a_load_there_is_no_increase():
    assert figures_of([0.1] * 20, (0, 20)) == {}
    assert figures_of([0.1] * 20) == {}
    assert figures_of([0.1] * 20, (3, 19)) == {}  # three probes before, and none after
