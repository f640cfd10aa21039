"""Every key and behaviour of the live screen, live and in replay."""

import re
import time

import pytest
from tui.driving import (
    Clock,
    drive,
    notices,
    open_live,
    open_plan,
    open_replay,
    own_ids,
    press,
    settle,
    shown,
    until,
)
from tui.made_runs import BEGIN, MadeRun, whole_run

from benchctl.errors import StoreError
from benchctl.run.record import FlowEvent, Happening
from benchctl.store.locks import Liveness
from benchctl.store.read import Reader
from benchctl.tui.screens.live import LiveScreen
from benchctl.tui.screens.parts.reading import AFTER_KEY_S, BREATH_S, BUDGET_S
from benchctl.tui.timers import once
from benchctl.tui.widgets import chartview


def test_every_key_of_a_replay_does_what_it_says(store):
    whole_run(store)
    clock = Clock()
    tried = set()

    async def script(pilot):
        async def tell(binding, *keys):
            tried.add(binding)
            return await press(pilot, *keys)

        assert "▶ x1 30.0/152.0 s" in shown(pilot)
        assert "❚❚ paused x1" in await tell("live.freeze", "space")
        assert "35.0/152.0 s" in await tell("live.on", "right")
        assert "30.0/152.0 s" in await tell("live.back", "left")
        assert "60.0/152.0 s" in await tell("live.far_on", "shift+right")
        assert "30.0/152.0 s" in await tell("live.far_back", "shift+left")
        assert "x2" in await tell("live.faster", "greater_than_sign")
        assert "x1" in await tell("live.slower", "less_than_sign")
        assert "20 s" not in await tell("live.zoom_in", "plus")
        assert "20 s" in await tell("live.zoom_out", "minus")
        await press(pilot, "plus", "plus")
        assert "20 s" in await tell("live.zoom_all", "0")
        assert shown(pilot).splitlines()[3].startswith(" throughput")
        text = await tell("live.metric", "m", *"probe", "enter")
        assert text.splitlines()[3].startswith(" RTT")
        assert "RTT (log)" in await tell("live.log", "g")
        await press(pilot, "g")
        whole = shown(pilot)
        zoomed = await tell("live.values_in", "z")
        assert zoomed != whole
        assert "▲" in zoomed or "▼" in zoomed
        assert await tell("live.higher", "shift+up") != zoomed
        assert await tell("live.lower", "shift+down") == zoomed
        assert await tell("live.values_out", "Z") == whole
        await press(pilot, "z", "z", "plus")
        assert await press(pilot, "0") == whole
        assert await tell("live.smooth", "M") == whole  # samples of ping are too far apart
        await press(pilot, "g")
        assert "⣀" in shown(pilot) or "⠤" in shown(pilot) or "⠒" in shown(pilot)
        assert " at 9 s" in await tell("live.cross", "T")
        assert " at 8.5 s" in await tell("live.cross_back", "left")
        assert " at 9 s" in await tell("live.cross_on", "right")
        assert "at 9 s" not in await press(pilot, "escape")
        blocks = await tell("live.glyphs", "B")
        assert not any("⠀" < c <= "⣿" for c in blocks)
        assert "▀" in blocks or "▄" in blocks or "▗" in blocks
        halves = await press(pilot, "B")
        assert not any(c in "▖▗▘▝▙▚▛▜▞▟" for c in halves)
        assert "▀" in halves or "▄" in halves
        assert "│" not in (await press(pilot, "B")).splitlines()[5]
        assert "RTT, CDF of" in await tell("live.shape", "D")
        assert "RTT, histogram of" in await press(pilot, "D")
        assert "RTT  " in await press(pilot, "D")
        assert "▶ running  trial 3/8" in await tell("live.after", "right_square_bracket")
        assert "trial 2/8" in await tell("live.before", "left_square_bracket")
        assert "trial 2/8" in await tell("live.look", "v")
        assert re.search("flow +direction", await tell("live.list", "l"))
        assert "no remarks" in await press(pilot, "l")
        assert "● a main" in await press(pilot, "l")
        assert "rep       a main" in await press(pilot, "l")
        assert "● b ping" in await tell("live.pick", "p")
        for key, name in (("K", "Skip"), ("X", "Stop")):  # the run has ended
            assert name not in await press(pilot, key)
        assert "Measure the failed trials again?" in await press(pilot, "r")  # no other is left
        await press(pilot, "n")
        tried.update(("live.skip", "live.stop", "live.resume"))
        assert "hostname = probe-1" in await tell("live.facts", "F")
        await press(pilot, "escape")
        await tell("live.follow", "f")
        assert "A remark about this run" in await tell("live.remark", "n")
        await press(pilot, *"rain", "enter")
        await tell("live.packets", "P")
        await until(pilot, lambda: "no packets of it were recorded" in shown(pilot))
        await press(pilot, "escape")
        assert tried == own_ids(LiveScreen)

    drive(store, open_replay(store, 1, clock, 30.0), script, clock=clock)
    reader = Reader(store)
    assert [note.text for note in reader.notes(1)][-1] == "rain"
    reader.close()


