import json
from contextlib import closing
from unittest.mock import Mock

import pytest
from tui.made_runs import BEGIN, MadeRun, whole_run

from benchctl.analysis.runs.summary import SummaryRow
from benchctl.analysis.search.found import FOUND_RATE
from benchctl.analysis.statistics import spread
from benchctl.metrics import Vocabulary
from benchctl.report.comparison.comparison import compare_reports
from benchctl.report.lines.spans import Span, to_text
from benchctl.report.past import KeyFigure, found_figure, key_figure, past_of
from benchctl.report.report import read_report
from benchctl.run.status import Status
from benchctl.store.bulk import Bulk, FlowRow
from benchctl.store.manage import delete_run, set_tags
from benchctl.store.read import Reader
from benchctl.tui.draw.text.columns import see
from benchctl.tui.draw.views.runs import about_run, answer_text, narrowed, run_columns, run_row
from benchctl.tui.screens.parts.pastrows import PastReader


def read(path):
    with closing(Reader(path)) as reader, closing(Bulk(path)) as bulk:
        runs = reader.runs()
        keys = {run.id: key_figure(run, bulk.flow_rows(run.id, run.vocabulary.wanted), ())
                for run in runs}  # fmt: skip
        return past_of(runs, keys, reader.baselines())


@pytest.fixture
def history(tmp_path):
    path = tmp_path / "runs.sqlite"
    whole_run(path)
    whole_run(path, name="second", factor=1.1, begin=BEGIN + 3600)
    whole_run(path, name="elsewhere", profile="other", begin=BEGIN + 7200)
    made = MadeRun(path, name="cut off", begin=BEGIN + 9000)
    made.begin()
    made.close()
    set_tags(path, 1, ["baseline", "kitchen"])
    return read(path)


def flow(trial_id, name, backend="iperf3", way="send", point="{}", **figures):
    return FlowRow(trial_id, point, name, backend, way, {(way, k): v for k, v in figures.items()})


RUN = Mock(vocabulary=Vocabulary(), profile="x", tags=())
NAMED = Mock(id=1, tags=("lab2",), profile="x")
NAMED.name = "a-run"


def test_every_run_has_its_key_figure_for_each_point_and_says_which(history):
    cut_off, _, _, first = history
    assert [one.key.title for one in history] == ["", *["throughput of main"] * 3]
    assert len(first.key.rows) == 4
    assert (cut_off.run.status, cut_off.key.rows) == ("died", ())


def test_the_difference_from_the_baseline_is_that_of_compare(tmp_path, history):
    _, elsewhere, second, first = history
    with closing(Reader(tmp_path / "runs.sqlite")) as reader:
        runs = [next(run for run in reader.runs() if run.id == one) for one in (1, 2)]
        (whole,) = compare_reports(*(read_report(reader, run) for run in runs))
    of_key = [(one.difference, one.low, one.high, one.p) for one in whole
              if (one.flow, one.metric) == ("main", "throughput_bps")]  # fmt: skip
    # Verdicts hold for all figures that are shown: there the whole table, here the key figures.
    assert [(one.difference, one.low, one.high, one.p) for one in second.compared] == of_key
    assert [one.family for one in second.compared if one.family] == [3, 3, 3]
    assert first.compared == elsewhere.compared == ()


def test_unlike_flows_are_not_mixed_and_the_first_of_the_profile_counts():
    tcp, udp = 14.6e9, 50e6
    flows = [
        flow(1, "tcp", throughput_bps=tcp),
        flow(1, "udp", backend="simpleperf", throughput_bps=udp),
        flow(1, "back", way="receive", throughput_bps=1e6),
        flow(1, "ping", "ping", "round-trip", rtt_s=0.1),
    ]
    key = key_figure(RUN, flows, ())
    assert (key.title, key.rows[0].values) == ("throughput of tcp", [tcp])
    key = key_figure(RUN, flows[3:] + flows[:3], ())
    assert (key.title, key.rows[0].values) == ("RTT of ping", [0.1])


def test_flows_that_are_alike_are_added_up_and_an_incomplete_sum_is_left_out():
    flows = [flow(trial, name, throughput_bps=1e6 * trial) for trial in (1, 2) for name in "abc"]
    flows.append(flow(3, "a", throughput_bps=9e6))
    flows += [flow(3, "b"), flow(3, "c", throughput_bps=9e6)]  # b failed
    key = key_figure(RUN, flows, ())
    assert (key.title, key.rows[0].values) == ("throughput of 3 flows", [3e6, 6e6])


