"""Every key and behaviour of the history, the summary and the comparison."""

import re
import subprocess
import sys
import threading
from contextlib import closing

import pytest
import waiting
from tui.driving import (
    Clock,
    drive,
    notices,
    open_page,
    own_ids,
    press,
    screen_shown,
    settle,
    shown,
    until,
)
from tui.made_runs import BEGIN, MadeRun, whole_run

from benchctl.store.locks import Liveness
from benchctl.store.read import Reader
from benchctl.tui.screens.compare import CompareScreen
from benchctl.tui.screens.history import HistoryScreen
from benchctl.tui.screens.live import LiveScreen
from benchctl.tui.screens.summary import SummaryScreen


def page_is(pilot, kind):
    return isinstance(pilot.app.screen, kind)


# --- history -----------------------------------------------------------------------------


def test_every_key_of_the_history_does_what_it_says(three):
    tried = set()

    async def script(pilot):
        async def tell(binding, *keys):
            tried.add(binding)
            return await press(pilot, *keys)

        assert "3 runs" in shown(pilot)
        assert "▲3  ?1" in shown(pilot)  # fewer than two repeats of one point ended well
        assert "throughput of main at 4 points" in shown(pilot)
        await tell("app.filter", "slash")
        assert "1 of 3 runs" in await press(pilot, *"other")
        assert "1 of 3 runs" in await press(pilot, "enter")
        assert "3 runs" in await press(pilot, "slash", "escape")
        await press(pilot, "home")
        assert "1 marked" in await tell("history.mark", "x")
        assert "marked" not in await press(pilot, "up", "x")
        await press(pilot, "home", "down", "x")
        await tell("history.tag", "t")
        assert "kitchen]" in await press(pilot, "comma", *"kitchen", "enter")
        await press(pilot, "home", "down")
        chosen = [line for line in (await tell("history.baseline", "b")).splitlines()
                  if " baseline" in line and "9bd2" in line]  # fmt: skip
        assert ["9bd2" in line for line in chosen] == [True]
        await press(pilot, "b", "home", "down", "x")
        assert "Delete" in await tell("history.delete", "d")
        await press(pilot, "n", "home")
        assert "3 runs" in shown(pilot)
        assert "2 runs" in await press(pilot, "d", "y")
        assert "11aa" not in shown(pilot)
        assert "11aa" in await tell("history.undelete", "U")
        assert "3 runs" in await press(pilot, "enter")
        assert "2 runs" in await press(pilot, "home", "down", "d", "y")
        assert "Summary" in await tell("history.summary", "u")
        await press(pilot, "4", "home", "x", "x")
        await tell("history.compare", "c")
        assert page_is(pilot, CompareScreen)
        await press(pilot, "4", "home", "enter")
        assert "Replay" in shown(pilot)
        assert tried == own_ids(HistoryScreen)

    drive(three, open_page(three, "history"), script, size=(120, 24))
    reader = Reader(three)
    assert len(reader.runs()) == 2
    reader.close()


def test_a_comparison_needs_two_marked_runs_or_one_and_the_cursor(three):
    async def script(pilot):
        await press(pilot, "c")
        assert "mark two or more runs" in notices(pilot)
        await press(pilot, "end", "x", "home", "c")
        assert page_is(pilot, CompareScreen)
        assert shown(pilot).splitlines()[1].startswith(" A 20261121-002512-7f3a")
        assert shown(pilot).splitlines()[2].startswith(" B 20261121-022512-11aa")

    drive(three, open_page(three, "history"), script)


def test_a_run_that_is_measured_now_is_watched_and_not_deleted(store, monkeypatch):
    monkeypatch.setattr(Liveness, "is_alive", lambda self, run_id: True)
    made = MadeRun(store)
    made.begin()

    async def script(pilot):
        assert "▶ running" in shown(pilot)
        await press(pilot, "d")
        assert "in progress" in notices(pilot)
        assert "1 run in" in shown(pilot)
        await press(pilot, "enter")
        assert page_is(pilot, LiveScreen)
        assert screen_shown(pilot) == "Live"

    drive(store, open_page(store, "history"), script, clock=Clock(made.now))
    made.close()


def test_the_history_grows_while_it_is_seen(three):
    async def script(pilot):
        whole_run(three, name="newest", begin=BEGIN + 9000)
        assert "newest" in (await press(pilot, "right"))
        assert "4 runs" in shown(pilot)

    drive(three, open_page(three, "history"), script)


