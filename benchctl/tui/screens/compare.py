"""Two or more runs: per point and metric A, B, difference, interval and verdict, with a plot."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import ClassVar

from textual import work
from textual.binding import Binding, BindingType
from textual.widget import Widget

from benchctl.analysis.compare import Comparison, Verdict
from benchctl.errors import StoreError
from benchctl.metrics import title_of
from benchctl.report.comparison import (
    compare_reports,
    comparison_table,
    interval,
    of_interest,
    signed,
)
from benchctl.report.report import read_report
from benchctl.run.record import Run
from benchctl.store.read import Reader
from benchctl.tui.draw.columns import Cells, widths
from benchctl.tui.draw.spans import Span
from benchctl.tui.draw.spread import HIGH, LOW, MEAN, POINT, draw_spread
from benchctl.tui.screens.page import Page, Surroundings
from benchctl.tui.widgets.notes import Notes
from benchctl.tui.widgets.scrolled import Scrolled
from benchctl.tui.widgets.table import Table

SEEN = {Verdict.BETTER: "good", Verdict.WORSE: "bad", Verdict.DIFFERENT: "warn"}
# A glyph beside the word, as everywhere.
GLYPHS = {
    Verdict.BETTER: "▲",
    Verdict.WORSE: "▼",
    Verdict.DIFFERENT: "≠",
    Verdict.SAME: "=",
    Verdict.FEW: "?",
}
SHORT = {Verdict.SAME: "none seen", Verdict.FEW: "too little"}
"""The line below the table has the full words."""
WORDS = {verdict: f"{GLYPHS[verdict]} {SHORT.get(verdict, verdict)}" for verdict in Verdict}


Standing = tuple[str, int | None]
"""The status of a run, and the position of its next trial."""


class CompareScreen(Page):
    """The first run, A, beside each of the others."""

    NAME = "compare"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "other", "Next", tooltip="Compare A with the next run", id="compare.next"),
        Binding("w", "swap", "Swap", tooltip="Swap A and B", id="compare.swap"),
        Binding("a", "all", "All", tooltip="All metrics or the usual ones", id="compare.all"),
        Binding("o", "only", "Only", tooltip="Only differences", id="compare.only"),
        Binding("h", "app.show('history')", "History", id="compare.history"),
        Binding("u", "summary", "Summary", tooltip="Summary of A", id="compare.summary"),
    ]
    DEFAULT_CSS = """
    CompareScreen {
        #runs { height: 2; padding: 0 1; }
        #table { height: 1fr; padding: 0 1; }
        #spread { height: 6; padding: 0 1; border-top: solid $foreground 30%; }
        Notes { padding: 0 1; }
        &.-tiny #spread { display: none; }
    }
    """

    def __init__(self, around: Surroundings, *run_ids: int) -> None:
        """Raises StoreError."""
        super().__init__(around, *run_ids)
        self._reader = Reader(around.store)
        self._changes = -1
        self._standing: Sequence[Standing] = ()
        """How far each run was when they were compared."""
        self._order = list(run_ids)
        self._place = 1
        """Which of the runs is compared with the first."""
        self._everything = False
        self._only = False
        self._failed = False
        self._runs: Sequence[Run] = ()
        self._compared: Sequence[Comparison] = ()
        self._shown: Sequence[Comparison] = ()
        self._heads = Scrolled(id="runs")
        self._heads.can_focus = False
        self._table = Table(id="table", empty="the runs have no metric in common")
        self._spread = Scrolled(id="spread")
        self._spread.can_focus = False
        self._notes = Notes()

    def body(self) -> Sequence[Widget]:
        return [self._heads, self._table, self._spread, self._notes]

    def on_mount(self) -> None:
        self._table.focus()

    def on_unmount(self) -> None:
        """Close the store."""
        self._reader.close()

    @property
    def settled(self) -> bool:
        return bool(self._runs) or self._failed

    def command(self) -> str:
        return f"benchctl compare {' '.join(run.name for run in self._runs)}"

    def meanings(self) -> Sequence[tuple[str, str]]:
        return [
            ("difference", "mean of B minus mean of A"),
            ("95 % interval", "of that difference, by Welch's t: unequal variances, few repeats"),
            ("verdict", "a difference is seen where the interval leaves out zero"),
            (f"{LOW}{MEAN}{HIGH}  {POINT}", "the mean, its own 95 % interval, and the repeats"),
        ]

    def tick(self) -> None:
        """Compare again if one of the runs has progressed."""
        try:
            changes = self._reader.changes()
            if changes == self._changes:
                return
            self._changes = changes
            standing = [self._standing_of(run_id) for run_id in self.run_ids]
        except StoreError as error:
            self._complain(error)
            return
        if standing != self._standing:
            self._standing = standing
            self._load()

    def _standing_of(self, run_id: int) -> Standing:
        following = self._reader.next_open(run_id, 0)
        return self._reader.run(run_id).status, following.position if following else None

    @work(thread=True, exclusive=True, group="compare")
    def _load(self) -> None:
        try:
            # SQLite needs a connection for each thread.
            with closing(Reader(self._reader.path)) as reader:
                runs = [reader.run(run_id) for run_id in self._order]
                reports = [read_report(reader, run) for run in (runs[0], runs[self._place])]
                compared = compare_reports(*reports)
        except StoreError as error:
            self.app.call_from_thread(self._complain, error)
        else:
            self.app.call_from_thread(self._take, runs, compared)

    def _complain(self, error: StoreError) -> None:
        self._failed, self._changes, self._standing = True, -1, ()
        self._notes.show([[Span(f"! {error.message}", "bad")], [Span(f"  {error.hint}")]])

    def _take(self, runs: Sequence[Run], compared: Sequence[Comparison]) -> None:
        self._runs, self._compared, self._failed = runs, compared, False
        self._notes.show([])
        self._show()

    def _show(self) -> None:
        if not self._runs:
            return
        b = self._runs[self._place]
        shown = (
            self._compared if self._everything else of_interest(self._compared, self._runs[0], b)
        )
        if self._only:
            shown = [one for one in shown if one.verdict in SEEN]
        self._shown = shown
        self._heads.show(
            [
                [Span("A ", "curve-0"), Span(_named(self._runs[0]))],
                [Span("B ", "curve-1"), Span(_named(b))],
            ],
            from_the_top=True,
        )
        count = f"  B is {self._place + 1} of {len(self._runs)}" * (len(self._runs) > 2)
        self.bar.show(_tally(shown), [Span(f"{len(shown)} figures{count}")])
        table = comparison_table(shown)
        columns = widths(table.heads, table.rows, table.numeric)
        columns[-1] = replace(columns[-1], width=max(map(len, WORDS.values())))

        def row(index: int) -> Cells:
            verdict = shown[index].verdict
            return [*map(Span, table.rows[index][:-1]), Span(WORDS[verdict], _role(verdict))]

        self._table.show(columns, len(shown), row)
        self._show_spread()

    def _show_spread(self) -> None:
        if self._table.index < len(self._shown):
            one = self._shown[self._table.index]
            width = self._spread.size.width
            drawn = draw_spread(one.metric, [("A", one.a), ("B", one.b)], width)
            self._spread.show([_told(one), *drawn], from_the_top=True)
        else:
            self._spread.show([], from_the_top=True)

    def on_table_moved(self) -> None:
        """Draw the repeats of the row under the cursor."""
        self._show_spread()

    def fit(self) -> None:
        self._show()

    def action_other(self) -> None:
        """Compare the first run with the next one."""
        self._place = self._place % (len(self._order) - 1) + 1
        self._load()

    def action_swap(self) -> None:
        """Swap A and B."""
        ids = self._order
        ids[0], ids[self._place] = ids[self._place], ids[0]
        self._load()

    def action_all(self) -> None:
        """Show every metric, or only the main ones."""
        self._everything = not self._everything
        self._show()

    def action_only(self) -> None:
        """Show only figures that differ, or all."""
        self._only = not self._only
        self._show()

    def action_summary(self) -> None:
        """Show the results of the first run."""
        self.want("summary", self._order[0])


def _role(verdict: Verdict) -> str:
    return SEEN.get(verdict, "dim")


def _told(one: Comparison) -> list[Span]:
    """Return a whole row as one line, for when its columns do not fit."""
    point = ", ".join(f"{axis}={value}" for axis, value in one.point.items())
    share = f" ({one.relative * 100:+.1f} %)" if one.relative is not None else ""
    return [
        Span(f"{title_of(one.metric)}{f' of {one.flow}' if one.flow else ''}", "strong"),
        Span(f" at {point}" if point else ""),
        Span(f": {signed(one.metric, one.difference)}{share}, 95 % {interval(one)}; "),
        Span(str(one.verdict), _role(one.verdict)),
    ]


def _named(run: Run) -> str:
    tags = f"  [{', '.join(run.tags)}]" if run.tags else ""
    return f"{run.name}  {run.profile}  {run.status}{tags}"


def _tally(shown: Sequence[Comparison]) -> str:
    counted = {verdict: sum(one.verdict is verdict for one in shown) for verdict in Verdict}
    return ", ".join(f"{count} {verdict}" for verdict, count in counted.items() if count)
