"""A table of any length: only visible rows are requested; columns have a fixed width.

Textual's DataTable keeps every cell of every row: a list of 10,000 trials opens in 2.7 s instead of
0.1 s, and a change of eight rows takes 7.5 ms instead of 2.9 ms (``python bench widgets``). It
scrolls sideways by characters, so that the figure at its edge is cut to another figure. OptionList
keeps every row, too, in one text: 3.0 s, and 4.3 ms instead of 3.6 ms; it has no columns.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from benchctl.report.lines.spans import PLAIN, Line, Span, crop
from benchctl.report.pivot import Pivot
from benchctl.tui.draw.plot.heat import STEPS
from benchctl.tui.draw.text.columns import CHOSEN, Cells, Column, VisibleColumns, see
from benchctl.tui.draw.text.sorting import in_order
from benchctl.tui.widgets.painted import Scrolling

# Rows that change several times a second are arranged anew for at most this share of the time.
MOST_TIME = 0.05
UP, DOWN = "▲", "▼"
NO_ROW = "no row has these words"


class Listing(Struct, frozen=True):
    """How rows are shown: filtered by words, sorted by a heading, or backwards; and the cursor."""

    words: str = ""
    sorted_by: tuple[str, bool] | None = None
    index: int = 0


class Table(Scrolling):
    """A list of rows with a cursor, which can be filtered by words and sorted by a column."""

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
        self.empty = empty
        """What is said where there is no row."""
        self._columns: Sequence[Column] = ()
        self._count = 0
        self._row: Callable[[int], Cells] = lambda _: ()
        self._texts: Sequence[Sequence[str]] | None = None
        self._folded: Sequence[str] | None = None
        """All cells as text, and rows as words are found in them, once they were needed."""
        self._order: Sequence[int] = ()
        """The rows that are shown, in their order."""
        self._arranged_at, self._cost_s = -math.inf, 0.0
        self._sight = see((), 0)
        self._top = 0
        self.title = ""
        """What the rows are, where a screen has several tables."""
        self.words = ""
        """What is shown has every word of this, in whatever case."""
        self.sorted_by: tuple[str, bool] | None = None
        """The heading of a column, and whether its order is turned."""
        self.first = 0
        """How many columns are scrolled away to the left, besides the fixed ones."""
        self.index = 0
        """The row under the cursor, by its place among all."""

    def show(self, columns: Sequence[Column], count: int, row: Callable[[int], Cells]) -> None:
        """Show ``count`` rows; ``row`` is called for those that are visible.

        While the table is filtered or sorted, it is called for all of them.
        """
        same = count == self._count
        self._columns, self._count, self._row = columns, count, row
        self._texts = self._folded = None
        now = time.monotonic()
        if not same or now - self._arranged_at >= self._cost_s / MOST_TIME:
            self._arrange()
            self._arranged_at = time.monotonic()
            self._cost_s = self._arranged_at - now
        self.index = max(0, min(self.index, count - 1))
        if self._order and self.here is None:
            self.index = self._order[0]
        self.repaint()

    def filter(self, words: str) -> None:
        """Show only rows that have all words."""
        self.words = words
        self._arrange()
        self._stay()

    def sort(self, head: str | None) -> None:
        """Sort by the column of a heading, the other way round if it is sorted so; None: not."""
        turned = self.sorted_by == (head, False)
        self.sorted_by = None if head is None else (head, turned)
        self._arrange()
        self.repaint()

    def _arrange(self) -> None:
        shown: Sequence[int] = range(self._count)
        if words := self.words.casefold().split():
            if self._folded is None:
                self._folded = [" ".join(cells).casefold() for cells in self.texts]
            folded = self._folded
            shown = [row for row in shown if all(word in folded[row] for word in words)]
        heads = [column.head for column in self._columns]
        if self.sorted_by is not None and self.sorted_by[0] in heads:
            place, turned = heads.index(self.sorted_by[0]), self.sorted_by[1]
            texts = [self._cell(row, place) for row in shown]
            shown = [shown[n] for n in in_order(texts, backwards=turned)]
        self._order = shown

    def _cell(self, row: int, place: int) -> str:
        cells = self.texts[row]
        return cells[place] if place < len(cells) else ""

    @property
    def texts(self) -> Sequence[Sequence[str]]:
        """The texts of all rows, whether they are shown or not."""
        if self._texts is None:
            self._texts = [[cell.text for cell in self._row(row)] for row in range(self._count)]
        return self._texts

    def pivot(self) -> Pivot:
        """Return what is shown, with the columns and rows that are out of sight, as text.

        The bars of heat are left out.
        """
        columns = [place for place, column in enumerate(self._columns) if column.head]
        return Pivot(
            tuple(self._columns[place].head for place in columns),
            tuple(self._columns[place].right for place in columns),
            tuple(
                tuple(" ".join(self._cell(row, place).lstrip(STEPS).split()) for place in columns)
                for row in self._order
            ),
        )

    def before(self, index: int) -> int | None:
        """Return which row is shown above one; None above the first."""
        order = self._order
        place = order.index(index) if index in order else 0
        return order[place - 1] if place else None

    @property
    def here(self) -> int | None:
        """The row under the cursor; None if none is shown."""
        return self.index if self.index in self._order else None

    @property
    def place(self) -> int:
        """The place of the cursor among the rows that are shown."""
        order = self._order
        if isinstance(order, range):
            return self.index
        return order.index(self.index) if self.index in order else 0

    def go_to(self, index: int) -> None:
        """Put the cursor on a row."""
        index = max(0, min(index, self._count - 1))
        if index != self.index:
            self.index = index
            self.repaint()
            self.post_message(self.Moved(self, index))

    def _stay(self) -> None:
        """Keep the cursor on a row that is shown."""
        if self._order and self.here is None:
            self.index = self._order[0]
        self.repaint()
        self.post_message(self.Moved(self, self.index))

    @property
    def count(self) -> int:
        """How many rows are shown."""
        return len(self._order)

    @property
    def listing(self) -> Listing:
        """How the rows are shown."""
        return Listing(self.words, self.sorted_by, self.index)

    @listing.setter
    def listing(self, listing: Listing) -> None:
        self.words, self.sorted_by, self.index = listing.words, listing.sorted_by, listing.index
        self._arranged_at = -math.inf  # what is shown next is arranged anew

    @property
    def tells_place(self) -> bool:
        """Whether the line of headings says where the cursor is."""
        return True

    def above(self) -> Sequence[Line]:
        """Return the lines above the headings."""
        return ()

    def lines(self, height: int) -> int:
        """Return how many rows a height shows."""
        return max(0, height - len(self.above()) - 1)

    def paint(self, width: int, height: int) -> Sequence[Line]:
        return [*self.above(), *self._paint(width, self.lines(height))]

    def _paint(self, width: int, rows: int) -> Sequence[Line]:
        sight = see([self._marked(column) for column in self._columns], width, self.first)
        self._sight = sight
        self.first = sight.before
        if self._count == 0:
            return [self._head(sight), [Span(self.empty, "dim")]]
        if not self._order:
            return [self._head(sight), [Span(NO_ROW, "dim")]]
        return [self._head(sight), *(self._line(sight, row) for row in self._in_sight(rows))]

    def _in_sight(self, rows: int) -> Sequence[int]:
        """Scroll to the cursor, and return the rows that are seen then."""
        place, count = self.place, self.count
        self._top = min(self._top, place, max(0, count - rows))
        self._top = max(self._top, place - rows + 1, 0)
        return self._order[self._top : self._top + rows]

    def _marked(self, column: Column) -> Column:
        """Return a column whose heading says that the rows are sorted by it."""
        if self.sorted_by is None or column.head != self.sorted_by[0]:
            return column
        head = f"{column.head} {DOWN if self.sorted_by[1] else UP}"
        return replace(column, head=head, width=max(column.width, len(head)))

    def _head(self, sight: VisibleColumns) -> Line:
        heads = sight.head()
        if sight.hidden or not self.tells_place:
            return heads
        count = f"{self.count} of {self._count}" if self.words else f"{self._count}"
        place = f" {min(self.place + 1, self.count)}/{count}" if self._count else ""
        free = sight.width - sum(len(span.text) for span in heads)
        if free < len(place) < sight.free and not sight.columns[-1][1].right:
            free = len(place)
            heads = crop(heads, sight.width - free)
        return [*heads, Span(place.rjust(free), "dim")] if free >= len(place) else heads

    def _line(self, sight: VisibleColumns, index: int) -> Line:
        """Return a row; that of the cursor is marked also while the keys go elsewhere."""
        at_hand = self.has_focus or not self.can_focus
        here = "cursor" if at_hand else CHOSEN
        return sight.row(self._row(index), role=here if index == self.index else PLAIN)

    def action_move(self, rows: int) -> None:
        if self._order:
            self.go_to(self._order[max(0, min(self.place + rows, self.count - 1))])

    def action_scroll(self, columns: int) -> None:
        self.first = max(0, self.first + columns)
        self.repaint()
        self.post_message(self.Scrolled(self, self.index))

    def action_page(self, pages: int) -> None:
        """Move by pages."""
        self.action_move(pages * max(1, self.lines(self.size.height)))

    def action_choose(self) -> None:
        """Choose the row under the cursor."""
        if self.here is not None:
            self.post_message(self.Chosen(self, self.index))

    def watch_has_focus(self, focused: bool) -> None:
        super().watch_has_focus(focused)
        self.repaint()

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to a row; a second click chooses it. A heading sorts by its column."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        x, y = offset.x, offset.y - len(self.above())
        if y < 1:
            place = self._sight.place_at(x) if y == 0 else None
            if place is not None and self._columns[place].head:
                self.sort(self._columns[place].head)
            return
        place = self._top + y - 1
        if not 0 <= place < self.count:
            return
        index = self._order[place]
        was_here = index == self.index
        self.go_to(index)
        if event.chain >= self.CLICKS and (was_here or self.CLICKS == 1):
            self.action_choose()
