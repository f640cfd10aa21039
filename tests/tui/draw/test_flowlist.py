"""The list of flows is the legend of the plots, and lines are picked in it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.widget import Widget
from tui.draw.test_charts import FLOWS, VIEW, marks, traces_of
from tui.driving import Clock, drive, open_replay, press, settle, shown
from tui.made_runs import whole_run

from benchctl.report.lines.spans import to_text
from benchctl.report.timeline.traces import ALL
from benchctl.tui.draw.plot.choice import Choice
from benchctl.tui.draw.text.columns import see
from benchctl.tui.draw.text.glyphs import ASCII, BRAILLE
from benchctl.tui.draw.views.flowlist import list_flows, spark

BARS = BRAILLE.bars


def rows(traces, choice=Choice(), begun=(), width=60, first=0):  # noqa: B008
    """Return the rows of the list as text, and the roles of their names."""
    flows = list_flows(begun, traces, choice, VIEW, width)
    sight = see(flows.columns(), width, first)
    cells = [flows.row(index) for index in range(len(flows.rows))]
    return [to_text([sight.row(row)]) for row in cells], [row[0].role for row in cells]


def test_each_flow_has_letter_name_current_value_mean_and_a_sparkline():
    texts, roles = rows(traces_of(FLOWS))
    assert [text.split()[:3] for text in texts] == [
        ["●", "abcdefgh"[n], flow] for n, flow in enumerate(FLOWS)
    ]
    assert roles == [f"curve-{n}" for n in range(8)]
    assert texts[2].split()[3:7] == ["3.00", "Mbit/s", "3.00", "Mbit/s"]
    # The sparklines have one scale.
    bars = [set(text.split()[7]) for text in texts]
    assert bars == [{BARS[int((n + 1) / 10 * len(BARS))]} for n in range(8)]


def test_a_metric_of_single_streams_is_no_column_of_the_flow():
    flows = list_flows((), traces_of(FLOWS[:1], ("rtt_s", "hop_rtt_s")), Choice(), VIEW, 80)
    assert [column.head for column in flows.columns()] == ["flow", "now", "mean", ""]


def test_the_letters_and_colours_are_those_of_the_plots():
    traces = traces_of(FLOWS[2:6])
    texts, roles = rows(traces)
    legend = {(text.split()[1], role) for text, role in zip(texts, roles, strict=True)}
    assert marks(traces) == [legend, legend]


def test_a_flow_without_samples_is_listed_too():
    texts, _ = rows(traces_of(FLOWS[:1]), begun=[FLOWS[3]])
    assert texts[1].split() == ["●", "d", FLOWS[3], "no", "samples"]


def test_a_row_shows_the_first_plotted_metric_that_its_flow_reports():
    traces = traces_of(FLOWS[:1], metrics=("throughput_bps",))
    for number, row in traces_of(FLOWS[1:2], metrics=("rtt_s",))._series.items():
        traces._series[number] = row
    traces.streams.add((FLOWS[1], 0))
    traces.meanings |= traces_of(FLOWS[1:2], metrics=("rtt_s",)).meanings
    flows = list_flows((), traces, Choice(), VIEW, 60)
    assert [row.metric for row in flows.rows] == ["throughput_bps", "rtt_s"]
    assert [column.head for column in flows.columns()][4:] == ["throughput", "RTT"]


def test_both_ways_of_a_flow_have_a_row():
    texts, _ = rows(traces_of(FLOWS[:1], ways=("send", "receive")))
    assert [text.split()[1] for text in texts] == ["A", "a"]


picks = st.tuples(st.sampled_from(FLOWS), st.sampled_from([ALL, ALL, 0, 1]))


@given(st.lists(picks, max_size=12))
def test_a_line_toggled_twice_is_as_before_and_all_lines_are_no_choice(toggles):
    choice = Choice()
    for pick in toggles:
        before = choice.shows(*pick)
        other = choice.toggled(pick, FLOWS)
        assert other.shows(*pick) != before
        assert other.toggled(pick, FLOWS) == choice
        choice = other
    assert choice.only((FLOWS[1], ALL), FLOWS).picked in (frozenset({(FLOWS[1], ALL)}), None)
    every = all(choice.shows(flow, ALL) for flow in FLOWS) and not choice.split
    assert (choice.picked is None) == every


def test_the_only_line_goes_back_to_all():
    alone = Choice().only((FLOWS[2], ALL), FLOWS)
    assert [alone.shows(flow, ALL) for flow in FLOWS] == [flow == FLOWS[2] for flow in FLOWS]
    assert alone.only((FLOWS[2], ALL), FLOWS).picked is None


def test_streams_come_and_go_as_one():
    shown_streams = Choice().streams(FLOWS[0], range(8), FLOWS)
    assert shown_streams.split == {FLOWS[0]}
    assert shown_streams.shows(FLOWS[0], ALL)
    assert shown_streams.streams(FLOWS[0], range(8), FLOWS) == Choice()


VALUES = st.lists(st.none() | st.floats(-1e12, 1e12), max_size=30)


@given(VALUES, st.booleans(), st.sampled_from([BRAILLE.bars, ASCII.bars]))
def test_a_sparkline_has_a_bar_for_every_value_in_their_order(values, from_zero, bars):
    drawn = spark(values, bars, from_zero=from_zero)
    assert len(drawn) == len(values)
    there = sorted((v, bars.index(b)) for v, b in zip(values, drawn, strict=True) if v is not None)
    assert [bar for _, bar in there] == sorted(bar for _, bar in there)


def test_a_sparkline_of_a_rate_begins_at_zero_and_one_of_nothing_is_flat():
    assert spark([4.0, 8.0], BARS, from_zero=True) == BARS[4] + BARS[7]
    assert spark([4.0, 8.0], BARS, from_zero=False) == BARS[0] + BARS[7]
    assert spark([0.0, 0.0], BARS, from_zero=True) == BARS[0] * 2
    assert spark([], BARS, from_zero=True) == ""


def test_a_burst_leaves_a_sparkline_its_course():
    course = [17.0, 18.0, 9.0, 18.0, 17.0, 18.0, 9.0]
    assert spark([290.0, *course], BARS, from_zero=True)[0] == BARS[-1]
    assert len({*spark([290.0, *course], BARS, from_zero=True)[1:]}) > 1
    assert spark([0.0] * 7 + [3.0], BARS, from_zero=True) == BARS[0] * 7 + BARS[-1]


def test_a_sparkline_joins_the_values_of_a_slow_tool_and_has_a_hole_where_some_are_missing():
    slow = [None, 8.0, None, 8.0, None, 8.0, *[None] * 9, 8.0, None, 8.0]
    assert spark(slow, "12", from_zero=True) == f" 22222{' ' * 9}222"


@pytest.fixture
def store(tmp_path):
    whole_run(tmp_path / "runs.sqlite")
    return tmp_path / "runs.sqlite"


def flow_lines(pilot):
    return [line.strip() for line in shown(pilot).splitlines() if re.search("[●○] [ab]", line)]


@pytest.mark.parametrize("size", [(60, 20), (80, 24)])
def test_lines_are_picked_with_keys(store, size):
    async def script(pilot):
        assert "● a main" in await press(pilot, "p")
        assert "○ a main" in await press(pilot, "enter")
        assert "throughput  \n" in shown(pilot) or not re.search("throughput +a", shown(pilot))
        assert "● a main" in await press(pilot, "enter")
        await press(pilot, "down", "o")
        assert [line[0] for line in flow_lines(pilot)] == ["○", "●"]
        await press(pilot, "o")
        assert [line[0] for line in flow_lines(pilot)] == ["●", "●"]
        await press(pilot, "up", "i")
        assert [line.split()[1] for line in flow_lines(pilot)] == [
            "a", "a0", "a1", "a2", "a3", "b",
        ]  # fmt: skip
        assert re.search(r"throughput +a .*a0 .*a3", shown(pilot))
        await press(pilot, "i")
        assert len(flow_lines(pilot)) == 2

    drive(store, open_replay(store, 1, Clock(), 30.0), script, size=size, clock=Clock())


@pytest.mark.parametrize("size", [(120, 40), (200, 60)])
def test_lines_are_picked_with_the_mouse(store, size):
    async def script(pilot):
        flows = pilot.app.screen.query_one("#flows", Widget)
        assert [line[0] for line in flow_lines(pilot) if line[0] in "●○"] or flow_lines(pilot)
        for dot in ("○", "●"):
            await pilot.click(flows, offset=(5, 2))
            await settle(pilot)
            assert f"{dot} b ping" in shown(pilot)
        assert "● a main" in shown(pilot)

    drive(store, open_replay(store, 1, Clock(), 30.0), script, size=size, clock=Clock())


def test_a_long_name_has_the_room_that_figures_and_a_short_sparkline_leave():
    names = {}
    for width in (40, 60, 80):
        flows = list_flows((), traces_of(["download-from-server"]), Choice(), VIEW, width)
        names[width] = flows.names[0]
    assert names == {
        40: "● i download-fr…", 60: "● i download-from-server", 80: "● i download-from-server",
    }  # fmt: skip


def test_the_last_value_of_a_trial_that_has_ended_is_not_that_of_now():
    flows = list_flows((), traces_of(FLOWS[:1]), Choice(), VIEW, 60, running=False)
    assert [column.head for column in flows.columns()][1:3] == ["last", "mean"]
