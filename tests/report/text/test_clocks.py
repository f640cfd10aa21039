"""What delays show of the clocks, in the words that every output has."""

import pytest
from analysis.clocks.test_clocks import C7
from msgspec.structs import replace
from report.sample_report import BEGIN, RUN, Stored, flow, trial

from benchctl.analysis.clocks.clocks import ClockVerdict, clocks_of
from benchctl.analysis.results import FlowReport
from benchctl.report.exports import md, table
from benchctl.report.exports.entries import report_entry
from benchctl.report.report import report_of
from benchctl.report.text.clocks import apart_text, clock_lines, clock_text
from benchctl.report.text.delays import delay_table
from benchctl.run.planned import ExternalServer, Settings
from benchctl.run.record import ClockReading, Figure

MS = 1e-3
FAR = Settings({"count": (1, 10, 20, 100, 300, 500)}, "listed", ())
FAR = replace(FAR, network=replace(FAR.network, peers={"paris": ExternalServer("192.0.2.1", None)}))


def told(there, back, **more):
    """Return figures of (min, median, max) delays in milliseconds, as owping reports them."""
    found = {}
    for direction, delays in (("send", there), ("receive", back)):
        low, middle, high = (value * MS for value in delays)
        spread = {"min": low, "median": middle, "p95": high, "max": high}
        found[direction, "owd_s"] = Figure(middle, "tool", spread)
        found |= {(direction, name): Figure(value, "tool") for name, value in more.items()}
    return found


def probe(figures, **more):
    return FlowReport(replace(flow("probe").flow, target="paris", **more), figures)


def a_report(trials, settings=FAR):
    run = replace(RUN, settings=settings, trials=len(trials))
    ended = [
        trial(at, 1, {"count": count}, BEGIN + 60 * at, [
            probe(figures, started_time=BEGIN + 60 * at, finished_time=BEGIN + 60 * at + 10)
        ])
        for at, (count, figures) in enumerate(trials)
    ]  # fmt: skip
    return report_of(run, ended)


@pytest.mark.parametrize(
    ("there", "back", "more", "text"),
    [
        (
            50.2, -49.0, {},
            "the clocks are about 49.6 ms apart: minima +50.2 and -49.0 ms; half of the sum,"
            " 600 us, is the one-way delay if the path is symmetric; the other clock is ahead;"
            " the clocks of the two hosts are not synchronized",
        ),
        (
            -49.0, 50.2, {"clock_synchronized": 1.0, "owd_error_s": 0.0005},
            "the clocks are about 49.6 ms apart: minima -49.0 and +50.2 ms; half of the sum,"
            " 600 us, is the one-way delay if the path is symmetric; the other clock is behind;"
            " both clocks claim to be synchronized within 500 us",
        ),
        (
            12.0, 9.0, {},
            "minima +12.0 and +9.00 ms: clocks or an asymmetric path; if the path is symmetric,"
            " the clocks are 1.50 ms apart and each way takes 10.5 ms; the clocks of the two hosts"
            " are not synchronized",
        ),
        (
            52.5, 52.4, {"clock_synchronized": 1.0, "owd_error_s": 0.504},
            "the clocks are synchronized only to within 504 ms, and the least delay is 52.4 ms: the"
            " delays are no more accurate than that",
        ),
    ],
)  # fmt: skip
def test_each_verdict_has_its_words_and_figures(there, back, more, text):
    figures = told((there,) * 3, (back,) * 3, **more)
    assert clock_text(clocks_of(figures, {}, one_clock=False)) == text


def test_a_lab_is_compared_with_its_topology():
    expected = {"send": {"owd_s": 10 * MS}, "receive": {"owd_s": 10 * MS}}
    figures = told((15,) * 3, (5,) * 3)
    assert clock_text(clocks_of(figures, expected, one_clock=True)) == (
        "the clocks are about 5.00 ms apart: minima +15.0 and +5.00 ms, where the topology promises"
        " 10.0 ms; the other clock is ahead; the clocks of the two hosts are not synchronized"
    )


def test_offset_and_drift_are_named_together():
    figures = told((65,) * 3, (-47,) * 3)
    figures["send", "clock_offset_s"] = Figure(55 * MS, "samples")
    figures["send", "clock_drift_ratio"] = Figure(1 * MS / 60, "samples")
    text = clock_text(clocks_of(figures, {}, one_clock=False))
    assert "the clocks are about 55.0 ms apart at the beginning" in text
    assert "they drift by +1.00 ms a minute (+16.7 ppm)" in text


def test_minima_of_clocks_that_moved_are_not_taken_for_a_delay():
    figures = told((51.7,) * 3, (-52.0,) * 3)
    text = clock_text(clocks_of(figures, {}, one_clock=False))
    assert "half of the sum, -150 us, cannot be a delay: the clocks drift or step" in text
    for direction in ("send", "receive"):
        figures[direction, "owd_offset_removed_s"] = Figure(1e-3, "samples", {"min": 600e-6})
    text = clock_text(clocks_of(figures, {}, one_clock=False))
    assert "half of the sum without drift and steps, 600 us, is the one-way delay" in text


