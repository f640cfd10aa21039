"""What theory expects, against figures worked out by hand."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.lab.topology.expect import (
    KernelBuffers,
    PathDemand,
    fair_shares,
    path,
    segment_bytes,
    tcp_payload_ratio,
    udp_payload_ratio,
)
from benchctl.lab.topology.topology import build_topology, load_topology
from benchctl.toml.source import parse_toml

PORTFOLIO = load_topology(Path(__file__).parents[3] / "profiles/labs/portfolio.toml")


def hops(pair):
    source, goal = pair.split("-")
    return path(PORTFOLIO, source, goal).there


def test_payload_is_what_the_headers_leave():
    assert tcp_payload_ratio(1500) == 1448 / 1514
    assert udp_payload_ratio(1472, 1500) == 1472 / 1514


@pytest.mark.parametrize(
    ("mtu", "mss", "timestamps", "payload", "frame"),
    [
        (1500, math.inf, True, 1448, 1514),
        (1500, math.inf, False, 1460, 1514),
        # Timestamps come out of the MSS that was asked for (RFC 6691).
        (1500, 536, True, 524, 590),
        (1500, 536, False, 536, 590),
        (9000, math.inf, True, 8948, 9014),
        # An MSS above what the MTU leaves changes nothing (RFC 879).
        (1500, 9000, False, 1460, 1514),
    ],
)
def test_a_segment_has_what_mtu_mss_and_timestamps_leave(mtu, mss, timestamps, payload, frame):
    assert segment_bytes(mtu, mss, timestamps) == payload
    assert tcp_payload_ratio(mtu, mss, timestamps) == payload / frame


@pytest.mark.parametrize(
    ("payload", "mtu", "frames"),
    [
        (1472, 1500, [1514]),
        # 1480 and 1 byte behind the IP headers.
        (1473, 1500, [1514, 35]),
        (8192, 1500, [1514, 1514, 1514, 1514, 1514, 834]),
        # A fragment has a multiple of 8 bytes: 976 of the 980 that fit.
        (1472, 1000, [1010, 538]),
    ],
)
def test_a_datagram_above_the_mtu_is_fragments_with_a_header_each(payload, mtu, frames):
    assert udp_payload_ratio(payload, mtu) == payload / sum(frames)


def test_timestamps_need_both_ends():
    text = (
        "[hosts.a]\n[hosts.b]\nsysctl = { tcp_timestamps = 0 }\n[hosts.c]\n[routers.r]\n[links]\n"
    )
    for host in "abc":
        text += f'{host} = {{ between = ["{host}", "r"], rate = "10Mbit" }}\n'
    topology = build_topology(parse_toml(text, Path("lab.toml")), {})
    assert path(topology, "a", "b").tcp_bps() == pytest.approx(10e6 * 1460 / 1514)
    assert path(topology, "a", "c").tcp_bps() == pytest.approx(10e6 * 1448 / 1514)


@pytest.mark.parametrize(
    ("version", "most", "asked", "window"),
    [
        # 160 / 256 of a doubled buffer is payload where frames of 1514 bytes take 2304; in KiB.
        # tcpi_snd_wnd of Linux 6.18 in a lab: 13.0, 20.0, 40.0 and 80.0 KiB.
        ((6, 18), math.inf, 10240, 13312),
        ((6, 18), math.inf, 16384, 20480),
        ((6, 18), math.inf, 32768, 40960),
        ((6, 6), math.inf, 65536, 81920),
        ((6, 5), math.inf, 10240, 10240),
        ((6, 18), 212992, 2**20, 266240),
    ],
)
def test_the_window_is_what_the_kernel_makes_of_the_buffer(version, most, asked, window):
    kernel = KernelBuffers(version, most, 32 * 2**20)
    assert kernel.window_bytes(kernel.granted_bytes(asked), 1448, 1514) == window


@pytest.mark.parametrize(
    # tcpi_snd_wnd of Linux 6.18 in a lab, with segments of 524 bytes.
    ("asked", "window"),
    [(5000, 5120), (10240, 10240), (16384, 16384), (32768, 32768), (50000, 50176)],
)
def test_segments_of_536_bytes_and_less_leave_the_window_at_half_of_the_buffer(asked, window):
    kernel = KernelBuffers((6, 18), math.inf, 32 * 2**20)
    assert kernel.window_bytes(kernel.granted_bytes(asked), 524, 590) == window


def test_a_round_trip_is_twice_the_delays_and_the_time_to_send_the_probe():
    found = path(PORTFOLIO, "h1", "h9")
    frame_bits = (14 + 20 + 8 + 56) * 8
    serialisation_s = 2 * frame_bits * (1 / 40e6 + 1 / 30e6 + 1 / 20e6)
    assert found.rtt_s() == pytest.approx(0.080 + serialisation_s, rel=1e-12)
    assert found.bottleneck.link.name == "L3"
    assert found.tcp_bps() == pytest.approx(20e6 * 1448 / 1514)
    assert found.bdp_bytes() == pytest.approx(20e6 * found.rtt_s() / 8)


def test_nothing_limits_a_pair_behind_one_switch():
    found = path(PORTFOLIO, "h1", "h2")
    assert (found.rtt_s(), found.tcp_bps()) == (0, math.inf)


@pytest.mark.parametrize(
    ("pairs", "shares"),
    [
        (["h1-h4", "h2-h5"], [15e6, 15e6]),
        (["h1-h4", "h2-h5", "h3-h6"], [10e6, 10e6, 10e6]),
        (["h1-h4", "h7-h9"], [15e6, 15e6]),
        (["h1-h4", "h8-h9"], [30e6, 20e6]),
        (["h1-h9", "h7-h9", "h1-h7"], [10e6, 10e6, 30e6]),
        (["h1-h2", "h1-h7"], [math.inf, 40e6]),
        # The other direction of a link is another link.
        (["h1-h4", "h4-h1"], [30e6, 30e6]),
    ],
)
def test_flows_at_the_same_time_share_by_max_min(pairs, shares):
    found = fair_shares([PathDemand(hops(pair)) for pair in pairs])
    assert [share.rate_bps for share in found] == pytest.approx(shares)


def test_every_stream_competes_for_itself_and_nobody_gets_more_than_it_wants():
    demands = [
        PathDemand(hops("h1-h4"), streams=2),
        PathDemand(hops("h2-h5")),
        PathDemand(hops("h3-h6"), limit_bps=3e6),
    ]
    shares = fair_shares(demands)
    assert [share.rate_bps for share in shares] == pytest.approx([18e6, 9e6, 3e6])
    first, second, third = (share.full for share in shares)
    assert first is not None
    assert first == second
    assert third is None  # it has what it wants


def test_the_bound_interface_decides_the_path():
    topology = load_topology(Path(__file__).parents[3] / "profiles/labs/public-internet.toml")
    goal = next(name for name in topology.hosts if name != "laptop")
    wired, wireless = (path(topology, "laptop", goal, label) for label in ("wired", "wireless"))
    assert wired.there[0].start.label == wired.back[-1].end.label == "wired"
    assert wireless.there[0].start.label == wireless.back[-1].end.label == "wireless"
    with pytest.raises(LookupError, match="no interface tin-can"):
        path(topology, "laptop", goal, "tin-can")


def test_a_host_that_an_interface_does_not_lead_to_is_told():
    text = """