def test_delays_of_several_paths_are_neither_added_up_nor_averaged():
    flows = [flow(1, "near", "ping", "round-trip", rtt_s=0.01),
             flow(1, "far", "ping", "round-trip", rtt_s=0.2)]  # fmt: skip
    key = key_figure(RUN, flows, ())
    assert (key.title, key.rows[0].values) == ("RTT of near", [0.01])


def test_a_flow_of_both_directions_says_which_one_is_shown():
    figures = {("receive", "throughput_bps"): 2e6, ("send", "throughput_bps"): 1e6}
    both = FlowRow(1, "{}", "main", "iperf3", "both", figures)
    key = key_figure(RUN, [both], ())
    assert (key.title, key.rows[0].values) == ("throughput of main send", [1e6])


def test_points_are_never_averaged(history):
    columns = run_columns([run_row(one, marked=False) for one in history])
    place = [column.head for column in columns].index("figure")
    assert run_row(history[1], marked=False)[place].text == "5.22 … 357 Mbit/s"


def test_both_ends_of_a_range_have_as_many_digits():
    flows = [flow(1, "a", throughput_bps=12.1e6, point='{"n": 1}'),
             flow(2, "a", throughput_bps=13e6, point='{"n": 2}')]  # fmt: skip
    (past,) = past_of([NAMED], {1: key_figure(RUN, flows, ())}, {})
    assert (
        to_text([about_run(past)])
        == "throughput of a at 2 points: 12.1 … 13.0 Mbit/s  a-run [lab2]"
    )


def test_a_figure_of_a_lab_that_did_not_keep_up_is_marked():
    key = key_figure(RUN, [flow(1, "a", throughput_bps=1e6), flow(2, "a", throughput_bps=1e6)], {2})
    (past,) = past_of([NAMED], {1: key}, {})
    assert not past.valid
    assert to_text([about_run(past)]) == (
        "throughput of a: 1.00 Mbit/s ±0 ! not valid: the emulator did not keep up  a-run [lab2]"
    )


@pytest.mark.parametrize("width", [60, 78, 118, 200])
def test_every_column_is_reached_and_when_a_run_began_and_its_profile_stay(history, width):
    rows = [run_row(one, marked=False) for one in history]
    columns = run_columns(rows)
    if width < 100:
        columns = narrowed(columns, rows)
    seen = set()
    for first in range(len(columns)):
        visible = {column.head for _, column in see(columns, width, first).columns}
        assert {"ago", "began", "profile", "tags"} <= visible
        seen |= visible
    assert seen == {column.head for column in columns}
    assert all(len(run_row(one, marked=False)) == len(columns) for one in history)


def test_80_columns_show_when_what_the_answer_and_the_tags(history):
    rows = [run_row(one, marked=False) for one in history]
    heads = [column.head for _, column in see(narrowed(run_columns(rows), rows), 78).columns]
    assert heads[:7] == ["", "ago", "began", "profile", "figure", "baseline", "tags"]
    assert rows[-1][0].text == "✗"


def test_of_runs_of_two_years_the_year_is_said(history):
    rows = [run_row(one, marked=False) for one in history]
    assert narrowed(run_columns(rows), rows)[2].width == len("11-21 03:25")
    rows[0] = [*rows[0][:2], Span("2025-12-31 23:59"), *rows[0][3:]]
    assert narrowed(run_columns(rows), rows)[2].width == len("2025-12-31 23:59")


def test_what_a_run_is_beside_its_baseline_is_told(history):
    heads = run_columns([run_row(one, marked=False) for one in history])
    place = [column.head for column in heads].index("baseline")
    assert [run_row(one, marked=False)[place].text for one in history[1:]] == [
        "-", "▲3  ?1", "baseline",
    ]  # fmt: skip
    assert run_row(history[1], marked=True)[0].text == "●"


