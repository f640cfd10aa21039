"""What theory expects of flows in a lab, worked out by hand."""

import dataclasses
from pathlib import Path

import pytest
from engine.fakes import FakeBackend
from msgspec.structs import replace

from benchctl.api import Capabilities, Demand, Direction
from benchctl.backends import installed
from benchctl.lab.emulate.link import Change
from benchctl.lab.topology.expect import KernelBuffers
from benchctl.lab.topology.topology import build_topology
from benchctl.plan.bound import bind_flow
from benchctl.plan.promise import bottlenecks, bounds, expected_values
from benchctl.run.planned import PlannedFlow
from benchctl.toml.source import parse_toml

# a, b and c reach d over one link of 10 Mbit/s and 20 ms; a has 2 Mbit/s to get there.
TEXT = """
[hosts]
a = {}
b = {}
c = {}
d = {}
[routers]
r = {}
s = {}
[links]
a = { between = ["a", "r"], rate = "2Mbit" }
b = { between = ["b", "r"] }
c = { between = ["c", "r"] }
core = { between = ["r", "s"], rate = "10Mbit", delay = "20ms" }
d = { between = ["s", "d"] }
"""
TCP = 1448 / 1514
"""Payload of a full frame: 1500 bytes of IP with 52 of headers, and 14 of Ethernet."""
UDP = 1448 / (1448 + 28 + 14)
PING_BITS = (56 + 28 + 14) * 8
RTT_B = 2 * (0.020 + PING_BITS / 10e6)
"""Between b and d; that of a has the frame on its own link as well, both ways."""


@pytest.fixture(scope="module")
def topology():
    return build_topology(parse_toml(TEXT, Path("lab.toml")), {})


def plan(name, backend="iperf3", source="b", direction="send", **parameters):
    if backend == "iperf3":
        parameters.setdefault("duration", "10s")
    return PlannedFlow(name, backend, source, "d", None, Direction(direction), 0.0, parameters)


def expected(topology, *flows, ends=None, changes=()):
    if ends is None:
        ends = {flow.name: (flow.source, flow.to) for flow in flows}
    bound = [bind_flow(flow, installed().load(flow.backend)) for flow in flows]
    return expected_values(bound, ends, topology, KernelBuffers((6, 18)), changes)


def links(topology, *flows, changes=()):
    """Return the link that is each flow's bottleneck in the direction that it sends."""
    ends = {flow.name: (flow.source, flow.to) for flow in flows}
    bound = [bind_flow(flow, installed().load(flow.backend)) for flow in flows]
    found = bottlenecks(bound, ends, topology, KernelBuffers((6, 18)), changes)
    return {flow: directions["send"] for flow, directions in found.items()}


def test_the_bottleneck_of_a_flow_is_the_link_that_its_share_is_of(topology):
    a, b = plan("a", source="a"), plan("b", window="16K")
    assert links(topology, a) == {"a": "a"}
    assert links(topology, plan("b")) == {"b": "core"}
    assert links(topology, a, b) == {"a": "a", "b": ""}  # a window is no link
    many = [plan(f"c{number}", source="c") for number in range(5)]
    assert links(topology, a, *many)["a"] == "core"


def test_of_changing_links_the_bottleneck_is_that_of_most_of_the_time(topology):
    faster = [("a", Change(at_ns=round(at_s * 1e9), rate_bps=50e6)) for at_s in (6, 4)]
    found = [links(topology, plan("a", source="a"), changes=[change]) for change in faster]
    assert found == [{"a": "a"}, {"a": "core"}]


def test_of_a_path_with_jitter_the_least_delay_is_told_too():
    text = TEXT.replace('delay = "20ms"', 'delay = "20ms", jitter = "5ms"')
    made = build_topology(parse_toml(text, Path("lab.toml")), {})
    told = expected(made, plan("main", backend="owping", direction="both"))["main"]
    for way in ("send", "receive"):
        assert told[way]["owd_s"] - told[way]["owd_least_s"] == pytest.approx(0.005)
    assert told["round-trip"] == {"rtt_s": told["send"]["rtt_s"]}


