"""What can be measured, and the plan of it; errors appear as soon as a profile is saved."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.widget import Widget

from benchctl.errors import BenchctlError
from benchctl.report.lines.spans import Line, Span
from benchctl.store.read import Reader
from benchctl.tui.draw.text.columns import Column
from benchctl.tui.meanings import NEXT, RUN
from benchctl.tui.model.choices import Choices, Settable
from benchctl.tui.model.offers import HOST_TEXT, Offer, OfferKind
from benchctl.tui.screens.base.modals import Ask, Prompt
from benchctl.tui.screens.base.page import AppContext
from benchctl.tui.screens.base.tables import SHOWN_FILTER
from benchctl.tui.screens.parts.editing import EditingPage
from benchctl.tui.screens.parts.offers import written
from benchctl.tui.widgets.scrolled import Scrolled
from benchctl.tui.widgets.table import Table
from benchctl.tui.widgets.tabs import Tabs

if TYPE_CHECKING:
    from benchctl.tui.screens.parts.drawn import Drawn

HOST_LINES: Sequence[Line] = (
    [Span("Measures to one host what "), Span("benchctl quick HOST", "strong"), Span(" does:")],
    [Span(f"{HOST_TEXT}.")],
    [],
    [Span("There, a server answers: "), Span("benchctl serve", "strong"), Span(", or "),
     Span("iperf3 -s", "strong"), Span('. "local" is this machine.')],
    [Span("A connection shows which one it is. Nothing else is sent before you start it.")],
)  # fmt: skip
# With fewer lines, what can be chosen is only named: what a start does is wanted more.
LOW = 20
ENTER = {
    OfferKind.HOST: "asks for a host, and shows what would be measured",
    OfferKind.RUNNING: "watches it",
    OfferKind.PAST: "opens its summary",
}


class PlanScreen(EditingPage):
    """Pick what to measure, see its plan, run it."""

    NAME = "plan"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "run", "Run", tooltip=RUN, id="plan.run"),
        Binding("e", "edit", "Edit", id="plan.edit"),
        SHOWN_FILTER,
        Binding("W", "write", "Write", tooltip="Write a profile with what was chosen", show=False,
                id="plan.write"),
        Binding("V", "tab", "Tab", tooltip="Plan, about, commands", show=False, id="plan.tab"),
        Binding("tab", "app.focus_next", "Focus", tooltip=NEXT, key_display="tab", id="plan.focus"),
        Binding("h", "app.show('history')", "History", id="plan.history"),
        Binding("a", "attach", "Watch", tooltip="Watch a run in progress", id="plan.attach"),
    ]  # fmt: skip
    DEFAULT_CSS = """
    PlanScreen {
        #middle { layout: vertical; height: 1fr; }
        #left { height: auto; }
        #right { height: 1fr; }
        #offers { height: 40vh; max-height: 9; padding: 0 1; }
        #choices { height: auto; max-height: 4; padding: 0 1; border-top: solid $foreground 30%; }
        Tabs, #text { padding: 0 1; }
        #text { height: 1fr; }
        Notes { padding: 0 1; }
        &.-low #choices { max-height: 2; }
        &.-narrow.-choosing #offers { height: 3; }
        &.-narrow.-choosing #choices { max-height: 9; }
        &.-wide, &.-huge {
            #middle { layout: horizontal; }
            #left { width: 50%; height: 1fr; }
            #right { width: 1fr; }
            #offers { height: 1fr; max-height: 100vh; }
            #choices { max-height: 50%; }
        }
        &.-huge #left { width: 44%; }
    }
    """

    def __init__(self, around: AppContext, given: Path | str | None = None) -> None:
        """Start with a profile, or a host."""
        super().__init__(around)
        self._given = given
        self._planned: tuple[object, dict[Path, float]] = (None, {})
        """What is shown, and of a plan its files with when they were last written."""
        self._drawn: Drawn | None = None
        self._choices = Table(id="choices", empty="no settings")
        self._tabs = Tabs()
        self._text = Scrolled(id="text")
        self._tab = 0
        self._wants_start = False  # asked for while the plan was worked out
        self._chosen: dict[Offer, Choices] = {}
        """What was chosen instead of the values of each profile."""
        self._rows: Sequence[Settable] = ()
        """What can be chosen, as it was planned last."""

    def body(self) -> Sequence[Widget]:
        left = Container(self._list, self._choices, id="left")
        right = Container(self._tabs, self._text, id="right")
        return [Container(left, right, id="middle"), self.notes]

    def on_mount(self) -> None:
        self._list.index = -1
        self.look_for_profiles()
        if self._given is not None:
            self.go_to(self._given)
        self._list.focus()

    @property
    def settled(self) -> bool:
        return super().settled and (self._drawn is not None or not self.offer.is_planned)

    def command(self) -> str:
        return shlex.join([*self.offer.command, *self.choices.options])

    @property
    def choices(self) -> Choices:
        return self._chosen.get(self.offer, Choices())

    def tick(self) -> None:
        """Plan again if something else is under the cursor, or its files were saved."""
        super().tick()
        self._list.repaint()
        offer = self.offer
        if not offer.is_planned:
            self._show_about(offer)
            return
        own = [offer.path] if offer.path is not None else []
        stamps = {file: written(file) for file in (*own, *self._sources())}
        other = offer != self._planned[0]
        if other or stamps != self._planned[1]:
            # What is shown is not what would run: there is no plan until the new one is here.
            old, self._drawn = self._drawn, None
            self._planned = offer, {file: stamps[file] for file in own}
            self.bar.show(_title(offer), [Span("planning…", "warn")])
            if old is not None:
                self._dim(old)
            elif other:
                self._text.show([[Span("planning…", "warn")]], from_the_top=True)
            if other:
                self._wants_start = False
                self._show_choices(())
            self._plan(offer, self.choices, other)

    def _sources(self) -> Sequence[Path]:
        """Return the files of the plan shown."""
        if self._drawn is None or self._drawn.prepared is None or self.offer.path is None:
            return ()
        prepared = self._drawn.prepared
        files = [source.path for source in prepared.plan.document.sources]
        return [*files, *([prepared.topology.path] if prepared.topology else [])]

    @work(thread=True, exclusive=True, group="plan")
    def _plan(self, offer: Offer, chosen: Choices, other: bool) -> None:
        from benchctl.tui.screens.parts import drawn

        if offer.path is not None:
            plan = drawn.draw_plan(str(offer.path), chosen)
        else:
            plan = drawn.draw_quick(offer.name)
        self.app.call_from_thread(self._show_plan, offer, chosen, plan, other)

    def _show_plan(self, offer: Offer, chosen: Choices, drawn: Drawn, other: bool) -> None:
        if (offer, chosen) != (self.offer, self.choices):
            return
        self._show_choices(drawn.choices if drawn.prepared is not None else self._rows)
        self._drawn = drawn
        self._planned = offer, self._planned[1] | {file: written(file) for file in self._sources()}
        self._show_text(from_the_top=other)
        if drawn.prepared is None:
            state = Span("✗ wrong", "bad")
        elif not drawn.can_run:
            state = Span("✗ something is missing", "bad")
        else:
            state = Span("✓ ready", "good")
        self.bar.show(_title(offer), [state])
        if self._wants_start:
            self._wants_start = False
            self._start(ask=True)

    def fit(self) -> None:
        self.set_class(self.size.height < LOW, "-low")

    def _key(self, name: str, default: str) -> str:
        """Return how a key is shown, by the name of what it does."""
        bound = [binding for _, binding, _, _ in self.active_bindings.values()]
        return {binding.id: self.app.get_key_display(binding) for binding in bound}.get(
            name, default
        )

    def _show_text(self, *, from_the_top: bool) -> None:
        """Show the tab of the plan, below what a start does."""
        assert self._drawn is not None
        tabs = self._drawn.tabs
        self._tab %= len(tabs)
        self._tabs.show([*tabs], self._tab, self._key("plan.tab", "V"))
        head: list[Line] = []
        if self._drawn.can_run:
            starts = Span(f"{self._key('plan.run', 'r')} starts", "title")
            head.append([starts, Span(f"  {self._drawn.start}")])
        self._text.show([*head, *[*tabs.values()][self._tab]], from_the_top=from_the_top)

    def _show_about(self, offer: Offer) -> None:
        """Show what enter does with a line that has no plan, and what is known of it."""
        other, self._drawn = offer != self._planned[0], None
        self._planned = offer, {}
        does: Line = [Span("enter", "title"), Span(f"  {ENTER[offer.kind]}")]
        lines = HOST_LINES if offer.kind is OfferKind.HOST else self.about_run(offer)
        self.bar.show(_title(offer))
        self._tabs.show((), 0, "")
        self._show_choices(())
        self._text.show([does, [], *lines], from_the_top=other)

    def _dim(self, old: Drawn) -> None:
        """Show an old plan dimmed: what is worked out replaces it."""
        _, *rest = [*old.tabs.values()][self._tab % len(old.tabs)]
        lines = [[Span(span.text, "dim") for span in line] for line in rest]
        waits = [Span("planning…", "warn"), Span("  below is the plan before", "dim")]
        self._text.show([waits, [], *lines], from_the_top=False)

    def action_tab(self) -> None:
        """Show the next tab: the plan, what the profile is about, its commands."""
        self._show_tab(self._tab + 1)

    def on_tabs_chosen(self, event: Tabs.Chosen) -> None:
        """Show the tab that was clicked."""
        self._show_tab(event.place)

    def _show_tab(self, place: int) -> None:
        if self._drawn is not None:
            self._tab = place
            self._show_text(from_the_top=True)

    def _show_choices(self, rows: Sequence[Settable]) -> None:
        """Show what can be chosen; what was chosen is marked, also if it is wrong."""
        self._rows, chosen = rows, self.choices.values
        heads = [Span(""), Span("setting"), Span("value")]
        cells = [
            [
                Span("●" if row.key in chosen else " ", "strong"),
                Span(row.name),
                Span(chosen.get(row.key, row.value)),
            ]
            for row in rows
        ]
        name_width, value_width = (
            max(len(row[place].text) for row in [*cells, heads]) for place in (1, 2)
        )
        columns = [Column("", 1, fixed=True), Column("setting", name_width, fixed=True)]
        self._choices.show(
            [*columns, Column("value", value_width)], len(rows), lambda row: cells[row]
        )
        self._choices.styles.height = len(rows) + 2
        self._choices.display = bool(rows)

    def on_descendant_focus(self) -> None:
        """Give the list that is used more room, where there is little."""
        self.set_class(self._choices.has_focus, "-choosing")

    def on_table_moved(self, event: Table.Moved) -> None:
        """Plan what is under the cursor now."""
        if event.table is self._list:
            self.tick()

    def on_table_chosen(self, event: Table.Chosen) -> None:
        """Ask for a host, open a run, focus a plan, or choose another value."""
        offer = self.offer
        if event.table is self._choices:
            self._choose(self._rows[event.index])
        elif offer.kind is OfferKind.HOST:
            self.ask_host()
        elif offer.kind is OfferKind.RUNNING:
            self.want("live", offer.run_id)
        elif offer.kind is OfferKind.PAST:
            self.want("summary", offer.run_id)
        else:
            self._text.focus()

    def _choose(self, row: Settable) -> None:
        """Ask for a value, and plan with it at once."""
        offer = self.offer

        def take(text: str | None) -> None:
            if text is None:
                return
            value = "" if text == row.value else text
            self._chosen[offer] = self.choices.with_value(row.key, value)
            self._planned = self._planned[0], {}  # Plan again, with the text where it is.
            self.tick()

        value = self.choices.values.get(row.key, row.value)
        hint = "several values with commas; empty: as in the profile"
        title = row.name if row.name == row.key else f"{row.name} ({row.key})"
        self.app.push_screen(Prompt(title, value, hint, row.words), take)

    def action_run(self) -> None:
        """Run the profile; what is still planned asks when its plan is shown."""
        offer = self.offer
        if not offer.is_planned and offer.kind is OfferKind.HOST:
            self.ask_host(self.action_run)
        elif not offer.is_planned:
            self.notify("this is a run: enter opens it; r starts a profile", severity="warning")
        elif self._drawn is None:
            self._wants_start = True
            self.bar.show(_title(offer), [Span("planning, then asks to start…", "warn")])
        else:
            self._start(ask=False)

    def _start(self, *, ask: bool) -> None:
        """Run the profile, after a question if it takes long, leaves this machine, or ``ask``."""
        drawn = self._drawn
        from benchctl.engine.prepare.consent import agree
        from benchctl.tui.screens.parts.starting import question

        if drawn is None or drawn.prepared is None:
            self.notify("there is no plan to run", severity="warning")
            return
        if not drawn.can_run:
            self.notify("a tool is missing; see Checks", severity="warning")
            return
        asked = question(drawn.prepared)
        if not (asked.needed or ask):
            self._run()
            return

        def answered(yes: bool | None) -> None:
            if yes:
                with suppress(OSError):  # then the next run asks again
                    agree(asked.commands)
                self._run(agreed=bool(asked.commands))

        self.app.push_screen(Ask(asked.text, asked.detail), answered)

    def _run(self, *, agreed: bool = False) -> None:
        """Run the profile; ``agreed`` to its commands."""
        from benchctl.tui.screens.parts.starting import start_run

        assert self._drawn is not None
        assert self._drawn.prepared is not None
        try:
            run_id = start_run(self._drawn.prepared, self.around.store, agreed=agreed)
        except BenchctlError as error:
            self.complain(error)
            return
        self.want("live", run_id)

    def action_attach(self) -> None:
        """Show the run that is being measured."""
        try:
            with closing(Reader(self.around.store)) as reader:
                run = reader.measured_now()
        except BenchctlError as error:
            self.complain(error)
            return
        if run is not None:
            self.want("live", run.id)
        else:
            self.notify("no run is in progress")


def _title(offer: Offer) -> str:
    """Return what a line is called: of a profile as commands take it, of a run its name."""
    if offer.path is not None:
        return offer.command[-1]
    if offer.kind is OfferKind.HOST:
        return f"Measure to {offer.name or 'a host'}"
    return f"{offer.name} {offer.run}"
