"""Every run in the store: find, tag, delete, replay, compare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from benchctl.analysis.results import NOT_KEPT_UP
from benchctl.errors import BenchctlError
from benchctl.report.lines.spans import Span
from benchctl.report.past import HistoryEntry
from benchctl.run.record import BASELINE
from benchctl.store.copies.trash import KEPT_DAYS, deleted_runs, trash_run, undelete_run
from benchctl.store.locks import Liveness
from benchctl.store.manage import read_tags, set_baseline, set_tags
from benchctl.store.read import Reader
from benchctl.tui.draw.plot.heat import INVALID
from benchctl.tui.draw.text.columns import Cells
from benchctl.tui.draw.views.runs import BEGAN, WHEN, about_run, narrowed
from benchctl.tui.screens.base.modals import Ask, Prompt
from benchctl.tui.screens.base.page import AppContext, ReportPage
from benchctl.tui.screens.base.pick import PickFrom
from benchctl.tui.screens.base.tables import SHOWN_FILTER
from benchctl.tui.screens.parts.pastrows import PastReader, PastRows
from benchctl.tui.widgets.scrolled import Scrolled
from benchctl.tui.widgets.table import Table
from benchctl.units import format_ago, format_count


class HistoryScreen(ReportPage):
    """All runs, the newest first."""

    NAME = "history"
    BINDINGS: ClassVar[list[BindingType]] = [
        SHOWN_FILTER,
        Binding("x", "mark", "Mark", id="history.mark"),
        Binding("c", "compare", "Compare", id="history.compare"),
        Binding("t", "tag", "Tag", id="history.tag"),
        Binding("d,delete", "delete", "Delete", id="history.delete"),
        Binding("U", "undelete", "Bring back a deleted run", show=False, id="history.undelete"),
        Binding("u", "summary", "Summary", id="history.summary"),
        Binding("b", "baseline", "Set or clear the baseline", show=False, id="history.baseline"),
    ]
    DEFAULT_CSS = """
    HistoryScreen {
        Table { height: 1fr; padding: 0 1; }
        #about { height: 3; padding: 0 1; border-top: solid $foreground 30%; }
        &.-tiny #about { display: none; }
        Notes { padding: 0 1; }
    }
    """

    def __init__(self, around: AppContext) -> None:
        super().__init__(around)
        self._past = PastReader()
        self._rows = PastRows((), (), (), 0)
        self._marked: list[int] = []
        """Ids of the marked runs, in the order of marking: the first is compared with."""
        self._table = Table(id="runs", empty="there are no runs yet")
        self._about = Scrolled(id="about")
        self._about.can_focus = False

    def body(self) -> Sequence[Widget]:
        return [self._table, self._about, self.notes]

    def on_mount(self) -> None:
        self._table.focus()

    def command(self) -> str:
        return "benchctl runs"

    def meanings(self) -> Sequence[tuple[str, str]]:
        return [
            (
                "figure",
                "the headline of the profile's first flow, or its sum over flows that are"
                " alike; ± is half the 95 % interval, … the range over the points",
            ),
            (
                "baseline",
                "the difference from the newest run of the profile tagged "
                f"{BASELINE}, and the verdict, as Compare has it; of several points, the verdicts",
            ),
            (INVALID, f"not valid: {NOT_KEPT_UP}"),
            ("●", "marked for a comparison; the run marked first is A"),
        ]

    def progress(self, reader: Reader, changes: int) -> object:
        return changes

    def read(self, reader: Reader) -> Callable[[], None]:
        for rows in self._past.read(reader):
            if len(rows.past) < rows.every:
                self.app.call_from_thread(self._take_first, rows)
        return partial(self._take_rows, rows)

    def _take_first(self, rows: PastRows) -> None:
        if len(self._rows.past) <= len(rows.past):  # otherwise more is shown already
            self._take_rows(rows)
            self.become_ready()

    def _take_rows(self, rows: PastRows) -> None:
        under = self._here
        self._rows = rows
        places = {entry.run.id: place for place, entry in enumerate(rows.past)}
        if under is not None:
            self._table.index = places.get(under.run.id, self._table.index)
        self._show()

    def _show(self) -> None:
        past, cells, columns, _ = self._rows
        mark, now = Span("●", "strong"), self.around.clock()
        if self.has_class("-narrow"):
            columns = narrowed(columns, cells)

        def row(index: int) -> Cells:
            run, row = past[index].run, [*cells[index]]
            row[WHEN] = Span(format_ago(now - run.created_time).removesuffix(" ago"))
            row[BEGAN] = Span(row[BEGAN].text[-columns[BEGAN].width :])
            if run.id in self._marked:
                row[0] = mark
            return row

        self._table.show(columns, len(past), row)
        self._show_about()

    def _show_about(self) -> None:
        """Describe the run under the cursor, and count those that are shown."""
        here, count, every = self._here, self._table.count, self._rows.every
        runs = format_count(every, "run")
        some = f"{count} of {runs}" if count != every else runs
        marked = [Span(f"{len(self._marked)} marked", "strong")] if self._marked else []
        self.bar.show(f"{some} in {self.around.store}", marked)
        self._about.show([about_run(here)] if here is not None else [], from_the_top=True)

    def on_table_moved(self) -> None:
        """Describe the run under the cursor."""
        self._show_about()

    @property
    def _here(self) -> HistoryEntry | None:
        """The run under the cursor."""
        here = self._table.here
        return self._rows.past[here] if here is not None else None

    def fit(self) -> None:
        self._show()

    # --- keys -----------------------------------------------------------------------------

    def on_table_chosen(self) -> None:
        """Open the run live, or as a replay."""
        if self._here is not None:
            self.want("live", self._here.run.id)

    def action_mark(self) -> None:
        """Mark the run for a comparison, or unmark it."""
        if self._here is not None:
            run_id = self._here.run.id
            if run_id in self._marked:
                self._marked.remove(run_id)
            else:
                self._marked.append(run_id)
            self._show()
            self._table.action_move(1)

    def action_compare(self) -> None:
        """Compare the marked runs; with a single one, compare it with the run under the cursor."""
        runs = list(self._marked)
        if len(runs) < 2 and self._here is not None and self._here.run.id not in runs:
            runs.append(self._here.run.id)
        if len(runs) < 2:
            self.notify("mark two or more runs with x")
        else:
            self.want("compare", *runs)

    def action_summary(self) -> None:
        """Show the results of the run."""
        if self._here is not None:
            self.want("summary", self._here.run.id)

    def action_tag(self) -> None:
        """Change the run's tags."""
        if self._here is None:
            return
        run = self._here.run

        def take(text: str | None) -> None:
            if text is not None:
                self._write(lambda: set_tags(self.around.store, run.id, read_tags([text])))

        tags = {BASELINE, *(tag for entry in self._rows.past for tag in entry.run.tags)}
        prompt = Prompt(f"Tags of {run.name}", ", ".join(run.tags), "separated by commas", tags)
        self.app.push_screen(prompt, take)

    def action_baseline(self) -> None:
        """Make the run the baseline of its profile, or undo that."""
        if self._here is not None:
            run = self._here.run
            tags = [tag for tag in run.tags if tag != BASELINE]
            if BASELINE in run.tags:
                self._write(lambda: set_tags(self.around.store, run.id, tags))
            else:
                self._write(lambda: set_baseline(self.around.store, run))

    def action_delete(self) -> None:
        """Ask, and delete the run."""
        if self._here is None:
            return
        run = self._here.run
        if Liveness(self.around.store).is_alive(run.id):
            self.notify(f"{run.name} is in progress; stop it first", severity="error")
            return
        trials = format_count(run.trials, "trial")
        detail = f"{run.profile}, {trials}; for {KEPT_DAYS} days, U brings it back."

        def take(yes: bool | None) -> None:
            if yes:
                self._write(lambda: trash_run(self.around.store, run.id, self.around.clock()))

        self.app.push_screen(Ask(f"Delete {run.name}?", detail), take)

    def action_undelete(self) -> None:
        """Pick a deleted run, and bring it back."""
        now, found = self.around.clock(), deleted_runs(self.around.store)
        rows = [(run.name, f"deleted {format_ago(now - run.deleted_time)}") for run in found]
        if not rows:
            self.notify("there are no deleted runs")
            return

        def take(place: int | None) -> None:
            if place is not None:
                self._write(lambda: undelete_run(self.around.store, found[place].name))

        self.app.push_screen(PickFrom("Bring back", rows), take)

    def _write(self, change: Callable[[], object]) -> None:
        try:
            change()
        except BenchctlError as error:
            self.complain(error)
        self.again()
        self.tick()
