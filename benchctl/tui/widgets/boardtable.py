"""The board of a mesh, measured or compared: a table whose cursor is on a pair, drawn closely."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events

from benchctl.report.lines.spans import Line, Span, fit, shorten
from benchctl.tui.draw.text.columns import CHOSEN
from benchctl.tui.draw.views.board import BEFORE, BoardRows
from benchctl.tui.draw.views.verdicts import ChangeRows
from benchctl.tui.model.board import BoardPair
from benchctl.tui.widgets.table import Table
from benchctl.visible import width_of

# Where the figures have no room, a cell is its sign and a blank; each fifth column has its number.
CLOSE, NUMBERED = 2, 5


class BoardTable(Table):
    """A row for each host, a column for each target; arrows move from pair to pair."""

    column = 1
    """The target under the cursor."""
    moved = False
    """Whether a person has moved the cursor; else it goes to the pair whose trial is shown."""
    _board: BoardRows | ChangeRows | None = None
    _steps = (0, 1)
    """Where the cells begin, and how wide each is."""

    @property
    def pair(self) -> BoardPair:
        """The pair under the cursor."""
        assert self._board is not None
        hosts = self._board.hosts
        return hosts[self.index], hosts[self.column]

    def show_board(self, board: BoardRows | ChangeRows, pair: BoardPair | None) -> None:
        """Show a board; with the cursor on a pair, unless a person has moved it."""
        self._board = board
        if pair is not None and not self.moved:
            self.index, self.column = map(board.hosts.index, pair)
        self.show(board.columns(), len(board.hosts), board.row)

    def above(self) -> Sequence[Line]:
        return [self._board.title(self.pair)] if self._board is not None else []

    def _paint(self, width: int, rows: int) -> Sequence[Line]:
        shown = self._in_sight(rows)
        names, does, *targets = self._columns
        count, digits = len(targets), len(str(len(targets)))
        left = names.width + does.width + 2
        wide = left + digits + 1 + count * (targets[0].width + 1) <= width
        step = targets[0].width + 1 if wide else CLOSE
        by_number = not wide or max(width_of(target.head) for target in targets) >= step
        left += (digits + 1) * by_number
        many = max(1, (width - left) // step)
        self.first = max(0, min(self.first, self.column, count - many), self.column - many + 1)
        self._steps = left, step
        seen = range(self.first, min(count, self.first + many))

        def numbered(row: int) -> str:
            return f"{row + 1:>{digits}} " * by_number

        def head(place: int) -> Span:
            role = "strong" if place == self.column else "label"
            if not by_number:
                return Span(f"{targets[place].head:<{step}}", role)
            is_shown = wide or place in (self.first, self.column) or (place + 1) % NUMBERED == 0
            return Span(f"{place + 1 if is_shown else '·':<{step}}"[-step:], role)

        def cell(row: int, place: int, own: Span) -> Sequence[Span]:
            text = fit(own.text, step - 1) if wide else f"{own.text:1}"[:1]
            here = (row, place) == (self.index, self.column)
            role = ("cursor" if self.has_focus else CHOSEN) if here else own.role
            return Span(text, role), Span(" ")

        end = self._top + len(shown)
        hidden = f" {self._top + 1}-{end} of {self.count}" * (len(shown) < self.count)
        hidden += f" ← {self.first}" * bool(self.first)
        hidden += f" {count - seen.stop} →" * (count > seen.stop)
        corner = shorten(f"{numbered(0)}{names.head}{hidden}", left - 1)
        lines: list[Line] = [[Span(f"{corner:<{left}}", "label"), *map(head, seen)]]
        for row in shown:
            name, doing, *cells = self._row(row)
            drawn = [span for place in seen for span in cell(row, place, cells[place])]
            named = f"{numbered(row)}{fit(name.text, names.width)} "
            strong = "strong" if row == self.index else name.role
            lines.append([Span(named, strong),
                          Span(f"{fit(doing.text, does.width)} ", doing.role), *drawn])  # fmt: skip
        return lines

    def action_move(self, rows: int) -> None:
        self.moved = True
        super().action_move(rows)

    def action_scroll(self, columns: int) -> None:
        """Move the cursor to another target."""
        last = len(self._columns) - BEFORE - 1
        self.moved, self.column = True, max(0, min(self.column + columns, last))
        self.post_message(self.Moved(self, self.index))

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to a pair; a second click chooses it."""
        offset = event.get_content_offset(self)
        left, step = self._steps
        if offset is not None and offset.x >= left:
            self.action_scroll(self.first + (offset.x - left) // step - self.column)
