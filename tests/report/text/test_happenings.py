"""What happened within flows, in words."""

import pytest
from msgspec.structs import replace
from report.sample_report import RUN, TRIALS

from benchctl.report.exports.entries import report_entry
from benchctl.report.report import report_of
from benchctl.report.text.happenings import event_lines, event_text, lab_changes
from benchctl.report.text.remarks import remarks
from benchctl.run.planned import LabSettings, PlannedChange, Settings
from benchctl.run.record import FlowEvent, Happening

DROP = FlowEvent(
    "send", "throughput_bps", Happening.DROP, 12.0, None, 90e6, 30e6, 0.9995, None,
    {"retransmits": 45.0, "tcp_rtt_s": 0.2, "cpu_ratio": 1.0},
)  # fmt: skip
STALL = FlowEvent("send", "throughput_bps", Happening.STALL, 3.0, 5.5, 90e6, 0.0)
SWING = FlowEvent(
    "send", "throughput_bps", Happening.OSCILLATION, 0.0, 60.0, 40e6, 90e6, 0.99, 5.0
)  # fmt: skip
RAMP_UP = FlowEvent("send", "throughput_bps", Happening.RAMP_UP, 130.0, None, 0.0, 9e6, 0.995)
RECOVERY = FlowEvent("send", "throughput_bps", Happening.RECOVERY, 4.0, None, 4e6, 5e6, 0.9989)
STEP = FlowEvent("receive", "owd_s", Happening.CLOCK_STEP, 63.0, None, -0.045, -0.05)


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (
            DROP,
            "at 12.0 s throughput: drop from 90.0 Mbit/s to 30.0 Mbit/s (-66.7 %);"
            " confidence above 99.9 %; retransmits 45; TCP RTT 200 ms",
        ),
        (STALL, "at 3.00 s throughput: stall for 2.50 s, before at 90.0 Mbit/s"),
        (
            SWING,
            "at 0 s throughput: oscillation between 40.0 Mbit/s and 90.0 Mbit/s every 5.00 s,"
            " for 60.0 s; confidence 99 %",
        ),
        (
            RAMP_UP,
            "at 2 min 10 s throughput: delayed ramp-up from 0 bit/s to 9.00 Mbit/s;"
            " confidence 99.5 %",
        ),
        (
            RECOVERY,
            "at 4.00 s throughput: recovery from 4.00 Mbit/s to 5.00 Mbit/s (+25 %);"
            " confidence 99.9 %",
        ),
        (STEP, "at 63.0 s OWD: clock step by -5.00 ms to -50.0 ms"),
    ],
)
def test_an_event_is_described_in_one_line(event, text):
    assert event_text(event) == text


@pytest.fixture
def report():
    first = TRIALS[0]
    flows = [replace(first.flows[0], events=(DROP, STALL, STALL)), *first.flows[1:]]
    return report_of(RUN, [replace(first, flows=flows), *TRIALS[1:]])


def test_the_events_of_a_trial_stand_below_its_name(report):
    assert list(event_lines(report)) == [
        "trial 1 (streams=1, to=paris), repeat 1",
        *(f"  bulk send, {event_text(event)}" for event in (DROP, STALL, STALL)),
    ]


def test_the_table_counts_the_events(report):
    counted = "within the flows: 1 drop, 2 stalls; benchctl show --events describes them"
    assert counted in remarks(report)


def test_the_json_has_the_events_of_each_direction(report):
    entries = report_entry(report)["trials"][0]["flows"]
    assert [one["kind"] for one in entries[0]["events"]] == ["drop", "stall", "stall"]
    assert entries[0]["events"][0]["beside"]["retransmits"] == 45
    assert entries[1]["events"] == []


def test_changes_of_the_lab_have_their_times_and_words():
    changes = (
        PlannedChange(6.0, "core", rate=20e6),
        PlannedChange(0.0, "core", ramp=3.0, delay=0.025, loss=0.1, at_share=0.5),
        PlannedChange(15.0, "edge", rate="unlimited"),
    )
    settings = Settings({}, "interleaved", (), lab=LabSettings("x", "", None, True, changes))
    assert lab_changes(settings, 20.0) == [
        (6.0, "core 20.0 Mbit/s"), (10.0, "core 25.0 ms, loss 10 % in 3.00 s"),
        (15.0, "edge unlimited"),
    ]  # fmt: skip
    assert lab_changes(Settings({}, "interleaved", ()), 20.0) == []
