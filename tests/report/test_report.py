"""A report: trials that ended, rows over repeats, and the values beside them."""

import csv
from contextlib import closing

import pytest
from msgspec.structs import replace
from report.sample_report import ONE, REPORT, RUN, SUMMARY, TRIALS, TWO, Stored
from store.store_support import measured_run

from benchctl.analysis.flow.held import held
from benchctl.analysis.flow.laws import Terms
from benchctl.analysis.runs.outcomes import Answer
from benchctl.analysis.runs.summary import Measured, summarize
from benchctl.report.exports.csv import export as csv_of
from benchctl.report.exports.entries import report_entry
from benchctl.report.exports.spreadsheet import export as spreadsheet_of
from benchctl.report.pivot import pivot
from benchctl.report.report import read_report, report_of
from benchctl.report.text.remarks import remarks
from benchctl.run.condition import EventRule
from benchctl.run.planned import Expectation, Reported, Settings
from benchctl.run.record import FairWindow, Figure
from benchctl.run.status import Status
from benchctl.store.read import Reader


def measured(trial, metric, *values, **flow):
    """Return the trial with figures, one for each of its flows that measured."""
    flows = [
        replace(
            one,
            flow=replace(one.flow, **flow),
            reported={(one.flow.direction, metric): Figure(value, "tool")},
        )
        for one, value in zip(trial.flows, values, strict=False)
    ]
    return replace(trial, flows=flows)


def test_rows_stand_in_the_order_of_the_axes_values():
    trials = [measured(TRIALS[2], "rtt_s", 1.0), measured(TRIALS[0], "rtt_s", 2.0)]
    rows = report_of(RUN, trials).summary
    assert [(row.point, row.metric, row.values) for row in rows] == [
        (ONE, "rtt_s", [2.0]),
        (ONE, "fairness_jain", [0.99981]),
        (TWO, "rtt_s", [1.0]),
    ]


def test_what_failed_has_no_figure():
    trial = measured(TRIALS[0], "rtt_s", 2.0, status=Status.FAILED)
    assert [row.metric for row in report_of(RUN, [trial]).summary] == ["fairness_jain"]


@pytest.mark.parametrize(
    ("requested", "beside"),
    [
        ({"rate": 45e6, "streams": 2}, {"asked": 90e6}),
        ({"rate": 45e6}, {"asked": 45e6}),
        ({"rate": "unlimited", "streams": 2}, {}),
        ({}, {}),
    ],
)
def test_what_was_asked_of_a_sender_stands_beside_what_it_sent(requested, beside):
    report = report_of(RUN, [measured(TRIALS[2], "sent_bps", 79.3e6, requested=requested)])
    assert [row.beside for row in report.summary] == [beside]


@pytest.mark.parametrize(("intervals", "answer"), [(19, Answer.UNDECIDED), (20, Answer.MET)])
def test_no_event_is_proven_by_intervals_enough_to_find_one(tmp_path, intervals, answer):
    wanted = Expectation("", events=(EventRule("drop", wanted=False),))
    settings = Settings({"n": (1,)}, "sequential", (wanted,))
    store = tmp_path / "runs.sqlite"
    measured_run(store, {1: [1e6, 1e6]}, settings=settings, intervals=intervals)
    with closing(Reader(store)) as reader:
        (outcome,) = read_report(reader, reader.find("last")).outcomes
    assert outcome.answer is answer


def test_what_is_expected_and_was_reported_stands_beside_the_figure():
    rate, index = report_of(RUN, [measured(TRIALS[0], "throughput_bps", 94e6)]).summary
    assert rate.beside == {"expected": 95e6, "reported": 93.4e6}
    assert index.beside == {"reported": 0.993}


@pytest.mark.parametrize(
    "settings",
    [
        {"expect": (Expectation("cwnd_bytes", at_most=1e6),)},
        {"reported": (Reported(None, None, {}, {"cwnd_bytes": 1e6}),)},
    ],
)
def test_a_metric_that_the_profile_names_has_a_column(settings):
    def heads(**settings):
        unnamed = {"expect": (), "reported": ()}
        run = replace(RUN, settings=replace(RUN.settings, **(unnamed | settings)))
        trials = [measured(TRIALS[0], metric, 1e6) for metric in ("throughput_bps", "cwnd_bytes")]
        return pivot(report_of(run, trials)).heads

    assert "cwnd" not in heads()
    assert "cwnd" in heads(**settings)


