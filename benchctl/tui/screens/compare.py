"""Two or more runs: per point and metric A, B, difference, interval and verdict, with a plot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from typing import ClassVar

from msgspec.structs import replace
from textual.binding import Binding, BindingType
from textual.widget import Widget

from benchctl.analysis.results import NOT_KEPT_UP
from benchctl.analysis.runs.compare import Comparison
from benchctl.report.comparison.changes import Changes, changes_of
from benchctl.report.comparison.comparison import (
    arranged,
    compare_reports,
    comparison_table,
    explanation,
    speed,
    verdicts,
)
from benchctl.report.comparison.differences import differences
from benchctl.report.comparison.forest import forest
from benchctl.report.lines.spans import Line, Span
from benchctl.report.pivot import align
from benchctl.report.report import Report, read_report
from benchctl.report.text.routes import route_differences
from benchctl.run.record import Run
from benchctl.store.read import Reader
from benchctl.tui.draw.plot.rows import forest_rows
from benchctl.tui.draw.plot.spread import HIGH, LOW, MEAN, POINT, draw_spread
from benchctl.tui.draw.text.columns import Cells, widths
from benchctl.tui.draw.views.verdicts import NOT_VALID, SEEN, ChangeRows, described, verdict_of
from benchctl.tui.meanings import AFTER, BEFORE, ONLY
from benchctl.tui.screens.base.page import AppContext, ReportPage
from benchctl.tui.widgets.boardtable import BoardTable
from benchctl.tui.widgets.scrolled import Scrolled
from benchctl.tui.widgets.table import Table

# So many lines take the repeats of a row and what is said of it, on a screen of a usual width.
LEAST_SPREAD = 5
# The matrix of a mesh has at most this share of the screen.
MOST_MATRIX = 0.45
# Lines that the differences need to be drawn, and those of them for the axis and notes.
LEAST_FOREST, BESIDE_FOREST = 7, 5
# Lines of the table above its rows.
_HEAD = 1
NOTHING_COMMON = "the runs have no metric in common"
NOTHING_SEEN = "no figure differs as far as the repeats show; o shows all again"

Compared = Sequence[Sequence[Comparison]]


class CompareScreen(ReportPage):
    """The first run, A, beside each of the others."""

    NAME = "compare"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left_square_bracket", "other(-1)", BEFORE, show=False, id="compare.before"),
        Binding("right_square_bracket", "other(1)", "Next", tooltip=AFTER, id="compare.next"),
        Binding("w", "swap", "Swap", tooltip="Swap A and B", id="compare.swap"),
        Binding("A", "all", "All", tooltip="All metrics or the usual ones", id="compare.all"),
        Binding("E", "effect", "Effect", tooltip="Sort by effect or metric", id="compare.effect"),
        Binding("o", "only", "Only", tooltip=ONLY, id="compare.only"),
        Binding("h", "app.show('history')", "History", show=False, id="compare.history"),
        Binding("u", "summary", "Summary", id="compare.summary"),
    ]
    DEFAULT_CSS = """
    CompareScreen {
        #runs { height: auto; max-height: 12; padding: 0 1; }
        &.-short #runs { max-height: 6; }
        #why { height: auto; max-height: 4; padding: 0 1; }
        &.-short #why { max-height: 2; }
        &.-tiny #why { display: none; }
        #matrix { display: none; padding: 0 1; }
        #table { height: 1fr; padding: 0 1; }
        #forest { padding: 0 1; border-top: solid $foreground 30%; display: none; }
        #spread { height: 6; padding: 0 1; border-top: solid $foreground 30%; }
        Notes { padding: 0 1; }
        &.-mesh #matrix { display: block; }
        &.-mesh.-short #runs { max-height: 3; }
        &.-tiny #spread, &.-tiny #matrix { display: none; }
    }
    """

    def __init__(self, around: AppContext, *run_ids: int) -> None:
        """Raises StoreError."""
        super().__init__(around, *run_ids)
        with closing(Reader(around.store)):
            pass  # There is a store, and it can be read.
        self._order = list(run_ids)
        self._place = 1
        """Which of the runs is compared with the first."""
        self._everything = False
        self._only = False
        self._by_effect = False
        self._reports: Sequence[Report] = ()
        self._compared: Compared = ()
        self._shown: Sequence[Comparison] = ()
        self._heads = Scrolled(id="runs")
        self._table = Table(id="table", empty=NOTHING_COMMON)
        self._matrix = BoardTable(id="matrix")
        self._between: Changes | None = None
        """What the matrix shows: the metric of the row under the cursor, for all pairs."""
        self._forest = Scrolled(id="forest")
        self._forest.can_focus = False
        self._why = Scrolled(id="why")
        self._why.can_focus = False
        self._spread = Scrolled(id="spread")
        self._spread.can_focus = False

    def body(self) -> Sequence[Widget]:
        tables = self._heads, self._matrix, self._table
        return [*tables, self._forest, self._why, self._spread, self.notes]

    def on_mount(self) -> None:
        self._table.focus()

    def command(self) -> str:
        options = " --all" * self._everything + " --sort effect" * self._by_effect
        return f"benchctl compare {' '.join(run.name for run in self._runs)}{options}"

    def meanings(self) -> Sequence[tuple[str, str]]:
        return [
            ("difference", "mean of B minus mean of A"),
            ("95 % interval", "of that difference, by Welch's t: unequal variances, few repeats"),
            ("verdict", "corrected for the number of figures: it holds for the whole table"),
            ("change", "the difference as a share of A; ratios differ in percentage points (pp)"),
            ("repeats", "how many A and B have of the figure"),
            ("only in B", "A has no such figure"),
            (NOT_VALID, f"{NOT_KEPT_UP} in a repeat of either run"),
            (f"{LOW}{MEAN}{HIGH}  {POINT}", "the mean, its own 95 % interval, and the repeats"),
        ]

    def read(self, reader: Reader) -> Callable[[], None]:
        reports = [read_report(reader, reader.run(run_id)) for run_id in [*self._order]]
        return partial(self._take_compared, reports, compare_reports(*reports))

    def _take_compared(self, reports: Sequence[Report], compared: Compared) -> None:
        self._reports, self._compared = reports, compared
        self._show()

    @property
    def _runs(self) -> Sequence[Run]:
        return [report.run for report in self._reports]

    def _show(self) -> None:
        if not self._reports:
            return
        a, b = self._reports[0], self._reports[self._place]
        shown = arranged(
            self._compared[self._place - 1], *self._runs, every=self._everything,
            by_effect=self._by_effect,
        )  # fmt: skip
        why, every = explanation(shown), len(shown)
        if self._only:
            shown = [
                comparison
                for comparison in shown
                if comparison.valid and comparison.verdict in SEEN
            ]
        self._shown = shown
        self._heads.show(
            [
                [Span("A ", "curve-0"), Span(_named(a.run))],
                [Span("B ", "curve-1"), Span(_named(b.run))],
                *_differing(a, b),
            ],
            from_the_top=False,
        )
        self._heads.styles.height = len(self._heads.wrapped)
        self._why.show([[Span(line, "dim")] for line in why], from_the_top=True)
        self._why.styles.height = len(self._why.wrapped)
        count = f"  B is {self._place + 1} of {len(self._runs)}" * (len(self._runs) > 2)
        figures = f"{len(shown)} of {every}" if self._only else f"{every}"
        effect = " by effect" * self._by_effect
        seen = f"B is {word}: " if (word := speed(shown)) else ""
        self.bar.show(f"{seen}{verdicts(shown)}", [Span(f"{figures} figures{effect}{count}")])
        self._table.empty = NOTHING_SEEN if every else NOTHING_COMMON
        table = comparison_table(shown)
        columns = widths(table.heads, table.rows, table.numeric)
        seen_of = [verdict_of(comparison) for comparison in shown]
        columns[-1] = replace(columns[-1], width=max([0, *(len(seen.text) for seen in seen_of)]))

        def row(index: int) -> Cells:
            return [*map(Span, table.rows[index][:-1]), seen_of[index]]

        self._table.show(columns, len(shown), row)
        self._between = None
        self._show_here()
        self.call_after_refresh(self._show_forest)

    def _show_forest(self) -> None:
        """Draw the first differences with their intervals, as many as the table leaves room for."""
        common = [comparison for comparison in self._shown if comparison.relative is not None]
        drawn = self._forest.outer_size.height if self._forest.display else 0
        free = self._table.size.height + drawn - _HEAD - len(self._shown)
        self._forest.display = False
        if common and free > LEAST_FOREST:
            most = max(1, free - BESIDE_FOREST)
            figure = forest(self._runs[0], self._runs[self._place], common, most)
            lines = [*forest_rows(figure, figure.panels[0], self._table.size.width)]
            lines += [[Span(note, "dim")] for note in figure.notes]
            self._forest.show(lines, from_the_top=True)
            self._forest.styles.height = len(lines) + 1
            self._forest.display = len(lines) < free

    def _show_spread(self) -> None:
        if self._table.here is not None:
            comparison = self._shown[self._table.here]
            runs, width = [("A", comparison.a), ("B", comparison.b)], self._spread.size.width
            crowded = self.has_class("-mesh") and self.has_class("-short")
            drawn = [] if crowded else draw_spread(comparison.metric, runs, width)
            self._spread.show([described(comparison), *drawn], from_the_top=True)
            least = LEAST_SPREAD * bool(drawn)
            self._spread.styles.height = 1 + max(least, len(self._spread.wrapped))
        else:
            self._spread.show([], from_the_top=True)

    def _show_here(self) -> None:
        """Show the matrix and the repeats of the row under the cursor."""
        here = self._table.here
        if here is not None:
            comparison, known = self._shown[here], self._between
            if known is None or comparison not in known.pairs.values():
                known = changes_of(
                    self._reports[self._place], comparison, self._compared[self._place - 1]
                )
            self._between = known = known if known is not None and known.is_filled else None
            if known is not None:
                pair = next(
                    (pair for pair, other in known.pairs.items() if other is comparison), None
                )
                self._matrix.moved = self._matrix.has_focus
                self._matrix.show_board(ChangeRows(known), pair)
                most = int(MOST_MATRIX * self.size.height)
                self._matrix.styles.height = min(len(known.mesh.hosts) + 2, most)
        self.set_class(self._between is not None, "-mesh")
        self._show_spread()

    def on_table_moved(self, event: Table.Moved) -> None:
        """Go to the pair of a row, or to the row of a pair."""
        if event.table is self._table:
            self._show_here()
        elif self._between is not None:
            self._matrix.repaint()
            comparison = self._between.pairs.get(self._matrix.pair)
            rows = [row for row, other in enumerate(self._shown) if other is comparison]
            if rows:
                self._table.go_to(rows[0])

    def fit(self) -> None:
        self._show()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "other" or len(self._order) > 2

    def action_other(self, steps: int) -> None:
        """Compare the first run with the next one, or the one before."""
        self._place = (self._place - 1 + steps) % (len(self._order) - 1) + 1
        self._show()

    def action_swap(self) -> None:
        """Swap A and B."""
        ids = self._order
        ids[0], ids[self._place] = ids[self._place], ids[0]
        self.load()

    def action_all(self) -> None:
        """Show every metric, or only the main ones."""
        self._everything = not self._everything
        self._show()

    def action_effect(self) -> None:
        """Sort by the size of the effects, or by metric."""
        self._by_effect = not self._by_effect
        self._table.sort(None)
        self._show()

    def action_only(self) -> None:
        """Show only figures that differ, or all."""
        self._only = not self._only
        self._show()

    def action_summary(self) -> None:
        """Show the results of the first run."""
        self.want("summary", self._order[0])


def _differing(a: Report, b: Report) -> list[Line]:
    """Return what differs between two runs beside their figures."""
    table = differences(a.run, b.run, routes=route_differences(a, b))
    if not table.rows:
        return []
    head, _, *rows = align(table.heads, table.rows).splitlines()
    unlike = a.run.profile != b.run.profile
    roles = ["warn" if unlike and place == 0 else "" for place in range(len(rows))]
    return [
        [Span(head, "label")],
        *([Span(row, role)] for row, role in zip(rows, roles, strict=True)),
    ]


def _named(run: Run) -> str:
    tags = f"  [{', '.join(run.tags)}]" if run.tags else ""
    return f"{run.name}  {run.profile}  {run.status}{tags}"
