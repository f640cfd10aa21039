"""The description of figures, of every kind, whoever draws them."""

import json
import math
import sqlite3
from contextlib import closing
from itertools import permutations
from types import SimpleNamespace

import msgspec
import pytest
from report.mesh_run import mesh_run
from report.pictured_run import WINDOWS, pictured_run
from report.sample_report import ONE, PING, REPORT, TWO, row
from store.store_support import measured_run, new_run

from benchctl.errors import UsageError
from benchctl.metrics import METRICS, Direction
from benchctl.report.figures.axes import numbers_of, swept_axis, value_axis
from benchctl.report.figures.figure import LineRole, PictureEvent, PictureKind, PictureLine
from benchctl.report.figures.making import Wanted, figures_of
from benchctl.report.figures.means import _by_phase
from benchctl.report.figures.times import MOST_LINES, _Drawn, _sum_of
from benchctl.report.report import read_report
from benchctl.run.planned import (
    LabSettings,
    PlannedChange,
)
from benchctl.store.read import Reader

KINDS = {
    "time": Wanted(PictureKind.TIME, only={"window": ["5000B", "60000B"]}, columns=40),
    "sweep": Wanted(),
    "bars": Wanted(PictureKind.BARS, only={"streams": ["1"]}),
    "heat": Wanted(PictureKind.HEAT),
    "cdf": Wanted(PictureKind.CDF, y=("tcp_rtt_s",), only={"window": ["60000B"]}, columns=20),
    "histogram": Wanted(PictureKind.HISTOGRAM, y=("tcp_rtt_s",), only={"window": ["60000B"]}),
    "box": Wanted(PictureKind.BOX, y=("throughput_bps",)),
    "plane": Wanted(PictureKind.PLANE),
}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("figures") / "runs.sqlite"
    pictured_run(path)
    return path


def draw(store, wanted=Wanted(), name="last"):  # noqa: B008
    with closing(Reader(store)) as reader:
        return list(figures_of(reader, read_report(reader, reader.find(name)), wanted))


def measured(panel):
    return [line for line in panel.lines if line.role is LineRole.MEASURED]


def of_role(panel, role):
    return [line for line in panel.lines if line.role is role]


def rounded(value):
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items() if one not in ((), [], None, "")}
    if isinstance(value, list | tuple):
        return [rounded(one) for one in value]
    if isinstance(value, float):
        return None if math.isnan(value) else float(f"{value:.5g}")
    return value


@pytest.mark.parametrize("kind", KINDS)
def test_a_figure_of_each_kind_says_what_it_shows(store, kind, golden):
    (figure,) = draw(store, KINDS[kind])
    assert figure.kind == kind
    golden(f"report/golden/figure-{kind}.json",
           json.dumps(rounded(msgspec.to_builtins(figure)), indent=1) + "\n")  # fmt: skip


def test_equal_data_is_an_equal_figure(store):
    assert repr(draw(store, KINDS["time"])) == repr(draw(store, KINDS["time"]))


def test_a_sweep_has_intervals_theory_what_was_reported_and_what_is_not_valid(store):
    (figure,) = draw(store)
    (panel,) = figure.panels
    one, two = measured(panel)
    assert (figure.x.title, figure.series, figure.names) == ("window", "streams", ["1", "2"])
    assert one.xs == sorted(WINDOWS.values())
    assert all(low < y < high for low, y, high in zip(one.lows, one.ys, one.highs, strict=True))
    assert [line.number for line in of_role(panel, LineRole.EXPECTED)] == [0, 1]
    assert [line.number for line in of_role(panel, LineRole.REPORTED)] == [0]
    assert [line.xs for line in of_role(panel, LineRole.INVALID)] == [[5000.0]]
    assert "1 of 24 trials were not measured to the end" in figure.notes
    assert any("not valid" in note for note in figure.notes)
    assert two.number == 1


def test_over_time_there_are_rate_delay_and_window_with_what_happened(store):
    (figure,) = draw(store, Wanted(PictureKind.TIME, only={"window": ["20000B"]}))
    assert [panel.y.metric for panel in figure.panels] == [
        "throughput_bps", "tcp_rtt_s", "cwnd_bytes",
    ]  # fmt: skip
    assert not figure.panels[0].events
    only = {"window": ["60000B"], "streams": ["1"]}
    figure, *_ = draw(store, Wanted(PictureKind.TIME, only=only, by=["repeat"]))
    assert [event.word for event in figure.panels[0].events] == ["drop"]


CHANGES = (PlannedChange(4.0, "far", rate=10e6), PlannedChange(50.0, "far", loss=1.0))
LAB = LabSettings("pair", "", None, True, CHANGES)


