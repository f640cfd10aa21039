"""A window with the facts of every host of a run."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from benchctl.report.lines.hosts import fact_lines
from benchctl.run.record import Run
from benchctl.tui.screens.base.modals import Dialog
from benchctl.tui.widgets.scrolled import Scrolled


class FactsWindow(Dialog[None]):
    """Kernel, buffers, interfaces, clock and tools of this machine and of the remote hosts."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,q", "dismiss(None)", "Close", id="facts.close")
    ]
    DEFAULT_CSS = """
    FactsWindow > Vertical { width: 96%; height: 96%; max-height: 100%; }
    FactsWindow Scrolled { height: 1fr; }
    """

    def __init__(self, run: Run) -> None:
        super().__init__()
        self._run = run
        self._text = Scrolled()

    def compose(self) -> ComposeResult:
        frame = Vertical(self._text)
        frame.border_title = "Facts of the hosts"
        frame.border_subtitle = "escape closes"
        yield frame

    def on_mount(self) -> None:
        """Show them."""
        self._text.show([*fact_lines(self._run)], from_the_top=True)
        self._text.focus()
