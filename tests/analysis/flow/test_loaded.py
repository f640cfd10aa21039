"""Round-trip times under load are told from those of the idle path."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.analysis.flow.figures import FlowFold
from benchctl.analysis.flow.loaded import Load, loaded_figures
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
    spans = [Load(*(SECOND_0 + at_s for at_s in (*load, load[-1])[:3])) for load in loads]
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


def test_what_a_sender_still_had_when_its_time_was_over_is_no_idle_path():
    """Its last interval ends at 2 s; its sockets are empty, and it ends, at 2.4 s."""
    rtts = [0.02] * 10 + [0.3] * 10 + [0.4] * 4 + [0.3, 0.2, 0.1] + [0.02] * 10
    found = figures_of(rtts, (1, 2, 2.4), interval_s=0.1)
    assert found["rtt_idle_s"].spread["max"] == 0.02
    assert found["rtt_under_load_s"].spread["max"] == 0.3


def test_a_probe_that_is_answered_under_load_is_not_idle():
    rtts = [0.02] * 10 + [0.25] + [0.3] * 10 + [0.02] * 10
    found = figures_of(rtts, (1.05, 2.0), interval_s=0.1)
    assert found["rtt_idle_s"].spread["max"] == 0.02


@given(
    load=st.floats(1.0, 5.0), lasts=st.integers(6, 50), left=st.integers(0, 20),
    queue_s=st.floats(0.01, 1.0), interval_s=st.floats(0.01, 0.1),
)  # fmt: skip
def test_idle_figures_come_from_idle_time(load, lasts, left, queue_s, interval_s):
    """A queue in front of a link, in order, which a load of several times its rate fills."""
    began, ended, gone = 10, 10 + lasts, 10 + lasts + left
    queued_s, probes = 0.0, []
    for number in range(gone + math.ceil(2 * queue_s / interval_s) + 10):
        probes.append(0.001 + queued_s)
        rate = load if began <= number < gone else 0.0
        queued_s = min(queue_s, max(0.0, queued_s + (rate - 1) * interval_s))
    times = (number * interval_s for number in (began, ended, gone))
    found = figures_of(probes, tuple(times), interval_s=interval_s)
    assert found["rtt_idle_s"].spread["max"] == pytest.approx(0.001)
