"""Figures of a lab that did not keep its promises are marked wherever they are compared."""

import re
from contextlib import closing

import pytest
from msgspec.structs import replace
from report.mesh_run import mesh_run
from report.sample_report import REPORT
from tui.made_runs import whole_run

from benchctl.analysis.runs.compare import Comparison, Verdict, compare
from benchctl.metrics import Vocabulary
from benchctl.report.comparison.changes import changes_of
from benchctl.report.comparison.comparison import compare_reports, verdicts
from benchctl.report.lines.spans import to_text
from benchctl.report.report import read_report, report_of
from benchctl.store.read import Reader
from benchctl.tui.draw.plot.heat import INVALID, Arrangement, SummaryTable
from benchctl.tui.draw.views.verdicts import (
    NOT_VALID,
    WORDS,
    ChangeRows,
    counted_verdicts,
    described,
    verdict_of,
)


@pytest.fixture
def strained(tmp_path):
    """Return a report one of whose eight trials had an emulator that did not keep up."""
    whole_run(tmp_path / "runs.sqlite")
    reader = Reader(tmp_path / "runs.sqlite")
    report = read_report(reader, reader.run(1))
    reader.close()
    first, *others = report.trials
    links = ({"link": "far", "kept": False},)
    first = replace(first, trial=replace(first.trial, links=links))
    return report_of(report.run, [first, *others])


def test_every_figure_of_a_point_with_an_invalid_trial_is_invalid(strained):
    point = strained.trials[0].trial.point
    assert {row.valid for row in strained.summary if row.point == point} == {False}
    assert {row.valid for row in strained.summary if row.point != point} == {True}


def test_the_summary_marks_invalid_figures(strained):
    cells = [c for row in SummaryTable(strained).turned(Arrangement()).rows for c in row[1:]]
    assert [cell.text.endswith(f" {INVALID}") for cell in cells].count(True) == 1
    assert [cell.role for cell in cells].count("bad") == 1


def test_a_comparison_with_invalid_figures_has_no_verdict_and_says_why(strained):
    compared = compare(strained.summary, strained.summary, Vocabulary())
    marked = [one for one in compared if not one.valid]
    assert {one.point["server"] for one in marked} == {"paris"}
    assert {verdict_of(one).text for one in marked} == {NOT_VALID}
    assert to_text([described(marked[0])]).endswith("not valid: the emulator did not keep up")
    others = [one for one in compared if one.valid]
    assert [verdict_of(one).text for one in others] == [WORDS[one.verdict] for one in others]


def test_a_tally_counts_invalid_figures_apart_from_the_verdicts(strained):
    compared = compare(strained.summary, strained.summary, Vocabulary())
    invalid = sum(not one.valid for one in compared)
    counts = re.findall(r"(\d+) ([a-z ]+)", verdicts(compared))
    assert counts[-1] == (str(invalid), "not valid")
    assert sum(int(count) for count, _ in counts) == len(compared)


def test_a_tally_counts_the_verdicts():
    compared = compare(REPORT.summary, REPORT.summary, Vocabulary())
    assert verdicts(compared) == ", ".join(
        f"{count} {verdict}"
        for verdict in Verdict
        if (count := sum(one.verdict is verdict for one in compared))
    )


def test_an_interval_without_zero_says_among_how_many_figures_no_difference_was_seen():
    one = Comparison(
        {}, "main", "send", "throughput_bps", (1e6,), (2e6,), 1e6, 0.5e6, 1.5e6, Verdict.SAME,
        family=16,
    )  # fmt: skip
    assert to_text([described(one)]).endswith(
        "95 % interval +0.500 … +1.50 Mbit/s; no difference seen among 16 figures"
    )
    assert to_text([described(replace(one, low=-1e6))]).endswith("; no difference seen")


def test_each_pair_of_a_mesh_has_the_sign_of_its_verdict_and_its_change(tmp_path):
    store, times = tmp_path / "s", {1: 0.5, 4: 1.1}
    mesh_run(store, repeats=3)
    mesh_run(store, repeats=3, times=lambda number: times.get(number, 1.0))
    with closing(Reader(store)) as reader:
        a, b = (read_report(reader, reader.run(one)) for one in (1, 2))
    (compared,) = compare_reports(a, b)
    rows = ChangeRows(changes_of(b, compared[0], compared))
    assert [[cell.text for cell in rows.row(index)] for index in range(3)] == [
        ["a", "▼1  =1", "", "▼ -50", "= +0.0"],
        ["b", "▲1  =1", "= +0.0", "", "▲ +10"],
        ["c", "=2", "= +0.0", "= +0.0", ""],
    ]
    assert [rows.row(0)[3].role, rows.row(1)[4].role] == ["bad", "good"]
    mixed = [replace(compared[0], verdict=one) for one in (Verdict.BETTER, Verdict.WORSE)]
    assert counted_verdicts(mixed) == ("▲1  ▼1", "warn")
    assert to_text([rows.title(("a", "b"))]) == "change of throughput of main, %: from ↓ to →"
