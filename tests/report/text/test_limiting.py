"""What limited the flows of a run stands in lines, sentences and the JSON."""

import pytest
from msgspec.structs import replace
from report.sample_report import RUN, TRIALS

from benchctl.report.exports.entries import report_entry
from benchctl.report.report import report_of
from benchctl.report.text.limiting import limit_lines
from benchctl.run.record import Figure

LOSSY = {"throughput_bps": 10.7e6, "tcp_rtt_s": 0.0102, "bytes_sent": 1448 * 9860,
         "retransmits": 140}  # fmt: skip


def run_of(figures, trials=TRIALS[:1], **flow):
    found = {("send", metric): Figure(value, "tool") for metric, value in figures.items()}
    return report_of(RUN, [
        replace(one, flows=[replace(one.flows[0], flow=replace(one.flows[0].flow, **flow),
                                    reported=found)])
        for one in trials
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("figures", "flow", "said"),
    [
        (
            {"throughput_bps": 248e6, "tcp_rtt_s": 0.101, "peer_window_bytes": 3 * 2**20}, {},
            "receive window: 3.00 MiB per 101 ms are 249 Mbit/s, and 248 Mbit/s measured",
        ),
        (
            {"throughput_bps": 94e6}, {"expected": {"send": {"throughput_bps": 95.6e6}}},
            "bottleneck: its share of the links is 95.6 Mbit/s, and 94.0 Mbit/s measured",
        ),
        (
            {"throughput_bps": 94e6},
            {"expected": {"send": {"throughput_bps": 95.6e6}}, "bottlenecks": {"send": "core"}},
            "bottleneck: its share of link core is 95.6 Mbit/s, and 94.0 Mbit/s measured",
        ),
        (
            {"throughput_bps": 5e6},
            {"expected": {"send": {"throughput_bps": 5.2e6}}, "bottlenecks": {"send": ""}},
            "buffers: by theory those of the two hosts allow 5.20 Mbit/s, and 5.00 Mbit/s measured",
        ),
        (
            {"throughput_bps": 3e6, "tcp_rtt_s": 0.02, "busy_s": 4.0, "bytes_received": 3e6 / 0.8},
            {},
            "sender: 3.00 Mbit/s measured; it had nothing to send for 60 % of the time",
        ),
        (
            {"throughput_bps": 4e6, "tcp_rtt_s": 0.036, "tcp_min_rtt_s": 0.02}, {"expected": {}},
            "bottleneck: its queue adds 16.0 ms to 20.0 ms; 4.00 Mbit/s measured",
        ),
        (
            {"throughput_bps": 50e6}, {"expected": {}},
            "not known: 50.0 Mbit/s measured; the sender's round-trip time, window and loss are not"
            " reported at this end",
        ),
        (
            {"throughput_bps": 14e6, "sent_bps": 14e6, "loss_ratio": 0.0, "cpu_client_ratio": 0.9},
            {"requested": {"protocol": "udp", "rate": 20e6}},
            "sender: 14.0 Mbit/s of 20.0 Mbit/s measured, with 90 % of a core",
        ),
        (
            {"throughput_bps": 15e6, "sent_bps": 20e6, "loss_ratio": 0.24, "packets_lost": 170.0,
             "receiver_drops": 167.0},
            {"requested": {"protocol": "udp", "rate": 20e6}},
            "receiver: 167 of 170 lost datagrams were dropped at the full socket of the receiving"
            " host, 3 were lost on the way",
        ),
        (
            {"throughput_bps": 15e6, "sent_bps": 20e6, "loss_ratio": 0.24, "packets_lost": 170.0,
             "receiver_drops": 7.0},
            {"requested": {"protocol": "udp", "rate": 20e6}, "expected": {}},
            "bottleneck: 24 % were lost: 163 on the way, 7 at the full socket of the receiving"
            " host",
        ),
        (
            LOSSY | {"loss_events_least": 100, "loss_events_most": 100}, {"expected": {}},
            "loss: 100 loss events, 1 % of the segments, allow Reno 9.49 Mbit/s (Padhye) to"
            " 13.9 Mbit/s (Mathis), and 10.7 Mbit/s measured",
        ),
        (
            LOSSY | {"loss_events_least": 4, "loss_events_most": 100}, {"expected": {}},
            "not known: 10.7 Mbit/s measured; loss may be why: 4 to 100 loss events allow Reno"
            " 9.49 Mbit/s (Padhye) to 69.5 Mbit/s (Mathis)",
        ),
        (
            LOSSY | {"loss_events_least": 1, "loss_events_most": 1}, {"expected": {}},
            "not known: 10.7 Mbit/s measured; its loss does not explain it: 1 loss event, 0.01 % of"
            " the segments, allows Reno 138 Mbit/s (Padhye) to 139 Mbit/s (Mathis)",
        ),
        (
            LOSSY | {"loss_events_least": 100, "loss_events_most": 100},
            {"expected": {}, "effective": {"congestion_control": "bbr"}},
            "not known: 10.7 Mbit/s measured; no model says what 1.42 % of segments sent again make"
            " of its congestion control",
        ),
        (
            LOSSY, {"expected": {}},
            "not known: 10.7 Mbit/s measured; how many loss events 1.42 % of segments sent again"
            " were is not known",
        ),
    ],
)  # fmt: skip
def test_a_sentence_has_the_bound_and_what_was_measured(figures, flow, said):
    report = run_of(figures, **flow)
    (line,) = limit_lines(report)
    assert line == f"streams=1 to=paris bulk send: {said}"
    (entry,) = report_entry(report)["trials"][0]["flows"]
    assert entry["limit"]["text"] == said


def test_many_flows_are_counted_by_their_reason():
    trials = [
        replace(TRIALS[0], trial=replace(TRIALS[0].trial, point={"streams": 1, "n": n}))
        for n in range(13)
    ]
    (line,) = limit_lines(run_of({"throughput_bps": 50e6}, trials, expected={}))
    assert line.startswith("not known: 13 of 13, such as streams=1 n=0 bulk send: ")


def test_flows_of_which_the_reason_is_not_known_share_a_line():
    trials = [
        replace(TRIALS[0], trial=replace(TRIALS[0].trial, point={"streams": 1, "n": n}))
        for n in range(2)
    ]
    (line,) = limit_lines(run_of({"throughput_bps": 50e6}, trials, expected={}))
    assert line.startswith("not known: 2 of 2, such as streams=1 n=0 bulk send: 50.0 Mbit/s")
