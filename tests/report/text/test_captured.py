"""What the packets of a flow say stands below the summary, and in full in trials and on pages."""

from types import SimpleNamespace

import pytest
from engine.trial.test_inside import captured
from msgspec.structs import replace
from packets.slow import slow
from report.sample_report import RUN, TRIALS

from benchctl.engine.trial.packet_figures import analyze_captures
from benchctl.packets.findings import connection_entry
from benchctl.packets.trace import read_trace
from benchctl.report.exports import md
from benchctl.report.exports.table import text_of
from benchctl.report.page.blocks import PageContent
from benchctl.report.page.html import html_of
from benchctl.report.page.packets import packet_sections
from benchctl.report.report import report_of
from benchctl.report.text.captured import MOST_FLOWS, packet_lines, packets_text
from benchctl.report.text.packets_text import connection_text, pair_text
from benchctl.run.record import RecordedPackets

FLOW = TRIALS[0].flows[0].flow


def report_with(*flows):
    """Return the report of a trial for each of these flows, at points of their own."""
    return report_of(RUN, [
        replace(
            TRIALS[0],
            trial=replace(TRIALS[0].trial, point={"n": n}, position=n),
            flows=[replace(TRIALS[0].flows[0], flow=flow)],
        )
        for n, flow in enumerate(flows)
    ])  # fmt: skip


@pytest.fixture
def both_ends(tmp_path):
    """A flow of ten segments, two of which are lost, captured at both ends."""
    found = analyze_captures(captured(tmp_path), tmp_path, one_clock=True, stop=lambda: False)
    return replace(FLOW, source="from", target="to", captures=found.captures, paired=found.paired)


@pytest.fixture
def one_end(tmp_path):
    """A download that waits for each cause, captured at the end that sends."""
    (tmp_path / "slow.pcap").write_bytes(slow())
    trace = read_trace(tmp_path / "slow.pcap")
    found = tuple(connection_entry(n, one) for n, one in enumerate(trace.connections, 1))
    packets = RecordedPackets("paris", "slow.pcap", 465, 0, 0, findings=found)
    return replace(FLOW, captures=[packets])


def test_both_ends_say_what_was_lost_and_how_long_packets_took(both_ends):
    assert list(packet_lines(report_with(both_ends))) == [
        "packets of bulk, 10.0.0.1:40000 → 10.0.0.2:5201: 14 packets, 9.77 KiB at 479 kbit/s"
        " (250 kbit/s as tcptrace has it, 319 kbit/s as Wireshark has it)",
        "  Of 280 ms, 10.0.0.1:40000 waited 155 ms for retransmission timeouts and 125 ms for the"
        " network.",
        "  MSS 1000 B, window scale 7, SACK, no timestamps; RTT min 40.0 ms, mean 40.0 ms, p95"
        " 40.0 ms, max 40.0 ms; 40.0 ms in the handshake; at most 9.77 KiB in flight",
        "  2 retransmissions of 1.95 KiB (timeout 2)",
        "  2 of 14 packets lost on the way, the first at 0.044 s; one-way delay min 20.0 ms, mean"
        " 20.0 ms, p95 20.0 ms, max 20.0 ms",
    ]


def test_one_end_says_what_its_sender_waited_for_and_what_closed_its_window(one_end):
    first, waited, *rest = packet_lines(report_with(one_end))
    assert first.startswith(
        "packets of bulk, 10.0.0.2:80 → 10.0.0.1:50112 (the largest of 2 connections): 234 packets,"
    )
    assert waited == (
        "  Of 3.74 s, 10.0.0.2:80 waited 1.10 s for the receiver's window, 250 ms for"
        " retransmission timeouts, 250 ms for the network and 1.05 s for what is not seen to be the"
        " network (paced, a full send buffer, or a control like BBR), and had nothing to send for"
        " 1.08 s."
    )
    assert rest == [
        "  request: GET /big.iso HTTP/1.1",
        "  MSS 1460 B, window scale 7, SACK, no timestamps; RTT min 49.9 ms, mean 50.0 ms, p95"
        " 50.0 ms, max 50.0 ms; 50.0 ms in the handshake; at most 14.3 KiB in flight",
        "  2 retransmissions of 2.85 KiB (fast 1, timeout 1); duplicate ACKs 6, triple duplicate"
        " ACKs 1, ACKs with SACK blocks 6, SACK blocks 6, window full 1",
        "  zero window of 10.0.0.1:50112: from 2.635 s to 3.685 s (1.05 s) in a pause of 1.10 s,"
        " 3 ACKs, 2 probes, full since 2.585 s",
    ]


def test_datagrams_and_the_connection_that_controls_them_are_told_apart(tmp_path):
    captures = captured(tmp_path, datagrams=[(5201, 0), (5201, 1)])
    found = analyze_captures(
        captures, tmp_path, port=5201, protocol="udp", one_clock=True, stop=lambda: False
    )
    flow = replace(FLOW, source="from", target="to", captures=found.captures, paired=found.paired)
    whole, cut = "10 packets, 9.90 KiB in 90.0 ms", "9 packets, 8.91 KiB in 80.0 ms"
    assert list(packet_lines(report_with(flow))) == [
        f"packets of bulk, UDP 10.0.0.1:42000 → 10.0.0.2:5201: {whole} at from; {cut} at to",
        f"packets of bulk, UDP 10.0.0.2:5201 → 10.0.0.1:42001: {cut} at from; {whole} at to",
        "  controlled by TCP 10.0.0.1:40000 → 10.0.0.2:5201: 14 + 2 packets",
    ]
    texts = [*packets_text(flow)]
    assert texts[0] == "packets at from\n"
    rows = [line.split()[:4] for line in texts[1].splitlines()[2:]]
    assert rows[0] == ["UDP", "10.0.0.1:42000", "10.0.0.2:5201", "10"]
    assert texts[2] == "controlled by TCP 10.0.0.1:40000 → 10.0.0.2:5201: 14 + 2 packets\n"
    assert texts[-2] == "the connection that controls it, packets at both ends\n"


