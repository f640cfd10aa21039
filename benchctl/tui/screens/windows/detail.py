"""A window with one trial in full, while it is measured and afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from benchctl.errors import StoreError
from benchctl.report.lines.spans import Span
from benchctl.report.lines.trial import trial_lines
from benchctl.report.text.detail import read_details
from benchctl.store.read import Reader
from benchctl.tui.meanings import AFTER, BEFORE
from benchctl.tui.screens.base.modals import Dialog, hints
from benchctl.tui.screens.base.page import TICK_S, trouble
from benchctl.tui.widgets.scrolled import Scrolled


class TrialWindow(Dialog[None]):
    """The outcome of one trial and its figures; with a key, all attempts, commands and settings."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left_square_bracket", "trial(-1)", BEFORE, id="trial.before"),
        Binding("right_square_bracket", "trial(1)", AFTER, id="trial.after"),
        Binding("A", "fold", "All of the trial, or what matters", id="trial.all"),
        Binding("enter,q", "dismiss(None)", "Close", id="trial.close"),
    ]
    DEFAULT_CSS = """
    TrialWindow > Vertical { width: 96%; height: 96%; max-height: 100%; }
    TrialWindow Scrolled { height: 1fr; }
    """

    def __init__(self, store: Path, run_id: int, position: int, count: int) -> None:
        super().__init__()
        self._count = count
        self._store = store
        self._run_id = run_id
        self._position = position
        self._folded = True
        self._changes = -1
        self._reader: Reader | None = None
        self._text = Scrolled()
        self._frame = Vertical(self._text)

    def compose(self) -> ComposeResult:
        self._frame.border_subtitle = hints(
            ("escape closes", "dismiss(None)"),
            ("[ trial before", "trial(-1)"),
            ("] trial after", "trial(1)"),
            ("A commands, output", "fold"),
        )
        yield self._frame

    def on_mount(self) -> None:
        """Open the store, and show what comes to the trial."""
        self._text.focus()
        self.tick(from_the_top=True)
        self.set_interval(TICK_S, self.tick)

    def on_unmount(self) -> None:
        """Close the store."""
        if self._reader is not None:
            self._reader.close()

    def tick(self, *, from_the_top: bool = False) -> None:
        """Read the trial again if the store has changed."""
        try:
            self._reader = self._reader or Reader(self._store)
            changes = self._reader.changes()
            if changes == self._changes and not from_the_top:
                return
            self._changes = changes
            run = self._reader.run(self._run_id)
            detail = next(read_details(self._reader, run, self._position))
        except StoreError as error:
            self._changes = -1
            self._text.show([[Span(f"! {trouble(error)}", "bad")]], from_the_top=True)
        else:
            self._frame.border_title = f"Trial {self._position + 1} of {self._count}"
            self._text.show([*trial_lines(detail, folded=self._folded)], from_the_top=from_the_top)

    def action_fold(self) -> None:
        """Show all of the trial, or its outcome and figures."""
        self._folded = not self._folded
        self.tick(from_the_top=True)

    def action_trial(self, steps: int) -> None:
        """Show the trial before or after."""
        position = self._position + steps
        if 0 <= position < self._count:
            self._position = position
            self.tick(from_the_top=True)