def test_without_a_store_the_history_says_so_and_begins_with_the_first_run(store):
    async def script(pilot):
        assert "there are no runs yet" in shown(pilot)
        whole_run(store)
        await settle(pilot)
        assert "1 run in" in shown(pilot)

    drive(store, open_page(store, "history"), script)


# --- summary -----------------------------------------------------------------------------


def test_every_key_of_the_summary_does_what_it_says(three):
    tried = set()

    async def script(pilot):
        async def tell(binding, *keys):
            tried.add(binding)
            return await press(pilot, *keys)

        first = shown(pilot)
        assert "throughput of a main (send), Mbit/s" in first
        assert re.search("▇ +357 ", first)
        assert "Throughput: from 5.22 Mbit/s" in first  # the answer in words
        assert "8/8 trials, 1 failed" in first
        assert "✗ failed" in first
        assert "RTT of b ping" in await tell("summary.metric", "m", *"rtt", "enter")
        assert await press(pilot, "m", *"throughput", "enter") == first
        assert "  streams ↓  server →" in first
        assert "  server ↓  streams →" in await tell("summary.columns", "C")
        assert "  server, streams ↓" in await press(pilot, "C")
        assert "  streams, server ↓" in await tell("summary.rows", "R")
        assert "hostname = probe-1" in await tell("summary.facts", "F")
        await press(pilot, "escape")
        first_again = shown(pilot)
        limits = await tell("summary.list", "l")
        assert re.search("direction +limited by +why", limits)
        results = await press(pilot, "l")
        assert re.search("flow +direction +n +throughput", results)  # as benchctl show has it
        assert await press(pilot, "l") == first_again
        await tell("summary.focus", "tab")
        assert pilot.app.page.table.title == "RTT of b ping (round-trip), ms"
        await tell("summary.focus_back", "shift+tab")
        assert pilot.app.page.table.title == "throughput of a main (send), Mbit/s"
        await tell("summary.packets", "P")
        await until(pilot, lambda: "no packets of it were recorded" in shown(pilot))
        await press(pilot, "escape")
        await tell("summary.compare", "c")
        assert "mark two or more runs" in notices(pilot)
        await tell("summary.history", "h")
        assert page_is(pilot, HistoryScreen)
        await press(pilot, "3")
        assert "Replay" in await tell("summary.replay", "v")
        assert tried == own_ids(SummaryScreen)

    drive(three, open_page(three, "summary", 1), script)


def test_the_summary_grows_while_the_run_goes_on(store, monkeypatch):
    monkeypatch.setattr(Liveness, "is_alive", lambda self, run_id: True)
    made = MadeRun(store)
    made.begin()

    async def script(pilot):
        assert shown(pilot).count("nothing was measured yet") == 1
        made.begin_trial()
        made.measure(20.0)
        made.end_trial()
        await settle(pilot)
        assert "1/8 trials" in shown(pilot)
        assert "Mbit/s" in shown(pilot)
        await press(pilot, "v")
        assert screen_shown(pilot) == "Live"

    drive(store, open_page(store, "summary", 1), script)
    made.close()


# --- compare -----------------------------------------------------------------------------


@pytest.fixture
def repeated(tmp_path):
    """Three runs with repeats enough for verdicts: two that differ, and one that was stopped."""
    path = tmp_path / "repeated.sqlite"
    whole_run(path, repeats=4)
    later = {"factor": 1.12, "begin": BEGIN + 3600}
    whole_run(path, name="20261121-012512-9bd2", seed=8, repeats=4, **later)
    whole_run(path, name="20261121-022512-11aa", seed=9, repeats=4, begin=BEGIN + 7200)
    return path


def test_two_runs_have_no_next_one(repeated):
    async def script(pilot):
        assert "] Next" not in shown(pilot)
        assert "[ ]" not in await press(pilot, "question_mark")

    drive(repeated, open_page(repeated, "compare", 1, 2), script, size=(120, 40))