def test_with_one_point_the_difference_has_its_interval_and_verdict():
    baseline, better = (
        key_figure(RUN, [flow(n, "a", throughput_bps=v) for n, v in enumerate(values)], ())
        for values in ((1.0e6, 1.01e6, 0.99e6), (2.0e6, 2.01e6, 1.99e6))
    )
    runs = [
        Mock(id=number, profile="x", tags=tags, vocabulary=Vocabulary(), facts={},
             created_time=BEGIN, status="ok")
        for number, tags in ((2, ()), (1, ("baseline",)))
    ]  # fmt: skip
    for run in runs:
        run.name = str(run.id)
    past = past_of(runs, {1: baseline, 2: better}, {"x": 1})
    heads = run_columns([run_row(one, marked=False) for one in past])
    place = [column.head for column in heads].index("baseline")
    assert run_row(past[0], marked=False)[place].text == "+100 % ▲ better"
    assert to_text([about_run(past[0])]) == (
        "throughput of a: +1.00 Mbit/s (+100 %), 95 % interval +0.977 … +1.02 Mbit/s; better  2"
    )


def test_of_many_runs_the_newest_come_first_and_then_all(three, monkeypatch):
    monkeypatch.setattr("benchctl.tui.screens.parts.pastrows.FIRST", 2)
    with closing(Reader(three)) as reader:
        first, every = PastReader().read(reader)
    assert ([one.run.id for one in first.past], first.every) == ([3, 2], 3)
    assert [one.run.id for one in every.past] == [3, 2, 1]
    # The baseline is the oldest: what is beside it is known from the beginning.
    assert [row[5].text for row in first.cells] == [row[5].text for row in every.cells[:2]]
    assert first.cells[1][5].text == "▲3  ?1"


def test_only_runs_that_changed_are_read_again(three, monkeypatch):
    past, asked = PastReader(), []
    real = Reader.runs_of

    def runs_of(reader, ids):
        asked.append({*ids})
        return real(reader, ids)

    monkeypatch.setattr(Reader, "runs_of", runs_of)

    def read():
        asked.clear()
        with closing(Reader(three)) as reader:
            return [*past.read(reader)][-1], [*asked]

    before, _ = read()
    assert read() == (before, [])
    set_tags(three, 3, ["kitchen"])
    rows, ids = read()
    assert ids == [{3, 1}]
    assert rows.cells[0][6].text == "kitchen"
    assert rows.cells[1:] == before.cells[1:]
    set_tags(three, 1, [])
    set_tags(three, 2, ["baseline"])
    rows, _ = read()
    assert rows.cells[1][5].text == "baseline"
    assert rows.cells[2][5].text == "▼3  ?1"
    delete_run(three, 2)
    rows, _ = read()
    assert [one.run.id for one in rows.past] == [3, 1]
    assert rows.cells[1][5].text == "-"


def told(figures, **options):
    """Return what Plan says of a run: name, point, direction and figures of each flow."""
    run = Mock(vocabulary=Vocabulary((), {"iperf3": "throughput_bps"}), tags=(), status=Status.OK,
               profile="quick", varying=["measure"], error="")  # fmt: skip
    flows = [
        FlowRow(place, json.dumps({"measure": point}), name, "iperf3", way,
                {(way, metric): value for metric, value in own.items()}, point == "udp")
        for place, (point, name, way, own) in enumerate(figures)
    ]  # fmt: skip
    (entry,) = past_of([run], {run.id: key_figure(run, flows, ())}, {})
    return answer_text(entry)[0]


def test_a_quick_look_is_told_by_direction_without_the_rate_that_it_set():
    figures = [
        ("send", "load", "send", {"throughput_bps": 93e6, "responsiveness_rpm": 812.0}),
        ("receive", "load", "receive", {"throughput_bps": 412e6, "responsiveness_rpm": 1204.0}),
        ("udp", "load", "send", {"throughput_bps": 1e6}),
    ]
    assert told(figures) == "✓ send 93.0, receive 412 Mbit/s  812 … 1204 RPM"


def test_round_trips_are_told_where_responsiveness_is_unknown():
    figures = [
        ("a", "bulk", "send", {"throughput_bps": 93e6}),
        ("a", "ping", "round-trip", {"rtt_s": 0.02}),
    ]
    assert told(figures) == "✓ 93.0 Mbit/s  RTT 20.0 ms"


def test_a_search_is_told_by_what_it_found():
    search, row = Mock(axis="rate"), SummaryRow({}, "", "", FOUND_RATE, [29e6], spread([29e6]))
    report = Mock(summary=[row], run=Mock(settings=Mock(search=search)))
    assert found_figure(report) == KeyFigure(FOUND_RATE, "rate", [row])
    assert found_figure(Mock(summary=[], run=report.run)) == KeyFigure()