def test_over_time_the_changes_of_the_lab_are_in_every_panel_and_their_words_in_the_first(tmp_path):
    pictured_run(tmp_path / "s", values={}, repeats=1, lab=LAB)
    (figure,) = draw(tmp_path / "s", Wanted(PictureKind.TIME))
    assert [[*panel.events] for panel in figure.panels] == [
        [PictureEvent(4.0, "far 10.0 Mbit/s", None)], *[[PictureEvent(4.0, "", None)]] * 2,
    ]  # fmt: skip
    (zoomed,) = draw(tmp_path / "s", Wanted(PictureKind.TIME, begin_s=5.0))
    assert not any(panel.events for panel in zoomed.panels)


def test_of_many_samples_in_a_column_the_range_is_kept(store):
    (figure,) = draw(store, Wanted(PictureKind.TIME, only={"streams": ["1"]}, columns=5))
    for line in measured(figure.panels[0]):
        assert len(line.xs) == 5
        assert all(low < y < high for low, y, high in zip(line.lows, line.ys, line.highs,
                                                          strict=True))  # fmt: skip


def test_all_draws_every_point_and_repeat_and_nothing_is_left_out(store):
    figures = draw(store, Wanted(PictureKind.TIME, series="window", every=True))
    assert [figure.about for figure in figures] == [
        f"streams={streams}, repeat {repeat}" for streams in (1, 2) for repeat in (1, 2, 3)
    ]
    assert len({figure.name for figure in figures}) == 6
    assert not any("left out" in note for figure in figures for note in figure.notes)


def test_by_makes_a_figure_for_each_value(store):
    figures = draw(store, Wanted(by=["window"], kind=PictureKind.BARS))
    assert [figure.about for figure in figures] == [f"window={name}" for name in WINDOWS]


def test_what_one_figure_leaves_out_is_said(store):
    (figure,) = draw(store, Wanted(PictureKind.TIME, only={"window": ["5000B"]}))
    assert "2 more repeats are left out: benchctl plot --all draws each" in figure.notes


def test_of_200_lines_the_first_are_drawn_and_the_others_are_counted(tmp_path):
    values = {"window": tuple(WINDOWS)[:3], "case": tuple(f"case {n}" for n in range(200))}
    pictured_run(tmp_path / "s", values=values, repeats=1, samples=False)
    (figure,) = draw(tmp_path / "s")
    assert len(measured(figure.panels[0])) == len(figure.names) == 16
    assert "184 of 200 lines are left out: benchctl plot --only AXIS=VALUE chooses" in figure.notes


def test_all_has_the_totals_of_each_point_and_direction_below(store):
    (figure,) = draw(store, Wanted(PictureKind.ALL, only={"window": ["5000B,60000B"]}, columns=40))
    rates, *_, totals = figure.panels
    assert (figure.kind, totals.y.title) == (PictureKind.TIME, "total throughput")
    names = [figure.names[line.number] for line in totals.lines]
    assert names[0] == "5000B, 1, total send"
    assert len(names) == len(measured(rates)) == 4
    for line, total in zip(measured(rates), totals.lines, strict=True):
        assert (total.xs, total.ys) == (line.xs, line.ys)


def test_a_total_is_the_sum_of_what_each_line_has_at_its_time():
    lines = [
        PictureLine("a", 0, [1.0, 2.0, 3.0, 4.0], [10.0, 20.0, 30.0, math.nan]),
        PictureLine("b", 1, [1.5, 2.5], [1.0, 2.0]),
    ]
    total = _sum_of(lines, "total send", 2)
    assert total.xs == [1.0, 2.0, 3.0, 4.0]
    assert total.ys[:3] == [10.0, 21.0, 30.0]
    assert math.isnan(total.ys[3])


def test_what_would_not_be_seen_has_a_logarithmic_axis():
    line = PictureLine("", 0, [0.0, 1.0], [16e9, 48e6])
    metric = METRICS["throughput_bps"]
    assert value_axis(metric, [line], seen=line.ys).log
    assert not value_axis(metric, [line], seen=[16e9, 4e9]).log
    assert not value_axis(metric, [line], seen=[16e9, 0.0]).log


def test_the_kind_is_chosen_by_what_the_run_is(tmp_path):
    pictured_run(tmp_path / "swept")
    pictured_run(tmp_path / "words", values={"case": ("a", "b")}, repeats=1)
    pictured_run(tmp_path / "one", values={}, repeats=1)
    pictured_run(tmp_path / "unsampled", values={}, repeats=1, samples=False)
    kinds = [draw(tmp_path / name)[0].kind for name in ("swept", "words", "one", "unsampled")]
    assert kinds == [PictureKind.SWEEP, PictureKind.BARS, PictureKind.TIME, PictureKind.BARS]


