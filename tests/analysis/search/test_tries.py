"""What one trial shows in a search: it passes, or fails by a sign that is named."""

from __future__ import annotations

import pytest
from analysis.search.sample_tries import SEARCH, ended, tried
from msgspec.structs import replace

from benchctl.analysis.search.search import SearchOutcome, finding, next_rate
from benchctl.analysis.search.tries import expected_bps, try_of
from benchctl.metrics import Breach
from benchctl.run.condition import parse_condition
from benchctl.run.record import Figure, FlowEvent, Happening
from benchctl.run.status import Status

POINT = {"path": "near", "rate": "30Mbit"}


def rising(by_s: float) -> FlowEvent:
    return FlowEvent("round-trip", "rtt_s", Happening.RISING_DELAY, 0.0, 4.0, 0.06, 0.06 + by_s)


def test_a_rate_passes_that_arrives() -> None:
    one = try_of(SEARCH, tried(0, POINT, 40e6))
    assert (one.rate_bps, one.passed, one.carried_bps, one.why) == (30e6, True, 30e6, "")


def test_a_rate_fails_by_the_figure_of_the_condition_and_shows_what_is_carried() -> None:
    one = try_of(SEARCH, tried(0, POINT, 29.15e6))
    assert (one.passed, one.why, one.doubtful) == (False, "loss 2.83 %", False)
    assert one.carried_bps == pytest.approx(29.15e6)


def test_a_delay_that_rises_as_under_half_the_precision_fails_before_anything_is_lost() -> None:
    rises = try_of(SEARCH, tried(0, POINT, 40e6, events=[rising(0.024)]))
    assert (rises.passed, rises.why) == (False, "RTT of main rose by 24.0 ms")
    assert try_of(SEARCH, tried(0, POINT, 40e6, events=[rising(0.016)])).passed


def test_a_rate_that_was_not_sent_is_not_known_to_pass() -> None:
    one = try_of(SEARCH, tried(0, POINT, 40e6, sent_bps=25e6))
    assert (one.passed, one.doubtful, one.carried_bps) == (False, True, 25e6)
    assert one.why == "only 25.0 Mbit/s of 30.0 Mbit/s were sent"


def test_what_is_lost_of_less_than_asked_for_fails_without_a_doubt() -> None:
    one = try_of(SEARCH, tried(0, POINT, 20e6, sent_bps=25e6))
    assert (one.passed, one.doubtful, one.why) == (False, False, "loss 20 %")


def test_one_packet_less_in_a_short_try_is_no_slow_sender() -> None:
    figures = {"sent_bps": 98e3, "loss_ratio": 0.0, "packets_sent": 42.0}
    point = {"rate": "100kbit"}
    assert try_of(SEARCH, ended(0, 1, point, figures, requested={"rate": 100e3})).passed


def test_all_streams_of_a_flow_together_send_its_rate() -> None:
    figures = {"sent_bps": 30e6, "throughput_bps": 30e6, "loss_ratio": 0.0}
    of_two = ended(0, 1, POINT, figures, requested={"rate": 30e6, "streams": 2})
    assert try_of(SEARCH, of_two).why == "only 30.0 Mbit/s of 60.0 Mbit/s were sent"


def test_what_arrives_and_the_loss_show_what_was_sent_if_the_sender_does_not_say() -> None:
    figures = {"throughput_bps": 24e6, "loss_ratio": 0.2}
    one = try_of(SEARCH, ended(0, 1, POINT, figures, requested={"rate": 30e6}))
    assert (one.carried_bps, one.doubtful) == (pytest.approx(24e6), False)


@pytest.mark.parametrize("capacity_bps", [40e6, 20e6])
def test_a_lab_that_did_not_keep_up_is_a_doubt(capacity_bps: float) -> None:
    assert try_of(SEARCH, tried(0, POINT, capacity_bps, kept=False)).doubtful


def test_a_trial_that_failed_or_lacks_the_metric_measured_nothing() -> None:
    failed = try_of(SEARCH, tried(0, POINT, 40e6, status=Status.FAILED, error="no route"))
    assert (failed.passed, failed.why) == (None, "no route")
    other = replace(SEARCH, condition=parse_condition("rtt_s.p95 < 50ms"))
    lacking = try_of(other, tried(0, POINT, 40e6))
    assert (lacking.passed, lacking.why) == (None, "rtt_s was not measured")


def test_theory_expects_the_capacity_if_it_is_below_the_rate() -> None:
    assert expected_bps(SEARCH, tried(0, POINT, 29.15e6)) == pytest.approx(29.15e6)
    assert expected_bps(SEARCH, tried(0, POINT, 40e6)) is None


def test_a_figure_that_cannot_be_decides_nothing_unless_another_fails() -> None:
    good = tried(0, POINT, 40e6)
    (flow,) = good.flows
    loss = Figure(-0.12, "tool", broken=Breach("a loss is a share", "lost -12.0%"))
    broken = replace(flow, reported={**flow.reported, ("send", "loss_ratio"): loss})
    one = try_of(SEARCH, replace(good, flows=[broken]))
    assert (one.passed, one.why) == (None, "loss of main cannot be: lost -12.0%")
    assert finding(SEARCH, [one]).outcome is SearchOutcome.OPEN
    assert next_rate(SEARCH, [one]) == one.rate_bps  # once more
    assert next_rate(SEARCH, [one, one]) is None
    (lossy,) = tried(0, POINT, 20e6).flows
    assert try_of(SEARCH, replace(good, flows=[broken, lossy])).passed is False
    # What the samples have in its place decides.
    samples = replace(loss, value=0.0, origin="samples", rejected=-0.12)
    mended = replace(flow, reported={**flow.reported, ("send", "loss_ratio"): samples})
    assert try_of(SEARCH, replace(good, flows=[mended])).passed