@pytest.mark.parametrize(
    ("flow", "frame_bytes"),
    [
        # A handshake sends shorter frames than the 98 bytes of a ping: at 1 Mbit/s by 0.35 ms.
        (plan("main"), 54),
        (plan("main", protocol="udp", rate="100kbit", length="1000B"), 1042),
    ],
)
def test_the_least_delay_is_that_of_the_shortest_frame_that_a_flow_sends(flow, frame_bytes):
    text = TEXT.replace('rate = "10Mbit"', 'rate = "1Mbit"')
    made = build_topology(parse_toml(text, Path("lab.toml")), {})
    told = expected(made, flow)["main"]["send"]
    least_s = told.get("owd_least_s", told["owd_s"])
    assert least_s == pytest.approx(0.020 + frame_bytes * 8 / 1e6)


class OwnNames(FakeBackend):
    """A tool whose parameters are called as nobody else calls them."""

    name = "own"
    capabilities = Capabilities((Direction.SEND,), headline="pages_per_minute")

    def demand(self, params):
        return Demand(rate_bps=3e6, protocol="udp", payload_bytes=1448, omitted_s=1.0)


@pytest.mark.parametrize(("protocol", "known"), [("tcp", True), ("sctp", False), ("mptcp", False)])
def test_a_protocol_whose_headers_are_not_known_has_no_expected_rate(topology, protocol, known):
    told = expected(topology, plan("main", protocol=protocol), plan("beside", source="c"))
    assert ("throughput_bps" in told["main"]["send"]) is known
    # But it takes its share from the others.
    assert told["beside"]["send"]["throughput_bps"] == pytest.approx(TCP * 5e6)


def test_a_backend_says_itself_what_its_flows_ask_of_the_network(topology):
    flow = PlannedFlow("x", "own", "b", "d", None, Direction.SEND, 0.0, {"duration": "2s"})
    flow = bind_flow(flow, OwnNames())
    told = expected_values([flow], {"x": ("b", "d")}, topology, KernelBuffers((6, 18)))
    assert told["x"]["send"]["throughput_bps"] == pytest.approx(3e6)
    assert told["x"]["send"]["rtt_s"] == pytest.approx(0.040 + 2 * (1448 + 28 + 14) * 8 / 10e6)
    # The rate falls when half of the time that counts is over.
    slower = ("core", Change(at_ns=1_500_000_000, rate_bps=1e6 / UDP))
    told = expected_values([flow], {"x": ("b", "d")}, topology, KernelBuffers((6, 18)), [slower])
    assert told["x"]["send"]["throughput_bps"] == pytest.approx(2e6)


def rate(topology, *flows):
    """Return what is expected of the throughput of one flow's one direction."""
    (of_flow,) = [expected(topology, *flows)[flow.name] for flow in flows]
    ((_, metrics),) = of_flow.items()
    return metrics["throughput_bps"]


@pytest.mark.parametrize(("direction", "receives"), [("send", "server"), ("receive", "client")])
def test_each_end_has_a_window_of_its_own(topology, direction, receives):
    sends = "client" if receives == "server" else "server"
    windows = {f"{sends}_window": "1M", f"{receives}_window": "16K"}
    both = rate(topology, plan("x", "simpleperf", direction=direction, window="16K"))
    assert both < 10e6 * TCP / 2
    each = rate(topology, plan("x", "simpleperf", direction=direction, **windows))
    assert each == pytest.approx(both)


@pytest.mark.parametrize("direction", ["send", "receive"])
def test_one_tcp_flow_fills_its_bottleneck_but_for_headers(topology, direction):
    told = expected(topology, plan("x", direction=direction))["x"]
    assert set(told) == {direction}
    assert told[direction]["throughput_bps"] == pytest.approx(10e6 * TCP)
    assert told[direction]["rtt_s"] == pytest.approx(RTT_B)