def repeated(*rates):
    """Return one trial of the same point for each rate."""
    return [measured(TRIALS[0], "throughput_bps", rate) for rate in rates]


def test_an_outlier_among_the_repeats_is_named_below_the_table():
    lines = remarks(report_of(RUN, repeated(90e6, 91e6, 92e6, 91e6, 20e6)))
    assert (
        "1 repeat is an outlier, and counts like all others; the farthest is 20.0 Mbit/s,"
        " throughput of bulk at streams=1, to=paris; the median is 91.0 Mbit/s"
    ) in lines


@pytest.mark.parametrize(("repeats", "few"), [(1, False), (2, True), (3, False)])
def test_two_repeats_are_called_too_few(repeats, few):
    lines = remarks(report_of(RUN, repeated(*[90e6] * repeats)))
    assert any("2 repeats are too few" in line for line in lines) == few


def test_it_is_said_after_what_time_flows_were_fair():
    windows = (FairWindow(0, 2, 0.7), FairWindow(2, 4, 0.995))
    first, again = (
        replace(TRIALS[0], trial=replace(TRIALS[0].trial, fair_windows=found))
        for found in (windows, windows[:1])
    )
    assert _said([first]).count("fair after 4.00 s, start skew") == 1
    assert "fair after 4.00 s in 1 of 2 trials" in _said([first, again])
    assert "at no time fair" in _said([again])
    assert "fair" not in _said([TRIALS[0]]).replace("fairness", "")


@pytest.mark.parametrize(("left_out", "said"), [(0.3, True), (None, False)])
def test_an_expected_rate_that_leaves_loss_out_says_so(left_out, said):
    theory = {"throughput_bps": 95.6e6, **({"loss_left_out_ratio": left_out} if left_out else {})}
    one = measured(TRIALS[0], "throughput_bps", 23.5e3)
    flows = [replace(f, flow=replace(f.flow, expected={"send": theory})) for f in one.flows[:1]]
    line = (
        "1 expected rate of TCP leaves out the random loss of the links (up to 30 %): no model"
        " holds for it"
    )
    assert (line in remarks(report_of(RUN, [replace(one, flows=flows)]))) is said


def _said(trials):
    return "\n".join(remarks(report_of(RUN, trials)))


def test_a_drift_over_the_run_is_said_once_with_its_size():
    first = measured(TRIALS[0], "throughput_bps", 94e6)
    trials = [
        replace(
            measured(first, "throughput_bps", 94e6 * (1 - position / 50)),
            trial=replace(first.trial, position=position),
        )
        for position in range(12)
    ]
    report = report_of(RUN, trials)
    (line,) = [line for line in remarks(report) if line.startswith("the order of trials")]
    assert "throughput of bulk send falls by 2" in line
    assert [(one.metric, one.is_seen) for one in report.drifts] == [("throughput_bps", True)]
    assert "order of trials" not in _said(trials[:4])


IMPOSSIBLE = {"packets_sent": 739.0, "packets_received": 834.0, "loss_ratio": 0.01}


def counted(trial, repeat, **figures):
    """Return a repeat of a trial whose first flow has these figures, held against the laws."""
    one = trial.flows[0]
    told = {(one.flow.direction, name): Figure(value, "tool") for name, value in figures.items()}
    flows = [replace(one, reported=held(told, Terms()))]
    return replace(trial, trial=replace(trial.trial, repeat=repeat), flows=flows)