@pytest.mark.parametrize("direction", [Direction.SEND, Direction.RECEIVE])
def test_a_mesh_is_a_matrix_from_where_data_come_to_where_they_go(tmp_path, direction):
    mesh_run(tmp_path / "s", direction)
    (figure,) = draw(tmp_path / "s")
    (panel,) = figure.panels
    assert (figure.kind, panel.y.title, figure.x.title) == (PictureKind.MATRIX, "from", "to")
    found = {(panel.y.ticks[one.row].text, figure.x.ticks[one.column].text): one.text
             for one in panel.cells}  # fmt: skip
    pairs = permutations("abc", 2)
    expected = {pair if direction is Direction.SEND else pair[::-1]: str(number)
                for number, pair in enumerate(pairs, 1)}  # fmt: skip
    assert found == {**expected, **{(host, host): "" for host in "abc"}}


@pytest.mark.parametrize(("streams", "log"), [((1, 2), False), ((1, 400), True)])
def test_colours_of_a_map_tell_values_apart_over_one_decade_and_over_many(tmp_path, streams, log):
    values = {"window": ("5000B", "10000B"), "streams": streams}
    pictured_run(tmp_path / "s", values=values, repeats=1, samples=False, rate_bps=1e12)
    (figure,) = draw(tmp_path / "s", Wanted(PictureKind.HEAT))
    (panel,) = figure.panels
    assert panel.heat.log is log
    shares = [panel.heat.share(cell.value) for cell in panel.cells]
    assert sorted(shares)[0] == 0.0
    assert sorted(shares)[-1] == 1.0
    assert sorted(shares)[1] > 0.1
    assert panel.heat.share(panel.heat.low) == 0.0


def test_round_trips_beside_a_load_are_drawn_idle_and_loaded():
    rows = [
        row(ONE, "rtt_s", 0.03, **PING), row(ONE, "rtt_idle_s", 0.02, **PING),
        row(ONE, "rtt_under_load_s", 0.05, **PING), row(TWO, "rtt_s", 0.02, **PING),
    ]  # fmt: skip
    report = msgspec.structs.replace(REPORT, summary=rows)
    drawn = _by_phase(SimpleNamespace(report=report), report.rows_of("rtt_s"))
    name = PING["flow"]
    assert [(one.flow, one.spread.mean) for one in drawn] == [
        (name, 0.02), (f"{name} idle", 0.02), (f"{name} under load", 0.05),
    ]  # fmt: skip


def test_over_time_probes_are_not_left_out_for_the_lines_of_a_load():
    many = {(f"load {n}",): "throughput_bps" for n in range(MOST_LINES + 2)}
    probes = {(f"ping {n}",): "rtt_s" for n in range(3)}
    drawn = _Drawn(None, None, ("throughput_bps", "rtt_s"), {**many, **probes})
    assert [*drawn._numbers] == [*[*many][:MOST_LINES], *probes]
    assert drawn._count == len(many) + len(probes)


def test_a_run_without_a_mesh_has_no_matrix(store):
    with pytest.raises(UsageError, match="no axis is a mesh of hosts"):
        draw(store, Wanted(PictureKind.MATRIX))


@pytest.mark.parametrize("status", ["failed", "interrupted"])
def test_a_run_that_measured_nothing_has_one_clear_line(tmp_path, status):
    pictured_run(tmp_path / "s", status=status)
    with pytest.raises(UsageError, match="nothing was measured, so there is nothing to draw"):
        draw(tmp_path / "s")


def test_a_run_that_never_began_has_one_clear_line(tmp_path):
    new_run(tmp_path / "s")
    with pytest.raises(UsageError, match="nothing was measured yet, so there is nothing to draw"):
        draw(tmp_path / "s")


@pytest.mark.parametrize("kind", [PictureKind.TIME, PictureKind.CDF, PictureKind.BOX])
def test_without_samples_the_kinds_that_need_them_say_so(tmp_path, kind):
    pictured_run(tmp_path / "s", samples=False)
    with pytest.raises(UsageError, match="there is no sample of") as error:
        draw(tmp_path / "s", Wanted(kind))
    assert "--kind bars" in error.value.hint


