"""What searches found is shown: the rates, why the next one fails, and what is not known."""

import json
import math

import pytest
from analysis.search.sample_tries import SEARCH, tried
from msgspec.structs import replace
from report.sample_report import REPORT, RUN, Stored

from benchctl.plan.strategy import strategy_of
from benchctl.report.comparison.comparison import compare_reports
from benchctl.report.exports import json as json_export
from benchctl.report.exports import md, table
from benchctl.report.exports.entries import report_entry
from benchctl.report.figures.figure import LineRole, PictureKind
from benchctl.report.figures.parts import Part
from benchctl.report.figures.request import PictureRequest
from benchctl.report.figures.searched import searched as figure_of
from benchctl.report.report import report_of
from benchctl.report.text.searches import detection, search_table
from benchctl.run.planned import Settings
from benchctl.run.status import Status
from benchctl.tui.draw.plot.heat import Arrangement, SummaryTable

PATHS = {"near": 29.15e6, "far": 400e6, "wide": 5e9, "none": 0.5e6}


def searched(capacities=None, search=SEARCH, repeats=1, **more):
    """Return the report of a whole search."""
    capacities = capacities or PATHS
    values = {"path": tuple(capacities), "rate": ("1Mbit..1Gbit",)}
    run = replace(RUN, settings=Settings(values, "interleaved", (), search=search))
    strategy = strategy_of(run.settings)
    trials = []

    def take(point, repeat):
        trials.append(tried(len(trials), point, capacities[point["path"]], repeat, **more))
        strategy.take(trials[-1])

    for repeat in range(1, repeats + 1):
        for path in capacities:
            take({"path": path, "rate": "31.62Mbit"}, repeat)
    while trial := strategy.next():
        take(trial.point, trial.repeat)
    return report_of(replace(run, trials=len(trials)), trials)


def cells(report, column):
    shown = search_table(report)
    return [row[shown.heads.index(column)] for row in shown.rows]


def test_each_search_has_a_row_with_its_rate_or_the_end_of_the_range():
    report = searched()
    assert cells(report, "path") == ["near", "far", "wide", "none"]
    assert cells(report, "highest rate") == [
        "29.0 Mbit/s", "398 Mbit/s", "at least 1.00 Gbit/s", "below 1.00 Mbit/s",
    ]  # fmt: skip
    assert cells(report, "expected")[:3] == ["29.1 Mbit/s", "400 Mbit/s", "-"]
    assert cells(report, "confirmed") == ["yes"] * 4
    assert cells(report, "by")[:3] == ["loss 0.512 %", "loss 0.498 %", "-"]


def test_every_repeat_has_a_row_and_the_found_rates_have_a_mean():
    report = searched({"near": 29.15e6}, repeats=3)
    assert cells(report, "repeat") == ["1", "2", "3"]
    (row,) = [row for row in report.summary if row.metric == "found_rate_bps"]
    assert (row.point, row.spread.n) == ({"path": "near"}, 3)
    assert row.spread.mean == pytest.approx(29.15e6, rel=0.01)
    assert row.beside["expected"] == pytest.approx(29.15e6)


def test_rows_of_tries_are_in_the_order_of_their_rates():
    rates = [row.point["rate"] for row in searched().summary if row.point.get("path") == "far"
             and row.metric == "loss_ratio"]  # fmt: skip
    assert len(rates) == 5
    assert rates == ["31.62Mbit", "398.2Mbit", "402Mbit", "406.4Mbit", "1Gbit"]


@pytest.mark.parametrize("export", [table.export, md.export])
def test_tables_begin_with_what_was_found_and_say_what_a_try_detects(export):
    report = searched(search=replace(SEARCH, overflow_s=3.97))
    text = "".join(export(Stored(report)))
    assert text.index("highest rate") < text.index("throughput")
    assert "highest rate with loss_ratio < 0.1 %; what fails is at most 1 % above it" in text
    assert "1 % overflows the queue in 3.97 s" in text