def test_a_replay_goes_on_with_the_clock_and_from_trial_to_trial(store):
    whole_run(store)
    clock = Clock()

    async def script(pilot):
        assert "trial 1/8  ▶ x1 10.0/152.0 s" in shown(pilot)
        clock.time += 5
        await settle(pilot)
        assert "trial 1/8  ▶ x1 15.0/152.0 s" in shown(pilot)
        await press(pilot, *["full_stop"] * 6)
        clock.time += 1
        await settle(pilot)
        assert "trial 4/8  ▶ x64 79.0/152.0 s" in shown(pilot)
        clock.time += 60
        await settle(pilot)
        assert "■ end x64 152.0/152.0 s" in shown(pilot)
        assert "✗ failed" in shown(pilot).splitlines()[0]
        await press(pilot, "left")
        clock.time += 60
        pilot.app.page.tick()
        await pilot.pause()
        assert "■ end x64 152.0/152.0 s" in shown(pilot)

    drive(store, open_replay(store, 1, clock, 10.0), script, clock=clock)


@pytest.mark.parametrize(("budget_s", "breath_s"), [(BUDGET_S, BREATH_S), (0.0, 0.05)])
def test_a_live_run_is_shown_as_it_is_measured(store, live, monkeypatch, budget_s, breath_s):
    """Also where the machine is so busy that each part of what is new is read by itself."""
    monkeypatch.setattr("benchctl.tui.screens.parts.reading.BUDGET_S", budget_s)
    monkeypatch.setattr("benchctl.tui.screens.parts.reading.BREATH_S", breath_s)
    clock = Clock(live.now)

    async def script(pilot):
        assert "▶ running  trial 2/8" in shown(pilot)
        assert "elapsed" in shown(pilot)
        assert "0:26" in shown(pilot)
        assert "✓  1" in shown(pilot)
        live.measure(5.0)
        live.note("the tool says 90, its intervals give 80")
        clock.time = live.now
        await settle(pilot)
        assert "0:31" in shown(pilot)
        assert "! warning: the tool says 90" in shown(pilot)
        live.measure(10.0)
        live.end_trial()
        live.begin_trial()
        live.measure(1.0)
        clock.time = live.now
        await settle(pilot)
        assert "▶ running  trial 3/8" in shown(pilot)
        assert "✓  2" in shown(pilot)

    drive(store, open_live(store, 1, clock), script, clock=clock)


def locked(self):
    raise StoreError("store: database is locked", "wait")


# Each leads back to where it began.
LOOKS = (
    ("plus", "0"), ("g", "g"), ("B", "B", "B", "B"), ("l", "l", "l", "l"), ("p", "i", "i"),
    ("p", "o", "o"), ("p", "enter", "enter"), ("left", "right"), ("shift+left", "shift+right"),
)  # fmt: skip


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_every_figure_of_a_frozen_screen_stays_whatever_comes_and_whatever_is_looked_at(
    store, live, size
):
    clock = Clock(live.now)

    def tiles(pilot):
        return shown(pilot).splitlines()[2 : 3 if size[1] < 32 else 5]

    def figures(pilot):
        """Return the tiles, and the list that is shown."""
        lines = shown(pilot).splitlines()
        return tiles(pilot) + [line for line in lines if re.search("● [ab]|^ [✓▶·]", line)]

    async def script(pilot):
        await press(pilot, "p")
        frozen = await press(pilot, "space")
        assert "❚❚ FROZEN, data goes on" in frozen
        before = figures(pilot)
        live.measure(0.1, step=0.1)  # within the last pixel and the last bucket
        live.measure(30.0)  # beyond the planned time
        live.note("a truck passed")
        live.end_trial()
        live.begin_trial()
        live.measure(10.0)
        clock.time = live.now
        await settle(pilot)
        assert shown(pilot) == frozen
        for keys in LOOKS:
            for key in keys:
                await press(pilot, key)
                moved = "left" in key or "right" in key
                assert moved or tiles(pilot) == before[: len(tiles(pilot))], key
            await press(pilot, "p")
            assert figures(pilot) == before, keys
        assert "trial 3/8" in await press(pilot, "space")
        assert "FROZEN" not in shown(pilot)
        assert "a truck passed" in shown(pilot)
        assert figures(pilot) != before

    drive(store, open_live(store, 1, clock), script, size=size, clock=clock)


