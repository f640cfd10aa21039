"""What is to be called after a while is called, however the clock jumps; a lost call is made up."""

import itertools
import time

import pytest
import textual.timer
from textual.app import App
from tui.driving import Clock, drive, open_plan, open_replay, shown, until
from tui.made_runs import BEGIN, whole_run

from benchctl.tui.screens.parts import reading
from benchctl.tui.timers import once


class JumpingClock:
    """The clock of Textual's timers; it jumps before each of its next ``jumps`` readings."""

    def __init__(self):
        self.jumps = self._ahead_s = 0

    def get_time(self):
        if self.jumps:
            self.jumps -= 1
            self._ahead_s += 0.02
        return time.monotonic() + self._ahead_s


@pytest.fixture
def clock(monkeypatch):
    made = JumpingClock()
    monkeypatch.setattr(textual.timer, "_time", made)
    return made


@pytest.mark.usefixtures("toy_profiles")
@pytest.mark.parametrize("start", [once, App.set_timer])
def test_a_call_is_made_although_its_time_passed_between_two_readings_of_the_clock(clock, start):
    async def script(pilot):
        calls = []
        start(pilot.app, 0.005, lambda: calls.append("made"))
        clock.jumps = 2
        once(pilot.app, 0.05, lambda: calls.append("after"))
        await until(pilot, lambda: "after" in calls)
        # Textual's own timer makes no call: when it does, ours is needless.
        assert calls == (["made", "after"] if start is once else ["after"])

    drive("runs.sqlite", open_plan(), script)


class Lost:
    """A timer that calls nothing."""

    def stop(self):
        pass


def test_a_history_is_read_on_where_every_timer_is_lost(store, monkeypatch):
    whole_run(store)
    monkeypatch.setattr("benchctl.store.bulk.BATCH", 10)
    seen = []

    async def script(pilot):
        seen.append(shown(pilot))

    for _ in range(2):
        clock = Clock(BEGIN)
        drive(store, open_replay(store, 1, clock, 40.0), script, clock=clock)
        monkeypatch.setattr(reading, "BUDGET_S", 0.0)
        monkeypatch.setattr(reading, "once", lambda *_: Lost())
        monkeypatch.setattr(reading, "monotonic", itertools.count(step=reading.LOST_S).__next__)
    assert "reading" not in seen[0]
    assert seen[1] == seen[0]