def shut(length_s, **more):
    times = {"began_s": 1.0, "ended_s": length_s and 1.0 + length_s, "duration_s": length_s}
    counts = {"acks": 1, "probes": 1, "window_full_s": None, "pause_s": None}
    return {"closed_by": "10.0.0.2:5201", **times, **counts, **more}


def test_zero_windows_stand_as_both_ends_saw_them_the_longest_first(both_ends):
    seen = [
        {"at_sender": shut(0.1), "at_receiver": shut(0.2)},
        {"at_sender": None, "at_receiver": shut(0.01)},
        {"at_sender": shut(0.02), "at_receiver": None},
        {"at_sender": shut(None), "at_receiver": shut(None, pause_s=0.4, window_full_s=0.9)},
    ]
    shuts = [{"closed_by": "10.0.0.2:5201", **one} for one in seen]
    ours = {"closed_by": "10.0.0.1:40000", "at_sender": shut(9.0), "at_receiver": None}
    flow = replace(both_ends, paired=[{**both_ends.paired[0], "zero_windows": [ours, *shuts]}])
    name = "  zero window of 10.0.0.2:5201:"
    assert list(packet_lines(report_with(flow)))[5:] == [
        f"{name} at its sender from 1.000 s to the end of the trace, 1 ACK, 1 probe; at itself from"
        " 1.000 s to the end of the trace in a pause of 400 ms, 1 ACK, 1 probe, full since 0.900 s",
        f"{name} at its sender from 1.000 s to 1.100 s (100 ms), 1 ACK, 1 probe; at itself from"
        " 1.000 s to 1.200 s (200 ms), 1 ACK, 1 probe",
        f"{name} at its sender from 1.000 s to 1.020 s (20.0 ms), 1 ACK, 1 probe",
        "  and 1 shorter zero window",
    ]


def test_delays_by_two_clocks_are_said_to_be(both_ends):
    flow = replace(both_ends, paired=[{**both_ends.paired[0], "one_clock": False}])
    *_, crossing = packet_lines(report_with(flow))
    assert crossing.endswith("max 20.0 ms, with the offset of the two clocks")


def test_delays_by_two_clocks_that_are_known_carry_their_error(both_ends):
    pair = {**both_ends.paired[0], "one_clock": False, "clock_error_s": 0.003}
    *_, crossing = packet_lines(report_with(replace(both_ends, paired=[pair])))
    assert crossing.endswith("max 20.0 ms, ±3.00 ms by the two clocks")
    assert "delays are ±3.00 ms by the two clocks\n" in pair_text(pair) + "\n"


def test_repeats_are_not_said_again_and_many_points_are_counted(both_ends):
    many = report_with(*[both_ends] * (MOST_FLOWS + 3))
    heads = [line for line in packet_lines(many) if not line.startswith(" ")]
    assert heads[0].startswith("packets of bulk at n=0, 10.0.0.1:40000 → ")
    assert len(heads) == MOST_FLOWS + 1
    assert heads[-1] == "packets of 3 more: benchctl show --trials"
    again = replace(many, trials=[many.trials[0]] * 2)
    assert list(packet_lines(again)) == list(packet_lines(report_with(both_ends)))


def test_a_flow_whose_packets_were_not_looked_into_says_nothing(both_ends):
    bare = [replace(one, findings=()) for one in both_ends.captures]
    flow = replace(both_ends, captures=bare, paired=())
    assert list(packet_lines(report_with(flow))) == list(packets_text(flow)) == []
    assert list(packet_sections(report_with(flow))) == []


def test_everything_is_what_the_command_prints_of_each_end_and_of_both(both_ends):
    said = list(packets_text(both_ends))
    near, far = (connection_text(one.findings[0]) for one in both_ends.captures)
    assert said == [
        "packets at from\n", near, "packets at to\n", far,
        "packets at both ends\n", pair_text(both_ends.paired[0]),
    ]  # fmt: skip


def test_text_of_others_is_made_visible(one_end):
    entry = {**one_end.captures[0].findings[0], "requests": ["GET /\x1b[2J HTTP/1.1"]}
    packets = replace(one_end.captures[0], host="pa\x1b[2Jris", findings=(entry,))
    flow = replace(one_end, captures=[packets])
    report = report_with(flow)
    (section,) = packet_sections(report)
    texts = [text_of(report), *packets_text(flow), html_of(PageContent("", [section]))]
    assert not [text for text in texts if "\x1b" in text]
    assert r"  request: GET /\x1b[2J HTTP/1.1" in texts[0]


def test_the_page_has_the_lines_and_everything_of_each_flow_folded(both_ends):
    report = report_with(both_ends, both_ends)
    (section,) = packet_sections(report)
    summary, *whole = section.blocks
    assert summary.text.splitlines() == list(packet_lines(report))
    assert [one.title for one in whole] == ["Packets of bulk, trial 1", "Packets of bulk, trial 2"]
    assert all(one.folded for one in whole)
    (text,) = whole[0].blocks
    assert text.text == "\n".join(packets_text(both_ends))


def test_in_markdown_the_lines_of_a_flow_are_below_it(both_ends):
    report = report_with(both_ends)
    lines = "".join(md.export(SimpleNamespace(report=report))).splitlines()
    packets = [line for line in lines if line.lstrip().startswith(("- packets of", "- Of"))]
    assert [line.partition("- ")[0] for line in packets] == ["", "  "]
