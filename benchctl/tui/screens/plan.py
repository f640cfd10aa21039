"""The profiles, and the plan of the one under the cursor; errors appear as soon as it is saved."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.widget import Widget

from benchctl.errors import BenchctlError
from benchctl.hosts.local.priority import at_full_priority
from benchctl.profile.find import NO_LAB, packaged_profiles
from benchctl.store.read import Reader
from benchctl.tui.draw.text.columns import Column
from benchctl.tui.draw.text.spans import Line, Span
from benchctl.tui.meanings import NEXT, RUN
from benchctl.tui.model.choices import Choices, Settable
from benchctl.tui.screens.base.modals import Ask, Prompt
from benchctl.tui.screens.base.page import AppContext, Page
from benchctl.tui.screens.base.tables import SHOWN_FILTER, free_name
from benchctl.tui.screens.parts.profiles import find_profiles, written
from benchctl.tui.widgets.scrolled import Scrolled
from benchctl.tui.widgets.table import Table

if TYPE_CHECKING:
    from benchctl.tui.screens.parts.drawn import Drawn


class PlanScreen(Page):
    """Pick a profile, see its plan, run it."""

    NAME = "plan"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "run", "Run", tooltip=RUN, id="plan.run"),
        Binding("e", "edit", "Edit", id="plan.edit"),
        SHOWN_FILTER,
        Binding(
            "W",
            "write",
            "Write",
            tooltip="Write a profile with what was chosen",
            show=False,
            id="plan.write",
        ),
        Binding("V", "tab", "Tab", tooltip="Plan, about, commands", show=False, id="plan.tab"),
        Binding("tab", "app.focus_next", "Focus", tooltip=NEXT, key_display="tab", id="plan.focus"),
        Binding("h", "app.show('history')", "History", id="plan.history"),
        Binding("a", "attach", "Watch", tooltip="Watch a run in progress", id="plan.attach"),
    ]
    DEFAULT_CSS = """
    PlanScreen {
        #middle { layout: vertical; height: 1fr; }
        #left { height: auto; }
        #profiles { height: 6; padding: 0 1; }
        #choices { height: auto; max-height: 5; padding: 0 1; border-top: solid $foreground 30%; }
        #text { width: 1fr; height: 1fr; padding: 0 1; }
        &.-narrow.-choosing #profiles { height: 3; }
        &.-narrow.-choosing #choices { max-height: 9; }
        &.-wide, &.-huge {
            #middle { layout: horizontal; }
            #left { width: 44; height: 1fr; }
            #profiles { height: 1fr; }
            #choices { max-height: 50%; }
        }
    }
    """

    def __init__(self, around: AppContext, profile: Path | None = None) -> None:
        super().__init__(around)
        self._given = profile
        self._all: Sequence[tuple[str, Path]] = ()
        self._stamps: dict[Path, float] = {}
        """The files of the plan that is shown, and when they were last written."""
        self._drawn: Drawn | None = None
        self._profiles = Table(id="profiles", empty="no such profile")
        self._choices = Table(id="choices", empty="no settings")
        self._text = Scrolled(id="text")
        self._tab = 0
        self._wants_start = False  # asked for while the plan was worked out
        self._chosen: dict[Path, Choices] = {}
        """What was chosen instead of the values of each profile."""
        self._rows: Sequence[Settable] = ()
        """What can be chosen, as it was planned last."""

    def body(self) -> Sequence[Widget]:
        left = Container(self._profiles, self._choices, id="left")
        return [Container(left, self._text, id="middle")]

    def on_mount(self) -> None:
        self._find()
        if self._given is not None:
            given = self._given.resolve()
            place = next((i for i, (_, p) in enumerate(self._all) if p.resolve() == given), None)
            if place is None:
                self._all = [(str(self._given), self._given), *self._all]
                self._show_list()
                place = 0
            self._profiles.go_to(place)
        self._profiles.focus()

    def _find(self) -> None:
        self._all = find_profiles(Path())
        self._show_list()

    def _show_list(self) -> None:
        every = self._all
        width = max([32, *(len(name) for name, _ in every)])
        self._profiles.show([Column("profiles", width)], len(every), lambda i: [Span(every[i][0])])

    @property
    def profile(self) -> Path | None:
        """The profile under the cursor."""
        here = self._profiles.here
        return self._all[here][1] if here is not None else None

    @property
    def _title(self) -> str:
        """The profile as commands take it: a path, or the name of a bundled one."""
        name, path = self._all[self._profiles.index]
        return name if path.is_relative_to(packaged_profiles()) else str(path)

    @property
    def settled(self) -> bool:
        return bool(self._stamps) and self._drawn is not None

    def command(self) -> str:
        if self.profile is None:
            return "benchctl plan"
        return shlex.join(["benchctl", "plan", self._title, *self._here.options])

    @property
    def _here(self) -> Choices:
        """What was chosen for the profile under the cursor."""
        path = self.profile
        return self._chosen.get(path, Choices()) if path is not None else Choices()

    def tick(self) -> None:
        """Plan again if another profile is selected, or this one was saved."""
        path = self.profile
        if path is None:
            self.bar.show("")
            self._text.show([], from_the_top=True)
            return
        stamps = {file: written(file) for file in (path, *self._sources())}
        if stamps != self._stamps:
            other = path not in self._stamps
            # What is shown is not what would run: there is no plan until the new one is here.
            old, self._drawn = self._drawn, None
            self._stamps = {path: stamps[path]}
            self.bar.show(self._title, [Span("planning…", "warn")])
            if old is not None:
                self._dim(old)
            if other:
                self._wants_start = False
                self._show_choices(())
            self._plan(path, self._here, other)

    def _sources(self) -> Sequence[Path]:
        """Return the files of the plan shown."""
        if self._drawn is None or self._drawn.prepared is None:
            return ()
        prepared = self._drawn.prepared
        files = [source.path for source in prepared.plan.document.sources]
        return [*files, *([prepared.topology.path] if prepared.topology else [])]

    @work(thread=True, exclusive=True, group="plan")
    def _plan(self, path: Path, chosen: Choices, other: bool) -> None:
        from benchctl.tui.screens.parts.drawn import draw_plan

        drawn = draw_plan(str(path), chosen)
        self.app.call_from_thread(self._show_plan, path, chosen, drawn, other)

    def _show_plan(self, path: Path, chosen: Choices, drawn: Drawn, other: bool) -> None:
        if (path, chosen) != (self.profile, self._here):
            return
        if drawn.prepared is not None:
            self._show_choices(drawn.choices)
        else:
            self._show_choices(self._rows)
        self._drawn = drawn
        self._stamps |= {file: written(file) for file in self._sources()}
        self._show_text(from_the_top=other)
        if drawn.prepared is None:
            state = Span("✗ wrong", "bad")
        elif not drawn.can_run:
            state = Span("✗ something is missing", "bad")
        else:
            state = Span("✓ ready", "good")
        self.bar.show(self._title, [state])
        if self._wants_start:
            self._wants_start = False
            self._start(ask=True)

    def _show_text(self, *, from_the_top: bool) -> None:
        """Show the tab of the plan, under what a start does and the names of the tabs."""
        assert self._drawn is not None
        tabs = self._drawn.tabs
        self._tab %= len(tabs)
        bound = [binding for _, binding, _, _ in self.active_bindings.values()]
        keys = {one.id: self.app.get_key_display(one) for one in bound}
        head: list[Line] = []
        if self._drawn.can_run:
            starts = Span(f"{keys.get('plan.run', 'r')} starts", "title")
            head.append([starts, Span(f"  {self._drawn.start}")])
        if len(tabs) > 1:
            names = [
                Span(f"[{name}]", "strong") if place == self._tab else Span(f" {name} ", "dim")
                for place, name in enumerate(tabs)
            ]
            head.append([Span(f"{keys.get('plan.tab', 'v')} ", "label"), *names])
        self._text.show([*head, *[*tabs.values()][self._tab]], from_the_top=from_the_top)

    def _dim(self, old: Drawn) -> None:
        """Show an old plan dimmed: what is worked out replaces it."""
        _, *rest = [*old.tabs.values()][self._tab % len(old.tabs)]
        lines = [[Span(span.text, "dim") for span in line] for line in rest]
        waits = [Span("planning…", "warn"), Span("  below is the plan before", "dim")]
        self._text.show([waits, [], *lines], from_the_top=False)

    def action_tab(self) -> None:
        """Show the next tab: the plan, what the profile is about, its commands."""
        if self._drawn is not None:
            self._tab += 1
            self._show_text(from_the_top=True)

    def _show_choices(self, rows: Sequence[Settable]) -> None:
        """Show what can be chosen; what was chosen is marked, also if it is wrong."""
        self._rows, chosen = rows, self._here.values
        heads = [Span(""), Span("setting"), Span("value")]
        cells = [
            [
                Span("●" if row.key in chosen else " ", "strong"),
                Span(row.name),
                Span(chosen.get(row.key, row.value)),
            ]
            for row in rows
        ]
        named, told = (max(len(row[place].text) for row in [*cells, heads]) for place in (1, 2))
        columns = [Column("", 1, fixed=True), Column("setting", named, fixed=True)]
        self._choices.show([*columns, Column("value", told)], len(rows), lambda row: cells[row])
        self._choices.styles.height = len(rows) + 2

    def on_descendant_focus(self) -> None:
        """Give the list that is used more room, where there is little."""
        self.set_class(self._choices.has_focus, "-choosing")

    def on_table_moved(self, event: Table.Moved) -> None:
        """Plan the profile that is under the cursor now."""
        if event.table is self._profiles:
            self.tick()

    def on_table_chosen(self, event: Table.Chosen) -> None:
        """Focus the plan, or choose another value."""
        if event.table is self._profiles:
            self._text.focus()
        else:
            self._choose(self._rows[event.index])

    def _choose(self, row: Settable) -> None:
        """Ask for a value, and plan with it at once."""
        path = self.profile
        assert path is not None

        def take(text: str | None) -> None:
            if text is None:
                return
            self._chosen[path] = self._here.with_value(row.key, "" if text == row.value else text)
            self._stamps = {path: 0.0}  # Plan again, with the text where it is.
            self.tick()

        value = self._here.values.get(row.key, row.value)
        hint = "several values with commas; empty: as in the profile"
        title = row.name if row.name == row.key else f"{row.name} ({row.key})"
        self.app.push_screen(Prompt(title, value, hint, row.words), take)

    def action_edit(self) -> None:
        """Open the profile in the editor; of one that comes with benchctl, a copy here."""
        if self.profile is not None and self.profile.is_relative_to(packaged_profiles()):
            self._copy(self.profile)
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
        if self.profile is not None:
            try:
                with self.app.suspend():
                    command = [*shlex.split(editor), str(self.profile)]
                    at_full_priority(subprocess.run, command, check=False)
            except OSError as error:
                self.notify(f"{editor}: {error.strerror}", severity="error")
            self.tick()

    def _copy(self, shipped: Path) -> None:
        """Copy a profile into this directory, and select it."""
        from benchctl.profile.derive import copied_profile

        self._add(free_name(Path(), shipped.stem, shipped.suffix), copied_profile(shipped))

    def action_write(self) -> None:
        """Write what was chosen as a new profile in this directory, and select it."""
        from benchctl.profile.derive import derived_profile, lasting_name

        prepared, base = self._drawn and self._drawn.prepared, self.profile
        if not prepared or base is None:
            self.notify("there is no plan to write", severity="warning")
            return
        document, here = prepared.plan.document, Path.cwd()
        full = base.resolve()
        named = str(full.relative_to(here)) if full.is_relative_to(here) else lasting_name(full)
        try:
            text = derived_profile(document, named, lab=self._here.lab != NO_LAB)
        except BenchctlError as error:
            self.complain(error)
            return

        def take(name: str | None) -> None:
            if name:
                self._add(Path(name).with_suffix(".toml"), text)

        first = free_name(Path(), f"{base.stem}-changed", ".toml").stem
        self.app.push_screen(Prompt("Write a profile here, named", first), take)

    def _add(self, path: Path, text: str) -> None:
        """Write a new profile into this directory, and select it."""
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            self.notify(f"{path}: {error.strerror}", severity="error")
            return
        self.notify(str(path), title="written")
        self._find()
        self.filter_line.clear_words()
        self._profiles.filter("")
        self._profiles.go_to([each for _, each in self._all].index(path))
        self._profiles.focus()

    def action_run(self) -> None:
        """Run the profile; what is still planned asks when its plan is shown."""
        if self._drawn is None and self.profile is not None:
            self._wants_start = True
            self.bar.show(self._title, [Span("planning, then asks to start…", "warn")])
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
