"""The program of the screens: which one is shown, its keys, its theme."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.notifications import SeverityLevel
from textual.screen import Screen

from benchctl.errors import BenchctlError
from benchctl.store.read import Reader, Run
from benchctl.tui import opening
from benchctl.tui.draw.glyphs import BRAILLE, Glyphs
from benchctl.tui.pictures import svg_of
from benchctl.tui.screens.page import Page, free_name
from benchctl.tui.themes import DARK, OURS, PLAIN, variables
from benchctl.visible import visible_lines

# Rich's name for terminals of 8 or 16 colours; it has none for those without.
FEW_COLOURS = ("standard", None)


class BenchApp(App[None]):
    """The screens over one store; ``first`` is the one to begin with."""

    TITLE = "benchctl"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "keys", "Keys", key_display="?", id="app.keys"),
        Binding("1", "plan", "Plan", show=False, id="app.plan"),
        Binding("2", "live", "Live, or replay", show=False, id="app.live"),
        Binding("3", "summary", "Summary", show=False, id="app.summary"),
        Binding("4", "history", "History", show=False, id="app.history"),
        Binding("5", "compare", "Compare", show=False, id="app.compare"),
        Binding("y", "copy_command", "Copy the command", show=False, id="app.copy"),
        Binding("s", "save", "Save a picture", show=False, id="app.save"),
        Binding("q", "quit", "Quit; a run goes on", show=False, id="app.quit"),
    ]

    def __init__(
        self,
        store: Path,
        first: Page,
        *,
        clock: Callable[[], float] = time.time,
        keys: Mapping[str, str] | None = None,
        theme: str | None = None,
        glyphs: Glyphs = BRAILLE,
    ) -> None:
        # Without this, Textual turns colours into greys, and the terminal's own into black.
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        self.store = store
        self.clock = clock
        self.glyphs = glyphs
        self._first = first
        self._pages = {first.KIND: first}
        """The pages that are open, by kind."""
        self._run_id = first.run_ids[0] if first.run_ids else None
        """The run that was looked at last."""
        self._compared: Sequence[int] = first.run_ids
        for own in OURS:
            self.register_theme(own)
        few = self.no_color or self.console.color_system in FEW_COLOURS
        self.theme = theme or (PLAIN if few else DARK.name)
        self.set_keymap(keys or {})

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return variables(self.current_theme)

    def on_mount(self) -> None:
        """Show the first page."""
        self.install_screen(self._first, _name_of(self._first))
        self.push_screen(self._first)

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Show a message for a while; it is never markup, for it may quote anything."""
        text = visible_lines(message)
        super().notify(text, title=title, severity=severity, timeout=timeout, markup=False)

    @property
    def page(self) -> Page | None:
        """The screen below any small window."""
        return next((s for s in reversed(self.screen_stack) if isinstance(s, Page)), None)

    # --- screens --------------------------------------------------------------------------

    def _show(
        self, kind: str, about: tuple[str, tuple[int, ...]], make: Callable[[], Page]
    ) -> None:
        """Show the page of a kind, a new one where the open one is about something else."""
        before = self._pages.get(kind)
        page = before
        if before is None or before.about != about:
            try:
                page = self._pages[kind] = make()
            except BenchctlError as error:
                self.notify(f"{error.message}\n{error.hint}", severity="error")
                return
            self.install_screen(page, _name_of(page))
        if page is not None and page is not self.page:
            self.switch_screen(page)
        if before is not None and before is not page:
            self.call_after_refresh(self._close, before)

    async def _close(self, page: Page) -> None:
        self.uninstall_screen(page)
        await page.remove()

    def watch_run(self, run_id: int) -> None:
        """Show a run as it happens."""
        self._run_id = run_id
        store, clock = self.store, self.clock
        self._show("run", ("Live", (run_id,)), lambda: opening.open_live(store, run_id, clock))

    def replay_run(self, run_id: int) -> None:
        """Show a run once more; one that is measured now, as it happens."""
        running = self._newest(running=True)
        if running is not None and running.id == run_id:
            self.watch_run(run_id)
            return
        self._run_id = run_id
        store, clock = self.store, self.clock
        self._show("run", ("Replay", (run_id,)), lambda: opening.open_replay(store, run_id, clock))

    def summarize_run(self, run_id: int) -> None:
        """Show the results of a run."""
        self._run_id = run_id
        about = ("Summary", (run_id,))
        self._show("summary", about, lambda: opening.open_summary(self.store, run_id))

    def compare_runs(self, run_ids: Sequence[int]) -> None:
        """Show runs side by side, the first one beside each of the others."""
        self._compared = tuple(run_ids)
        about = ("Compare", tuple(run_ids))
        self._show("compare", about, lambda: opening.open_compare(self.store, run_ids))

    def _newest(self, *, running: bool = False) -> Run | None:
        """Return the newest run of the store; with ``running``, the newest that is measured now."""
        try:
            reader = Reader(self.store)
        except BenchctlError as error:
            self.notify(f"{error.message}\n{error.hint}", severity="warning")
            return None
        with closing(reader):
            runs = reader.runs()
            return next((run for run in runs if not running or reader.is_alive(run)), None)

    def action_plan(self) -> None:
        """Show the profiles."""
        self._show("plan", ("Plan", ()), opening.open_plan)

    def action_live(self) -> None:
        """Show the run that was looked at last, or the newest."""
        page = self._pages.get("run")
        if page is not None:
            self._show("run", page.about, lambda: page)
        elif self._run_id is not None:
            self.replay_run(self._run_id)
        elif (run := self._newest()) is not None:
            self.replay_run(run.id)

    def action_attach(self) -> None:
        """Show the run that is measured now."""
        run = self._newest(running=True)
        if run is not None:
            self.watch_run(run.id)
        else:
            self.notify("no run is being measured now")

    def action_summary(self) -> None:
        """Show the results of the run that was looked at last, or of the newest."""
        run_id = self._run_id
        if run_id is None and (run := self._newest()) is not None:
            run_id = run.id
        if run_id is not None:
            self.summarize_run(run_id)

    def action_history(self) -> None:
        """Show all runs."""
        self._show("history", ("History", ()), lambda: opening.open_history(self.store))

    def action_compare(self) -> None:
        """Show the runs that were compared last."""
        if len(self._compared) > 1:
            self.compare_runs(self._compared)
        else:
            self.notify("mark two runs or more in the history (4), then c compares them")

    # --- what every screen can do ---------------------------------------------------------

    def action_keys(self) -> None:
        """Show every key of this screen and what is shown on it."""
        from benchctl.tui.screens.modals import Help

        if self.page is not None:
            self.push_screen(Help(self._keys(), self.page.meanings()))

    def _keys(self) -> list[tuple[str, str]]:
        keys: dict[str, list[str]] = {}
        for _, binding, enabled, _ in self.screen.active_bindings.values():
            if enabled and binding.id:
                shown = keys.setdefault(binding.tooltip or binding.description, [])
                shown.append(self.get_key_display(binding))
        return [(" ".join(dict.fromkeys(shown)), what) for what, shown in keys.items()]

    def action_copy_command(self) -> None:
        """Copy the command that does or shows the same without the screens."""
        if self.page is not None:
            command = self.page.command()
            self.copy_to_clipboard(command)
            self.notify(command, title="copied")

    def action_save(self) -> None:
        """Save a picture of the screen."""
        if self.page is not None:
            path = free_name(Path.cwd(), self.page.file_stem(), ".svg")
            try:
                path.write_text(svg_of(self), encoding="utf-8")
            except OSError as error:
                self.notify(f"{path}: {error.strerror}", severity="error")
            else:
                self.notify(str(path), title="saved")

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Offer every key of the screen in the palette, and the themes."""
        yield SystemCommand("Theme", "Change the colours", self.action_change_theme)
        seen = set()
        for _, binding, enabled, _ in screen.active_bindings.values():
            if enabled and binding.id and binding.description not in seen:
                seen.add(binding.description)
                yield SystemCommand(
                    binding.description,
                    f"key {self.get_key_display(binding)}",
                    partial(self.simulate_key, binding.key),
                )


def _name_of(page: Page) -> str:
    return " ".join(map(str, (page.about[0], *page.run_ids)))
