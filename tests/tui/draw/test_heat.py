from contextlib import closing

import pytest
from msgspec.structs import replace
from report.sample_report import REPORT
from tui.made_mesh import MadeMesh
from tui.made_runs import whole_run

from benchctl.analysis.runs.summary import SummaryRow
from benchctl.analysis.statistics import spread
from benchctl.report.report import read_report
from benchctl.store.read import Reader
from benchctl.tui.draw.plot.heat import (
    NO_CELL,
    STEPS,
    Arrangement,
    GridCell,
    SummaryTable,
    lined_up,
)


def summary(tmp_path):
    path = tmp_path / "runs.sqlite"
    whole_run(path)
    reader = Reader(path)
    report = read_report(reader, reader.run(1))
    reader.close()
    return SummaryTable(report)


def texts(grid):
    return [[cell.text for cell in row] for row in grid.rows]


def test_rows_and_columns_are_axes_and_cells_the_means_with_their_interval(tmp_path):
    grid = summary(tmp_path).turned(Arrangement())
    assert [column.head for column in grid.columns] == [
        "streams",
        "server=paris",
        "server=tashkent",
    ]
    assert [row[0] for row in texts(grid)] == ["1", "4"]
    assert texts(grid)[0][1].endswith("90.4 ±3.3")
    assert grid.about == "throughput of a main (send), Mbit/s: measured ±95 %"


def test_heat_goes_from_the_least_to_the_greatest_and_is_told_by_a_character_too(tmp_path):
    grid = summary(tmp_path).turned(Arrangement())
    cells = [cell for row in grid.rows for cell in row[1:]]
    assert {cell.role for cell in cells} >= {"heat-0", "heat-6"}
    for cell in cells:
        assert cell.text[0] == STEPS[int(cell.role.removeprefix("heat-"))]


def test_turning_goes_through_every_axis_and_comes_back(tmp_path):
    whole = summary(tmp_path)
    turn = Arrangement()
    for _ in range(len(whole.axes) + 1):
        turn = turn.columns(whole)
    assert turn == Arrangement()
    other = Arrangement().columns(whole)
    assert whole.turned(other).columns[0].head == "server"
    none = other.columns(whole)
    grid = whole.turned(none)
    assert [column.head for column in grid.columns] == ["server", "streams", "throughput"]
    assert texts(grid)[0][:2] == ["paris", "1"]
    assert texts(whole.turned(none.rows(whole)))[0][:2] == ["1", "paris"]


def test_all_metrics_can_be_seen_the_most_wanted_first(tmp_path):
    whole = summary(tmp_path)
    assert whole.metrics == ["throughput_bps", "rtt_s", "loss_ratio", "retransmits"]
    assert whole.usual == whole.metrics


def rows_of(figures, axes):
    """Return a report of figures: (point, flow, direction, metric, value), and expected values."""
    rows = [
        SummaryRow(point, flow, way, metric, [value], spread([value]), beside)
        for point, flow, way, metric, value, beside in figures
    ]
    settings = replace(REPORT.run.settings, values=axes)
    return replace(REPORT, summary=rows, run=replace(REPORT.run, settings=settings))


CASES = {"case": ("two", "three")}
SHARED = rows_of(
    [
        ({"case": case}, flow, "send", "throughput_bps", 1e6 * value, {"expected": 14.35e6})
        for case, flow, value in (("two", "h1", 15.7), ("two", "h2", 12.9), ("three", "h3", 9.6))
    ],
    CASES,
)


def test_cases_go_down_and_flows_across_with_their_letters_and_one_unit():
    whole = SummaryTable(SHARED, ["h1", "h2", "h3"])
    grid = whole.turned(whole.first_turn())
    assert grid.about == "throughput, Mbit/s: measured / expected"
    assert [column.head for column in grid.columns] == ["case", "a h1", "b h2", "c h3"]
    assert [[" ".join(cell.split()) for cell in row] for row in texts(grid)] == [
        ["two", "▇ 15.7 / 14.3", "▆ 12.9 / 14.3", "-"], ["three", "-", "-", "▅ 9.60 / 14.3"],
    ]  # fmt: skip


def test_a_figure_of_a_whole_trial_is_of_all_flows():
    figures = [
        ({"case": "two"}, "", "", "fairness_jain", 0.99, {}),
        ({"case": "two"}, "h1", "send", "retransmits", 1.0, {}),
        ({"case": "two"}, "h2", "send", "retransmits", 2.0, {}),
    ]
    whole = SummaryTable(rows_of(figures, CASES))
    turn = replace(whole.first_turn(), metric=whole.metrics.index("fairness_jain"))
    assert [column.head for column in whole.turned(turn).columns] == ["case", "all flows"]


def test_flows_are_turned_as_axes_are():
    whole = SummaryTable(SHARED, ["h1", "h2", "h3"])
    grid = whole.turned(whole.first_turn().columns(whole))
    assert [column.head for column in grid.columns] == ["case", "flow", "throughput"]
    assert [row[:2] for row in texts(grid)] == [
        ["two", "a h1"], ["two", "b h2"], ["three", "c h3"],
    ]  # fmt: skip