[hosts]
laptop = {}
server = {}
printer = {}
[routers]
r = {}
[links]
wire = { between = ["laptop:wired", "r"] }
other = { between = ["printer", "r"] }
cable = { between = ["laptop:usb", "printer"] }
access = { between = ["r", "server"] }
"""
    topology = build_topology(parse_toml(text, Path("lab.toml")), {})
    assert path(topology, "laptop", "server", "wired")
    with pytest.raises(LookupError, match="no path from laptop to server by usb"):
        path(topology, "laptop", "server", "usb")


def test_a_round_trip_carries_a_whole_window_whose_last_segment_may_be_small():
    # 10K asked, 20 ms: 5.10 Mbit/s were measured where emulation took another 0.4 ms.
    text = "[hosts.a]\n[hosts.b]\n[links]\n" + (
        'ab = { between = ["a", "b"], rate = "100Mbit", delay = "10ms" }\n'
    )
    way = path(build_topology(parse_toml(text, Path("lab.toml")), {}), "a", "b")
    rtt_s = 0.020 + (1514 + 66) * 8 / 100e6
    kernel = KernelBuffers((6, 18), math.inf, 32 * 2**20)
    found = way.windowed_bps(kernel, math.inf, receive_bytes=10240)
    assert found == pytest.approx(13312 * 8 / rtt_s)


@pytest.mark.parametrize(
    # Receive: tcpi_snd_wnd of Linux 6.18 in a lab: 3.93 and 5.24 MB of buffers of 6 and 8 MiB.
    ("receive", "send", "most"),
    [
        (6 << 20, 16 << 20, 3932160),
        (8 << 20, 16 << 20, 5242880),
        (8 << 20, 4 << 20, (4 << 20) + 65536),
    ],
)
def test_buffers_that_grow_by_themselves_stop_where_the_hosts_of_the_lab_do(receive, send, most):
    text = f"""
    hosts.a.sysctl.tcp_wmem = "4096 16384 {send}"
    hosts.b.sysctl."net.ipv4.tcp_rmem" = "4096\t131072\t{receive}"
    links.ab = {{ between = ["a", "b"], rate = "500Mbit", delay = "60ms" }}
    """
    way = path(build_topology(parse_toml(text, Path("lab.toml")), {}), "a", "b")
    kernel = KernelBuffers((6, 18), 4 << 20, 32 << 20)
    rtt_s = 0.120 + (1514 + 66) * 8 / 500e6
    assert way.windowed_bps(kernel, math.inf) == pytest.approx(most * 8 / rtt_s)
    assert way.reverse.windowed_bps(kernel, math.inf) == math.inf
    # A program's own buffer is not bounded by them, and does not grow.
    asked = way.windowed_bps(kernel, math.inf, 1 << 20, 1 << 20)
    assert asked == pytest.approx(2 * (1 << 20) * 160 / 256 * 8 / rtt_s)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["h1-h4", "h2-h5", "h1-h9", "h7-h9", "h8-h9", "h1-h7", "h9-h1"]),
            st.integers(1, 4),
            st.one_of(st.just(math.inf), st.floats(1e3, 1e8)),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_shares_fill_no_link_over_its_rate_and_leave_nobody_a_reason_to_complain(flows):
    """Max-min: what a flow gets less than it wants, a full link where it gets most explains."""
    demands = [PathDemand(hops(pair), streams, limit) for pair, streams, limit in flows]
    found = fair_shares(demands)
    shares = [share.rate_bps for share in found]
    load = {}
    for demand, share in zip(demands, shares, strict=True):
        for hop in demand.hops:
            load[hop] = load.get(hop, 0.0) + share
    for hop, load_bps in load.items():
        assert load_bps <= hop.settings.rate_bps * (1 + 1e-9)
    for demand, (share, full) in zip(demands, found, strict=True):
        if share < demand.limit_bps * (1 - 1e-9):
            per_stream = share / demand.streams
            assert full in demand.hops
            assert load[full] >= full.settings.rate_bps * (1 - 1e-9)
            assert all(
                per_stream >= other_share / other.streams * (1 - 1e-9)
                for other, other_share in zip(demands, shares, strict=True)
                if full in other.hops
            )
