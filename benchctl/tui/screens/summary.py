"""The results of a run by axis, with heat and numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from typing import ClassVar

from msgspec.structs import replace
from textual.binding import Binding, BindingType
from textual.widget import Widget

from benchctl.analysis.results import NOT_KEPT_UP
from benchctl.analysis.runs.summary import at_point
from benchctl.metrics import title_of
from benchctl.report.lines.spans import Line, Span, state
from benchctl.report.pivot import Pivot, pivot
from benchctl.report.progress.goals import goals_of
from benchctl.report.report import Report, read_report
from benchctl.report.text.clocks import clock_lines
from benchctl.report.text.delays import delay_table
from benchctl.report.text.limiting import limit_table
from benchctl.report.text.remarks import failures
from benchctl.report.text.searches import unanswered
from benchctl.store.bulk import Bulk
from benchctl.store.read import Reader
from benchctl.tui.draw.plot.heat import INVALID, STEPS, Arrangement, SummaryTable
from benchctl.tui.draw.text.columns import widths
from benchctl.tui.draw.views.flowlist import with_letters
from benchctl.tui.draw.views.goals import goal_columns, goal_row, goal_tally
from benchctl.tui.meanings import LISTED, NEXT, PACKETS, PREVIOUS, VIEW
from benchctl.tui.screens.base.page import AppContext, ReportPage
from benchctl.tui.screens.base.pick import PickFrom
from benchctl.tui.screens.windows.facts import FactsWindow
from benchctl.tui.widgets.grids import Grids, GridTable
from benchctl.tui.widgets.scrolled import Scrolled
from benchctl.tui.widgets.table import Listing, Table


class SummaryScreen(ReportPage):
    """The summary of one run."""

    NAME = "summary"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "metric", "Metric", tooltip="Pick a metric", id="summary.metric"),
        Binding("tab", "app.focus_next", NEXT, show=False, id="summary.focus"),
        Binding("shift+tab", "app.focus_previous", PREVIOUS, show=False, id="summary.focus_back"),
        Binding("R", "rows", "Rows", tooltip="Change the row axis", id="summary.rows"),
        Binding("C", "columns", "Cols", tooltip="Change the column axis", id="summary.columns"),
        Binding("l", "list", LISTED, show=False, id="summary.list"),
        Binding("P", "packets", PACKETS, show=False, id="summary.packets"),
        Binding("v", "replay", "Replay", tooltip=VIEW, id="summary.replay"),
        Binding("F", "facts", "Facts of the hosts", show=False, id="summary.facts"),
        Binding("h", "app.show('history')", "History", id="summary.history"),
        Binding("c", "app.show('compare')", "Compare", id="summary.compare"),
    ]
    DEFAULT_CSS = """
    SummaryScreen {
        #about { height: 3; max-height: 25%; padding: 0 1; }
        &.-tall #grid { margin: 1 0 0 0; }
        #grid { max-height: 60%; padding: 0 1; }
        #others, #results, #goals, #limits, #delays { height: 1fr; padding: 0 1; margin: 1 0 0 0; }
        #others { margin: 0; }
        &.-tiny { #others, #results, #goals, #limits, #delays { display: none; } }
        #row { display: none; height: auto; max-height: 4; padding: 0 1; }
        Notes { padding: 0 1; }
    }
    """

    def __init__(self, around: AppContext, run_id: int) -> None:
        """Raises StoreError."""
        super().__init__(around, run_id)
        with closing(Reader(around.store)) as reader:
            self._run = reader.run(run_id)
        self._summary: SummaryTable | None = None
        self._turn: Arrangement | None = None
        """How the summary is turned; None before it is there."""
        self._sentences: Sequence[str] = ()
        """What came out of the run, as sentences."""
        self._about = Scrolled(id="about")
        self._about.can_focus = False
        self._listings: dict[str, Listing] = {}
        """How the grid of each title is sorted and filtered, wherever it is shown."""
        self._grid = GridTable(self._listings, arranged=True, id="grid")
        self._others = Grids(self._listings, id="others")
        self._goals = Table(id="goals")
        self._results = Table(id="results")
        self._limits = Table(id="limits")
        self._delays = Table(id="delays")
        self._goals.title, self._limits.title = "goals", "limits"
        self._results.title, self._delays.title = "results", "one-way delays"
        self._tables = (self._goals, self._limits, self._delays, self._results)
        self._row = Scrolled(id="row")
        self._row.can_focus = False
        self._shown: Widget = self._others
        """The list below the metric at the top."""

    def body(self) -> Sequence[Widget]:
        self._show_list(self._others)
        return [self._about, self._grid, self._others, *self._tables, self._row, self.notes]

    def on_mount(self) -> None:
        self._grid.focus()

    def command(self) -> str:
        return f"benchctl show {self._run.name}"

    def file_stem(self) -> str:
        return f"{self._run.name}-summary"

    def meanings(self) -> Sequence[tuple[str, str]]:
        return [
            (
                f"{STEPS[0]} … {STEPS[-1]}",
                "from zero to the greatest value of the metric, as the colour",
            ),
            ("±", "half the 95 % interval of the mean over the repeats (Student's t)"),
            ("after /", "the expected value, from the topology alone"),
            ("a", "the letter of a flow, as in the plots"),
            (INVALID, f"not valid: {NOT_KEPT_UP} in a repeat"),
        ]

    def read(self, reader: Reader) -> Callable[[], None]:
        from benchctl.report.answer import read_answer

        report = read_report(reader, reader.run(self._run.id))
        with closing(Bulk(self.around.store)) as bulk:
            flows = bulk.flow_names(self._run.id)
        summary, answer = SummaryTable(report, flows), read_answer(reader, report, brief=True)
        return partial(self._take_report, report, summary, answer)

    def _take_report(self, report: Report, summary: SummaryTable, answer: Sequence[str]) -> None:
        self._run = report.run
        first = self._summary is None
        self._summary, self._sentences = summary, answer
        self._turn = self._turn or self._summary.first_turn()
        failed = [*failures(report)]
        goals = goals_of(report)
        notes: list[Line] = [[Span(f"✗ {report.run.error}", "bad")]] if report.run.error else []
        notes += [goal_tally(goals)] if goals else []
        notes += [
            [
                Span(f"✗ {outcome.remark}", "bad")
                if outcome.fails()
                else Span(f"? {outcome.remark}", "warn")
            ]
            for outcome in report.outcomes
            if not outcome.is_met
        ]
        notes += [[Span(f"! {text}", "warn")] for text in unanswered(report, ends=True)]
        notes += [[Span(f"! {text}", "warn")] for text in clock_lines(report)]
        for trial, why in failed:
            text = f"  trial {trial.position + 1}{at_point(trial.point, ' ({})')} {why}"
            notes.append([state(trial.status), Span(text)])
        self.notes.show(notes)
        counted = Counter(state(trial.status).text[2:] for trial, _ in failed)
        self._goals.show(goal_columns(goals), len(goals), lambda index: goal_row(goals[index]))
        for table, contents in (
            (self._results, pivot(report)),
            (self._limits, limit_table(report)),
            (self._delays, delay_table(report)),
        ):
            if contents is not None:
                _show_all(table, with_letters(contents, summary.flows))
        if first and not self._run.varying and self._results.count > 1:
            self._show_list(self._results)  # each metric would be a grid of one figure
        parts = [f"{len(report.trials)}/{self._run.trials} trials"]
        parts += [f"{count} {word}" for word, count in counted.items()]
        done = Span(f"  {', '.join(parts)}")
        self.bar.show(f"{self._run.profile}  {self._run.name}", [state(self._run.status), done])
        self._show()

    def _show(self) -> None:
        if self._summary is None or self._turn is None:
            return
        width = self._grid.size.width or self.app.size.width
        grid = self._summary.turned(self._turn, width)
        self._about.show([[Span(" ".join(self._sentences), "strong")]], from_the_top=True)
        self._about.styles.height = len(self._about.wrapped)
        self._listings |= {table.title: table.listing for table in self._grids}
        self._grid.show_grid(grid, len(grid.rows) + 2)
        others = [n for n in range(len(self._summary.usual)) if n != self._turn.metric]
        turns = [replace(self._turn, metric=place) for place in others]
        self._others.show([self._summary.turned(turn, width) for turn in turns])

    @property
    def _grids(self) -> Sequence[GridTable]:
        return [self._grid, *self._others.tables]

    def on_table_scrolled(self, event: Table.Scrolled) -> None:
        """Scroll all grids together."""
        if event.table in self._grids:
            for table in self._grids:
                table.first = event.table.first
                table.repaint()

    def fit(self) -> None:
        self._show()

    def _change(self, turn: Arrangement) -> None:
        self._turn = turn
        self._show()

    def action_metric(self) -> None:
        """Pick the metric that is shown at the top."""
        summary, turn = self._summary, self._turn
        if summary is None or turn is None:
            return

        def take(place: int | None) -> None:
            if place is not None:
                self._change(replace(turn, metric=place))
                self._others.scroll_home()
                self._grid.focus()

        about = self._run.vocabulary.describe
        rows = [(title_of(metric), about(metric).description) for metric in summary.metrics]
        self.app.push_screen(PickFrom("Metric", rows, turn.metric), take)

    def action_rows(self) -> None:
        """Start the rows with another axis."""
        if self._summary is not None and self._turn is not None:
            self._change(self._turn.rows(self._summary))

    def action_columns(self) -> None:
        """Put another axis into the columns."""
        if self._summary is not None and self._turn is not None:
            self._change(self._turn.columns(self._summary))

    def action_list(self) -> None:
        """Show the next list that has something."""
        lists: list[Widget] = [self._others, *(table for table in self._tables if table.count)]
        self._show_list(lists[(lists.index(self._shown) + 1) % len(lists)])
        (self._shown if isinstance(self._shown, Table) else self._grid).focus()
        self.on_table_moved()

    def _show_list(self, shown: Widget) -> None:
        self._shown = shown
        for widget in (self._others, *self._tables):
            widget.display = widget is shown

    def on_table_moved(self) -> None:
        """Show the last cell of the row under the cursor in full: it is a sentence."""
        table = self._shown if self._shown in (self._goals, self._limits) else None
        self._row.display = isinstance(table, Table) and table.here is not None
        if isinstance(table, Table) and table.here is not None:
            text = table.pivot().rows[table.place][-1]
            self._row.show([[Span(text)]], from_the_top=True)
            self._row.styles.height = len(self._row.wrapped)

    def action_packets(self) -> None:
        """Show the packets of the first trial that has some."""
        from benchctl.tui.screens.windows.packets import PacketsWindow

        around = self.around
        self.app.push_screen(PacketsWindow(around.store, self._run.id, None, around.glyphs))

    def action_facts(self) -> None:
        """Show the facts of the hosts."""
        self.app.push_screen(FactsWindow(self._run))

    def action_replay(self) -> None:
        """Replay the run."""
        self.want("live", self._run.id)


def _show_all(table: Table, contents: Pivot) -> None:
    columns = widths(contents.heads, contents.rows, contents.numeric)
    table.show(
        columns, len(contents.rows), lambda index: [Span(cell) for cell in contents.rows[index]]
    )