def test_intervals_are_left_out_where_they_have_no_room(tmp_path):
    whole = summary(tmp_path)
    for width, has_halves in ((60, True), (20, False)):
        grid = whole.turned(whole.first_turn(), width)
        assert ("±" in grid.about) == any("±" in cell for row in texts(grid) for cell in row)
        assert ("±" in grid.about) == has_halves


def test_a_flow_has_one_column_unless_both_its_ways_were_measured_at_once():
    def heads(ways):
        figures = [
            ({"case": case}, flow, way, "throughput_bps", 1e6, {})
            for case, flow, way in (*ways, ("two", "other", "send"))
        ]
        whole = SummaryTable(rows_of(figures, CASES))
        return [column.head for column in whole.turned(whole.first_turn()).columns][1:]

    each = [("two", "main", "send"), ("three", "main", "receive")]
    flows = {head.split(" ", 1)[1] for head in heads(each)}
    assert flows == {"main", "other"}
    both = [("two", "main", "send"), ("two", "main", "receive")]
    assert {head.split(" ", 1)[1] for head in heads(both)} == {
        "main send", "main receive", "other",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("values", "cells"),
    [
        ((28.4e6, 0.4e3), ["▇ 28.4 Mbit/s", "▁ 400 bit/s"]),  # one unit would lose digits
        ((28.4e6, 4.2e6), ["▇ 28.4", "▂ 4.20"]),
    ],
)
def test_figures_that_one_unit_does_not_suit_have_their_own(values, cells):
    figures = [
        ({"case": case}, "main", "send", "throughput_bps", value, {})
        for case, value in zip(CASES["case"], values, strict=True)
    ]
    whole = SummaryTable(rows_of(figures, CASES))
    grid = whole.turned(whole.first_turn())
    assert [" ".join(row[1].split()) for row in texts(grid)] == cells


def test_a_run_of_which_nothing_was_measured_is_an_empty_grid():
    empty = SummaryTable(replace(REPORT, summary=[], trials=[]))
    grid = empty.turned(Arrangement(metric=1))
    assert (grid.about, grid.rows) == ("nothing was measured", ())


def test_an_axis_that_is_alone_goes_down_where_there_is_room(tmp_path):
    whole = summary(tmp_path)
    assert whole.first_turn() == Arrangement()
    whole.axes = ["server"]
    assert whole.first_turn() == Arrangement(across=1)


def test_the_parts_of_figures_stand_below_each_other(tmp_path):
    near, far = zip(
        *(row[1:] for row in texts(summary(tmp_path).turned(Arrangement()))), strict=True
    )
    assert near == ("▂ 90.4 ±3.3", "▇  357     ")
    assert far == ("▁ 5.22 ±0.085", "▁ 17.6 ±0.27 ")


def test_marks_and_expected_values_stand_below_each_other_too():
    cells = [
        GridCell("▁", "9.1 ms", " ±0.1", "9 ms", " !", "bad"),
        GridCell("▇", "11 ms", expected="10 ms"),
        GridCell("▂", "9.5 ms"),
        NO_CELL,
    ]
    assert [span.text for span in lined_up(cells)] == [
        "▁ 9.1 ms ±0.1 /  9 ms !",
        "▇  11 ms      / 10 ms  ",
        "▂ 9.5 ms               ",
        "       -               ",
    ]


@pytest.fixture
def mesh_of(tmp_path):
    def make(hosts, measured):
        path = tmp_path / "mesh.sqlite"
        made = MadeMesh(path, hosts)
        for pair, rate in measured.items():
            made.end(pair, rate)
        made.close()
        with closing(Reader(path)) as reader:
            return SummaryTable(read_report(reader, reader.run(made.id)))

    return make


def test_a_mesh_is_a_matrix_in_the_order_of_its_profile(mesh_of):
    pairs = {f"h{a}:h{b}": 1e6 * (10 * a + b) for a in (3, 1, 2) for b in (1, 2, 3) if a != b}
    summary = mesh_of(3, pairs)
    grid = summary.turned(summary.first_turn())
    assert grid.axes == "from ↓  to →"
    assert [column.head for column in grid.columns] == ["from", "h1", "h2", "h3"]
    cells = [[cell.text.strip("▁▂▃▄▅▆▇ ") for cell in row] for row in grid.rows]
    assert cells == [
        ["h1", "-", "12.0", "13.0"], ["h2", "21.0", "-", "23.0"], ["h3", "31.0", "32.0", "-"],
    ]  # fmt: skip


def test_a_few_pairs_of_many_hosts_are_a_list(mesh_of):
    summary = mesh_of(4, {"h1:h2": 1e6, "h1:h3": 2e6, "h4:h3": 3e6})
    assert summary.axes == ["pair"]