def test_a_flow_of_both_directions_has_each_way_to_itself(topology):
    told = expected(topology, plan("x", direction="both"))["x"]
    assert set(told) == {"send", "receive"}
    for metrics in told.values():
        assert metrics["throughput_bps"] == pytest.approx(10e6 * TCP)
        assert metrics["rtt_s"] == pytest.approx(RTT_B)


def test_the_frames_time_on_each_link_is_part_of_the_round_trip(topology):
    told = expected(topology, plan("x", source="a"))["x"]["send"]
    assert told["rtt_s"] == pytest.approx(RTT_B + 2 * PING_BITS / 2e6)


def test_pings_round_trip_counts_its_own_payload_and_nothing_else(topology):
    told = expected(topology, plan("x", "ping", direction="round-trip", length="1000B"))["x"]
    bits = (1000 + 28 + 14) * 8
    assert told == {"round-trip": {"rtt_s": pytest.approx(2 * (0.020 + bits / 10e6))}}


def test_flows_together_share_max_min_fairly(topology):
    told = expected(topology, plan("x", source="a"), plan("y", source="b"), plan("z", source="c"))
    got = {name: metrics["send"]["throughput_bps"] for name, metrics in told.items()}
    assert got == {
        "x": pytest.approx(2e6 * TCP),
        "y": pytest.approx(4e6 * TCP),
        "z": pytest.approx(4e6 * TCP),
    }


def test_streams_count_one_by_one(topology):
    told = expected(topology, plan("y", streams=3), plan("z", source="c"))
    assert told["y"]["send"]["throughput_bps"] == pytest.approx(7.5e6 * TCP)
    assert told["z"]["send"]["throughput_bps"] == pytest.approx(2.5e6 * TCP)


def test_opposite_directions_do_not_share(topology):
    told = expected(topology, plan("y"), plan("z", source="c", direction="receive"))
    assert told["y"]["send"]["throughput_bps"] == pytest.approx(10e6 * TCP)
    assert told["z"]["receive"]["throughput_bps"] == pytest.approx(10e6 * TCP)


@pytest.mark.parametrize("backend", ["iperf3", "simpleperf"])
def test_udp_at_a_rate_gets_that_rate_and_leaves_the_rest(topology, backend):
    udp = plan("u", backend, protocol="udp", rate="3Mbit", duration="10s")
    told = expected(topology, udp, plan("t", source="c"))
    assert told["u"]["send"]["throughput_bps"] == pytest.approx(3e6)
    assert told["t"]["send"]["throughput_bps"] == pytest.approx((10e6 - 3e6 / UDP) * TCP)


def test_udp_beyond_the_bottleneck_gets_the_bottleneck(topology):
    assert rate(topology, plan("u", protocol="udp", rate="50Mbit")) == pytest.approx(10e6 * UDP)


def test_the_warm_up_does_not_change_a_rate(topology):
    udp = plan("u", protocol="udp", rate="3Mbit", omit="2s")
    assert rate(topology, udp) == pytest.approx(3e6)


def test_a_window_gives_window_by_round_trip(topology):
    # Of a buffer of 2 x 16 KiB, 160 / 256 is window; a round trip is that of a full segment.
    rtt_s = 0.040 + (1514 + 66) * 8 / 10e6
    bps = 20 * 1024 * 8 / rtt_s
    assert rate(topology, plan("w", window="16K")) == pytest.approx(bps)
    assert rate(topology, plan("w", window="16K", streams=2)) == pytest.approx(2 * bps)
    assert rate(topology, plan("w", window="1M")) == pytest.approx(10e6 * TCP)


def test_a_buffer_of_udp_is_no_window(topology):
    udp = plan("u", protocol="udp", rate="5Mbit", window="4K")
    assert rate(topology, udp) == pytest.approx(5e6)


