"""The changes of a mesh as a matrix: the same as compare's, at their pairs."""

from contextlib import closing

import pytest
from msgspec.structs import replace
from report.mesh_run import mesh_run
from report.pictured_run import pictured_run

from benchctl.errors import UsageError
from benchctl.report.comparison.changes import change_matrix, changes_of
from benchctl.report.comparison.comparison import arranged, compare_reports
from benchctl.report.figures.paper.printed import printer
from benchctl.report.page.content import page_of
from benchctl.report.page.html import html_of
from benchctl.report.report import StoredRun, read_report
from benchctl.store.read import Reader
from benchctl.tui.draw.plot.figure import figure_lines


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Two runs of a mesh: in the second, the first pair carries half, the fourth a tenth more."""
    store = tmp_path_factory.mktemp("mesh") / "runs.sqlite"
    names = [
        mesh_run(store, repeats=3),
        mesh_run(store, repeats=3, times=lambda number: {1: 0.5, 4: 1.1}.get(number, 1.0)),
    ]
    with closing(Reader(store)) as reader:
        yield [StoredRun(reader, reader.find(name)) for name in names]


def compared(reports):
    a, b = (one.report for one in reports)
    return a, b, arranged(compare_reports(a, b)[0], a.run, b.run)


def test_each_pair_has_its_change(reports):
    figure = change_matrix(*compared(reports))
    (panel,) = figure.panels
    texts = {
        (panel.y.ticks[one.row].text, figure.x.ticks[one.column].text): one.text
        for one in panel.cells
    }
    unchanged = dict.fromkeys([("a", "c"), ("b", "a"), ("c", "a"), ("c", "b")], "+0")
    own = {(host, host): "" for host in "abc"}
    assert texts == {**unchanged, **own, ("a", "b"): "-50*", ("b", "c"): "+10*"}
    assert (panel.heat.low, panel.heat.high) == pytest.approx((-0.5, 0.5))


def test_it_is_drawn_on_paper_in_the_terminal_and_in_a_report_of_both(reports, tmp_path):
    figure = change_matrix(*compared(reports))
    with printer(None) as printed:
        assert "-50*" in printed(figure, "svg").decode()
    lines = ["".join(text for text, _ in line) for line in figure_lines(figure, 60, 20)]
    assert any("-50*" in line for line in lines)
    page = "".join(html_of(page_of(reports)))
    assert 'class="cell less"' in page


def test_only_figures_of_flows_have_a_pair(reports):
    a, b, comparisons = compared(reports)
    (panel,) = change_matrix(a, b, comparisons).panels
    of_trials = replace(comparisons[0], flow="", metric="start_skew_s")
    several = [of_trials, *comparisons, replace(comparisons[0], flow="probe")]
    figure = change_matrix(a, b, several)
    assert figure.panels[0].cells == panel.cells
    assert "of flow main, without probe" in figure.notes


def test_other_axes_have_the_values_of_the_first_comparison(reports):
    a, b, comparisons = compared(reports)
    loaded = replace(b, run=replace(b.run, settings=replace(
        b.run.settings, values={**b.run.values, "load": ("idle", "full")})))  # fmt: skip
    both = [
        replace(one, point={**one.point, "load": load}, b=[*one.b, number])
        for number, load in enumerate(("full", "idle"))
        for one in comparisons
    ]
    changes = changes_of(loaded, both[-1], both)
    assert (changes.at, changes.is_filled) == ({"load": "idle"}, True)
    assert [one.b[-1] for one in changes.pairs.values()] == [1] * 6
    assert "at load=full, without other points" in change_matrix(a, loaded, both).notes


def test_a_figure_of_one_run_has_no_change(reports):
    _, b, (first, *others) = compared(reports)
    changes = changes_of(b, first, [replace(first, a=[]), *others])
    assert len(changes.pairs) == len(others)
    assert changes_of(b, replace(first, flow=""), others) is None


def test_a_report_of_runs_whose_changes_are_no_shares_has_no_matrix(tmp_path):
    nothing = [mesh_run(tmp_path / "s", times=lambda _: 0.0) for _ in range(2)]
    with closing(Reader(tmp_path / "s")) as reader:
        page = page_of([StoredRun(reader, reader.find(name)) for name in nothing])
    assert page.sections[0].title == "Comparison"


def test_runs_without_a_mesh_are_referred_to_the_forest(tmp_path):
    names = [pictured_run(tmp_path / "s") for _ in range(2)]
    with closing(Reader(tmp_path / "s")) as reader:
        a, b = (read_report(reader, reader.find(name)) for name in names)
    with pytest.raises(UsageError, match="no axis is a mesh of hosts") as caught:
        change_matrix(a, b, compare_reports(a, b)[0])
    assert "--kind forest" in caught.value.hint