@pytest.mark.parametrize(
    ("wanted", "message", "hint"),
    [
        (Wanted(x="windo"), None, None),
        (Wanted(x="widnow"), "--x: run .* has no axis", 'did you mean "window"?'),
        (Wanted(series="nothing"), "--series: run .* has no axis", "its axes are: window, streams"),
        (Wanted(y=("throughput",)), "--y: no metric", 'did you mean "throughput_bps"?'),
        (Wanted(y=("tcp_rtt_s.p59",)), "--y: no aggregate", ""),
        (Wanted(only={"streams": ["4"]}), "axis streams has no value", "values are: 1, 2"),
        (Wanted(by=["repeat"]), "shows means over repeats", "add --kind time"),
        (Wanted(x="window", by=["window"]), "each figure shows all values", "remove it"),
        (Wanted(PictureKind.TIME, x="window"), "has not window as its x-axis", "remove --x"),
    ],
)  # fmt: skip
def test_what_the_run_does_not_have_is_rejected_with_the_nearest_name(store, wanted, message, hint):
    if message is None:
        assert draw(store, wanted)
        return
    with pytest.raises(UsageError, match=message) as error:
        draw(store, wanted)
    assert hint in error.value.hint


def test_a_value_of_the_axis_without_a_figure_is_named(tmp_path):
    pictured_run(tmp_path / "s", repeats=1, values={"window": tuple(WINDOWS), "streams": (1, 2)})
    with closing(sqlite3.connect(tmp_path / "s")) as connection, connection:
        connection.execute("DELETE FROM figure WHERE flow_id IN (1, 2)")
    (figure,) = draw(tmp_path / "s")
    assert "there is no figure at window=5000B" in figure.notes


def test_one_trial_is_a_figure(tmp_path):
    measured_run(tmp_path / "s", {1: [95e6]})
    (figure,) = draw(tmp_path / "s")
    assert "one measurement each: no interval" in figure.notes


def test_foreign_text_cannot_control_what_reads_a_figure(tmp_path):
    pictured_run(tmp_path / "s", values={"case": ("a\x1b[2J/../b", "\u202eb")}, repeats=1,
                 title="\x1b]0;x\x07" * 50)  # fmt: skip
    figures = draw(tmp_path / "s", Wanted(by=["case"]))
    for figure in figures:
        assert figure.title.isprintable()
        assert figure.about.isprintable()
        assert "/" not in figure.name
        assert figure.name.isprintable()


def test_values_with_one_beginning_have_files_of_their_own(tmp_path):
    cases = tuple("x" * 300 + end for end in "ab")
    pictured_run(tmp_path / "s", values={"case": cases}, repeats=1)
    names = [figure.name for figure in draw(tmp_path / "s", Wanted(by=["case"]))]
    assert len(set(names)) == 2
    assert all(len(name.encode()) < 250 for name in names)


@pytest.mark.parametrize(
    ("values", "metric", "numbers"),
    [
        ([1, 2, 4], "", [1.0, 2.0, 4.0]),
        (["10Mbit", "1Gbit"], "value_bps", [1e7, 1e9]),
        (["5000B", "1M"], "value_bytes", [5000.0, 2.0**20]),
        (["0%", "2%"], "value_ratio", [0.0, 0.02]),
        (["1s", "250ms"], "value_s", [1.0, 0.25]),
    ],
)
def test_values_of_an_axis_with_units_are_numbers(values, metric, numbers):
    assert numbers_of(values) == (metric, numbers)


@pytest.mark.parametrize("values", [["a", "b"], [True, False], ["10Mbit", "unlimited"], [1, "2s"]])
def test_other_values_are_words(values):
    assert numbers_of(values) is None


def test_an_axis_with_zero_that_spans_much_has_equal_distances():
    axis, places = swept_axis("loss", ["0%", "0.01%", "30%"])
    assert (axis.even, axis.log, places) == (True, False, [0.0, 1.0, 2.0])
    assert swept_axis("window", ["5000B", "1M"])[0].log is False
    assert swept_axis("window", ["5000B", "50000B", "1M"])[0].log is True


def test_a_gap_in_the_samples_is_a_gap_in_the_line(tmp_path):
    pictured_run(tmp_path / "s", values={}, repeats=1)
    with closing(sqlite3.connect(tmp_path / "s")) as connection, connection:
        connection.execute("DELETE FROM sample WHERE start_s BETWEEN 3 AND 6")
    (figure,) = draw(tmp_path / "s")
    (line,) = measured(figure.panels[0])
    gaps = [x for x, y in zip(line.xs, line.ys, strict=True) if math.isnan(y)]
    assert len(gaps) == 1
    assert 3 < gaps[0] < 7


def test_negative_delays_have_a_linear_axis_that_reaches_below_zero():
    lines = [
        PictureLine("send", 0, [1.0, 500.0], [0.0502, 5.02]),
        PictureLine("receive", 1, [1.0, 500.0], [-0.049, -4.9]),
    ]
    axis = value_axis(METRICS["owd_s"], lines, x_is_log=True)
    assert (axis.log, axis.low, axis.high) == (False, -4.9, 5.02)
    assert value_axis(METRICS["owd_s"], lines[:1], x_is_log=True).log
