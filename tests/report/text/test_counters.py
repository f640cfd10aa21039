"""What the hosts of a trial counted, and what it makes doubtful, in words."""

import pytest
from msgspec.structs import replace
from report.sample_report import BEGIN, ONE, REPORT, RUN, TWO, flow, trial

from benchctl.report.text.counters import counter_lines, counters_text, doubts
from benchctl.run.planned import LabSettings
from benchctl.run.record import CpuUse, Figure, HostCounters, InterfaceCounters

IDLE = CpuUse(4, 0.1, 2, 0.31, 0.05, 0.0)
BUSY = CpuUse(4, 0.4, 1, 0.984, 0.412, 0.0)
ETH0 = InterfaceCounters(2_000_000, 1500, 0, 0, 90_000, 1, 0, 0)
COUNTS = {
    "tcp_segments_sent": 1500, "tcp_segments_retransmitted": 7, "tcp_timeouts": 0,
    "udp_datagrams_sent": 1, "udp_datagrams_received": 0,
}  # fmt: skip
FINE = HostCounters(2.1, {"eth0": ETH0}, COUNTS, IDLE)
DEAF = replace(FINE, counts={**COUNTS, "udp_receive_buffer_errors": 1234})


FAST = {("send", "throughput_bps"): Figure(9e9, "tool")}


def of(position, counters, point=ONE, to="paris", figures=FAST, **columns):
    one = flow("bulk")
    measured = replace(one.flow, target=to, **columns)
    return trial(position, 1, point, BEGIN, [replace(one, flow=measured, reported=figures)],
                 counters=counters)  # fmt: skip


def lines(*trials, run=RUN):
    return list(counter_lines(replace(REPORT, run=run, trials=trials)))


def test_a_host_takes_one_line():
    assert counters_text(FINE) == (
        "eth0 received 1.91 MiB in 1,500 packets, sent 87.9 KiB in 1 packet;"
        " TCP: 1,500 segments sent, 7 retransmitted; UDP: 1 datagram sent;"
        " core 2 31 % busy, all 4 cores 10 %"
    )


def test_what_an_interface_dropped_is_in_it():
    bad = replace(ETH0, rx_dropped=3, tx_errors=2)
    assert "in 1 packet, dropped 3, errors 2;" in counters_text(
        replace(FINE, interfaces={"eth0": bad})
    )


def test_one_processor_is_all_of_them():
    assert counters_text(HostCounters(1.0, cpu=CpuUse(1, 0.5, 0, 0.5, 0.0, 0.25))) == (
        "core 0 50 % busy (25 % the hypervisor)"
    )


def test_a_host_without_counters_says_why():
    assert counters_text(HostCounters(0.0, unread="host paris: it is gone")) == (
        "not read: host paris: it is gone"
    )


def test_a_trial_whose_hosts_kept_up_has_no_doubts():
    assert lines(of(0, {"local": FINE, "paris": FINE})) == []


def test_a_host_that_dropped_datagrams_is_named():
    assert lines(of(0, {"local": FINE, "paris": DEAF})) == [
        "trial 1 (streams=1, to=paris), repeat 1: paris dropped 1,234 UDP datagrams at full receive"
        " buffers: the host lost these, not the network"
    ]


def test_a_core_without_rest_is_named_with_what_used_it():
    assert lines(of(0, {"paris": replace(FINE, cpu=BUSY)})) == [
        "trial 1 (streams=1, to=paris), repeat 1: core 1 of paris 98.4 % busy (41.2 % software"
        " interrupts), all 4 cores 40 %: the host, not the network, may be the limit"
    ]


def test_many_trials_with_one_reason_take_one_line():
    trials = [of(0, {"paris": FINE}), of(1, {"paris": DEAF}), of(2, {"paris": DEAF}, TWO)]
    (line,) = lines(*trials)
    assert line.startswith("trial 2 (")
    assert line.endswith("; likewise 1 other trial")


def test_flows_within_one_machine_may_keep_it_busy():
    counters = {"local": replace(DEAF, cpu=BUSY)}
    (line,) = lines(of(0, counters, to="local"))
    assert "dropped 1,234 UDP datagrams" in line


@pytest.mark.parametrize("in_lab", [True, False])
def test_hosts_of_a_lab_share_one_machine(in_lab):
    crowded = replace(FINE, cpu=BUSY, counts={"softnet_dropped": 5})
    lab = LabSettings("", "", None, verify=False) if in_lab else None
    run = replace(RUN, settings=replace(RUN.settings, lab=lab))
    found = doubts(of(0, {"a": crowded, "b": crowded}, to="b", source="a"), run)
    hosts = ["this machine"] if in_lab else ["a", "b"]
    assert [(one.host, one.reason) for one in found] == [
        (host, reason) for host in hosts for reason in ("queues", "busy")
    ]
    assert found[0].text.startswith(f"{hosts[0]} dropped 5 packets at full input queues")
    assert f": core 1 of {hosts[0]} 98.4 % busy" in f": {found[1].text}"


@pytest.mark.parametrize(
    ("figures", "columns", "named"),
    [
        (FAST, {}, True),
        # An idle ping, and a trial that moved nothing.
        ({("round-trip", "rtt_s"): Figure(0.02, "tool")}, {}, False),
        ({("send", "throughput_bps"): Figure(0.0, "tool")}, {}, False),
        # It had all that it asked for, and all that the link has.
        (FAST, {"requested": {"rate": 9e9}}, False),
        (FAST, {"expected": {"send": {"throughput_bps": 9.1e9}}}, False),
    ],
)
def test_a_busy_core_is_named_where_it_can_have_limited_a_flow(figures, columns, named):
    busy = replace(FINE, cpu=BUSY)
    assert bool(lines(of(0, {"paris": busy}, figures=figures, **columns))) is named


def test_a_busy_host_is_no_matter_of_flows_between_others():
    busy = replace(FINE, cpu=BUSY)
    assert lines(of(0, {"tokyo": busy})) == []
