"""The list of the plan screen: what can be measured, what is measured now, what came out last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual import work

from benchctl.errors import BenchctlError, NoStoreError, StoreError
from benchctl.profile.find import profiles_in, shipped_profiles, title_of
from benchctl.report.lines.spans import Line, Span
from benchctl.store.read import Reader
from benchctl.tui.draw.text.columns import Cells, Column, FreeText
from benchctl.tui.model.offers import HOST_TEXT, Offer, OfferKind
from benchctl.tui.screens.base.modals import Prompt
from benchctl.tui.screens.base.page import AppContext, ReportPage
from benchctl.tui.widgets.table import Table
from benchctl.units import format_ago
from benchctl.visible import width_of

if TYPE_CHECKING:
    from benchctl.report.past import HistoryEntry
    from benchctl.tui.screens.parts.pastrows import PastReader

# More are in the history.
LAST = 5
# A longer name is shortened; the title has it in full.
MOST_NAME = 24
FIRST = "quickstart"


def find_profiles(here: Path) -> list[Offer]:
    """Return the profiles in and below ``here``'s profiles, then those that come with benchctl."""
    shipped = sorted(shipped_profiles().items(), key=lambda item: _order(item[0]))
    ours = [Offer(OfferKind.EXAMPLE, name, path=path) for name, path in shipped]
    known = {file.resolve() for _, file in shipped}
    own = [
        Offer(OfferKind.OWN, name, path=path)
        for name, path in profiles_in(here).items()
        if path.resolve() not in known
    ]
    return [*own, *ours]


def _order(name: str) -> tuple[bool, int, str]:
    return name != FIRST, name.count("/"), name


