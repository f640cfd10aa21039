"""The crosshair over the plots: by the mouse and by keys, what it reads is what the store has."""

import math
import re
from collections import defaultdict
from contextlib import closing
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual import events
from tui.draw.test_charts import FLOWS, VIEW, steady, traces_of
from tui.driving import Clock, drive, notices, open_live, open_replay, press, settle, shown, until
from tui.made_runs import whole_run

from benchctl.report.lines.spans import to_text
from benchctl.store.read import Reader
from benchctl.tui.draw.plot.charts import charts_of, compose
from benchctl.tui.draw.plot.choice import Choice
from benchctl.tui.draw.plot.crosshair import LEFT, NO_SAMPLE, crossed, plot_frames
from benchctl.tui.draw.text.glyphs import SETS
from benchctl.tui.widgets import chartview
from benchctl.tui.widgets.chartview import ChartView
from benchctl.units import format_value
from benchctl.visible import width_of

READING = re.compile(r"(\w) (\w+) +(-?[\d.]+(?: \S+)?)(?: +\S+ … \S+ \S+)? at ([\d.]+) s")


async def point(pilot, column, row=3, shift=False, kind=events.MouseMove):
    """Move the mouse to a column of the plots, or turn its wheel there; return what is shown."""
    charts = pilot.app.page.query_one(ChartView)
    # A blank is left of the widget's text.
    await pilot._post_mouse_events([kind], charts, (1 + LEFT + column, row), button=0, shift=shift)
    await waited(pilot)
    return shown(pilot)


async def waited(pilot):
    """Let the crosshair be drawn that the mouse has asked for."""
    charts = pilot.app.page.query_one(ChartView)
    await until(pilot, lambda: charts._soon is None)
    await pilot.pause()


def stored(store, flow, metric, fold):
    """Return the line of a flow of the second trial: its streams together, by end of interval."""
    found = defaultdict(list)
    with closing(Reader(store)) as reader:
        trial = [*reader.trials(1)][1]
        (own,) = [one for one in reader.flows(trial.id) if one.name == flow]
        for sample in reader.samples(own.id):
            if metric in sample.metrics:
                found[sample.end_s].append(sample.metrics[metric])
    return {end_s: fold(values) for end_s, values in found.items()}


def test_each_line_reads_its_nearest_sample_in_the_store(store, live):
    plots = [("a", "main", "throughput_bps", sum), ("b", "ping", "rtt_s", sum),
             ("a", "main", "cwnd_bytes", median)]  # fmt: skip
    lines = [stored(store, *plot[1:]) for plot in plots]

    async def script(pilot):
        charts = pilot.app.page.query_one(ChartView)
        for column in range(13):
            found = READING.findall(await point(pilot, column))
            assert [one[:2] for one in found] == [plot[:2] for plot in plots]
            for (_, _, value, end), samples, plot in zip(found, lines, plots, strict=True):
                nearest = min(abs(end_s - charts.cross_s) for end_s in samples)
                assert abs(float(end) - charts.cross_s) == pytest.approx(nearest)
                assert value == format_value(plot[2], samples[float(end)])

    drive(store, open_live(store, 1, Clock(live.now)), script, clock=Clock(live.now),
          size=(120, 40))  # fmt: skip


@pytest.mark.parametrize("glyphs", SETS.values(), ids=SETS)
@settings(max_examples=30)
@given(width=st.integers(20, 200), height=st.integers(3, 40), share=st.floats(-0.1, 1.1))
def test_plots_of_any_size_keep_it_with_the_crosshair_anywhere(glyphs, width, height, share):
    traces, choice = traces_of(FLOWS), Choice(glyphs=glyphs)
    lines = compose(traces, choice, VIEW, width, height)
    charts = charts_of(traces, choice, VIEW, width, height, {})
    where = plot_frames(charts, VIEW, width, glyphs)
    if where is not None:
        with_it = crossed(lines, where, share * 10.0)
        assert [width_of(to_text([line])) for line in with_it] == [
            width_of(to_text([line])) for line in lines
        ]


def read(traces, time_s, choice=Choice(), width=110, height=20, view=VIEW):  # noqa: B008
    """Return the plots as text, with a crosshair."""
    lines = compose(traces, choice, view, width, height)
    charts = charts_of(traces, choice, view, width, height, {})
    return to_text(crossed(lines, plot_frames(charts, view, width, choice.glyphs), time_s))


def test_where_samples_are_missing_it_says_so():
    holed = steady("rtt_s", lambda n, _: math.nan if 10 <= n < 30 else 0.02, 0.25)
    assert "a main 20.0 ms at 2.5 s" in read(holed, 2.45)
    assert NO_SAMPLE in read(holed, 5.0)
    assert NO_SAMPLE not in read(holed, 8.0)


def test_of_many_samples_in_a_column_the_range_is_told():
    spiky = steady("rtt_s", lambda n, _: 0.09 if n == 200 else 0.02, 0.025)
    assert "a main 20.0 ms 20.0 … 90.0 ms at 5.05 s" in read(spiky, 5.06)
    assert "a main 90.0 ms 20.0 … 90.0 ms at 5.025 s" in read(spiky, 5.03)
    assert "…" not in read(spiky, 2.0)


def test_a_logarithmic_plot_reads_the_values_themselves():
    growing = steady("rtt_s", lambda n, _: 0.001 * 2**n, 1.0)
    assert "a main 64.0 ms at 7 s" in read(growing, 7.0, Choice(log=True))