def test_a_frozen_screen_says_that_data_goes_on_only_where_it_does(store, live, monkeypatch):
    clock = Clock(live.now)

    async def script(pilot):
        assert "❚❚ FROZEN, data goes on" in await press(pilot, "space")
        live.end_trial()
        live.end("interrupted")
        monkeypatch.setattr(Liveness, "is_alive", lambda self, run_id: False)
        await settle(pilot)
        assert "❚❚ FROZEN, the run has ended" in shown(pilot)
        assert "FROZEN" not in await press(pilot, "space")
        assert "❚❚ 26.0/27.0 s" in await press(pilot, "space")

    drive(store, open_live(store, 1, clock), script, clock=clock)


@pytest.mark.parametrize(("how", "end"), [("ended", 27), ("died", 26)])
def test_the_time_keys_move_on_a_live_screen_whose_run_has_ended(
    store, live, monkeypatch, how, end
):
    clock = Clock(live.now)

    async def script(pilot):
        if how == "ended":
            live.end_trial("interrupted")
            live.end("interrupted")
        monkeypatch.setattr(Liveness, "is_alive", lambda self, run_id: False)
        monkeypatch.setattr("benchctl.tui.model.feed.LOOK_S", 0.0)  # a second has passed
        clock.time += 300
        await settle(pilot)
        rate = {}
        for key, place in (
            ("left", end - 5), ("left", end - 10), ("right", end - 5), ("right", end),
            ("right", end), ("shift+left", 0), ("shift+right", end),
        ):  # fmt: skip
            told = await press(pilot, key)
            assert re.search(rf"❚❚ {place}\.\d/{end}\.\d s", told), told
            rate[place] = told.splitlines()[2]
        assert len(set(rate.values())) == 4
        assert "FROZEN" not in told

    drive(store, open_live(store, 1, clock), script, clock=clock)


def test_going_back_freezes_a_live_screen(store, live):
    clock = Clock(live.now)

    async def script(pilot):
        assert "FROZEN" in await press(pilot, "left")
        assert "0:21" in shown(pilot)
        assert "trial 2/8" in shown(pilot)

    drive(store, open_live(store, 1, clock), script, clock=clock)


def test_another_trial_can_be_looked_at_while_the_run_goes_on(store, live):
    clock = Clock(live.now)

    async def script(pilot):
        await press(pilot, "up", "v")
        assert "looking at trial 1" in shown(pilot)
        live.measure(2.0)
        clock.time = live.now
        await settle(pilot)
        assert "looking at trial 1" in shown(pilot)
        assert "looking at" not in await press(pilot, "f")
        await press(pilot, "end", "v")
        assert "this trial has not begun yet" in notices(pilot)

    drive(store, open_live(store, 1, clock), script, clock=clock)


def test_a_locked_store_is_said_and_tried_again(store, live, monkeypatch):
    clock = Clock(live.now)

    async def script(pilot):
        monkeypatch.setattr(Reader, "changes", locked)
        pilot.app.page.tick()
        await pilot.pause()
        assert "! store: database is locked; trying again" in shown(pilot)
        monkeypatch.undo()
        monkeypatch.setattr(Liveness, "is_alive", lambda self, run_id: True)
        live.measure(1.0)
        clock.time = live.now
        await settle(pilot)
        assert "locked" not in shown(pilot)
        assert f" {sum(live.rates[-4:]) / 1e6:.0f} Mbit/s " in shown(pilot)

    drive(store, open_live(store, 1, clock), script, clock=clock)


def test_a_full_disk_refuses_a_remark_and_says_so(store, live, monkeypatch):
    def full(*_):
        raise StoreError("store: database or disk is full", "free some room")

    monkeypatch.setattr("benchctl.tui.screens.parts.steering.add_remark", full)

    async def script(pilot):
        await press(pilot, "n", *"x", "enter")
        assert "disk is full" in notices(pilot)

    drive(store, open_live(store, 1, Clock(live.now)), script, clock=Clock(live.now))


def test_a_metric_that_no_one_knows_has_a_plot_like_any_other(store, alive):
    made = MadeRun(store)
    made.begin()
    made.begin_trial()
    made.measure(10.0, extra=("frobs",))
    clock = Clock(made.now)

    async def script(pilot):
        await press(pilot, "m", *"frobs", "enter")
        assert shown(pilot).splitlines()[3].startswith(" frobs  a main 0.")
        await press(pilot, "question_mark")
        explained = str(pilot.app.screen.query("Static").last().content)
        assert "values beyond the axis" in explained
        assert "without a description" in await press(pilot, "end")

    drive(store, open_live(store, 1, clock), script, clock=clock)
    made.close()


