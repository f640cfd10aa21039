"""The board of trials side by side, as rows of text: hosts, what each does, the matrix. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from benchctl.metrics import title_of
from benchctl.report.lines.spans import HEATS, Line, Span, state
from benchctl.run.record import HostConnection
from benchctl.tui.draw.plot.heat import STEPS
from benchctl.tui.draw.text.columns import Cells, Column
from benchctl.tui.model.board import Board, BoardPair
from benchctl.tui.model.runview import OK
from benchctl.units import number_in, scale_of
from benchctl.visible import width_of

# The columns before those of the targets: the host, and what it does.
BEFORE = 2
LOST = "✗ lost"
# "94.1": cells do not grow when the first trials end.
NUMBER = 4


class BoardRows:
    """The board at a moment: a row for each host, a cell for each host that it sends to.

    A cell is a bar from zero to the greatest figure, or the sign of a state, and the figure.
    """

    def __init__(
        self, board: Board, time: float, connections: Mapping[str, HostConnection]
    ) -> None:
        self._states = board.at(time)
        self.hosts, self._metric, self._trials = board.hosts, board.metric, board.trials
        self._positions = board.positions
        self._doing = board.doing_at(time)
        self._lost = {name for name, known in connections.items() if known.lost}
        self._means = means = [
            state.mean for state in self._states.values() if state.mean is not None
        ]
        self._high = max(means, default=0.0)
        self._factor, unit = scale_of(board.metric, self._high) if means else (1.0, "")
        self._named = f"{title_of(board.metric)}, {unit}: " if means else ""

    def columns(self) -> list[Column]:
        """Return the columns: host, what it does, a column for each target."""
        longest = max([4, *map(width_of, self.hosts)])
        names = Column("from", longest, fixed=True)
        numbers = max(map(width_of, map(self._number, self._means)), default=0)
        each = len(f"{STEPS[0]} ") + max(NUMBER, numbers)
        heads = [Column(host, each, drawn=True) for host in self.hosts]
        does = len(f"▶ {self._trials} from ") + longest
        return [names, Column("now", does, fixed=True), *heads]

    def row(self, index: int) -> Cells:
        """Return the cells of a host."""
        host = self.hosts[index]
        return [Span(host), self._does(host), *(self.cell((host, to)) for to in self.hosts)]

    def _does(self, host: str) -> Span:
        if host in self._lost:
            return Span(LOST, "bad")
        doing = self._doing.get(host)
        return Span(f"▶ {doing}", "running") if doing else Span("")

    def cell(self, pair: BoardPair) -> Span:
        """Return what is known of a pair; blank if nothing is measured between the two."""
        known = self._states.get(pair)
        if known is None:
            return Span("")
        sign, role = (shown := state(known.status)).text[0], shown.role
        if known.mean is None:
            return Span(sign, role)
        if known.status is OK:
            step = min(HEATS - 1, int(known.mean / self._high * HEATS)) if self._high else 0
            sign, role = STEPS[step], f"heat-{step}"
        return Span(f"{sign} {self._number(known.mean)}", role)

    def _number(self, mean: float) -> str:
        return number_in(self._metric, mean, self._factor)

    def title(self, pair: BoardPair) -> Line:
        """Return what the cells are, and what is known of the pair under the cursor."""
        known = self._states.get(pair)
        line = [Span(f"{self._named}from ↓ to →", "strong"), Span(f"   {' to '.join(pair)}: ")]
        if known is None:
            return [*line, Span("not measured", "dim")]
        trials = self._positions.get(pair, ())
        numbers = ", ".join(str(position + 1) for position in trials)
        shown = state(known.status)
        figure = "" if known.mean is None else f"{self._number(known.mean)}  "
        named = f"trial{'s' * (len(trials) > 1)} {numbers}  "
        return [*line, Span(figure, "strong"), Span(named), shown]
