"""The line in which a table is filtered, as it is typed."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.widgets import Input

from benchctl.tui.widgets.table import Table
from benchctl.tui.widgets.words import Words


class FilterLine(Input):
    """Words for the table that was in use when it was opened; shown while it has any."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "Keep"),
        Binding("escape", "app.leave", "All rows"),
    ]
    DEFAULT_CSS = """
    FilterLine { display: none; border: none; height: 1; padding: 0 1; }
    FilterLine:focus { border: none; }
    FilterLine.-open { display: block; }
    """

    def __init__(self) -> None:
        self._words = Words()
        super().__init__(placeholder="words to find, in any column", suggester=self._words)
        self._table: Table | None = None

    def open(self, table: Table) -> None:
        """Edit the words of a table."""
        self._table = None  # Another table's words are no input.
        self.value = table.words
        self.cursor_position = len(self.value)
        self._table = table
        cells = (cell for cells in table.texts for cell in cells)
        self._words.known = {
            word.strip("[],") for cell in cells for word in cell.split() if word[0].isalpha()
        }
        self.add_class("-open")
        self.focus()

    def clear_words(self) -> bool:
        """Show all rows again; returns whether any were hidden, or words being typed."""
        if self._table is None or not (self.has_focus or self._table.words):
            return False
        self.value = ""
        self._table.filter("")
        self._leave()
        return True

    def _leave(self) -> None:
        self.set_class(bool(self.value), "-open")
        if self._table is not None:
            self._table.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Apply the words at once."""
        event.stop()
        if self._table is not None and self._table.words != self.value:
            self._table.filter(self.value)

    async def action_submit(self) -> None:
        """Go back to the table and keep the words, before the next key."""
        self._leave()

    def on_key(self, event: events.Key) -> None:
        """Move in the table while words are typed."""
        if self._table is not None and event.key in ("up", "down", "pageup", "pagedown"):
            event.stop()
            step = (
                self._table.action_page if event.key.startswith("page") else self._table.action_move
            )
            step(1 if event.key.endswith("down") else -1)
