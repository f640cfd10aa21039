"""Drives the screens without a terminal, with a clock of their own."""

import asyncio
import unicodedata
from pathlib import Path

import waiting
from textual.events import Key
from textual.keys import REPLACED_KEYS, _character_to_key, _get_unicode_name_from_key
from textual.pilot import Pilot
from tui.made_runs import BEGIN

from benchctl.tui.app import BenchApp
from benchctl.tui.pictures import text_of
from benchctl.tui.registry import SCREENS
from benchctl.tui.screens.base.page import AppContext
from benchctl.tui.screens.live import LiveScreen
from benchctl.tui.screens.plan import PlanScreen

# A layout follows from the one before; in a terminal of a few cells, without end.
MOST_DRAWN = 10


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self, time=BEGIN):
        self.time = time

    def __call__(self):
        return self.time


def key_event(key):
    """Return the event of a key, by its name or its character."""
    name = _character_to_key(key) if len(key) == 1 else key
    try:
        typed = unicodedata.lookup(_get_unicode_name_from_key(REPLACED_KEYS.get(name, name)))
    except KeyError:
        typed = key if len(key) == 1 else None
    return Key(name, typed)


async def rest(app):
    """Let everything happen that waits for no time, thread or file, and draw it.

    Textual's own pause ends after 20 ms without work, which pass as well while a busy machine does
    other things.
    """
    loop = asyncio.get_running_loop()
    for _ in range(MOST_DRAWN):
        await asyncio.sleep(0)
        while loop._ready:
            await asyncio.sleep(0)
        await app.animator.wait_until_complete()  # scrolling is one, of no duration
        changed = [one for one in app.screen_stack if one._update_timer._active.is_set()]
        if not changed:
            return
        for screen in changed:
            screen._on_timer_update()


class Hand(Pilot):
    """Keys and a mouse whose effect is waited for, however busy the machine."""

    async def pause(self, delay=None):
        await rest(self.app)

    async def press(self, *keys):
        for key in keys:
            self.app.post_message(key_event(key))
            await self.pause()


def open_plan(profile=None, store=Path("runs.sqlite")):
    return PlanScreen(AppContext(store, Clock()), profile)


def open_live(store, run_id, clock):
    return LiveScreen(AppContext(store, clock), run_id, live=True)


def open_replay(store, run_id, clock, at_s):
    return LiveScreen(AppContext(store, clock), run_id, live=False, at_s=at_s)


def open_page(store, name, *run_ids):
    """Open a screen as its key does."""
    return SCREENS[name].load()(AppContext(store, Clock()), *run_ids)


def drive(store, first, script, *, size=(80, 24), clock=None, **options):
    """Show a first page and run a script with the pilot once all of it was read."""

    async def go():
        app = BenchApp(AppContext(store, clock or Clock()), first, **options)
        app.NOTIFICATION_TIMEOUT = waiting.COMMAND_S
        async with app.run_test(size=size, notifications=True):
            pilot = Hand(app)
            await settle(pilot)
            await script(pilot)

    asyncio.run(go())


async def settle(pilot):
    """Let the keys take effect, and the page read all that there is, and show it."""
    await taken(pilot)
    page = pilot.app.page
    await until(pilot, lambda: page.settled)
    await pilot.pause()
    page.fit()
    await pilot.pause()


async def taken(pilot):
    """Let the keys take effect."""
    await pilot.pause()
    await waiting.until(lambda: not pilot.app.type_ahead.waits, lambda: "a key is in hand")
    await pilot.pause()


async def until(pilot, holds):
    """Let the page go on until something holds, and show what goes with it."""

    def held():
        pilot.app.page.tick()
        return holds()

    await waiting.until(held, lambda: f"shown is\n{shown(pilot)}")
    await pilot.pause()


async def press(pilot, *keys):
    """Press keys, each once the one before has taken effect; return what is shown then."""
    for key in keys:
        await pilot.press(key)
        await taken(pilot)
    await settle(pilot)
    return text_of(pilot.app)


async def double_click(pilot, where, offset):
    """Click twice on a widget, however long a busy machine takes between the two."""
    pilot.app.CLICK_CHAIN_TIME_THRESHOLD = waiting.DEADLINE_S
    await pilot.click(where, offset=offset, times=2)
    await settle(pilot)


def shown(pilot):
    """Return what is shown."""
    return text_of(pilot.app)


def styles_shown(pilot):
    """Return every style that something is shown in."""
    strips = pilot.app.screen._compositor.render_strips()
    return {segment.style for strip in strips for segment in strip if segment.style is not None}


def screen_shown(pilot):
    """Return the name of the screen, as the first line has it."""
    name = pilot.app.page.bar.screen_name
    assert f" {name}" in shown(pilot).splitlines()[0]
    return name


def notices(pilot):
    """Return what the program has told in passing, in one text."""
    return "\n".join(str(toast.render()) for toast in pilot.app.screen.query("Toast"))


def own_ids(owner):
    """Return the ids of a class's own bindings."""
    return {binding.id for binding in owner.BINDINGS}
