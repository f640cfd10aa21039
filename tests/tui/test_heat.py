from msgspec.structs import replace
from report.sample_report import REPORT
from tui.made_runs import whole_run

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
    assert texts(grid)[0][1].endswith("Mbit/s ±3.3")
    assert "throughput of main (send)" in grid.about


def test_heat_goes_from_the_least_to_the_greatest_and_is_told_by_a_character_too(tmp_path):
    grid = summary(tmp_path).turned(Arrangement())
    cells = [cell for row in grid.rows for cell in row[1:]]
    assert {cell.role for cell in cells} >= {"heat-0", "heat-6"}
    for cell in cells:
        assert cell.text[0] == STEPS[int(cell.role.removeprefix("heat-"))]


def test_turning_goes_through_every_axis_and_metric_and_comes_back(tmp_path):
    whole = summary(tmp_path)
    turn = Arrangement()
    for _ in range(len(whole.lines)):
        turn = turn.metric(whole)
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


def test_all_metrics_of_all_flows_can_be_seen_the_most_wanted_first(tmp_path):
    assert summary(tmp_path).lines[:2] == [
        ("main", "send", "throughput_bps"), ("ping", "round-trip", "rtt_s"),
    ]  # fmt: skip


def test_what_is_expected_stands_beside_what_was_measured():
    whole = SummaryTable(REPORT)
    place = whole.lines.index(("bulk", "send", "throughput_bps"))
    grid = whole.turned(Arrangement(line=place))
    assert grid.about.endswith(" / expected")
    assert any(" / " in cell for row in texts(grid) for cell in row)


def test_a_run_of_which_nothing_was_measured_is_an_empty_grid():
    empty = SummaryTable(replace(REPORT, summary=[], trials=[]))
    grid = empty.turned(Arrangement().metric(empty))
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
    assert near == ("▂ 90.4 Mbit/s ±3.3", "▇  357 Mbit/s     ")
    assert far == ("▁ 5.22 Mbit/s ±0.085", "▁ 17.6 Mbit/s ±0.27 ")


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
