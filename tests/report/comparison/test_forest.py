"""The differences of two runs as a picture: the figures that compare has, and nothing else."""

from contextlib import closing

import pytest
from msgspec.structs import replace
from report.pictured_run import pictured_run

from benchctl.errors import UsageError
from benchctl.report.comparison.comparison import arranged, compare_reports
from benchctl.report.comparison.forest import MOST_ROWS, forest
from benchctl.report.figures.paper.printed import printer
from benchctl.report.report import read_report
from benchctl.store.read import Reader
from benchctl.tui.draw.plot.figure import figure_lines


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """Two runs, of which the second's path carries less, and their comparisons."""
    store = tmp_path_factory.mktemp("forest") / "runs.sqlite"
    names = pictured_run(store), pictured_run(store, rate_bps=14e6)
    with closing(Reader(store)) as reader:
        a, b = (read_report(reader, reader.find(name)) for name in names)
    return a.run, b.run, arranged(compare_reports(a, b)[0], a.run, b.run)


def test_each_row_is_a_difference_of_compare_as_a_share_of_a(compared):
    a, b, comparisons = compared
    (panel,) = forest(a, b, comparisons).panels
    assert len(panel.differences) == len(comparisons) > 8
    for one, row in zip(comparisons, panel.differences, strict=True):
        assert row.value == pytest.approx(one.difference / one.mean_a)
        assert row.low == pytest.approx(one.low / one.mean_a)
        assert row.high == pytest.approx(one.high / one.mean_a)
    certain = [row.word for row in panel.differences if row.certain]
    assert "-30 % worse" in certain
    assert not [word for word in certain if "not valid" in word or "apart" in word]


def test_rows_are_named_by_what_they_differ_in(compared):
    (panel,) = forest(*compared).panels
    names = [tick.text for tick in panel.y.ticks]
    assert names[0] == "5000B 1 throughput"
    assert len({*names}) == len(names)


def test_more_rows_than_a_page_has_and_figures_without_a_change_are_counted(compared):
    a, b, comparisons = compared
    many = [*comparisons * 4, *only_in_a(comparisons)]
    figure = forest(a, b, many)
    left = len(comparisons) * 4 - MOST_ROWS
    assert len(figure.panels[0].differences) == MOST_ROWS
    assert figure.notes[-2].startswith(f"{left} of {len(comparisons) * 4} differences are left out")
    assert figure.notes[-1] == "figures without a change, which compare shows: 1"


def only_in_a(comparisons):
    return [replace(comparisons[0], b=(), difference=None, low=None, high=None)]


def test_nothing_in_common_is_one_clear_line(compared):
    a, b, comparisons = compared
    with pytest.raises(UsageError, match="have no figure in common to draw"):
        forest(a, b, only_in_a(comparisons))


def test_paper_and_terminal_draw_every_row(compared):
    figure = forest(*compared)
    with printer(None) as printed:
        drawn = printed(figure, "svg").decode()
    text = "\n".join("".join(one for one, _ in line) for line in figure_lines(figure, 100, 40))
    for row in figure.panels[0].differences:
        assert f">{row.word}</text>" in drawn
        assert row.word in text
