"""The profiles, and the plan of the one under the cursor; errors appear as soon as it is saved."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.widget import Widget

from benchctl.errors import BenchctlError
from benchctl.hosts.priority import at_full_priority
from benchctl.profile.find import packaged_profiles
from benchctl.store.read import Reader
from benchctl.tui.draw.columns import Column
from benchctl.tui.draw.spans import Span
from benchctl.tui.screens.modals import Ask, Prompt
from benchctl.tui.screens.page import Page, Surroundings
from benchctl.tui.widgets.scrolled import Scrolled
from benchctl.tui.widgets.table import Table
from benchctl.units import format_duration

if TYPE_CHECKING:
    from benchctl.tui.screens.drawn import Drawn

# Running a longer profile needs a confirmation.
LONG_S = 3600.0


def find_profiles(here: Path) -> list[tuple[str, Path]]:
    """Return profiles by display name: those in and below ``here``'s profiles, then bundled."""
    found: dict[Path, tuple[str, Path]] = {}
    ours = packaged_profiles()
    for root, files in (
        (here, sorted(here.glob("*.toml"))),
        (here, sorted((here / "profiles").rglob("*.toml"))),
        (ours, sorted(ours.rglob("*.toml"))),
    ):
        for path in files:
            inside = path.relative_to(root)
            if "labs" not in inside.parts and path.name != "pyproject.toml":
                name = str(inside.with_suffix("")).removeprefix("profiles/")
                found.setdefault(path.resolve(), (name, path))
    return list(found.values())