def test_what_has_no_room_is_counted_and_nothing_is_cut():
    traces = traces_of(FLOWS[:4], ("throughput_bps",), streams=8)
    every = Choice(picked=frozenset((flow, stream) for flow in FLOWS[:4] for stream in range(8)))
    text = read(traces, 5.0, every, width=80, height=10)
    told = re.findall(r"\b([a-d]\d) +\d+\.\d+ Mbit/s", text)
    (more,) = re.findall(r"\+(\d+) more", text)
    assert len(told) + int(more) == 32
    wide = read(traces, 2.0, every, width=190, height=20)
    assert len(re.findall(r"\b[a-d]\d h\d+-h\d+ +\d+\.\d+ Mbit/s at 5 s", wide)) == 32


def test_names_of_wide_characters_keep_columns_in_line():
    traces = traces_of(("東京-大阪", "b"), ("throughput_bps",), among=("東京-大阪", "b"))
    lines = read(traces, 3.0).splitlines()
    assert len({width_of(line) for line in lines}) == 1
    assert len({line.index("Mbit/s at 5 s") for line in lines if " at 5 s" in line}) == 2
    assert len({width_of(line.partition(" at 5 s")[0]) for line in lines if " at 5 s" in line}) == 1


def test_keys_move_it_from_sample_to_sample_and_escape_takes_it_away(store):
    whole_run(store)

    async def script(pilot):
        before = shown(pilot)
        assert "← → Seek" in before
        ends = []
        for keys in (["T"], ["left"], ["left"], ["right"]):
            ((_, _, _, end),) = READING.findall(await press(pilot, *keys))
            ends.append(float(end))
        assert ends == [16.0, 15.5, 15.0, 15.5]
        assert "← → Move" in shown(pilot)
        await press(pilot, "y", *"crosshair", "enter")
        copied = [row.split("\t") for row in pilot.app.clipboard.splitlines()]
        assert copied == [["throughput", *READING.findall(shown(pilot))[0][:3], "", "at 15.5 s"]]
        assert "100.0/152.0 s" in shown(pilot)
        assert not READING.findall(await press(pilot, "escape"))
        assert "105.0/152.0 s" in await press(pilot, "right")
        await press(pilot, "T")
        assert "no samples to read" in notices(pilot)
        assert "95.0/152.0 s" in await press(pilot, "left", "left")
        assert READING.findall(await press(pilot, "T"))
        assert not READING.findall(await press(pilot, "T"))

    clock = Clock()
    drive(store, open_replay(store, 1, clock, 100.0), script, clock=clock)


def test_a_click_puts_it_there_and_a_mouse_that_leaves_takes_only_its_own_away(store):
    whole_run(store)

    async def script(pilot):
        assert "b ping" in await point(pilot, 20)
        assert READING.findall(shown(pilot))
        await pilot.hover("TitleBar")
        await waited(pilot)
        assert not READING.findall(shown(pilot))
        charts = pilot.app.page.query_one(ChartView)
        await pilot.click(charts, offset=(30, 3))
        placed = READING.findall(shown(pilot))
        await pilot.hover("TitleBar")
        await waited(pilot)
        assert READING.findall(await point(pilot, 3)) == placed
        assert READING.findall(await press(pilot, "left")) != placed

    clock = Clock()
    page = open_replay(store, 1, clock, 100.0)
    drive(store, page, script, clock=clock, size=(120, 40))


def test_over_a_frozen_screen_it_reads_the_frozen_figures(store, live):
    clock = Clock(live.now)

    async def script(pilot):
        await press(pilot, "space")
        await point(pilot, 10)
        before = READING.findall(shown(pilot))
        live.measure(14.0)
        clock.time = live.now
        await settle(pilot)
        assert READING.findall(await point(pilot, 10)) == before
        assert NO_SAMPLE in await point(pilot, 40)
        await press(pilot, "space")
        assert READING.findall(await point(pilot, 40))

    drive(store, open_live(store, 1, clock), script, clock=clock, size=(120, 40))


def test_many_moves_of_the_mouse_are_one_picture(store, monkeypatch):
    whole_run(store)
    drawn = []
    whole = []

    def counted(lines, where, time_s):
        drawn.append(time_s)
        return crossed(lines, where, time_s)

    def composed(*arguments):
        whole.append(arguments)
        return compose(*arguments)

    async def script(pilot):
        charts = pilot.app.page.query_one(ChartView)
        monkeypatch.setattr(chartview, "crossed", counted)
        monkeypatch.setattr(chartview, "compose", composed)
        times = [0.25 * n for n in range(1, 40)]
        for time_s in times:
            charts._point(time_s)
        await waited(pilot)
        assert drawn == times[-1:]
        assert whole == []

    clock = Clock()
    drive(store, open_replay(store, 1, clock, 100.0), script, clock=clock)


def test_the_wheel_zooms_where_the_mouse_is_and_goes_through_time_sideways(store):
    whole_run(store)

    async def script(pilot):
        charts = pilot.app.page.query_one(ChartView)
        await press(pilot, "space")
        await point(pilot, 12)
        before_s = charts.cross_s
        await point(pilot, 12, kind=events.MouseScrollUp)
        assert charts.view.to_s - charts.view.from_s == pytest.approx(10.0)
        await point(pilot, 12)
        assert charts.cross_s == pytest.approx(before_s, abs=0.2)  # a column
        await point(pilot, 12, kind=events.MouseScrollDown)
        assert (charts.view.from_s, charts.view.to_s) == (0.0, 20.0)
        await point(pilot, -5, kind=events.MouseScrollUp)
        assert pilot.app.page._choice.bounds.keys() == {"throughput_bps"}
        assert "105.0/152.0" in await point(pilot, 12, kind=events.MouseScrollDown, shift=True)
        assert "100.0/152.0" in await point(pilot, 12, kind=events.MouseScrollLeft)
        assert "105.0/152.0" in await point(pilot, 12, kind=events.MouseScrollRight)

    clock = Clock()
    drive(store, open_replay(store, 1, clock, 100.0), script, clock=clock)
