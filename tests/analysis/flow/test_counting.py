"""What a host counted between two readings: wraps, interfaces that come and go, busy processors."""

import pytest
from msgspec.structs import replace
from report.sample_report import flow

from benchctl.analysis.flow.counting import between, drops, is_busy
from benchctl.run.record import CpuUse, Figure, HostCounters, InterfaceCounters

NONE = [0] * 8


def reading(time_s=0.0, interfaces=None, counts=None, cores=None):
    return {
        "time_s": time_s,
        "interfaces": interfaces or {},
        "counts": counts or {},
        "cores": cores or {},
    }


def test_counters_grow_and_those_of_interfaces_at_rest_are_left_out():
    before = reading(10.0, {"lo": NONE, "eth0": [*range(8)]}, {"tcp_timeouts": 5})
    after = reading(12.5, {"lo": NONE, "eth0": [*range(10, 18)]}, {"tcp_timeouts": 8})
    assert between(before, after) == HostCounters(
        2.5, {"eth0": InterfaceCounters(*[10] * 8)}, {"tcp_timeouts": 3}
    )


def test_a_counter_of_32_bits_that_wrapped_goes_on():
    old = [2**32 - 1000, 10, 0, 0, 0, 0, 0, 0]
    grown = between(
        reading(interfaces={"eth0": old}), reading(interfaces={"eth0": [500, 20, *NONE[2:]]})
    )
    assert grown.interfaces["eth0"].rx_bytes == 1500
    assert grown.interfaces["eth0"].rx_packets == 10


@pytest.mark.parametrize("before", [[9000, 9, 1, 1, 9000, 9, 0, 0], None])
def test_an_interface_that_is_new_or_began_anew_has_what_it_counted_since(before):
    fresh = [700, 12, 0, 2, 300, 4, 0, 0]
    found = between(
        reading(interfaces={} if before is None else {"wg0": before}),
        reading(interfaces={"wg0": fresh}),
    )
    assert found.interfaces == {"wg0": InterfaceCounters(*fresh)}


def test_an_interface_that_went_has_none():
    assert between(reading(interfaces={"wg0": [9] * 8}), reading()).interfaces == {}


def test_a_count_that_only_one_reading_has_is_unknown():
    found = between(reading(counts={"a": 1, "b": 2}), reading(counts={"b": 5, "c": 9}))
    assert found.counts == {"b": 3}


def test_the_busiest_processor_is_named_with_what_kept_it_busy():
    before = reading(cores={"0": [100, 900, 50, 0], "1": [500, 500, 10, 5], "7": [1, 1, 1, 1]})
    after = reading(cores={"0": [150, 950, 60, 0], "1": [598, 502, 50, 15], "8": [9, 9, 9, 9]})
    found = between(before, after).cpu
    assert found == CpuUse(2, pytest.approx(148 / 200), 1, 0.98, 0.4, 0.1)
    assert is_busy(found)


def test_idle_time_that_fell_is_none():
    found = between(reading(cores={"0": [10, 900, 0, 0]}), reading(cores={"0": [20, 895, 0, 0]}))
    assert found.cpu.busiest_ratio == 1.0


def test_between_two_ticks_nothing_is_known_of_processors():
    cores = {"0": [10, 900, 0, 0]}
    assert between(reading(cores=cores), reading(cores=cores)).cpu is None


@pytest.mark.parametrize(("busy", "warned"), [(0.95, False), (0.951, True), (1.0, True)])
def test_a_processor_is_busy_above_95_percent(busy, warned):
    assert is_busy(CpuUse(4, 0.3, 2, busy, 0.0, 0.0)) is warned


def test_drops_of_a_host_are_named():
    counts = {
        "udp_receive_buffer_errors": 12,
        "tcp_segments_dropped": 0,
        "tcp_connections_dropped": 1,
        "tcp_timeouts": 9,
        "softnet_squeezed": 7,
    }
    found = HostCounters(2.0, {"eth0": InterfaceCounters(9, 9, 3, 40, 9, 9, 1, 2)}, counts)
    assert drops(found, "paris", [received("udp", 20)]) == {
        "UDP datagrams at full receive buffers": 12,
        "TCP connections at full listen queues": 1,
        "packets received by eth0": 40,
        "packets to be sent by eth0": 2,
        "packets with errors at eth0": 4,
    }


def test_frames_that_a_switch_sends_now_and_then_are_no_drops():
    slow = HostCounters(10.0, {"eth0": InterfaceCounters(9, 9, 0, 10, 9, 9, 0, 0)})
    assert drops(slow, "paris", [received("udp", 0)]) == {}


@pytest.mark.parametrize(
    ("protocol", "direction", "lost", "dropped"),
    [
        ("udp", "send", 20, 12),
        ("", "send", 20, 12),
        ("udp", "send", 5, 5),
        ("udp", "send", 0, 0),
        ("udp", "send", None, 12),
        ("udp", "round-trip", 20, 12),
        # Its far end sends datagrams and receives none, and a ping has none.
        ("udp", "receive", 20, 0),
        ("tcp", "send", None, 0),
        ("icmp", "round-trip", 20, 0),
    ],
)
def test_a_host_dropped_no_more_datagrams_than_its_flows_lost_there(
    protocol, direction, lost, dropped
):
    counted = HostCounters(2.0, counts={"udp_receive_buffer_errors": 12})
    found = drops(counted, "paris", [received(protocol, lost, direction)])
    assert sum(found.values()) == dropped


def received(protocol, lost, direction="send"):
    one = flow("bulk")
    figures = {} if lost is None else {(direction, "packets_lost"): Figure(float(lost), "tool")}
    return replace(
        one, flow=replace(one.flow, protocol=protocol, direction=direction), reported=figures
    )
