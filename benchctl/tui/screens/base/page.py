"""The base of all screens: title, keys, help, the tick, and common actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import ClassVar

from msgspec import Struct
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static

from benchctl.errors import BenchctlError, GoneError, StoreError
from benchctl.report.lines.spans import Span
from benchctl.store.read import Reader
from benchctl.tui.draw.text.glyphs import BRAILLE, Glyphs
from benchctl.tui.screens.base.tables import TablesScreen
from benchctl.tui.widgets.bars import KeyBar, TitleBar
from benchctl.tui.widgets.notes import Notes

# Nobody reads figures more often than four times a second.
TICK_S = 0.25
# Fewer columns show no answer, but for a run in progress.
LEAST = 30


def trouble(error: StoreError) -> str:
    """Return what a screen says of a store that it cannot read now."""
    return error.message if isinstance(error, GoneError) else f"{error.message}; trying again"


class AppContext(Struct, frozen=True):
    """Shared by all screens: the store, the clock (Unix time), the characters of the plots."""

    store: Path
    clock: Callable[[], float]
    glyphs: Glyphs = BRAILLE


class Page(TablesScreen):
    """One screen: a title, a body that the subclass composes, and the keys that matter."""

    class Wanted(Message):
        """Requests another screen: its name in the registry, and the runs it should show."""

        def __init__(self, name: str, *run_ids: int) -> None:
            super().__init__()
            self.name = name
            self.run_ids = run_ids

    class PlanWanted(Message):
        """Requests the plan of a profile, or of what is measured to a host."""

        def __init__(self, what: Path | str) -> None:
            super().__init__()
            self.what = what

    class Ready(Message):
        """The keys of a page have something to act on now."""

    NAME: ClassVar[str]
    """Its name in the registry; of each name, one page is open at a time."""
    ready = True
    """Whether its keys have something to act on."""
    failed = False
    """Whether a widget of it has failed: it shows nothing new any more."""
    HORIZONTAL_BREAKPOINTS = [(0, "-least"), (LEAST, "-narrow"), (100, "-wide"), (160, "-huge")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-tiny"), (12, "-short"), (32, "-tall")]  # noqa: RUF012
    DEFAULT_CSS = """
    Page {
        background: $background;
        layout: vertical;
        layers: default room;
        &.-tiny KeyBar { display: none; }
        #room { display: none; layer: room; dock: top; width: 100%; height: 100%; }
        #room { background: $background; }
        &.-least { overflow: hidden; }
        &.-least #room { display: block; }
    }
    """

    def __init__(self, around: AppContext, *run_ids: int) -> None:
        super().__init__()
        self.around = around
        self.run_ids = run_ids
        """The runs that this page is about."""
        self.bar = TitleBar(self.NAME.title())
        self._timer: Timer | None = None

    def shows(self, run_ids: Sequence[int]) -> bool:
        """Return whether this page can show these runs, or another must be opened."""
        return self.run_ids == run_ids

    def want(self, name: str, *run_ids: int) -> None:
        """Ask for another screen."""
        self.post_message(self.Wanted(name, *run_ids))

    def want_plan(self, what: Path | str) -> None:
        """Ask for the plan of a profile, or of what is measured to a host."""
        self.post_message(self.PlanWanted(what))

    def complain(self, error: BenchctlError) -> None:
        """Show a short message about a failed action."""
        self.notify(f"{error.message}\n{error.hint}", severity="error")

    def compose(self) -> ComposeResult:
        # Textual sets them after the first layout, which would be drawn in vain.
        (width, height), choose = self.app.size, self._get_breakpoint_classes
        self.add_class(*choose(width, self.HORIZONTAL_BREAKPOINTS))
        self.add_class(*choose(height, self.VERTICAL_BREAKPOINTS))
        yield self.bar
        yield from self.body()
        yield self.filter_line
        yield KeyBar(self.matters)
        # What is below keeps its focus.
        yield Static(f"more room, please: {LEAST} columns or more", id="room")

    def body(self) -> Sequence[Widget]:
        """Return the widgets between title and keys."""
        raise NotImplementedError

    def matters(self, binding: Binding) -> bool:
        """Return whether the last line offers a key now that it may show."""
        return binding.action != "filter" or not self.filter_line.has_focus

    def back(self) -> bool:
        """Undo what escape undoes on this screen; returns whether there was anything."""
        return self.filter_line.clear_words()

    def tick(self) -> None:
        """Update the content; called while the screen is visible."""

    def become_ready(self) -> None:
        """Let keys act on what is shown now."""
        self.ready = True
        self.post_message(self.Ready())

    @property
    def settled(self) -> bool:
        """Whether all available data was read."""
        return True

    def file_stem(self) -> str:
        return f"benchctl-{self.NAME}"

    def metrics(self) -> Mapping[str, Callable[[], None]]:
        """Return how each metric that this screen can show is shown, by its name."""
        return {}

    def meanings(self) -> Sequence[tuple[str, str]]:
        """Return the description of the screen's content, for the help."""
        return ()

    def on_mount(self) -> None:
        """Start to tick, at once when the screen is visible."""
        self._timer = self.set_interval(TICK_S, self.tick)

    def on_resize(self) -> None:
        """Redraw at the new size, once all widgets know it."""
        self.call_after_refresh(self.fit)

    def fit(self) -> None:
        """Redraw everything at the present size."""

    def on_screen_suspend(self) -> None:
        """Pause while another screen is visible."""
        if self._timer is not None:
            self._timer.pause()

    def on_screen_resume(self) -> None:
        """Continue at the current state."""
        if self._timer is not None:
            self.tick()
            self._timer.resume()


