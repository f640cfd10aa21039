"""The base of all screens: title, keys, help, the tick, and common actions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.message import Message
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget

from benchctl.errors import BenchctlError
from benchctl.tui import themes
from benchctl.tui.draw.plot import BRAILLE, Glyphs
from benchctl.tui.widgets.bars import KeyBar, TitleBar

# Nobody reads figures more often than four times a second.
TICK_S = 0.25


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Shared by all screens: the store, the clock (Unix time), the characters of the plots."""

    store: Path
    clock: Callable[[], float]
    glyphs: Glyphs = BRAILLE


class Page(Screen[None]):
    """One screen: a title, a body that the subclass composes, and the keys that matter."""

    class Wanted(Message):
        """Requests another screen: its name in the registry, and the runs it should show."""

        def __init__(self, name: str, *run_ids: int) -> None:
            super().__init__()
            self.name = name
            self.run_ids = run_ids

    NAME: ClassVar[str]
    """Its name in the registry; of each name, one page is open at a time."""
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide"), (160, "-huge")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-tiny"), (12, "-short"), (32, "-tall")]  # noqa: RUF012
    COMPONENT_CLASSES: ClassVar[set[str]] = themes.CLASSES
    DEFAULT_CSS = f"""
    Page {{
        background: $background;
        layout: vertical;
        &.-tiny KeyBar {{ display: none; }}
        {themes.CSS}
    }}
    """

    def __init__(self, around: Surroundings, *run_ids: int) -> None:
        super().__init__()
        self.around = around
        self.run_ids = run_ids
        """The runs that this page is about."""
        self.bar = TitleBar(self.NAME.title())
        self._timer: Timer | None = None

    def shows(self, run_ids: Sequence[int]) -> bool:
        """Return whether this page can show these runs, or another must be opened."""
        return self.run_ids == run_ids

    def want(self, name: str, *run_ids: int) -> None:
        """Ask for another screen."""
        self.post_message(self.Wanted(name, *run_ids))

    def complain(self, error: BenchctlError) -> None:
        """Show a short message about a failed action."""
        self.notify(f"{error.message}\n{error.hint}", severity="error")

    def compose(self) -> ComposeResult:
        yield self.bar
        yield from self.body()
        yield KeyBar()

    def body(self) -> Sequence[Widget]:
        """Return the widgets between title and keys."""
        raise NotImplementedError

    def tick(self) -> None:
        """Update the content; called while the screen is visible."""

    @property
    def settled(self) -> bool:
        """Whether all available data was read."""
        return True

    def command(self) -> str:
        """Return the command that shows or does the same on the command line."""
        raise NotImplementedError

    def file_stem(self) -> str:
        """Return the file name for a picture of this screen."""
        return f"benchctl-{self.NAME}"

    def meanings(self) -> Sequence[tuple[str, str]]:
        """Return the description of the screen's content, for the help."""
        return ()

    def on_mount(self) -> None:
        """Start to tick, at once when the screen is visible."""
        self._timer = self.set_interval(TICK_S, self.tick)

    def on_resize(self) -> None:
        """Redraw at the new size, once all widgets know it."""
        self.call_after_refresh(self.fit)

    def fit(self) -> None:
        """Redraw everything at the present size."""

    def on_screen_suspend(self) -> None:
        """Pause while another screen is visible."""
        if self._timer is not None:
            self._timer.pause()

    def on_screen_resume(self) -> None:
        """Continue at the current state."""
        if self._timer is not None:
            self.tick()
            self._timer.resume()


def free_name(directory: Path, stem: str, suffix: str) -> Path:
    """Return an unused file name in a directory."""
    path = directory / f"{stem}{suffix}"
    number = 2
    while path.exists():
        path = directory / f"{stem}-{number}{suffix}"
        number += 1
    return path
