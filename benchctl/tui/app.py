"""The program of the screens: which one is shown, its keys, its theme."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import ClassVar

from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen

from benchctl.tui.feed import Feed
from benchctl.tui.live import LiveScreen
from benchctl.tui.modals import Help
from benchctl.tui.page import Page, free_name
from benchctl.tui.playhead import Playhead
from benchctl.tui.text import svg_of
from benchctl.tui.themes import DARK, OURS, PLAIN, variables

# Rich's name for terminals of 8 or 16 colours; it has none for those without.
FEW_COLOURS = ("standard", None)


class BenchApp(App[None]):
    """The screens over one store."""

    TITLE = "benchctl"
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "keys", "Keys", key_display="?", id="app.keys"),
        Binding("y", "copy_command", "Copy the command", show=False, id="app.copy"),
        Binding("s", "save", "Save a picture", show=False, id="app.save"),
        Binding("q", "quit", "Quit; a run goes on", show=False, id="app.quit"),
    ]

    def __init__(
        self,
        store: Path,
        *,
        clock: Callable[[], float] = time.time,
        keys: Mapping[str, str] | None = None,
        theme: str | None = None,
    ) -> None:
        super().__init__()
        self.store = store
        self.clock = clock
        for own in OURS:
            self.register_theme(own)
        few = self.no_color or self.console.color_system in FEW_COLOURS
        self.theme = theme or (PLAIN if few else DARK.name)
        self.set_keymap(keys or {})

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return variables(self.current_theme)

    # --- screens --------------------------------------------------------------------------

    def watch_run(self, run_id: int) -> None:
        """Show a run as it happens."""
        self.switch_screen(LiveScreen(Feed(self.store, run_id), Playhead(self.clock)))

    @property
    def page(self) -> Page | None:
        """The screen below any small window."""
        return next((s for s in reversed(self.screen_stack) if isinstance(s, Page)), None)

    # --- what every screen can do ---------------------------------------------------------

    def action_keys(self) -> None:
        """Show every key of this screen and what is shown on it."""
        if self.page is not None:
            self.push_screen(Help(self._keys(), self.page.meanings()))

    def _keys(self) -> list[tuple[str, str]]:
        keys: dict[str, list[str]] = {}
        for _, binding, enabled, _ in self.screen.active_bindings.values():
            if enabled and binding.id:
                shown = keys.setdefault(binding.description, [])
                shown.append(self.get_key_display(binding))
        return [(" ".join(dict.fromkeys(shown)), what) for what, shown in keys.items()]

    def action_copy_command(self) -> None:
        """Copy the command that does or shows the same without the screens."""
        if self.page is not None:
            command = self.page.command()
            self.copy_to_clipboard(command)
            self.notify(command, title="copied", markup=False)

    def action_save(self) -> None:
        """Save a picture of the screen."""
        if self.page is not None:
            path = free_name(Path.cwd(), self.page.file_stem(), ".svg")
            try:
                path.write_text(svg_of(self), encoding="utf-8")
            except OSError as error:
                self.notify(f"{path}: {error.strerror}", severity="error", markup=False)
            else:
                self.notify(str(path), title="saved", markup=False)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Offer every key of the screen in the palette, and the themes."""
        yield SystemCommand("Theme", "Change the colours", self.action_change_theme)
        seen = set()
        for _, binding, enabled, _ in screen.active_bindings.values():
            if enabled and binding.id and binding.description not in seen:
                seen.add(binding.description)
                key = binding.key
                yield SystemCommand(
                    binding.description,
                    f"key {self.get_key_display(binding)}",
                    lambda key=key: self.simulate_key(key),
                )