def test_every_key_of_the_comparison_does_what_it_says(repeated):
    tried = set()

    async def script(pilot):
        async def tell(binding, *keys):
            tried.add(binding)
            return await press(pilot, *keys)

        assert "▲ better" in shown(pilot)
        assert "4 better, 12 no difference seen" in shown(pilot)
        assert "4 of 16 figures" in await tell("compare.only", "o")
        assert "16 figures" in await press(pilot, "o")
        assert "16 figures" in await tell("compare.all", "A")
        assert "B 20261121-022512-11aa" in await tell("compare.next", "right_square_bracket")
        assert " ] Next " in shown(pilot)
        await tell("compare.before", "left_square_bracket")
        assert "▼ worse" in await tell("compare.swap", "w")
        await press(pilot, "home")
        assert "throughput of main at server=paris, streams=1: -11.1 Mbit/s" in shown(pilot)
        assert "16 figures by effect" in await tell("compare.effect", "E")
        effects = [abs(one.effect) for one in pilot.app.page._shown if one.effect is not None]
        assert effects == sorted(effects, reverse=True)
        assert pilot.app.page.command().endswith(" --sort effect")
        await press(pilot, "E")
        assert "◆" in shown(pilot)
        await tell("compare.summary", "u")
        assert page_is(pilot, SummaryScreen)
        await press(pilot, "5")
        await tell("compare.history", "h")
        assert page_is(pilot, HistoryScreen)
        assert tried == own_ids(CompareScreen)

    drive(repeated, open_page(repeated, "compare", 1, 2, 3), script, size=(100, 30))


def test_what_was_read_too_late_is_not_shown(repeated, monkeypatch):
    goes_on, read = threading.Event(), CompareScreen.read
    began, answered = [], []

    def late(page, reader):
        show = read(page, reader)
        began.append(page)
        if len(began) == 1:
            assert goes_on.wait(waiting.DEADLINE_S)
        return show

    async def script(pilot):
        answer = pilot.app.call_from_thread

        def note(*what):
            answer(*what)
            answered.append(what)

        monkeypatch.setattr(CompareScreen, "read", late)
        monkeypatch.setattr(pilot.app, "call_from_thread", note)
        before = shown(pilot)
        for times in (1, 2):
            await pilot.press("w")
            await until(pilot, lambda times=times: len(began) == times)
        await settle(pilot)
        goes_on.set()
        await until(pilot, lambda: len(answered) == 2)
        assert await press(pilot) == before

    drive(repeated, open_page(repeated, "compare", 1, 2), script)


def test_a_comparison_without_a_difference_says_so_where_only_differences_are_shown(three):
    async def script(pilot):
        text = await press(pilot, "o")
        assert "0 of 16 figures" in text
        assert "no figure differs" in text
        assert "16 figures" in await press(pilot, "o")

    drive(three, open_page(three, "compare", 1, 1), script)


def test_what_differs_and_what_the_verdicts_hold_for_stand_beside_the_table(repeated):
    whole_run(repeated, name="20261121-052512-77aa", seed=4, begin=BEGIN + 9000, profile="wifi",
              parameters=[("window", "256K")])  # fmt: skip

    async def script(pilot):
        lines = shown(pilot).splitlines()
        profiles = next(line for line in lines if line.startswith(" profile "))
        assert profiles.split()[1:3] == ["tour", "wifi"]
        assert lines.index(profiles) < next(n for n, x in enumerate(lines) if " 95 % " in x)
        assert "any false verdict among 12 figures" in shown(pilot)
        # The command says the same by the same functions.
        run = [line.strip() for line in command_lines(repeated, 1, 4)]
        assert profiles.strip() in run

    drive(repeated, open_page(repeated, "compare", 1, 4), script, size=(160, 50))


def command_lines(store, *ids):
    with closing(Reader(store)) as reader:
        names = [reader.run(run_id).name for run_id in ids]
    command = [sys.executable, "-m", "benchctl", "compare", *names, "--store", str(store)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_the_comparison_grows_while_its_run_goes_on(three, monkeypatch):
    monkeypatch.setattr(Liveness, "is_alive", lambda self, run_id: True)
    made = MadeRun(three, name="20261121-030000-22bb")
    made.begin()
    both = re.compile(r"throughput +[0-9.]+ Mbit/s +[0-9.]+ Mbit/s")

    async def script(pilot):
        assert not both.search(shown(pilot))
        made.begin_trial()
        made.measure(20.0)
        made.end_trial()
        await settle(pilot)
        assert both.search(shown(pilot))

    drive(three, open_page(three, "compare", 1, made.id), script)
    made.close()


def test_the_comparison_draws_its_differences_where_there_is_room(repeated):
    async def script(pilot):
        roomy = shown(pilot)
        assert "paris 1 main throughput " in roomy
        assert "+12.2 % better" in roomy
        await pilot.resize_terminal(120, 30)
        await until(pilot, lambda: "paris 1 main throughput " not in shown(pilot))

    drive(repeated, open_page(repeated, "compare", 1, 2), script, size=(120, 60))
