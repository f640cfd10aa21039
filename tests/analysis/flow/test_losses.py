"""Loss events of TCP, the models that count them, and what the receiving host lost."""

import math

import pytest

from benchctl.analysis.flow.figures import FlowFold
from benchctl.analysis.flow.losses import (
    RTO_MIN_S,
    CountedEnds,
    loss_figures,
    mathis_bps,
    padhye_bps,
)
from benchctl.metrics import Sample, Summary
from benchctl.run.record import HostCounters


def fold_of(*resent, rtt_s=0.01, length_s=1.0):
    """Return a flow of TCP with so many segments sent again in each interval."""
    fold = FlowFold()
    for at, count in enumerate(resent):
        metrics = {"retransmits": count, "tcp_rtt_s": rtt_s}
        fold.add_sample("client", Sample(at * length_s, (at + 1) * length_s, metrics))
    return fold


def host(resent, recoveries, timeouts=0):
    return CountedEnds(sender=HostCounters(8.0, counts={
        "tcp_segments_retransmitted": resent, "tcp_recoveries": recoveries,
        "tcp_timeouts": timeouts,
    }))  # fmt: skip


def events(fold, **ends):
    figures = loss_figures(fold, ends)
    names = ("loss_events_least", "loss_events_most")
    return tuple(figures["send", name].value for name in names)


def test_the_kernel_of_the_sender_counts_them_if_nothing_else_was_sent_again():
    assert events(fold_of(180, 1, 0, 2), send=host(183, 4, 1)) == (5, 5)


def test_what_else_a_host_sent_again_may_be_other_events():
    fold = fold_of(180, 1, 0, 2)
    assert events(fold, send=host(185, 6)) == (4, 6)
    # A host that sends much else again says no more than the samples, but at most so many.
    assert events(fold, send=host(9000, 700)) == events(fold) == (2, 1 + 100 + 1 + 2)
    assert events(fold, send=host(9000, 40)) == (2, 40)


def test_by_samples_alone_there_was_one_in_each_round_trip_at_most():
    assert events(fold_of(0, 0)) == (0, 0)
    assert events(fold_of(500)) == (1, 101)
    assert events(fold_of(500, rtt_s=2.0)) == (1, 1.5)
    # One event may span two intervals.
    assert events(fold_of(1, 1, 0, 1, length_s=0.1)) == (2, 3)


def test_without_samples_they_are_at_most_the_segments_sent_again():
    fold = FlowFold()
    fold.add_summary(Summary({"retransmits": 12.0}))
    assert events(fold) == (1, 12)
    assert events(fold, send=host(12, 3)) == (3, 3)


def test_datagrams_that_overflow_the_receivers_socket_are_the_hosts():
    fold = FlowFold()
    fold.add_summary(Summary({"packets_lost": 170.0, "packets_sent": 691.0}))
    full = HostCounters(8.0, counts={"udp_receive_buffer_errors": 167})
    ends = {"send": CountedEnds(receiver=full)}
    assert loss_figures(fold, ends)["send", "receiver_drops"].value == 167
    own = FlowFold()
    own.add_summary(Summary({"packets_lost": 100.0, "receiver_drops": 90.0}))
    assert ("send", "receiver_drops") not in loss_figures(own, ends)
    fine = FlowFold()
    fine.add_summary(Summary({"packets_lost": 0.0}))
    assert loss_figures(fine, ends)["send", "receiver_drops"].value == 0


def test_the_models_are_those_of_their_papers():
    # Mathis: the window is sqrt(3/2)/sqrt(p) segments, 12.25 at 1 %.
    assert mathis_bps(0.1, 0.01, 1448) == pytest.approx(12.2474 * 1448 * 8 / 0.1, rel=1e-4)
    # RFC 5348, section 3.1, in its own notation: s, R, p, b = 1; t_RTO is 4 R, or Linux's.
    for r, t_rto in ((0.1, 0.4), (0.01, 0.01 + RTO_MIN_S)):
        s, p = 1448, 0.02
        f = r * math.sqrt(2 * p / 3) + t_rto * 3 * math.sqrt(3 * p / 8) * p * (1 + 32 * p**2)
        assert padhye_bps(r, p, s) == pytest.approx(8 * s / f)
    # With little loss, timeouts vanish, and both are one.
    assert padhye_bps(0.1, 1e-7, 1448) == pytest.approx(mathis_bps(0.1, 1e-7, 1448), rel=1e-3)
