"""The application: which screen is shown, its keys, its theme."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, ClassVar

from textual import constants, events
from textual.app import App
from textual.binding import Binding, BindingType
from textual.driver import Driver
from textual.filter import LineFilter
from textual.notifications import SeverityLevel
from textual.theme import Theme

from benchctl.errors import BenchctlError
from benchctl.hosts.log import command_log
from benchctl.store.read import Reader
from benchctl.tui.garbage import REST_S, Garbage
from benchctl.tui.registry import SCREENS
from benchctl.tui.screens.base.modals import Help
from benchctl.tui.screens.base.page import AppContext, Page
from benchctl.tui.tasks import by_task
from benchctl.tui.themes import DARK, OURS, PLAIN, variables
from benchctl.tui.timers import once
from benchctl.tui.typeahead import KeyQueue, Typed
from benchctl.tui.widgets.plainer import Plainer
from benchctl.visible import visible_lines

if TYPE_CHECKING:
    from textual.command import Provider

# Rich's name for terminals of 8 or 16 colours; it has none for monochrome ones.
FEW_COLOURS = ("standard", None)
# Until a message that has had its time is off the screen.
_GONE_S = 0.2
# They only hand on what a widget of the library then fails at.
_HAND_ON = {"benchctl.tui.app", "benchctl.tui.typeahead"}
# A library that fails again and again shows nothing of use.
MOST_FAULTS = 100


def _finder() -> type[Provider]:
    from benchctl.tui.palette import Finder

    return Finder


class BenchApp(App[None]):
    """The screens over one store; ``first`` is the first page."""

    TITLE = "benchctl"
    COMMANDS: ClassVar = {_finder}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,f1", "keys", "Keys", id="app.keys"),
        *(
            Binding(entry.key, f"show('{name}')", entry.title, show=False, id=f"app.{name}")
            for name, entry in SCREENS.items()
        ),
        Binding("y", "copy", "Copy", tooltip="Copy command, cell, row, table", show=False,
                id="app.copy"),
        Binding("s", "save", "Save", tooltip="Save a picture or the table", show=False,
                id="app.save"),
        Binding("escape", "leave", "Back to the screen before", show=False, id="app.back"),
        Binding("q,ctrl+c", "quit", "Quit; the run continues", show=False, id="app.quit"),
        Binding("ctrl+z", "suspend_process", "To the shell; fg returns", show=False,
                id="app.suspend"),
    ]  # fmt: skip

    def __init__(
        self, around: AppContext, first: Page, *, keys: Mapping[str, str] | None = None,
        theme: str | None = None, remember: Callable[[str], None] | None = None,
    ) -> None:  # fmt: skip
        """Show ``first``; a theme that is chosen is given to ``remember``, which raises OSError."""
        # Without this, Textual turns colours into greys, and the terminal's own into black.
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        # A key has its whole effect at once, and drawing takes no time between.
        self.animation_level = "none"
        self._around = around
        self._plainer = [Plainer(around.glyphs)] if around.glyphs.stands_for else []
        self._first = first
        self._remember = remember
        self._pages = {first.NAME: first}
        """The pages that are open, by name."""
        self._before: list[Page] = []
        """The pages that were shown before this one, the last one at the end."""
        self._looked_at = {0: (), 1: first.run_ids[:1], 2: first.run_ids}
        """The runs that were looked at last on screens that need none, one, or two of them."""
        self._garbage = Garbage()
        self._library_faults = 0
        self.type_ahead = KeyQueue(self, self._give, self._unready)
        for own in OURS:
            self.register_theme(own)
        few = self.no_color or self.console.color_system in FEW_COLOURS
        self.theme = theme or (PLAIN if few else DARK.name)
        self.set_keymap(keys or {})

    def get_driver_class(self) -> type[Driver]:
        from benchctl.tui.terminal import Terminal

        return super().get_driver_class() if constants.DRIVER else Terminal

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return variables(self.current_theme)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return what changes every line before it is drawn: also in characters that are there."""
        return [*super().get_line_filters(), *self._plainer]

    def on_mount(self) -> None:
        """Show the first page."""
        self._install(self._first)
        self.push_screen(self._first)
        self.set_interval(REST_S, self._garbage.collect)
        self.theme_changed_signal.subscribe(self, self._keep_theme)

    def _keep_theme(self, theme: Theme) -> None:
        if self._remember is None:
            return
        try:
            self._remember(theme.name)
        except (BenchctlError, OSError) as error:
            self.notify(f"the theme is not remembered: {error}", severity="warning")

    async def on_event(self, event: events.Event) -> None:
        """Take note of every key and every move of the mouse; keys take effect one by one."""
        if isinstance(event, events.InputEvent):
            self._garbage.touch()
        if isinstance(event, Typed) and not event.is_forwarded:
            await self.type_ahead.take(event)
        else:
            await self._give(event)

    async def _give(self, event: events.Event) -> None:
        try:
            await super().on_event(event)
        except Exception as error:
            if not self._outlives(error):
                raise

    def _handle_exception(self, error: Exception) -> None:
        """End the screens, unless a widget of a library failed: then what holds it is closed.

        Textual calls this, and has no other hook; a widget that failed takes no more messages.
        """
        if not self._outlives(error):
            super()._handle_exception(error)
        elif not isinstance(self.screen, Page):
            self.pop_screen()
        else:
            self.page.failed = True
            self.on_page_wanted(Page.Wanted(self.page.NAME, *self.page.run_ids))

    def _outlives(self, error: Exception) -> bool:
        """Report an error of a library's widget; returns whether it was one, and a rare one."""
        modules = {
            frame.f_globals.get("__name__", "")
            for frame, _ in traceback.walk_tb(error.__traceback__)
        }
        ours = {name for name in modules if name.startswith("benchctl.")} - _HAND_ON
        if ours or self._library_faults == MOST_FAULTS:
            return False
        self._library_faults += 1
        command_log().fault("tui", error)
        self.notify(f"this had no effect: Textual failed with {error!r}", severity="error")
        return True

    def notify(
        self, message: str, *, title: str = "", severity: SeverityLevel = "information",
        timeout: float | None = None, markup: bool = False,
    ) -> None:  # fmt: skip
        """Show a message for a while, never as markup, since it may quote anything."""
        text = visible_lines(message)
        super().notify(text, title=title, severity=severity, timeout=timeout, markup=False)
        # When messages that filled the screen have gone, Textual leaves their picture.
        shown_s = self.NOTIFICATION_TIMEOUT if timeout is None else timeout
        once(self, shown_s + _GONE_S, self.refresh)

    @property
    def page(self) -> Page:
        """The screen below any small window."""
        pages = (page for page in reversed(self.screen_stack) if isinstance(page, Page))
        return next(pages, self._first)

    def _unready(self) -> Page | None:
        return None if self.page.ready else self.page

    async def on_page_ready(self) -> None:
        """Go on with the keys behind the one that opened the page."""
        await self.type_ahead.go_on()

    # --- screens --------------------------------------------------------------------------

    def on_page_wanted(self, wanted: Page.Wanted) -> None:
        """Show the page of a name; a new one if the open page shows other runs."""
        page = before = self._pages.get(wanted.name)
        entry = SCREENS[wanted.name]
        try:
            if page is None or page.failed or not page.shows(wanted.run_ids):
                page = self._pages[wanted.name] = entry.load()(self._around, *wanted.run_ids)
                self._install(page)
        except BenchctlError as error:
            self.page.complain(error)
            return
        self._looked_at[entry.runs] = wanted.run_ids
        self._switch(page)
        if before is not None and before is not page:
            self.call_after_refresh(self._close, before)

    def _install(self, page: Page) -> None:
        """Keep a page while others are shown."""
        self.install_screen(page, str(id(page)))

    def _switch(self, page: Page) -> None:
        if page is not self.page:
            self._before = [other for other in self._before if other is not page] + [self.page]
            self.switch_screen(page)

    def action_leave(self) -> None:
        """Go back: on this screen, or to the one before."""
        if not self.page.back() and self._before:
            self.switch_screen(self._before.pop())

    async def _close(self, page: Page) -> None:
        self._before = [other for other in self._before if other is not page]
        self.uninstall_screen(page)
        await page.remove()

    def on_page_plan_wanted(self, wanted: Page.PlanWanted) -> None:
        """Show the plan of a profile, or of what is measured to a host."""
        from benchctl.tui.screens.plan import PlanScreen

        page = self._pages.get(PlanScreen.NAME)
        if isinstance(page, PlanScreen) and not page.failed:
            page.go_to(wanted.what)
        else:
            page = self._pages[PlanScreen.NAME] = PlanScreen(self._around, wanted.what)
            self._install(page)
        self._switch(page)

    def action_show(self, name: str) -> None:
        """Show a screen in its last state, with the last viewed runs, or the newest."""
        runs, page = SCREENS[name].runs, self._pages.get(name)
        run_ids = self._looked_at[runs]
        if runs == 1 and not run_ids:
            try:
                with closing(Reader(self._around.store)) as reader:
                    run_ids = (reader.find("last").id,)
            except BenchctlError as error:
                self.page.complain(error)
                return
        if len(run_ids) < runs:
            self.notify("mark two or more runs in the history (4), then press c to compare")
        elif page is not None and page.run_ids == run_ids:
            self._switch(page)
        else:
            self.on_page_wanted(Page.Wanted(name, *run_ids))

    # --- actions of every screen ----------------------------------------------------------

    def action_keys(self) -> None:
        """Show every key of this screen and the meaning of what it shows."""
        self.push_screen(Help(by_task(self._keys()), self.page.meanings()))

    def _keys(self) -> Iterable[tuple[str, str, str]]:
        keys: dict[str, list[Binding]] = {}
        for _, binding, enabled, _ in self.screen.active_bindings.values():
            if enabled and binding.id:
                keys.setdefault(binding.tooltip or binding.description, []).append(binding)
        for what, bindings in keys.items():
            shown = dict.fromkeys(map(self.get_key_display, bindings))
            yield bindings[0].id or "", " ".join(shown), what

    def action_copy(self) -> None:
        """Copy the command that shows the same, or a part of the table."""
        self.page.copy()

    def action_save(self) -> None:
        """Save a picture of the screen, or the table."""
        self.page.save()
