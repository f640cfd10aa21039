"""What limited a flow: each reason by a flow as labs and theory show it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from report.sample_report import flow

from benchctl.analysis.flow.limiting import EXCEEDED, HALF, Limiter, limit_of, waits_of
from benchctl.analysis.flow.losses import mathis_bps, padhye_bps
from benchctl.report.text.limiting import limit_text
from benchctl.run.record import RecordedPackets

RTT = {"tcp_rtt_s": 0.0102, "tcp_min_rtt_s": 0.01}


def broken_bound(limit):
    """Return why a limit cannot be what limited its flow, in words; empty if it can.

    No rate is far beyond what limits it, nothing is lost at two places, and no time counts twice.
    """
    rate_bps = limit.rate_bps
    # What packets show of a sender's waits holds whatever a bound says.
    window_bps = limit.window_bps if limit.waits_s is None else None
    if limit.by is Limiter.RECEIVE_WINDOW and window_bps and rate_bps > EXCEEDED * window_bps:
        return f"its windows allow {window_bps:g} bit/s, and {rate_bps:g} bit/s were measured"
    if limit.by is Limiter.LOSS and limit.waits_s is None and not limit.fits_loss:
        models = f"{limit.padhye_bps} to {limit.mathis_bps} bit/s"
        return f"its losses allow {models}, and {rate_bps:g} bit/s were measured"
    if limit.host_lost is not None and not 0 <= limit.host_lost <= max(0.0, limit.lost or 0.0):
        return f"{limit.host_lost:g} of {limit.lost} lost datagrams were lost at the host"
    held, idle = limit.held_ratio or 0.0, limit.idle_ratio or 0.0
    if limit.by is Limiter.SENDER and held > HALF:
        return f"held back for {held:g} of the time, and idle for {idle:g}"
    return ""


def limit(figures, expected=None, link=None, **columns):
    share = {"send": {"throughput_bps": expected}} if expected else {}
    links = {} if link is None else {"send": link}
    one = replace(flow("bulk").flow, expected=share, bottlenecks=links, **columns)
    return limit_of(one, "send", figures)


def by(figures, **options):
    return limit(figures, **options).by


def test_a_window_per_round_trip_is_named_with_its_bound():
    figures = {"throughput_bps": 248e6, "tcp_rtt_s": 0.101, "tcp_min_rtt_s": 0.1,
               "peer_window_bytes": 3 * 2**20}  # fmt: skip
    found = limit(figures)
    assert found.by is Limiter.RECEIVE_WINDOW
    assert found.window_bps == pytest.approx(249e6, rel=0.001)
    assert found.bdp_bytes == pytest.approx(248e6 * 0.1 / 8)
    assert by({**figures, "throughput_bps": 60e6}) is Limiter.UNKNOWN


def test_the_kernels_own_counters_tell_window_from_buffer():
    figures = {"throughput_bps": 14e6, **RTT, "peer_window_bytes": 25e3, "busy_s": 5.0}
    held = {"rwnd_limited_s": 4.5, "sndbuf_limited_s": 0.2}
    assert limit({**figures, **held}).held_ratio == pytest.approx(0.9)
    assert by({**figures, **held}) is Limiter.RECEIVE_WINDOW
    assert by({**figures, "sndbuf_limited_s": 4.5}) is Limiter.SEND_BUFFER


def test_a_window_that_only_fills_the_bottlenecks_queue_does_not_limit_the_rate():
    figures = {"throughput_bps": 95e6, "tcp_rtt_s": 0.05, "tcp_min_rtt_s": 0.01,
               "peer_window_bytes": 593750, "busy_s": 5.0, "rwnd_limited_s": 5}  # fmt: skip
    assert by(figures, expected=95.6e6) is Limiter.BOTTLENECK
    assert by(figures) is Limiter.BOTTLENECK


def test_a_share_of_a_link_names_it_and_that_of_a_window_is_none():
    figures = {"throughput_bps": 5.1e6}
    assert limit(figures, expected=5.2e6, link="core").link == "core"
    own = limit(figures, expected=5.2e6, link="")
    assert (own.by, own.link) == (Limiter.BUFFERS, None)
    # What a rate that was asked for and not reached is limited by, it does not say.
    assert by({"throughput_bps": 9.3e6}, expected=1e7, link="", requested={"rate": 1e7}) is (
        Limiter.UNKNOWN
    )


def test_a_sender_without_data_is_idle_and_a_busy_process_is_why():
    figures = {"throughput_bps": 5e6, **RTT, "busy_s": 8.0, "rwnd_limited_s": 7.9,
               "peer_window_bytes": 5e3}  # fmt: skip
    figures["bytes_received"] = 5e6 * 10 / 8  # in 10 s
    asked = {"streams": 2}
    found = limit(figures, requested=asked)
    assert (found.by, found.idle_ratio) == (Limiter.SENDER, pytest.approx(0.6))
    assert by({**figures, "busy_s": 11.0}, requested=asked) is Limiter.RECEIVE_WINDOW
    assert by({**figures, "cpu_client_ratio": 0.97}, requested=asked) is not Limiter.SENDER


LOSSY = {"throughput_bps": 10.7e6, **RTT, "bytes_sent": 1448 * 9860, "retransmits": 140,
         "loss_events_least": 100, "loss_events_most": 100}  # fmt: skip


def test_loss_limits_between_half_of_padhye_and_twice_mathis_and_not_bbr():
    found = limit(LOSSY, expected=95e6)
    assert found.by is Limiter.LOSS
    assert found.loss_ratio == pytest.approx(0.0142, rel=0.01)
    assert found.loss_event_ratio == pytest.approx(0.01)
    assert found.mathis_bps == mathis_bps(0.0102, 0.01, 1448)
    assert found.padhye_bps == padhye_bps(0.0102, 0.01, 1448)
    for rate_bps in (2.1 * found.mathis_bps, found.padhye_bps / 2.1):
        assert by({**LOSSY, "throughput_bps": rate_bps}, expected=95e6) is Limiter.UNKNOWN
    for name in ("bbr", "bbr2"):
        bbr = {"congestion_control": name}
        assert by(LOSSY, expected=95e6, effective=bbr) is Limiter.UNKNOWN
        both_ways = {"send": bbr, "receive": bbr}
        assert by(LOSSY, expected=95e6, effective=both_ways) is Limiter.UNKNOWN


def test_segments_sent_again_are_no_loss_events():
    """One overflow of a queue: 0.64 % of the segments sent again allow 15 Mbit/s, 84 came."""
    burst = {"throughput_bps": 84.1e6, **RTT, "bytes_sent": 1448 * 30_000, "retransmits": 193}
    for known, reason in (
        ({"loss_events_least": 8, "loss_events_most": 8}, Limiter.LOSS),
        ({"loss_events_least": 1, "loss_events_most": 1}, Limiter.UNKNOWN),
        ({"loss_events_least": 7, "loss_events_most": 193}, Limiter.UNKNOWN),
        ({}, Limiter.UNKNOWN),
    ):
        found = limit({**burst, **known}, expected=95e6)
        assert found.by is reason
        assert not broken_bound(found)


def test_a_window_that_is_far_exceeded_does_not_limit():
    figures = {"throughput_bps": 50e6, "tcp_rtt_s": 0.1, "peer_window_bytes": 125_000,
               "busy_s": 5.0, "rwnd_limited_s": 4.9}  # fmt: skip
    assert by({**figures, "throughput_bps": 10e6}) is Limiter.RECEIVE_WINDOW
    assert by(figures) is Limiter.UNKNOWN


def test_the_rate_asked_for_comes_first():
    requested = {"rate": 5e6, "streams": 2}
    assert by({"throughput_bps": 9.97e6, **RTT}, requested=requested) is Limiter.RATE
    # What exceeds a rate by far was not limited by it: bytes that leave before TCP is paced.
    assert by({"throughput_bps": 106e6, **RTT}, requested=requested) is not Limiter.RATE


def test_a_busy_process_is_named_where_no_bound_is_near():
    figures = {"throughput_bps": 40e9, "tcp_rtt_s": 5e-5, "cpu_server_ratio": 0.98}
    assert by(figures) is Limiter.PROCESSOR
    assert by({**figures, "cpu_server_ratio": 0.5}) is Limiter.UNKNOWN


@pytest.mark.parametrize(
    ("figures", "reason"),
    [
        ({"throughput_bps": 20e6, "sent_bps": 20e6, "loss_ratio": 0.0}, Limiter.RATE),
        ({"throughput_bps": 14e6, "sent_bps": 14e6, "loss_ratio": 0.0}, Limiter.SENDER),
        ({"throughput_bps": 15e6, "sent_bps": 20e6, "loss_ratio": 0.25}, Limiter.BOTTLENECK),
        (
            {"throughput_bps": 15e6, "sent_bps": 20e6, "loss_ratio": 0.25, "packets_lost": 100,
             "receiver_drops": 90}, Limiter.RECEIVER,
        ),
    ],
)  # fmt: skip
def test_datagrams_are_limited_by_sender_way_or_receiver(figures, reason):
    assert by(figures, requested={"protocol": "udp", "rate": 20e6}) is reason


def test_a_flow_without_a_rate_has_no_limit_and_one_without_counters_is_not_known():
    assert limit({"rtt_s": 0.01}) is None
    assert by({"throughput_bps": 50e6}) is Limiter.UNKNOWN
    assert by({"throughput_bps": 50e6}, requested={"protocol": "sctp"}) is Limiter.UNKNOWN


def way(end, size, **waits_s):
    waits = {cause: {"total_s": waited_s} for cause, waited_s in waits_s.items()}
    return {"from": end, "unique_bytes": size, "waits": waits}


def connection(port, there, back=(0, {})):
    """Return the findings of a connection: what its client sent, and what its server did."""
    client, server = "10.0.0.1:40000", f"10.0.0.2:{port}"
    ways = [way(end, size, **waits_s) for end, (size, waits_s) in ((client, there), (server, back))]
    return {"ends": [client, server], "opened_by": client, "directions": ways}


def recorded(host, *findings):
    return RecordedPackets(host, f"{host}.pcapng", 1, 0, 0, findings=findings)


ENDS = {"source": "near", "target": "far", "port": 5201}
OF_WINDOW = (1_000_000, {"window": 3.4, "network": 2.6})


def test_what_the_packets_of_the_sender_show_is_what_limited_a_flow():
    queued = {"throughput_bps": 6.3e6, "tcp_rtt_s": 0.025, "tcp_min_rtt_s": 0.010}
    seen = [recorded("far", connection(5201, (1_000_000, {"network": 6.0}))),
            recorded("near", connection(5201, OF_WINDOW))]  # fmt: skip
    assert by(queued, expected=32e6) is Limiter.BOTTLENECK
    found = limit(queued, expected=32e6, captures=seen, **ENDS)
    assert (found.by, found.waits_s, found.connections) == (
        Limiter.RECEIVE_WINDOW, {"window": 3.4, "network": 2.6}, 1,
    )  # fmt: skip
    # A window that only keeps the queue of a link full does not limit the rate.
    full = limit({**queued, "throughput_bps": 31e6}, expected=32e6, captures=seen, **ENDS)
    assert full.by is Limiter.BOTTLENECK


@pytest.mark.parametrize(
    ("waits_s", "figures", "reason"),
    [
        ({"timeout": 4.0, "network": 1.0}, {}, Limiter.LOSS),
        ({"application": 4.0, "network": 1.0}, {}, Limiter.SENDER),
        ({"application": 4.0, "network": 1.0}, {"cpu_client_ratio": 0.97}, Limiter.PROCESSOR),
        ({"network": 5.0}, {"tcp_rtt_s": 0.03, "tcp_min_rtt_s": 0.01}, Limiter.BOTTLENECK),
        ({"network": 5.0}, {"busy_s": 5.0, "sndbuf_limited_s": 4.0}, Limiter.SEND_BUFFER),
        # The kernel counts it, and the packets show that it was not for long.
        ({"network": 5.0}, {"busy_s": 5.0, "rwnd_limited_s": 4.9, "tcp_rtt_s": 0.01,
                            "peer_window_bytes": 12_500}, Limiter.NETWORK),
        ({"network": 5.0}, {}, Limiter.NETWORK),
    ],
)  # fmt: skip
def test_what_the_packets_leave_open_the_other_bounds_say(waits_s, figures, reason):
    seen = [recorded("near", connection(5201, (1_000_000, waits_s)))]
    assert by({"throughput_bps": 9e6, **figures}, captures=seen, **ENDS) is reason


def test_the_waits_are_those_of_the_flows_own_data_in_one_direction():
    """Not those of other flows, of the connection that controls it, or of the way back."""
    seen = [recorded(
        "near",
        connection(5202, (9_000_000, {"network": 6.0})),
        connection(5201, OF_WINDOW, (500, {"application": 6.0})),
        connection(5201, OF_WINDOW),
        connection(5201, (400, {"application": 7.0}), (300, {"application": 7.0})),
    )]  # fmt: skip
    one = replace(flow("bulk").flow, captures=seen, **ENDS)
    assert waits_of([one], "send") == ({"window": 6.8, "network": 5.2}, 2)
    assert waits_of([one, one], "send").connections == 4
    assert waits_of([one], "receive").waits_s == {"application": 13.0}


def test_datagrams_are_not_judged_by_the_connection_that_controls_them():
    seen = [recorded("near", connection(5201, (400, {"application": 7.0})))]
    udp = {"requested": {"protocol": "udp", "rate": 20e6}, "captures": seen}
    sent = {"throughput_bps": 20e6, "sent_bps": 20e6, "loss_ratio": 0.0}
    assert by(sent, **udp, **ENDS) is Limiter.RATE


numbers = st.floats(0, 1e3)


@st.composite
def measured(draw):
    """Return figures of a flow that need not fit together."""
    resent = draw(st.integers(0, 500))
    least = draw(st.integers(0, resent))
    lost = draw(st.integers(0, 500))
    figures = {
        "throughput_bps": draw(st.floats(1e3, 1e9)), "bytes_sent": draw(st.floats(1e4, 1e9)),
        "tcp_rtt_s": draw(st.floats(1e-4, 1.0)), "retransmits": resent,
        "loss_events_least": least, "loss_events_most": draw(st.integers(least, resent)),
        "peer_window_bytes": draw(st.floats(1e3, 1e7)), "busy_s": draw(numbers),
        "bytes_received": draw(st.floats(1e4, 1e9)),
        "rwnd_limited_s": draw(numbers), "sndbuf_limited_s": draw(numbers),
        "packets_lost": lost, "loss_ratio": draw(st.floats(0, 1)),
        "receiver_drops": draw(st.integers(0, 1000)), "cpu_client_ratio": draw(st.floats(0, 1)),
    }  # fmt: skip
    return {name: value for name, value in figures.items() if name == "throughput_bps" or
            draw(st.integers(0, 9))}  # fmt: skip


@given(measured(), st.sampled_from(["tcp", "udp"]), st.none() | st.floats(1e3, 1e9), st.booleans())
def test_what_limits_a_flow_is_not_exceeded_and_no_finding_excludes_another(
    figures, protocol, rate_bps, recorded
):
    requested = {"protocol": protocol, **({"rate": rate_bps} if rate_bps else {})}
    seen = [SEEN] if recorded else []
    found = limit(figures, requested=requested, captures=seen, **ENDS)
    assert not broken_bound(found)
    # The sentence of a limit has the numbers that hold.
    assert limit_text(found)


SEEN = recorded("near", connection(5201, (1_000_000, {"timeout": 4.0, "network": 1.0})))


def test_a_finding_that_excludes_another_is_named():
    window = limit({"throughput_bps": 10e6, "tcp_rtt_s": 0.1, "peer_window_bytes": 125_000})
    assert not broken_bound(window)
    assert "allow" in broken_bound(replace(window, rate_bps=50e6))
    lossy = limit(LOSSY)
    assert "losses allow" in broken_bound(replace(lossy, rate_bps=84e6))
    twice = replace(lossy, by=Limiter.RECEIVER, lost=167.0, host_lost=691.0)
    assert "691 of 167" in broken_bound(twice)
    assert "idle" in broken_bound(replace(lossy, by=Limiter.SENDER, held_ratio=0.9, idle_ratio=0.6))
