"""CDF and histogram of a trial's samples, as the live screen draws them."""

import re

import numpy as np
import pytest
from msgspec.structs import replace
from tui.draw.test_charts import FLOWS, traces_of
from tui.driving import Clock, drive, open_live, open_replay, press, shown, until
from tui.made_runs import whole_run

from benchctl.analysis.flow.counted import ValueHistogram
from benchctl.report.figures.figure import PictureKind
from benchctl.report.lines.spans import to_text
from benchctl.report.timeline.traces import ALL
from benchctl.tui.draw.plot.charts import no_samples, spread_metrics
from benchctl.tui.draw.plot.choice import Choice
from benchctl.tui.draw.plot.shares import draw_shares, rescaled_shares
from benchctl.tui.draw.text.glyphs import ASCII
from benchctl.tui.draw.text.percentiles import HEADS

CDF = Choice(shape=PictureKind.CDF)
HISTOGRAM = Choice(shape=PictureKind.HISTOGRAM)


def delays(count=2000, seed=7, base_s=0.02):
    return base_s + np.random.default_rng(seed).exponential(5e-3, count)


def samples_of(traces, **options):
    """Return what gives each line delays of its own."""
    told = {}
    for metric in traces.metrics():
        for number, key in enumerate(traces.keys(metric)):
            told[key] = ValueHistogram(**options)
            told[key].extend(delays(seed=number, base_s=0.02 * (number + 1)))
    return told.get


def count_in(text):
    """Return how many samples a CDF on the screen is of."""
    return int(re.search(r"CDF of ([\d,]+) samples", text)[1])


def drawn(traces, choice, width=100, height=30, **options):
    return to_text(draw_shares(traces, choice, samples_of(traces, **options), width, height))


@pytest.mark.parametrize("choice", [CDF, HISTOGRAM], ids=["cdf", "histogram"])
@pytest.mark.parametrize(("width", "height"), [(78, 11), (64, 28), (130, 50)])
def test_a_distribution_looks_like_this(golden, choice, width, height):
    text = drawn(traces_of(FLOWS[:3], ("rtt_s",)), choice, width, height)
    assert max(map(len, text.splitlines())) <= width
    assert len(text.splitlines()) <= height
    golden(f"tui/golden/{choice.shape}-{width}x{height}.txt", text + "\n")


def test_the_figures_below_are_those_of_numpy():
    text = drawn(traces_of(FLOWS[:1], ("rtt_s",)), CDF)
    head, row = text.splitlines()[-2:]
    assert head.split() == list(HEADS)
    values = delays(seed=0)
    wanted = [values.mean(), *np.percentile(values, [50, 95, 99]), values.min(), values.max()]
    told = [float(number) / 1e3 for number in re.findall(r"([\d.]+) ms", row)]
    assert told == pytest.approx(wanted, rel=2e-3)
    assert row.split()[-1] == "2,000"


def test_a_cdf_rises_from_the_least_to_the_greatest_value():
    text = drawn(traces_of(FLOWS[:1], ("rtt_s",)), replace(CDF, glyphs=ASCII))
    plot = [line[9:] for line in text.splitlines()[1:] if "|" in line[:10] or "+" in line[:9]]
    starts = [len(row) - len(row.lstrip()) for row in plot if row.strip()]
    assert starts == sorted(starts, reverse=True)


def test_hidden_lines_are_not_drawn_and_not_counted():
    traces = traces_of(FLOWS[:2], ("rtt_s",))
    text = drawn(traces, replace(CDF, picked=frozenset({(FLOWS[1], ALL)})))
    assert "CDF of 2,000 samples" in text
    assert FLOWS[0] not in text
    assert FLOWS[1] in text


def test_lines_of_streams_have_the_mark_of_their_flow_and_their_number():
    traces = traces_of(FLOWS[:1], ("rtt_s",), streams=3)
    picked = frozenset((FLOWS[0], stream) for stream in range(3))
    text = drawn(traces, replace(CDF, picked=picked))
    assert all(re.search(rf"a{stream}\b", text) for stream in range(3))


def test_rounded_samples_say_so():
    text = drawn(traces_of(FLOWS[:1], ("rtt_s",)), CDF, most=100)
    assert "within 0.05 %" in text


def test_values_are_zoomed_and_moved_and_shown_whole_again():
    traces = traces_of(FLOWS[:1], ("rtt_s",))
    of = samples_of(traces)

    def change(choice, how, steps):
        return rescaled_shares(traces, choice, of, 100, how, steps)

    nearer = change(CDF, "zoom", 1)
    (low, high) = nearer.bounds["rtt_s"]
    values = delays(seed=0)
    assert values.min() < low < high < values.max()
    assert change(nearer, "pan", 1).bounds["rtt_s"][0] > low
    assert change(nearer, "zoom", -2).bounds == {}
    text = to_text(draw_shares(traces, nearer, of, 100, 30))
    assert text != drawn(traces, CDF)
    assert max(map(len, text.splitlines())) <= 100


def test_a_logarithmic_axis_is_one_of_values():
    text = drawn(traces_of(FLOWS[:2], ("rtt_s",)), replace(CDF, log=True))
    assert "(log)" in text


def test_without_samples_it_says_so():
    traces = traces_of(FLOWS[:1], ("rtt_s",))
    assert "no samples yet" in to_text(draw_shares(traces, CDF, no_samples, 78, 11))


def test_samples_are_wanted_of_what_is_shown_alone():
    traces = traces_of(FLOWS[:2])
    assert spread_metrics(traces, Choice(), 30) == {"rtt_s"}
    assert spread_metrics(traces, Choice(), 8) == frozenset()
    assert spread_metrics(traces_of(FLOWS), Choice(), 30) == frozenset()
    assert spread_metrics(traces_of(FLOWS), CDF, 30) == {"throughput_bps"}


def test_the_distribution_of_a_replay_grows_to_the_moment_and_shrinks_again(store):
    whole_run(store)
    told = []

    async def script(pilot):
        await press(pilot, "space", "m", *"probe", "enter", "D")
        for key in ("right", "right", "left"):
            await press(pilot, key)
            told.append(count_in(shown(pilot)))

    drive(store, open_replay(store, 1, Clock(), 5.0), script, size=(120, 40))
    assert told[0] < told[1] > told[2] == told[0]


def test_new_samples_are_drawn_while_the_run_goes_on(live, store):
    clock = Clock(live.now)

    async def script(pilot):
        await press(pilot, "m", *"probe", "enter", "D")
        before = count_in(shown(pilot))
        live.measure(10.0)
        clock.time = live.now
        await until(pilot, lambda: count_in(shown(pilot)) >= before + 15)

    drive(store, open_live(store, live.id, clock), script, size=(120, 40), clock=clock)


@pytest.mark.parametrize("size", [(20, 5), (40, 12), (80, 24), (200, 60)])
def test_it_fits_every_terminal(store, size):
    whole_run(store)

    async def script(pilot):
        for key in ("D", "p", "D", "D"):
            text = await press(pilot, key)
            assert max(map(len, text.splitlines())) <= size[0]

    drive(store, open_replay(store, 1, Clock(), 30.0), script, size=size)
