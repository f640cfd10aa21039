"""The paragraph that says what came out."""

import pytest
from msgspec.structs import replace
from report.sample_report import ONE, PING, REPORT, RUN, TRIALS, TWO, Stored, row

from benchctl.report.answer import answer, read_answer
from benchctl.report.report import Report
from benchctl.run.planned import Settings
from benchctl.run.record import FlowEvent, Happening


def told(summary, **more):
    fields = {"trials": TRIALS[:1], "outcomes": [], **more}
    return answer(replace(REPORT, summary=summary, **fields))


def test_it_says_what_was_measured_and_what_failed_and_what_is_not_valid():
    assert answer(REPORT) == [
        "2 of 4 trials measured, 1 failed, 1 not measured. What failed: bulk: connection refused.",
        "Throughput: 94.1 Mbit/s ±0.31 (1), 100 Mbit/s (2).",
        "RTT: 20.4 ms ±0.20 (1), 400 ns (2).",
        "Loss: 1.25 % (1).",
        "Limit of 1 bulk send: bottleneck; its share of the links is 95.0 Mbit/s, and 94.1 Mbit/s"
        " measured.",
        "Limit of 2 bulk send: bottleneck; its share of the links is 95.0 Mbit/s, and 100 Mbit/s"
        " measured.",
        "1 trial is not valid, because the emulator did not keep up.",
        "Expectations: 1 met, 1 not met, 1 undecided.",
    ]


def test_a_brief_answer_names_limits_without_reasons():
    assert answer(REPORT, brief=True)[2] == "Limited by: bottleneck (1, 2)."


def test_of_many_limits_it_counts_the_reasons(monkeypatch):
    monkeypatch.setattr("benchctl.report.answer.MOST_VALUES", 1)
    assert "Limits, by flow, direction and point: bottleneck 2." in answer(REPORT)


def test_of_many_figures_it_names_the_least_and_the_greatest():
    run = replace(RUN, settings=Settings({"streams": [1, 2, 4, 8]}, "interleaved", ()))
    rows = [row({"streams": n}, "throughput_bps", n * 1e6) for n in (2, 8, 1, 4)]
    assert told(rows, run=run)[1:] == ["Throughput: from 1.00 Mbit/s (1) to 8.00 Mbit/s (8)."]


def test_flows_directions_and_several_axes_are_named_where_figures_differ_by_them():
    run = replace(RUN, settings=Settings({"streams": [1, 2], "to": ["a", "b"]}, "interleaved", ()))
    rows = [
        row({"streams": 1, "to": "a"}, "throughput_bps", 1e6, direction="receive"),
        row({"streams": 1, "to": "a"}, "throughput_bps", 2e6),
        row({"streams": 2, "to": "b"}, "throughput_bps", 3e6, flow="other"),
    ]
    assert told(rows, run=run)[1:] == [
        "Throughput: 1.00 Mbit/s (streams=1 to=a bulk receive), 2.00 Mbit/s (streams=1 to=a bulk"
        " send), 3.00 Mbit/s (streams=2 to=b other send)."
    ]


def test_a_load_that_adds_nothing_to_the_round_trip_is_said_so():
    rows = [row(ONE, "rtt_increase_s", -3e-6, **PING), row(TWO, "rtt_increase_s", 0.02, **PING)]
    assert told(rows)[1:] == ["RTT increase: none (1), 20.0 ms (2)."]


def test_phases_of_a_probe_take_the_place_of_its_whole():
    rows = [
        row(ONE, "rtt_s", 0.03, **PING), row(ONE, "rtt_idle_s", 0.02, **PING),
        row(ONE, "rtt_under_load_s", 0.05, **PING), row(ONE, "rtt_increase_s", 0.03, **PING),
        row(TWO, "rtt_s", 0.02, **PING),
    ]  # fmt: skip
    assert told(rows)[1:] == [
        "RTT: 20.0 ms (2).",
        "RTT idle: 20.0 ms (1).",
        "RTT under load: 50.0 ms (1).",
        "RTT increase: 30.0 ms (1).",
    ]


@pytest.mark.parametrize(
    ("means", "changed"),
    [
        ([94e6, 94.1e6, 94.2e6], "Against {}: 1 no difference seen."),
        ([80e6, 80.1e6, 80.2e6], "Slower than {}: 1 worse; most of all {}, -14.9 %."),
        ([99e6, 99.1e6, 99.2e6], "Faster than {}: 1 better; most of all {}, +5.29 %."),
    ],
)  # fmt: skip
def test_a_baseline_is_compared_with(means, changed):
    def report(values):
        one = replace(row(ONE, "throughput_bps", values[1]), values=values)
        return replace(REPORT, outcomes=[], trials=TRIALS[:1], summary=[one])

    said = answer(report(means), report([94e6, 94.15e6, 94.2e6]))
    names = f"the baseline {RUN.name}", "throughput of bulk at streams=1, to=paris"
    assert said[2] == changed.format(*names)


def test_of_a_baseline_without_a_figure_in_common_it_says_so():
    other = replace(REPORT, summary=[row({"streams": 9}, "throughput_bps", 1e6)])
    assert answer(REPORT, other)[2] == (f"No figure can be compared with the baseline {RUN.name}.")


def test_what_happened_within_flows_is_counted():
    event = FlowEvent("send", "throughput_bps", Happening.DROP, 12.5, None, 9e7, 4e7)
    (first, *_) = TRIALS
    flows = [replace(first.flows[0], events=[event]), *first.flows[1:]]
    assert told([], trials=[replace(first, flows=flows)])[-1] == "Within the flows: 1 drop."


def test_a_run_that_is_its_own_baseline_or_has_none_is_not_compared():
    assert read_answer(Stored(REPORT).reader, REPORT) == answer(REPORT)


def test_without_a_trial_there_is_one_sentence():
    nothing = Report(replace(RUN, error="no lab"), [], [], [])
    assert answer(nothing) == ["Nothing was measured.", "The run failed: no lab."]
