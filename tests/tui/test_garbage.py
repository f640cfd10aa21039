"""Garbage is collected while no key is pressed."""

import gc

import pytest
from textual._styles_cache import StylesCache
from tui.driving import Clock, drive, open_replay, press
from tui.made_runs import whole_run

from benchctl.tui import garbage
from benchctl.tui.garbage import LITTLE, MUCH, REST_S, Garbage
from benchctl.tui.screens.base.modals import Help


@pytest.fixture
def by_hand():
    """Let the screens collect, as the command does."""
    gc.disable()
    yield
    gc.enable()


def test_a_collection_waits_until_the_hands_rest():
    clock = Clock()
    collector = Garbage(clock)
    clock.time += REST_S
    assert collector.due(LITTLE + 1)
    collector.touch()
    assert not collector.due(LITTLE + 1)
    clock.time += 0.9 * REST_S
    assert not collector.due(LITTLE + 1)
    clock.time += 0.1 * REST_S
    assert collector.due(LITTLE + 1)
    assert not collector.due(LITTLE)


def test_a_stuck_key_does_not_fill_the_memory():
    collector = Garbage(Clock())
    assert not collector.due(MUCH)
    assert collector.due(MUCH + 1)


def test_every_key_postpones_the_collection(tmp_path, monkeypatch):
    store, touched = tmp_path / "runs.sqlite", []
    whole_run(store)
    monkeypatch.setattr(Garbage, "touch", lambda _: touched.append(1))

    async def script(pilot):
        for key in ("m", "left", "question_mark", "escape"):
            touched.clear()
            await press(pilot, key)
            assert touched, key

    drive(store, open_replay(store, 1, Clock(), 10.0), script)


def test_closed_windows_are_collected_whole(tmp_path, monkeypatch, by_hand):
    store = tmp_path / "runs.sqlite"
    whole_run(store)
    monkeypatch.setattr(garbage, "LITTLE", 0)
    monkeypatch.setattr(garbage, "REST_S", 0.0)

    def kept(kind):
        return sum(type(one) is kind for one in gc.get_objects())

    async def script(pilot):
        collector = pilot.app._garbage
        await press(pilot, "question_mark", "escape")
        collector.collect()
        caches = kept(StylesCache)
        for _ in range(3):
            await press(pilot, "question_mark", "escape")
        collector.collect()
        assert (kept(Help), kept(StylesCache)) == (0, caches)

    drive(store, open_replay(store, 1, Clock(), 10.0), script)