class ReportPage(Page):
    """A screen that a thread reads from the store, again as its runs progress."""

    def __init__(self, around: AppContext, *run_ids: int) -> None:
        super().__init__(around, *run_ids)
        self.notes = Notes()
        self._reader: Reader | None = None
        self._changes = -1
        self._seen: object = None
        """The progress of the runs when they were last read."""
        self._answered = False
        """Whether reading has ended, with content or an error."""
        self._asked = 0
        """Counts what was asked for: an answer to an earlier question is out of date."""
        self.ready = False

    def on_unmount(self) -> None:
        """Close the store."""
        if self._reader is not None:
            self._reader.close()

    @property
    def settled(self) -> bool:
        return self._answered and not self._is_reading

    @property
    def _is_reading(self) -> bool:
        return any(worker.node is self and worker.is_running for worker in self.workers)

    def tick(self) -> None:
        """Read again if there was progress."""
        if self._is_reading:
            return
        try:
            self._reader = self._reader or Reader(self.around.store)
            changes = self._reader.changes()
            if changes == self._changes:
                return
            seen = self.progress(self._reader, changes)
        except StoreError as error:
            self.fail(error)
            return
        self._changes = changes
        if seen != self._seen:
            self._seen = seen
            self.load()

    def progress(self, reader: Reader, changes: int) -> object:
        """Return what differs when the content has to be read again. Raises StoreError."""
        following = [reader.next_open(run_id, 0) for run_id in self.run_ids]
        return [
            (reader.run(run_id).status, trial and trial.position, reader.remaining(run_id))
            for run_id, trial in zip(self.run_ids, following, strict=True)
        ]

    def load(self) -> None:
        """Read the content, and show it."""
        self._asked += 1
        self._load(self._asked)

    @work(thread=True, exclusive=True, group="reports")
    def _load(self, asked: int) -> None:
        show: Callable[[], None]
        try:
            # SQLite needs a connection for each thread.
            with closing(Reader(self.around.store)) as reader:
                show = self.read(reader)
        except StoreError as error:
            show = partial(self.fail, error)
        else:
            show = partial(self._take, show)
        self.app.call_from_thread(self._answer, asked, show)

    def _answer(self, asked: int, show: Callable[[], None]) -> None:
        if asked == self._asked:
            show()

    def read(self, reader: Reader) -> Callable[[], None]:
        """Read the content, in a thread; returns the step that shows it. Raises StoreError."""
        raise NotImplementedError

    def _take(self, show: Callable[[], None]) -> None:
        self._answered = True
        self.notes.show([])
        show()
        self.become_ready()

    def again(self) -> None:
        """Read again at the next tick, whatever has changed."""
        self._asked += 1
        self._changes, self._seen, self._answered, self.ready = -1, None, False, False

    def fail(self, error: StoreError) -> None:
        """Report an error of the store; the next tick tries again."""
        self.again()
        self._answered = True
        if isinstance(error, GoneError) and not self.run_ids and self._reader is not None:
            self._reader.close()  # another store may be there by now
            self._reader = None
        hint = [[Span(f"  {error.hint}")]] if error.hint else []
        self.notes.show([[Span(f"! {trouble(error)}", "bad")], *hint])
        self.become_ready()
