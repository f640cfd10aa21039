"""The lists of a run beside its plots: flows, trials, results, goals, remarks.

Textual's TabbedContent shows another list in 50 ms instead of 15 ms (``python bench widgets``), and
has no way to show several side by side where there is room.
"""

from __future__ import annotations

from collections.abc import Sequence

from textual.containers import Container
from textual.widget import Widget

from benchctl.report.lines.spans import Line, Span
from benchctl.report.progress.goals import has_goals
from benchctl.tui.draw.text.columns import widths
from benchctl.tui.draw.views import status
from benchctl.tui.draw.views.board import BoardRows
from benchctl.tui.draw.views.flowlist import with_letters
from benchctl.tui.draw.views.goals import goal_columns, goal_row
from benchctl.tui.model.board import Board
from benchctl.tui.model.results import Results
from benchctl.tui.screens.base.page import AppContext
from benchctl.tui.screens.parts.plots import PlotPage
from benchctl.tui.widgets.boardtable import BoardTable
from benchctl.tui.widgets.flowpicker import FlowPicker
from benchctl.tui.widgets.scrolled import Scrolled
from benchctl.tui.widgets.table import Table

LISTS = ("board", "flows", "trials", "results", "goals", "remarks")
"""The ids of the lists. The one that is shown is a class of the screen, as in ``-list-trials``."""
# The list below plots and trials, where all are shown, has at most this share of the screen: the
# plots have what it leaves. Below the trials alone it has more.
MOST_BELOW, MOST_BESIDE = 0.15, 0.4
# The board of trials side by side, above the plots.
MOST_BOARD = 0.55


class ListsPage(PlotPage):
    """A screen with the lists of a run: all side by side, or one at a time."""

    _results: Results
    _middle: Container

    def __init__(self, around: AppContext, run_id: int) -> None:
        super().__init__(around, run_id)
        self._flows = FlowPicker(id="flows", empty="no flow has begun yet")
        self._board = BoardTable(id="board")
        self._trials = Table(id="trials", empty="no trials")
        self._table = Table(id="results", empty="no trial has a result")
        self._goals = Table(id="goals", empty="no trial has ended yet")
        self._remarks = Scrolled(id="remarks")
        self._before_pick = ""
        """The list from which the flows were picked; escape goes back to it."""

    def lists(self) -> Sequence[Widget]:
        """Return the lists: the first two beside the plots, and those below."""
        side = Container(self._flows, self._trials, id="side")
        return [side, self._table, self._goals, self._remarks]

    @property
    def _shown_list(self) -> str:
        return next(name for name in LISTS if self.has_class(f"-list-{name}"))

    def action_pick(self) -> None:
        """Go to the list of flows."""
        if not self._flows.has_focus:
            self._before_pick = self._shown_list
            self._show_list("flows")

    def back(self) -> bool:
        if super().back():
            return True
        before, self._before_pick = self._before_pick, ""
        if not before or not self._flows.has_focus:
            return False
        self._show_list(before)
        return True

    def has_list(self, name: str) -> bool:
        """Return whether the run has what a list shows."""
        if name == "board":
            return self._feed.board is not None
        return name != "goals" or has_goals(self.view.run)

    def action_list(self) -> None:
        """Show the next list."""
        names: Sequence[str] = [name for name in LISTS if self.has_list(name)]
        if self.has_class("-tall") and not self.has_class("-narrow"):  # the others are shown
            names = [name for name in names if name not in LISTS[:3]]
        place = names.index(self._shown_list) if self._shown_list in names else 0
        self._show_list(names[(place + 1) % len(names)])

    def _show_list(self, name: str) -> None:
        """Show a list, and move the focus to it."""
        for other in LISTS:
            self.set_class(other == name, f"-list-{other}")
        self.query_one(f"#{name}").focus()
        self.call_after_refresh(self.fit)

    def _show_board(self, board: Board, time: float) -> None:
        """Show the hosts of trials side by side, as high as they are or as there is room."""
        drawn = BoardRows(board, time, self.view.run.connections)
        position = self._feed.position
        watched = min(board.pairs_of(position), default=None) if position >= 0 else None
        self._board.show_board(drawn, watched)
        most = int(MOST_BOARD * self.size.height)
        self._board.styles.height = min(len(board.hosts) + 2, most)

    def _show_lists(self, time: float) -> None:
        view = self._feed.view
        if self._feed.board is not None and self._board.display:
            self._show_board(self._feed.board, time)
        if self._trials.display:
            self._trials.show(
                status.trial_columns(view),
                view.known_at(time),
                lambda index: status.trial_row(view, index, time),
            )
        if self._table.display:
            table = self._results.at(time)
            if table is None or not table.rows:
                self._table.show((), 0, lambda _: ())
            else:
                table = with_letters(table, view.flows)
                heads, rows = widths(table.heads, table.rows, table.numeric), table.rows
                self._table.show(heads, len(rows), lambda i: [Span(cell) for cell in rows[i]])
        if self._goals.display:
            goals = self._results.goals_at(time)
            self._goals.show(goal_columns(goals), len(goals), lambda i: goal_row(goals[i]))
        if self._remarks.display:
            none = [[Span("no remarks; n notes one", "dim")]]
            title: Line = [Span("remarks and warnings", "label")]
            notes = status.remarks(view, time, self._feed.position) or none
            self._remarks.show([title, *notes], from_the_top=False)
        below = next((table for table in (self._table, self._goals) if table.display), None)
        lines = below.count + 1 if below is not None else len(self._remarks.wrapped)
        beside = self.has_class("-huge") or self.has_class("-many")
        share = MOST_BESIDE if beside else MOST_BELOW
        most = int(share * self.size.height)
        self._middle.styles.grid_rows = f"1fr {max(2, min(most, lines))}"