def test_a_figure_that_cannot_be_counts_in_no_mean_and_is_marked():
    good = counted(TRIALS[0], 1, packets_sent=739, packets_received=738, loss_ratio=0.02)
    report = report_of(RUN, [good, counted(TRIALS[0], 2, **IMPOSSIBLE)])
    (loss,) = (row for row in report.summary if row.metric == "loss_ratio")
    assert loss.values == [0.02]
    assert [(row.metric, row.values) for row in report.broken if row.metric == "loss_ratio"] == [
        ("loss_ratio", [0.01])
    ]
    (cell,) = pivot(report).rows[0][-1:]
    assert cell == "2 % !"
    (line,) = (line for line in remarks(report) if "cannot be" in line)
    assert "received 834 of 739 sent" in line
    assert "count nowhere" in line
    entry = report_entry(report)
    assert entry["trials"][1]["flows"][0]["broken"]["loss_ratio"] == {
        "law": "packets add up", "words": "received 834 of 739 sent", "rejected": None,
    }  # fmt: skip
    assert [one["broken"] for one in entry["summary"] if one["metric"] == "loss_ratio"] == [1]


def test_what_cannot_be_in_any_repeat_is_shown_and_decides_nothing():
    settings = replace(RUN.settings, expect=(Expectation("loss_ratio", at_most=0.05),))
    run = replace(RUN, settings=settings)
    report = report_of(run, [counted(TRIALS[0], 1, **IMPOSSIBLE)])
    assert not [row for row in report.summary if row.metric == "loss_ratio"]
    assert pivot(report).rows[0][-1] == "1 % !"
    (outcome,) = report.outcomes
    assert (outcome.answer, outcome.met) == (Answer.UNDECIDED, None)
    assert outcome.why == "cannot be: received 834 of 739 sent"
    assert outcome.fails(strict=True)
    assert not outcome.fails()
    rows = [line.split(",") for line in csv_of(Stored(report))]
    place = rows[0].index("metric")
    (row,) = (row for row in rows if row[place] == "loss_ratio")
    assert (row[place + 1], row[-1].strip()) == ("0", "1")


def test_no_text_for_a_spreadsheet_begins_as_a_formula():
    begin = "=cmd|' /C calc'!A0", " +1", "-2", "@SUM(A1)", "plain"
    rows = [replace(SUMMARY[0], point={"streams": n, "to": text}) for n, text in enumerate(begin)]
    read = [*csv.DictReader(spreadsheet_of(Stored(replace(REPORT, summary=rows))))]
    assert [one["to"] for one in read] == [*(f"'{text}" for text in begin[:4]), "plain"]
    assert [one["streams"] for one in read] == ["0", "1", "2", "3", "4"]
    negative = replace(SUMMARY[0], spread=replace(SUMMARY[0].spread, mean=-0.5))
    (one,) = csv.DictReader(spreadsheet_of(Stored(replace(REPORT, summary=[negative]))))
    assert one["mean"] == "-0.5"


def test_a_figure_that_is_known_in_coarse_steps_says_so():
    figure = Figure(1.05e6, "tool", resolution=8 * 131072 / 3)
    one = TRIALS[0].flows[0]
    flows = [replace(one, reported={(one.flow.direction, "throughput_bps"): figure})]
    report = report_of(RUN, [replace(TRIALS[0], flows=flows)])
    assert ": known in steps of 350 kbit/s, 33.3 % of the figure" in "".join(remarks(report))
    fine = replace(figure, resolution=5e4)
    flows = [replace(one, reported={(one.flow.direction, "throughput_bps"): fine})]
    assert "steps" not in "".join(remarks(report_of(RUN, [replace(TRIALS[0], flows=flows)])))


def test_on_demand_distributions_have_columns_of_their_percentiles():
    spread = {"min": 0.01, "median": 0.02, "p95": 0.05, "max": 0.06}
    figures = {("send", "rtt_s"): Figure(0.025, "tool", spread)}
    measured = [Measured(point, "ping", figures) for point in ({}, {})]
    report = replace(REPORT, run=replace(RUN, settings=Settings({}, "sequential", ())),
                     measured=measured, summary=summarize(measured), broken=[])  # fmt: skip
    shown = pivot(report, ("median", "p95"))
    assert shown.heads == ("n", "rtt", "rtt.median", "rtt.p95")
    assert shown.rows == (("2", "25.0 ms ±0", "20.0 ms ±0", "50.0 ms ±0"),)
    assert pivot(report).heads == ("n", "rtt")