def test_of_a_trial_without_samples_no_metric_can_be_picked_and_the_screen_says_so(store, alive):
    made = MadeRun(store)
    made.begin()
    made.begin_trial()
    clock = Clock(made.now)

    async def script(pilot):
        assert "First plot" not in await press(pilot, "m")
        assert "no samples to read yet" in notices(pilot)

    drive(store, open_live(store, 1, clock), script, clock=clock)
    made.close()


def test_what_happened_within_a_flow_is_marked_in_the_plot_once_its_trial_has_ended(store, alive):
    made = MadeRun(store)
    made.begin()
    made.begin_trial()
    made.measure(20.0)
    drop = FlowEvent("send", "throughput_bps", Happening.DROP, 12.0, None, 9e7, 4e7, 0.999)
    made.recorder.add_events(made.flows["main"], [drop])
    made.end_trial()
    made.end()
    made.close()

    async def script(pilot):
        assert "◆drop" not in shown(pilot)  # a replay at 11 s knows nothing of it yet
        assert "◆drop" in await press(pilot, "right")

    clock = Clock()
    drive(store, open_replay(store, 1, clock, 11.0), script, size=(120, 40), clock=clock)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_escape_goes_back_from_the_flows_to_the_list_before_and_then_leaves(store, size):
    whole_run(store)

    async def script(pilot):
        await press(pilot, "4", "enter", "v")
        live = pilot.app.screen
        before = live.focused
        await press(pilot, "p")
        assert live.focused.id == "flows" != before.id
        await press(pilot, "escape")
        assert pilot.app.screen is live
        assert live.focused is before
        await press(pilot, "escape")
        assert pilot.app.screen is not live

    drive(store, open_plan(store=store), script, size=size)


@pytest.mark.parametrize("size", [(20, 5), (10, 3), (1, 1), (300, 8), (30, 80)])
def test_any_size_of_terminal_is_survived(store, size):
    whole_run(store)
    clock = Clock()

    async def script(pilot):
        if size == (20, 5):
            assert "▶ running  trial 2/8" in shown(pilot)
            assert "throughput" in shown(pilot)
        await press(
            pilot,
            "l",
            "plus",
            "m",
            "escape",
            "question_mark",
            "escape",
            "n",
            "escape",
            "p",
            "escape",
        )

    drive(store, open_replay(store, 1, clock, 30.0), script, size=size, clock=clock)


def test_new_samples_are_drawn_soon_after_a_drawing_for_which_the_machine_stood_still(
    store, live, monkeypatch
):
    clock, drawn = Clock(live.now), []

    def stand_still(*_):
        drawn.append(time.sleep(0.15))
        return []

    async def script(pilot):
        monkeypatch.setattr(chartview, "compose", stand_still)
        await press(pilot, "g")
        before = len(drawn)
        live.measure(2.0)
        clock.time = live.now
        await until(pilot, lambda: len(drawn) > before)

    drive(store, open_live(store, 1, clock), script, clock=clock)


def test_one_tick_reads_for_a_limited_time_and_goes_on_by_itself(store, monkeypatch):
    whole_run(store)
    seen = []

    async def script(pilot):
        seen.append(shown(pilot))

    for _ in range(2):
        clock = Clock(BEGIN)
        drive(store, open_replay(store, 1, clock, 40.0), script, clock=clock)
        monkeypatch.setattr("benchctl.tui.screens.parts.reading.BUDGET_S", 0.0)
        monkeypatch.setattr("benchctl.store.bulk.BATCH", 10)
    assert "reading" not in seen[0]
    assert seen[1] == seen[0]


def test_reading_stands_back_for_a_key_and_goes_on_by_itself(store, monkeypatch):
    whole_run(store)
    pauses = []

    def note(page, delay_s, call):
        pauses.append(delay_s)
        return once(page, delay_s, call)

    monkeypatch.setattr("benchctl.tui.screens.parts.reading.once", note)
    monkeypatch.setattr("benchctl.tui.screens.parts.reading.BUDGET_S", 0.0)
    monkeypatch.setattr("benchctl.store.bulk.BATCH", 10)
    clock = Clock(BEGIN)

    async def script(pilot):
        pauses.clear()
        text = await press(pilot, "right_square_bracket", "space")
        assert AFTER_KEY_S in pauses
        assert "trial 3/8" in text
        assert "reading" not in text

    drive(store, open_replay(store, 1, clock, 40.0), script, clock=clock)


def test_the_time_keys_do_not_reach_through_a_window(store):
    whole_run(store)
    clock = Clock()

    async def script(pilot):
        await press(pilot, "space")
        for opener in ("n", "question_mark", "ctrl+p"):
            await pilot.press(opener, "left", "left", "right", "left")
            assert "30.0/152.0 s" in await press(pilot, "escape")

    drive(store, open_replay(store, 1, clock, 30.0), script, clock=clock)
