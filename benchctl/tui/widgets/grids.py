"""The grids of a summary as tables, below each other or side by side, that scroll together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

from textual import events
from textual.containers import Container
from textual.content import Content

from benchctl.report.lines.spans import Line, Span
from benchctl.tui.draw.plot.heat import Grid
from benchctl.tui.draw.text.columns import GAP, VisibleColumns
from benchctl.tui.widgets.table import Listing, Table
from benchctl.units import format_count

# Between two grids side by side.
BETWEEN = 4
# A blank line, the title and the headings of a grid are above its rows.
ABOVE = 3


class GridTable(Table):
    """A grid. The wheel moves the cursor only if rows are hidden."""

    def __init__(
        self,
        listings: Mapping[str, Listing],
        *,
        arranged: bool = False,
        id: str | None = None,  # noqa: A002
        empty: str = "",
    ) -> None:
        """Show grids filtered and sorted as they were last, by name; ``arranged`` says its axes."""
        super().__init__(id=id, empty=empty)
        self._listings = listings
        self._arranged = arranged
        self._about: Line = ()

    def show_grid(self, grid: Grid, height: int) -> None:
        """Show a grid in so many lines."""
        if self.title != grid.name:
            self.title, self.listing = grid.name, self._listings.get(grid.name, Listing())
        axes = [Span(f"   {grid.axes}", "label")] if self._arranged else []
        self._about = [Span(grid.about, "strong"), *axes]
        self.styles.height = height
        self.show(grid.columns, len(grid.rows), lambda index: grid.rows[index])

    def above(self) -> Sequence[Line]:
        return [self._about]

    @property
    def tells_place(self) -> bool:
        return self.has_focus or bool(self.words) or self._hides_rows

    @property
    def _hides_rows(self) -> bool:
        return self.count > self.lines(self.size.height)

    def _line(self, sight: VisibleColumns, index: int) -> Line:
        """Return a row; the cursor of many tables is marked only where the keys are."""
        return super()._line(sight, index) if self.has_focus else sight.row(self._row(index))

    def _turn(self, event: events.MouseEvent, steps: int) -> None:
        if event.shift or self._hides_rows:
            super()._turn(event, steps)


class Grids(Container):
    """Grids in as few columns as show all of them, or in as many as the width allows."""

    DEFAULT_CSS = f"""
    Grids {{
        layout: grid;
        grid-gutter: 0 {BETWEEN};
        overflow: hidden auto;
        scrollbar-size-vertical: 0;
        border-subtitle-align: left;
        border-subtitle-color: $text-muted;
        border-subtitle-background: $background;
        &.-more {{ border-bottom: blank $background; }}
        GridTable {{ margin: 1 0 0 0; }}
    }}
    """

    def __init__(self, listings: Mapping[str, Listing], *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._listings = listings
        self._grids: Sequence[Grid] = ()
        self._ends: Sequence[int] = ()
        """The line at which each grid ends."""
        self.tables: list[GridTable] = []
        """The tables of the first grids: those that were seen, and a row more."""

    def show(self, grids: Sequence[Grid]) -> None:
        """Show these grids."""
        self._grids = grids
        self._arrange()

    def _arrange(self) -> None:
        width, height = self.size.width, self.outer_size.height
        # One that is higher than all that is seen scrolls by itself.
        most = max(ABOVE + 1, height - 1)
        lines = [min(ABOVE + len(grid.rows), most) for grid in self._grids]
        widest = max(map(_width, self._grids), default=width)
        possible = max(1, (width + BETWEEN) // (widest + BETWEEN))
        fitting = (n for n in range(1, possible) if sum(_rows(lines, n)) <= height)
        columns = next(fitting, possible)
        rows = _rows(lines, columns)
        ends = [*accumulate(rows)]
        self._ends = [ends[place // columns] for place in range(len(lines))]
        seen = sum(end <= self.scroll_offset.y + height for end in self._ends)
        self._mount(seen + 2 * columns)
        self.styles.grid_size_columns = columns
        self.styles.grid_rows = " ".join(map(str, rows)) if rows else None
        self.set_class(sum(rows) > height, "-more")
        for table, grid, count in zip(self.tables, self._grids, lines, strict=False):
            table.show_grid(grid, count - 1)
        self._tell_more()

    def _mount(self, count: int) -> None:
        """Have tables for so many grids."""
        missing = min(count, len(self._grids)) - len(self.tables)
        new = [GridTable(self._listings) for _ in range(missing)]
        self.tables += new
        self.mount_all(new)
        for place, table in enumerate(self.tables):
            table.display = place < len(self._grids)

    def _tell_more(self) -> None:
        end = self.scroll_offset.y + self.outer_size.height - 1
        more = sum(bottom > end for bottom in self._ends) if self.has_class("-more") else 0
        below = f"↓ {format_count(more, 'more table')} below (tab)"
        self.border_subtitle = Content(below if more else "")

    def on_resize(self) -> None:
        """Arrange the grids for another size."""
        self._arrange()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Have the tables that come next, and say how many are below."""
        super().watch_scroll_y(old_value, new_value)
        self._arrange()


def _rows(lines: Sequence[int], columns: int) -> list[int]:
    """Return the height of each row of grids, of which so many are side by side."""
    return [max(lines[place : place + columns]) for place in range(0, len(lines), columns)]


def _width(grid: Grid) -> int:
    """Return the width of a grid whose columns are all visible."""
    cells = sum(column.width for column in grid.columns) + len(GAP) * (len(grid.columns) - 1)
    return max(len(grid.about), cells)
