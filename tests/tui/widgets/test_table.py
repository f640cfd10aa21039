"""Lists that are wider than the screen scroll sideways, and no figure is cut at any size."""

import re

import pytest
from textual import events
from tui.driving import Clock, drive, open_page, open_replay, press, settle, shown
from tui.made_runs import BEGIN, MadeRun, whole_run

from benchctl.run.record import Figure
from benchctl.tui.widgets.table import Table

NAMES = [f"h{n}-h{n + 4}" for n in range(1, 9)]
# Widths at which columns end, are cut, or are missing.
SIZES = [(60, 20), (80, 24), (97, 24), (100, 33), (120, 40), (161, 50)]
FIGURE = re.compile(r"(?<![\w.])[-+]?\d[\d.]* (?:[kMGT]?bit/s|[mu]s|%)(?: ±\d[\d.]*)?(?![\w.])")


@pytest.fixture
def eight(store):
    """Make a run of eight flows of simpleperf, four trials, all of them ended."""
    made = MadeRun(store, repeats=1)
    made.begin()
    for number in range(4):
        made.begin_trial()
        for place, name in enumerate(NAMES):
            flow = made.flows[name] = made.begin_flow(name, "iperf3", "send", 5201 + place)
            figure = Figure(1e9 * (place + 1) + 1e7 * number, "tool")
            made.recorder.add_figures(flow, {("send", "throughput_bps"): figure})
        made.measure(4.0)
        made.rates = []
        made.end_trial()
    made.end()
    made.close()
    return store


def pages(store):
    return {
        "live": lambda: open_replay(store, 1, Clock(), 1000.0),
        "summary": lambda: open_page(store, "summary", 1),
        "compare": lambda: open_page(store, "compare", 1, 2),
        "history": lambda: open_page(store, "history"),
    }


@pytest.mark.parametrize("name", ["live", "summary", "compare", "history"])
def test_every_figure_on_a_screen_of_any_size_is_one_of_the_widest_screen(store, name):
    whole_run(store)
    whole_run(store, name="20261121-012512-9bd2", seed=8, factor=1.12, begin=BEGIN + 3600)

    async def script(pilot):
        known = set(FIGURE.findall(shown(pilot)))
        for size in SIZES:
            await pilot.resize_terminal(*size)
            await settle(pilot)
            for keys in ((), ("L",), ("L",), ("H", "H")):
                seen = set(FIGURE.findall(await press(pilot, *keys)))
                assert seen <= known, seen - known

    drive(store, pages(store)[name](), script, size=(300, 100), clock=Clock())


async def wheel(pilot, table, kind):
    """Turn the wheel over a list; returns how many columns are scrolled away then."""
    await pilot._post_mouse_events([kind], table, button=0)
    await settle(pilot)
    return table.first


@pytest.mark.parametrize("size", SIZES)
def test_all_eight_flows_of_a_trial_are_reached_by_keys_and_by_the_mouse(eight, size):
    reached = set()

    def look(pilot):
        text = shown(pilot)
        reached.update(n for n in range(1, 9) if re.search(rf" {n}\.00 Gbit/s", text))
        assert "paris" in text
        assert "rep" not in text or " 1 " in text

    async def script(pilot):
        look(pilot)
        table = pilot.app.screen.query_one("#trials", Table)
        for _ in range(9):
            await press(pilot, "L")
            look(pilot)
        assert reached == set(range(1, 9))
        for _ in range(9):
            await press(pilot, "H")
        assert table.first == 0
        assert await wheel(pilot, table, events.MouseScrollRight) == 1
        assert await wheel(pilot, table, events.MouseScrollLeft) == 0

    drive(eight, open_replay(eight, 1, Clock(), 1000.0), script, size=size, clock=Clock())