def test_one_direction_says_as_much_as_it_can():
    figures = {("send", "owd_s"): Figure(-0.04, "tool", {"min": -0.0426})}
    text = clock_text(clocks_of(figures, {}, one_clock=False))
    assert text.startswith("the clocks differ: a least delay of -42.6 ms cannot be")
    figures = {("send", "owd_s"): Figure(0.04, "tool", {"min": 0.04})}
    verdict = clocks_of(figures, {}, one_clock=False)
    assert verdict.verdict is ClockVerdict.UNKNOWN_OFFSET
    assert "only differences of delays in one direction can be relied on" in clock_text(verdict)


@pytest.fixture(scope="module")
def c7():
    """The experiment whose authors took drifting clocks for congestion."""
    return a_report(
        [(count, told(*ways, packets_received=float(count))) for count, *ways in C7]
    )  # fmt: skip


def test_clocks_that_drift_from_point_to_point_are_named_over_the_points(c7):
    first, *_ = clock_lines(c7)
    assert first.startswith("probe: the clocks ")
    assert "over the trials, not the path's delay" in first
    assert "send from +50.2 ms to +63.9 ms; receive from -49.0 ms to -63.4 ms" in first
    assert "half of the sum of the medians stays between 1.10 ms and 1.20 ms" in first


def test_few_lines_stand_for_many_trials(c7):
    lines = list(clock_lines(c7))
    assert len(lines) == 3
    assert lines[1].startswith("probe at count=500: the clocks are about 63.6 ms apart")
    assert lines[2] == "probe: 5 more such trials; benchctl show --trials has them"


def test_every_output_says_the_same(c7):
    (line, *_) = clock_lines(c7)
    for export in (table.export, md.export):
        assert line in "".join(export(Stored(c7)))
    (over,) = report_entry(c7)["clocks"]
    assert line == f"probe: {over['text']}"
    assert over["offsets_s"][0] == pytest.approx(49.6 * MS)
    assert len(over["offsets_s"]) == len(over["symmetric_medians_s"]) == 5
    for one in report_entry(c7)["trials"]:
        for entry in one["flows"]:
            assert entry["clocks"]["verdict"] == "apart"
            assert "apart" in entry["clocks"]["text"]
            assert entry["clocks"]["offset_s"] > 0


def test_delays_keep_their_signs_in_a_table_of_their_own(c7):
    shown = delay_table(c7)
    assert shown.heads == ("count", "one-way delay", "min", "median", "p95", "max")
    assert shown.rows[0] == ("1", "send", "52.5 ms", "52.5 ms", "52.5 ms", "52.5 ms")
    assert shown.rows[1] == ("1", "receive", "-42.6 ms", "-42.5 ms", "-42.4 ms", "-42.4 ms")


def test_delays_without_the_offset_have_columns_of_their_own():
    figures = told((65, 66, 67), (-45, -44, -43))
    removed = Figure(0.011, "samples", {"min": 0.01, "median": 0.011, "p95": 0.012, "max": 0.013})
    figures["send", "owd_offset_removed_s"] = removed
    shown = delay_table(a_report([(10, figures)]))
    places = {row[1]: dict(zip(shown.heads, row, strict=True)) for row in shown.rows}
    assert places["send"]["min"] == "65.0 ms"
    assert places["send"]["min less offset"] == "10.0 ms"
    assert places["receive"]["min less offset"] == "-"


def test_two_ends_of_one_machine_are_not_said_to_have_two_clocks():
    settings = replace(FAR, network=replace(FAR.network, hosts={"paris": "127.0.0.1"}, peers={}))
    assert list(clock_lines(a_report([(10, told((2,) * 3, (1,) * 3))], settings))) == []
    apart = a_report([(10, told((2,) * 3, (-1,) * 3))], settings)
    assert "apart" in "".join(clock_lines(apart))


def test_clocks_that_ssh_has_compared_are_said_with_the_error_of_both():
    seen = {"paris": ClockReading(0.5, 0.002, 0.004), "tokyo": ClockReading(0.2, 0.05, 0.1)}
    one = replace(flow("probe").flow, source="paris", target="tokyo")
    ended = trial(0, 1, {}, BEGIN, [FlowReport(one, told((1, 1, 1), (1, 1, 1)))])
    ended = replace(ended, trial=replace(ended.trial, clocks=seen))
    text = (
        "by the round trips of SSH, the clock of tokyo is -300 ms from that of paris,"
        " \u00b152.0 ms: one-way delays carry both"
    )
    assert apart_text(ended.trial, one) == text
    assert f"probe: {text}" in list(clock_lines(report_of(RUN, [ended])))


def test_delays_of_packets_that_were_recorded_at_both_ends_carry_no_offset():
    pair = {"one_clock": False, "clock_error_s": 0.003}
    one = replace(flow("probe").flow, source="paris", target="tokyo", paired=(pair,))
    figures = told((-1, 1, 1), (2, 2, 2))
    ended = trial(0, 1, {}, BEGIN, [FlowReport(one, figures)])
    ended = replace(ended, trial=replace(ended.trial, clocks={"tokyo": ClockReading(7, 0.05, 0.1)}))
    assert list(clock_lines(report_of(RUN, [ended]))) == [
        "probe: by the round trips of SSH, the clock of tokyo is +7.00 s from that of paris,"
        " \u00b13.00 ms: one-way delays carry only this error"
    ]


def test_clocks_that_nobody_compared_are_not_mentioned():
    ended = trial(0, 1, {}, BEGIN, [flow("probe")])
    assert apart_text(ended.trial, flow("probe").flow) == ""