class PlanScreen(Page):
    """Pick a profile, see its plan, run it."""

    NAME = "plan"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "run", "Run", id="plan.run"),
        Binding("e", "edit", "Edit", id="plan.edit"),
        Binding("slash", "filter", "Filter", key_display="/", id="plan.filter"),
        Binding("tab", "app.focus_next", "Focus", key_display="tab", id="plan.focus"),
        Binding("h", "app.show('history')", "History", id="plan.history"),
        Binding("a", "attach", "Attach", id="plan.attach"),
    ]
    DEFAULT_CSS = """
    PlanScreen {
        #middle { layout: vertical; height: 1fr; }
        #profiles { height: 7; padding: 0 1; }
        #text { width: 1fr; height: 1fr; padding: 0 1; }
        &.-wide, &.-huge {
            #middle { layout: horizontal; }
            #profiles { width: 40; height: 1fr; }
        }
    }
    """

    def __init__(self, around: Surroundings, profile: Path | None = None) -> None:
        super().__init__(around)
        self._given = profile
        self._all: Sequence[tuple[str, Path]] = ()
        self._shown: Sequence[tuple[str, Path]] = ()
        self._filter = ""
        self._stamps: dict[Path, float] = {}
        """The files of the plan that is shown, and when they were last written."""
        self._drawn: Drawn | None = None
        self._profiles = Table(id="profiles", empty="no such profile")
        self._text = Scrolled(id="text")

    def body(self) -> Sequence[Widget]:
        return [Container(self._profiles, self._text, id="middle")]

    def on_mount(self) -> None:
        self._find()
        if self._given is not None:
            given = self._given.resolve()
            place = next((i for i, (_, p) in enumerate(self._shown) if p.resolve() == given), None)
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
        self._shown = [(name, path) for name, path in self._all if self._filter in name]
        shown = self._shown
        head = f"profiles with “{self._filter}”" if self._filter else "profiles"
        width = max([32, *(len(name) for name, _ in shown)])
        self._profiles.show([Column(head, width)], len(shown), lambda i: [Span(shown[i][0])])

    @property
    def profile(self) -> Path | None:
        """The profile under the cursor."""
        return self._shown[self._profiles.index][1] if self._shown else None

    @property
    def _title(self) -> str:
        """The profile as commands take it: a path, or the name of a bundled one."""
        name, path = self._shown[self._profiles.index]
        return name if path.is_relative_to(packaged_profiles()) else str(path)

    @property
    def settled(self) -> bool:
        return bool(self._stamps) and self._drawn is not None

    def command(self) -> str:
        return f"benchctl plan {shlex.quote(self._title)}" if self._shown else "benchctl plan"

    def tick(self) -> None:
        """Plan again if another profile is selected, or this one was saved."""
        path = self.profile
        if path is None:
            self.bar.show("")
            self._text.show([], from_the_top=True)
            return
        stamps = {file: _written(file) for file in (path, *self._sources())}
        if stamps != self._stamps:
            other = path not in self._stamps
            # What is shown is not what would run: there is no plan until the new one is here.
            self._drawn = None
            self._stamps = {path: stamps[path]}
            self.bar.show(self._title, [Span("planning…", "warn")])
            self._plan(path, other)

    def _sources(self) -> Sequence[Path]:
        """Return the files of the plan shown."""
        if self._drawn is None or self._drawn.prepared is None:
            return ()
        prepared = self._drawn.prepared
        files = [source.path for source in prepared.plan.document.sources]
        return [*files, *([prepared.topology.path] if prepared.topology else [])]

    @work(thread=True, exclusive=True, group="plan")
    def _plan(self, path: Path, other: bool) -> None:
        from benchctl.tui.screens.drawn import draw_plan

        drawn = draw_plan(str(path))
        self.app.call_from_thread(self._show_plan, path, drawn, other)

    def _show_plan(self, path: Path, drawn: Drawn, other: bool) -> None:
        if path != self.profile:
            return
        self._drawn = drawn
        self._stamps |= {file: _written(file) for file in self._sources()}
        self._text.show(drawn.lines, from_the_top=other)
        if drawn.prepared is None:
            state = Span("✗ wrong", "bad")
        elif not drawn.can_run:
            state = Span("✗ something is missing", "bad")
        else:
            state = Span("✓ ready", "good")
        self.bar.show(self._title, [state])

    def on_table_moved(self) -> None:
        """Plan the profile that is under the cursor now."""
        self.tick()

    def on_table_chosen(self) -> None:
        """Focus the plan."""
        self._text.focus()

    def action_filter(self) -> None:
        """Filter the profiles by name."""

        def take(text: str | None) -> None:
            if text is not None:
                self._filter = text
                self._profiles.index = 0
                self._show_list()
                self.tick()

        names = [name for name, _ in self._all]
        self.app.push_screen(Prompt("Show profiles with", self._filter, words=names), take)

    def action_edit(self) -> None:
        """Open the profile in the editor."""
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
        if self.profile is not None:
            try:
                with self.app.suspend():
                    command = [*shlex.split(editor), str(self.profile)]
                    at_full_priority(subprocess.run, command, check=False)
            except OSError as error:
                self.notify(f"{editor}: {error.strerror}", severity="error")
            self.tick()

    def action_run(self) -> None:
        """Run the profile, after a confirmation if it takes long."""
        drawn = self._drawn
        if drawn is None:
            self.notify("still planning")
            return
        if drawn.prepared is None:
            self.notify("there is no plan to run", severity="warning")
            return
        if not drawn.can_run:
            self.notify("a tool is missing; see Checks", severity="warning")
            return
        plan = drawn.prepared.plan
        if plan.duration_s < LONG_S:
            self._run()
            return
        question = f"Run {plan.document.name} for {format_duration(plan.duration_s)}?"
        self.app.push_screen(Ask(question), lambda yes: self._run() if yes else None)

    def _run(self) -> None:
        from benchctl.engine.launch import launch_detached
        from benchctl.engine.prepare import record_plan
        from benchctl.settings import settings
        from benchctl.store.manage import read_tags

        assert self._drawn is not None
        assert self._drawn.prepared is not None
        try:
            tags = read_tags(settings()["tags"])
            run_id, _ = record_plan(self._drawn.prepared, self.around.store, tags=tags)
        except BenchctlError as error:
            self.complain(error)
            return
        at_full_priority(launch_detached, self.around.store, run_id)
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


def _written(path: Path) -> float:
    """Return when a file was last written; 0 while an editor is replacing it."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
