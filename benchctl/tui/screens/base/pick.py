"""A small window with a list to pick from: what is typed filters it, enter takes the row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input

from benchctl.report.lines.spans import Span, without_middle
from benchctl.tui.draw.text.columns import GAP, Column
from benchctl.tui.screens.base.modals import FRAME, WIDTH, Dialog, hints
from benchctl.tui.widgets.table import Table
from benchctl.visible import visible, width_of

MOST_ROWS = 16


class PickFrom(Dialog[int]):
    """Returns the place of the chosen row; rows are a name and what is said of it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "Row up", show=False, priority=True, id="pick.up"),
        Binding("down", "move(1)", "Row down", show=False, priority=True, id="pick.down"),
    ]

    def __init__(self, title: str, rows: Sequence[tuple[str, str]], index: int = 0) -> None:
        super().__init__()
        self._title = title
        self._rows = rows
        self._table = Table(empty="there is nothing to pick")
        self._table.can_focus = False
        self._table.index = index

    def compose(self) -> ComposeResult:
        with Vertical() as frame:
            frame.border_title = Content(visible(self._title))
            frame.border_subtitle = Content("type to filter   ↑ ↓ ") + hints(
                ("enter picks", "accept"), ("escape cancels", "dismiss(None)")
            )
            yield Input(placeholder="words to find")
            yield self._table

    def on_mount(self) -> None:
        """Show the rows, as wide as they are and the screen allows."""
        names, texts = (
            max((width_of(row[place]) for row in self._rows), default=0) for place in (0, 1)
        )
        window = min(max(WIDTH, names + len(GAP) + texts + FRAME), self.app.size.width)
        self.query_one(Vertical).styles.width = window
        inside = window - FRAME
        named = min(names, max(inside - len(GAP) - texts, inside * 2 // 3))
        columns = [Column("", named, fixed=True), Column("", max(1, inside - named - len(GAP)))]
        rows = [(Span(without_middle(name, named)), Span(said)) for name, said in self._rows]
        self._table.styles.height = max(1, min(len(rows), MOST_ROWS)) + 1
        self._table.show(columns, len(rows), rows.__getitem__)

    def action_move(self, rows: int) -> None:
        """Move the cursor while the words have the focus."""
        self._table.action_move(rows)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show the rows that have all words."""
        self._table.filter(event.value)

    def on_input_submitted(self) -> None:
        """Take the row under the cursor."""
        self.action_accept()

    def action_accept(self) -> None:
        """Take the row under the cursor."""
        if self._table.here is not None:
            self.dismiss(self._table.here)

    def on_table_chosen(self, event: Table.Chosen) -> None:
        """Take a row that was clicked."""
        event.stop()
        self.dismiss(event.index)