@pytest.mark.parametrize("backend", ["iperf3", "simpleperf"])
def test_a_small_mss_and_large_datagrams_leave_less(topology, backend):
    more = {"duration": "10s"}
    assert rate(topology, plan("m", backend, mss="536B", **more)) == pytest.approx(10e6 * 524 / 590)
    left = 10e6 - 4e6 * (8192 + 8 + 6 * 34) / 8192
    udp = plan("u", backend, protocol="udp", rate="4Mbit", length="8192B", **more)
    told = expected(topology, udp, plan("t", source="c"))
    assert told["u"]["send"]["throughput_bps"] == pytest.approx(4e6)
    assert told["t"]["send"]["throughput_bps"] == pytest.approx(left * TCP)
    # Of too many fragments nobody knows how many datagrams become whole.
    udp = plan("u", backend, protocol="udp", rate="10Mbit", length="8192B", **more)
    assert "throughput_bps" not in expected(topology, udp)["u"]["send"]


@pytest.mark.parametrize(("direction", "owd_s"), [("send", 0.021), ("receive", 0.034)])
def test_one_way_delays_are_expected_of_each_way(direction, owd_s):
    text = TEXT.replace(
        'delay = "20ms"', 'delay = "21ms", toward = { r = { delay = "34ms" } }'
    ).replace('rate = "10Mbit"', 'rate = "10Gbit"')
    lab = build_topology(parse_toml(text, Path("lab.toml")), {})
    for backend, more in (("owping", {"duration": "1s", "length": "64B"}), ("simpleperf", {})):
        told = expected(lab, plan("x", backend, direction=direction, **more))["x"]
        assert set(told) == {direction}
        assert told[direction]["owd_s"] == pytest.approx(owd_s, abs=1e-6)
    both = expected(lab, plan("x", "owping", direction="both", duration="1s"))["x"]
    assert both[direction]["owd_s"] == pytest.approx(owd_s, abs=1e-6)


def test_links_that_change_count_with_their_mean_over_the_measured_time(topology):
    changes = [
        ("core", Change(at_ns=int(5e9), over_ns=int(2e9), rate_bps=5e6, delay_s=0.040)),
        ("core", Change(at_ns=int(8e9), loss_ratio=1.0)),
    ]
    told = expected(topology, plan("x", "simpleperf", duration="10s"), changes=changes)["x"]["send"]
    # 5 s at 10, 2 s at 7.5 on average, 1 s at 5 Mbit/s, 2 s at nothing.
    assert told["throughput_bps"] == pytest.approx((50e6 + 15e6 + 5e6) / 10 * TCP, rel=1e-3)
    # Of the 8 s in which anything arrives.
    delay_s = (5 * 0.020 + 2 * 0.030 + 0.040) / 8
    assert told["owd_s"] == pytest.approx(delay_s, rel=0.01)
    # That of the first 5 s, with the 54 bytes of a bare segment at 10 Mbit/s.
    assert told["owd_least_s"] == pytest.approx(0.0200432)


def test_what_is_omitted_and_who_is_not_there_yet_do_not_count(topology):
    changes = [("core", Change(at_ns=int(2e9), rate_bps=5e6))]
    late = replace(plan("z", "simpleperf", source="c", duration="2s"), delay_s=2.0)
    flows = (plan("y", "simpleperf", duration="3s", omit="1s"), late)
    told = expected(topology, *flows, changes=changes)
    # One second alone at 10, two together at 5 Mbit/s.
    assert told["y"]["send"]["throughput_bps"] == pytest.approx((10 + 2.5 + 2.5) / 3 * 1e6 * TCP)
    assert told["z"]["send"]["throughput_bps"] == pytest.approx(2.5e6 * TCP)


@pytest.mark.parametrize("backend", ["iperf3", "simpleperf"])
def test_a_number_of_bytes_ends_a_flow_and_does_not_slow_it(topology, backend):
    told = expected(topology, PlannedFlow(
        "n", backend, "b", "d", None, Direction.SEND, 0.0, {"bytes": "1M"}
    ))  # fmt: skip
    assert told["n"]["send"]["throughput_bps"] == pytest.approx(10e6 * TCP)


@pytest.mark.parametrize("backend", ["iperf3", "simpleperf"])
def test_a_number_of_bytes_at_a_rate_goes_at_that_rate(topology, backend):
    told = expected(topology, PlannedFlow(
        "n", backend, "b", "d", None, Direction.SEND, 0.0, {"bytes": "1M", "rate": "1Mbit"}
    ))  # fmt: skip
    assert told["n"]["send"]["throughput_bps"] == pytest.approx(1e6)


