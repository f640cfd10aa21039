"""A table of any length: only visible rows are requested; columns have a fixed width.

Textual's DataTable keeps every cell of every row: a list of 10,000 trials opens in 2.7 s instead of
0.1 s, and a change of eight rows takes 7.5 ms instead of 2.9 ms (``python bench widgets``). It
scrolls sideways by characters, so that the figure at its edge is cut to another figure. OptionList
keeps every row, too, in one text: 3.0 s, and 4.3 ms instead of 3.6 ms; it has no columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from benchctl.tui.draw.columns import Cells, Column, Sight, see
from benchctl.tui.draw.spans import PLAIN, Line, Span
from benchctl.tui.widgets.painted import Scrolling


class Table(Scrolling):
    """A list of rows with a cursor."""

    CLICKS = 2
    """How many clicks choose a row."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Row up", show=False, id="table.up"),
        Binding("down,j", "move(1)", "Row down", show=False, id="table.down"),
        Binding("pageup", "page(-1)", "Page up", show=False, id="table.page_up"),
        Binding("pagedown", "page(1)", "Page down", show=False, id="table.page_down"),
        Binding("home", "move(-1000000)", "First row", show=False, id="table.first"),
        Binding("end", "move(1000000)", "Last row", show=False, id="table.last"),
        Binding("left,H", "scroll(-1)", "Columns before", show=False, id="table.left"),
        Binding("right,L", "scroll(1)", "Columns after", show=False, id="table.right"),
        Binding("enter", "choose", "Choose", show=False, id="table.choose"),
    ]

    class Moved(Message):
        """The cursor has moved to another row."""

        def __init__(self, table: Table, index: int) -> None:
            super().__init__()
            self.table = table
            self.index = index

        @property
        def control(self) -> Table:
            return self.table

    class Chosen(Moved):
        """A row was chosen."""

    class Scrolled(Moved):
        """Other columns are shown."""

    def __init__(self, *, id: str | None = None, empty: str = "") -> None:  # noqa: A002
        super().__init__(id=id)
        self._empty = empty
        self._columns: Sequence[Column] = ()
        self._count = 0
        self._row: Callable[[int], Cells] = lambda _: ()
        self._top = 0
        self.first = 0
        """How many columns are scrolled away to the left, besides the fixed ones."""
        self.index = 0
        """The row under the cursor."""

    def show(self, columns: Sequence[Column], count: int, row: Callable[[int], Cells]) -> None:
        """Show ``count`` rows; ``row`` is called for those that are visible."""
        self._columns, self._count, self._row = columns, count, row
        self.index = max(0, min(self.index, count - 1))
        self.repaint()

    def go_to(self, index: int) -> None:
        """Put the cursor on a row."""
        index = max(0, min(index, self._count - 1))
        if index != self.index:
            self.index = index
            self.repaint()
            self.post_message(self.Moved(self, index))

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self._count

    def paint(self, width: int, height: int) -> Sequence[Line]:
        rows = max(0, height - 1)
        sight = see(self._columns, width, self.first)
        self.first = sight.before
        if self._count == 0:
            return [self._head(sight), [Span(self._empty, "dim")]]
        self._top = min(self._top, self.index, max(0, self._count - rows))
        self._top = max(self._top, self.index - rows + 1, 0)
        shown = range(self._top, min(self._count, self._top + rows))
        return [self._head(sight), *(self._line(sight, index) for index in shown)]

    def _head(self, sight: Sight) -> Line:
        heads = sight.head()
        if sight.hidden:
            return heads
        place = f" {self.index + 1}/{self._count}" if self._count else ""
        free = sight.width - sum(len(span.text) for span in heads)
        return [*heads, Span(place.rjust(free), "dim")] if free >= len(place) else heads

    def _line(self, sight: Sight, index: int) -> Line:
        here = index == self.index and self.has_focus
        return sight.row(self._row(index), role="cursor" if here else PLAIN)

    def action_move(self, rows: int) -> None:
        self.go_to(self.index + rows)

    def action_scroll(self, columns: int) -> None:
        self.first = max(0, self.first + columns)
        self.repaint()
        self.post_message(self.Scrolled(self, self.index))

    def action_choose(self) -> None:
        """Choose the row under the cursor."""
        if self._count:
            self.post_message(self.Chosen(self, self.index))

    def on_focus(self) -> None:
        self.repaint()

    def on_blur(self) -> None:
        self.repaint()

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to a row; a second click chooses it."""
        index = self._top + event.y - 1
        if not 0 <= index < self._count or event.y < 1:
            return
        was_here = index == self.index
        self.go_to(index)
        if event.chain >= self.CLICKS and (was_here or self.CLICKS == 1):
            self.action_choose()