def written(path: Path) -> float:
    """Return when a file was last written; 0 while an editor is replacing it."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


class OffersPage(ReportPage):
    """A page with that list; the profiles are there at once, a thread reads the runs."""

    def __init__(self, around: AppContext) -> None:
        super().__init__(around)
        self.ready = True
        self._list = Table(id="offers", empty="no such profile")
        self._offers: Sequence[Offer] = ()
        self._profiles: Sequence[Offer] = ()
        self._measured: Sequence[Offer] = ()
        self._last: Sequence[HistoryEntry] = ()
        self._host = Offer(OfferKind.HOST)
        self._titles: dict[Path, str] = {}
        self._past: PastReader | None = None
        self._answers: dict[object, Sequence[str]] = {}
        """What came out of runs that were looked at, by their ids and ends."""

    @property
    def offer(self) -> Offer:
        """What is under the cursor; the host if nothing is."""
        here = self._list.here
        return self._offers[here] if here is not None else self._host

    def look_for_profiles(self) -> None:
        """Find the profiles, and show the list."""
        self._profiles, self._titles = find_profiles(Path()), {}
        self._show_offers()

    def go_to(self, what: Path | str) -> None:
        """Put the cursor on a profile, which may be in no list yet, or on a host."""
        self.filter_line.clear_words()
        self._list.filter("")
        if isinstance(what, str):
            offer = self._host = Offer(OfferKind.HOST, what)
        else:
            full = what.resolve()
            there = (
                profile
                for profile in self._profiles
                if profile.path and profile.path.resolve() == full
            )
            offer = next(there, None) or Offer(OfferKind.OWN, str(what), path=what)
            if offer not in self._profiles:
                self._profiles = [offer, *self._profiles]
        self._show_offers()
        self._list.go_to(self._offers.index(offer))

    def _show_offers(self) -> None:
        """Show the list, with the cursor where it was."""
        key = self.offer.key
        goes_on = {offer.run_id for offer in self._measured}
        runs = [_as_offer(entry) for entry in self._last if entry.run.id not in goes_on]
        own = [profile for profile in self._profiles if profile.kind is OfferKind.OWN]
        examples = [profile for profile in self._profiles if profile.kind is OfferKind.EXAMPLE]
        self._offers = offers = [*self._measured, self._host, *own, *runs, *examples]
        places = {offer.key: place for place, offer in enumerate(offers)}
        self._list.index = places.get(key, self._list.index)
        named = [width_of(offer.name) for offer in (*self._measured, *own, *runs)]
        columns = [
            Column("begin with", max(map(len, OfferKind)), fixed=True),
            Column("", min(MOST_NAME, max([8, *named]))),
            Column("", 60),
        ]
        self._list.show(columns, len(offers), self._row)

    def _row(self, index: int) -> Cells:
        offer = self._offers[index]
        before = self._list.before(index)
        is_first = before is None or self._offers[before].kind is not offer.kind
        head = Span(offer.kind if is_first else "", "label")
        if offer.kind is OfferKind.HOST:
            return [head, FreeText(f"to {offer.name or 'a host'}: {HOST_TEXT}")]
        if offer.path is None:
            begun = offer.created_time
            ago = f"  {format_ago(self.around.clock() - begun)}" if begun else ""
            return [head, Span(offer.name), FreeText(f"{offer.text}{ago}", offer.role)]
        if offer.path not in self._titles:
            self._titles[offer.path] = title_of(offer.path)
        title = self._titles[offer.path]
        if offer.kind is OfferKind.OWN:
            return [head, Span(offer.name), Span(title)]
        # By its name, it is found by those who know it.
        return [head, FreeText(title or offer.name), Span(""), Span(f"{offer.kind} {offer.name}")]

    # --- runs -----------------------------------------------------------------------------

    def progress(self, reader: Reader, changes: int) -> object:
        # A run that goes on changes the store all the time.
        measured = [(run.id, reader.furthest(run.id)) for run in reader.all_measured_now()]
        return measured or changes

    def read(self, reader: Reader) -> Callable[[], None]:
        from benchctl.tui.screens.parts.pastrows import PastReader

        self._past = self._past or PastReader(LAST)
        with closing(self._past.read(reader)) as parts:
            rows = next(parts)
        measured = [
            Offer(
                OfferKind.RUNNING, run.profile,
                f"trial {reader.furthest(run.id) + 1} of {run.trials}", "running",
                run=run.name, run_id=run.id,
            )
            for run in reader.all_measured_now()
        ]  # fmt: skip
        return partial(self._take_runs, measured, rows.past)

    def _take_runs(self, measured: Sequence[Offer], last: Sequence[HistoryEntry]) -> None:
        self._measured, self._last = measured, last
        self._show_offers()

    def fail(self, error: StoreError) -> None:
        super().fail(error)
        if isinstance(error, NoStoreError):  # before the first run
            self.notes.show([])
        if self._measured or self._last:
            self._take_runs((), ())

    def about_run(self, offer: Offer) -> Sequence[Line]:
        """Return what is known of a run: read in a thread, when the cursor first stands on it."""
        from benchctl.tui.draw.views.runs import run_lines

        entry = next((entry for entry in self._last if entry.run.id == offer.run_id), None)
        if entry is None:  # an old run that was resumed
            return [[Span(offer.text)]]
        if offer.kind is OfferKind.RUNNING:
            return run_lines(entry, self.around.clock(), [offer.text])
        end = entry.run.id, entry.run.finished_time
        if end not in self._answers:
            self._answers[end] = ["…"]
            self._read_answer(entry.run.id, end)
        return run_lines(entry, self.around.clock(), self._answers[end])

    @work(thread=True, group="answer")
    def _read_answer(self, run_id: int, end: object) -> None:
        from benchctl.report.answer import read_answer
        from benchctl.report.report import read_report

        try:
            with closing(Reader(self.around.store)) as reader:
                report = read_report(reader, reader.run(run_id))
                said: Sequence[str] = read_answer(reader, report, brief=True)
        except BenchctlError as error:
            said = [error.message]
        self.app.call_from_thread(self._take_answer, end, said)

    def _take_answer(self, end: object, said: Sequence[str]) -> None:
        self._answers[end] = said
        self.tick()

    # --- a host ---------------------------------------------------------------------------

    def ask_host(self, then: Callable[[], None] = lambda: None) -> None:
        """Ask for a host to measure, put the cursor on it, and do what comes ``then``."""

        def take(host: str | None) -> None:
            if host:
                self.go_to(host)
                self.tick()
                then()

        hint = 'a name or an address; "local" is this machine'
        words = ["local"]
        self.app.push_screen(Prompt("Measure to which host?", self._host.name, hint, words), take)


def _as_offer(entry: HistoryEntry) -> Offer:
    from benchctl.tui.draw.views.runs import answer_text

    run, (text, role) = entry.run, answer_text(entry)
    return Offer(
        OfferKind.PAST, run.profile, text, role,
        run=run.name, run_id=run.id, created_time=run.created_time,
    )  # fmt: skip