def test_nothing_is_expected_of_a_flow_that_leaves_the_lab(topology):
    told = expected(topology, plan("in"), plan("out", source="c"), ends={"in": ("b", "d")})
    assert set(told) == {"in"}
    assert told["in"]["send"]["throughput_bps"] == pytest.approx(10e6 * TCP)


def test_no_rate_is_expected_where_no_link_has_one():
    bare = build_topology(parse_toml(TEXT.replace(', rate = "10Mbit"', ""), Path("lab.toml")), {})
    told = expected(bare, plan("x"))["x"]["send"]
    assert told == {"rtt_s": pytest.approx(0.040), "owd_s": pytest.approx(0.020)}


def lossy(topology, loss_ratio):
    links = dict(topology.links)
    there, back = links["core"].settings
    links["core"] = dataclasses.replace(
        links["core"], settings=(dataclasses.replace(there, loss_ratio=loss_ratio), back)
    )
    return dataclasses.replace(topology, links=links)


@pytest.mark.parametrize(
    ("control", "loss_ratio", "bps"),
    [
        # Mathis, worked out by hand: 1448 B, and an idle round trip of 41.27 ms.
        ("reno", 0.01, 1448 * 8 / 0.04126 * (1.5 / 0.01) ** 0.5),
        ("cubic", 0.01, 1448 * 8 / 0.04126 * (1.5 / 0.01) ** 0.5),
        ("reno", 1e-5, None),  # more than the link has
    ],
)
def test_random_loss_bounds_what_is_expected_of_reno(topology, control, loss_ratio, bps):
    told = expected(lossy(topology, loss_ratio), plan("bulk", congestion_control=control))
    send = told["bulk"]["send"]
    assert send["throughput_bps"] == pytest.approx(bps or 10e6 * TCP, rel=0.001)
    assert "loss_left_out_ratio" not in send
    assert send.get("share_bps") == (pytest.approx(10e6 * TCP) if bps else None)


@pytest.mark.parametrize(
    ("control", "loss_ratio"), [("bbr", 0.01), (None, 0.01), ("reno", 0.3), ("cubic", 1e-5)]
)
def test_loss_is_left_out_where_no_model_holds_and_that_is_told(topology, control, loss_ratio):
    more = {"congestion_control": control} if control else {}
    told = expected(lossy(topology, loss_ratio), plan("bulk", **more))
    send = told["bulk"]["send"]
    assert send["throughput_bps"] == pytest.approx(10e6 * TCP)
    assert send["loss_left_out_ratio"] == pytest.approx(loss_ratio)
    udp = expected(
        lossy(topology, loss_ratio), plan("bulk", protocol="udp", rate="5Mbit", length="1448B")
    )
    assert "loss_left_out_ratio" not in udp["bulk"]["send"]


def test_no_link_of_the_way_carries_more_or_is_faster_at_any_time(topology):
    changes = [
        ("core", Change(at_ns=int(5e9), over_ns=int(2e9), rate_bps=20e6, delay_s=0.005)),
        ("core", Change(at_ns=int(8e9), rate_bps=5e6, delay_s=0.040)),
    ]
    planned = plan("x", "simpleperf", duration="10s", direction="both")
    flow = bind_flow(planned, installed().load(planned.backend))
    ends = {"x": ("b", "d")}
    still = bounds([flow], ends, topology)["x"]
    assert still["send"].link_bps == still["receive"].link_bps == 10e6
    # An empty datagram: its frame of 42 bytes takes 34 us at 10 Mbit/s, there and back.
    assert still["send"].rtt_s == pytest.approx(0.040 + 2 * 42 * 8 / 10e6)
    assert still["round-trip"].rtt_s == still["send"].rtt_s
    moving = bounds([flow], ends, topology, changes)["x"]["send"]
    assert moving.link_bps == 20e6
    assert moving.rtt_s == pytest.approx(0.010 + 2 * 42 * 8 / 20e6)