def test_the_json_has_every_search():
    (near, far, wide, none) = json.loads("".join(json_export.export(Stored(searched()))))[
        "searches"
    ]
    assert (near["point"], near["outcome"], near["confirmed"]) == ({"path": "near"}, "found", True)
    assert near["passing_bps"] <= 29.15e6 < near["failing_bps"]
    assert (far["expected_bps"], far["tries"]) == (pytest.approx(400e6), 7)
    assert (wide["outcome"], wide["passing_bps"], wide["failing_bps"]) == ("at_least", 1e9, None)
    assert (none["outcome"], none["passing_bps"], none["failing_bps"]) == ("below", None, 1e6)


def test_a_run_without_a_search_has_none():
    report = report_of(RUN, ())
    assert search_table(report) is None
    assert report_entry(report)["searches"] == []


def test_what_is_not_confirmed_or_not_found_is_said_with_its_reason():
    slow = "".join(table.export(Stored(searched({"near": 29.15e6}, sent_bps=20e6))))
    assert "Mbit/s, not confirmed in" in slow
    refused = searched({"near": 1e6}, status=Status.FAILED, error="connection refused")
    assert cells(refused, "highest rate") == ["-"]
    text = "".join(table.export(Stored(refused)))
    assert "search at path=near: not found in 2 tries: connection refused" in text


def test_compare_compares_what_two_searches_found_not_their_tries():
    a, b = searched({"near": 29.15e6}, repeats=3), searched({"near": 19.44e6}, repeats=3)
    ((one,),) = compare_reports(a, b)
    assert (one.metric, one.point) == ("found_rate_bps", {"path": "near"})
    assert one.difference == pytest.approx(-9.7e6, rel=0.02)


@pytest.mark.parametrize(
    ("overflow_s", "lasts_s", "enough", "words"),
    [
        (3.97, 5.0, True, "1 % overflows the queue in 3.97 s"),
        (3.97, 2.0, False, "only from 1.99 % on"),
        (None, 5.0, True, "the queues of the path are not known"),
    ],
)
def test_the_duration_of_a_try_is_compared_with_the_queue(overflow_s, lasts_s, enough, words):
    known = replace(SEARCH, overflow_s=overflow_s)
    found, text, remedy = detection(known, lasts_s, ["throughput_bps"])
    assert (found, remedy.startswith("set duration=4s")) == (enough, not enough)
    assert words in text
    assert "rising delay of its probes" in detection(known, lasts_s, ["rtt_s"])[1]


def test_the_summary_screen_has_a_grid_of_found_rates_and_grids_of_tries():
    summary = SummaryTable(searched({"near": 29.15e6, "far": 400e6}))
    assert summary.metrics[0] == "found_rate_bps"
    found, loss = (
        summary.turned(Arrangement(summary.metrics.index(metric), 0, len(summary.axes)))
        for metric in ("found_rate_bps", "loss_ratio")
    )
    assert [[cell.text for cell in row][:2] for row in found.rows] == [["near", "-"], ["far", "-"]]
    assert [row[0].text for row in loss.rows] == ["near"] * 4 + ["far"] * 5


def test_the_figure_of_a_search_is_the_bracket_over_its_tries():
    report = searched({"near": 29.15e6})
    asked = PictureRequest(report, PictureKind.SEARCH, [("throughput_bps", "")], "", "", Part(), 9)
    figure = figure_of(asked)
    (panel,) = figure.panels
    passed, failed, *tried, expected = panel.lines
    (found,) = report.found
    assert (passed.ys[-1], failed.ys[-1]) == (
        found.finding.passing_bps, found.finding.failing_bps,
    )  # fmt: skip
    assert [tick.text for tick in figure.x.ticks] == [
        str(number) for number in range(1, len(report.trials) + 1)
    ]
    # Each try is one mark, on the side to which it moved or confirmed the bracket.
    marks = zip(*(line.ys for line in tried), strict=True)
    assert all(math.isnan(one) != math.isnan(other) for one, other in marks)
    assert [line.role for line in tried] == [LineRole.REPORTED] * 2
    assert {*expected.ys} == {29.15e6}


def test_a_run_that_searched_nothing_has_no_such_figure():
    asked = PictureRequest(REPORT, PictureKind.SEARCH, [("rtt_s", "")], "", "", Part(), 9)
    assert figure_of(asked) is None
