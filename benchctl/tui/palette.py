"""What the command palette (ctrl+p) finds: keys, screens, runs, profiles, metrics and hosts.

The keys of this screen come first. Everything has the words that were typed, in any order, as in
the filter of a table; Textual's own fuzzy match finds "tour" in most sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.markup import escape

from benchctl.errors import StoreError
from benchctl.metrics import METRICS, title_of
from benchctl.report.lines.spans import state
from benchctl.run.status import Status
from benchctl.store.read import Reader
from benchctl.tui.screens.base.modals import Help
from benchctl.tui.screens.base.page import Page
from benchctl.tui.screens.parts.offers import find_profiles
from benchctl.units import format_ago
from benchctl.visible import visible

if TYPE_CHECKING:
    from textual.binding import Binding
    from textual.worker import Worker

    from benchctl.run.record import Run, RunOutline

# More of one kind hide the others; another word leaves fewer.
MOST = 20
# The hosts of older runs are hardly meant.
LATELY = 200


class Find(NamedTuple):
    """Something to find: its name, what is said of it, and what choosing it does."""

    name: str
    about: str
    do: Callable[[], object]


class Stored(NamedTuple):
    """What is read in a thread."""

    runs: Sequence[Find] = ()
    profiles: Sequence[Find] = ()
    hosts: Sequence[Find] = ()


class Finder(Provider):
    """Finds by words; what can be found is read once, when the palette opens."""

    _reading: Worker[Stored]

    @property
    def _page(self) -> Page:
        """The page below any window."""
        return next(page for page in reversed(self.app.screen_stack) if isinstance(page, Page))

    async def startup(self) -> None:
        self._reading = self.app.run_worker(self._read, thread=True, group="palette")

    async def discover(self) -> Hits:
        for find in self._keys():
            yield DiscoveryHit(Content(find.name), find.do, find.name, escape(find.about))

    async def search(self, query: str) -> Hits:
        words = query.casefold().split()
        kinds: list[Sequence[Find]] = [[*self._keys()]]
        for hit in self._hits(words, kinds, 10):
            yield hit
        stored = await self._reading.wait()
        for hit in self._hits(words, [*stored, [*self._metrics()]], 5):
            yield hit

    def _hits(
        self, words: Sequence[str], kinds: Sequence[Sequence[Find]], best: int
    ) -> Iterator[Hit]:
        """Yield what has all words, the most of each kind, each kind after the one before."""
        for rank, kind in enumerate(kinds):
            found = (find for find in kind if _has(find, words))
            for place, find in enumerate(islice(found, MOST)):
                name = visible(find.name)
                shown = Content(name)
                for word in words:
                    at = name.lower().find(word)
                    if at >= 0 and self.match_style is not None:
                        shown = shown.stylize(self.match_style, at, at + len(word))
                yield Hit(
                    best - rank - place / (MOST + 1), shown, find.do, name, visible(find.about)
                )

    def _keys(self) -> Iterator[Find]:
        """Yield what keys do: first those of this screen, then those of all, and of its lists."""
        bindings = self.screen.active_bindings.values()
        bound = [
            (node, binding) for node, binding, enabled, _ in bindings if enabled and binding.id
        ]
        own = [
            binding
            for node, binding in bound
            if node is self.screen and not _is_everywhere(binding)
        ]
        everywhere = [binding for _, binding in bound if _is_everywhere(binding)]
        others = [
            binding for _, binding in bound if binding not in own and binding not in everywhere
        ]
        seen = set[str]()
        for binding in (*sorted(own, key=lambda binding: not binding.show), *everywhere, *others):
            if binding.description not in seen:
                seen.add(binding.description)
                what = "screen, key" if binding.action.startswith("show(") else "key"
                key = f"{what} {self.app.get_key_display(binding)}"
                about = f"{key}: {binding.tooltip}" if binding.tooltip else key
                yield Find(binding.description, about, partial(self.app.simulate_key, binding.key))
        yield Find("Theme", "change the colours", self.app.action_change_theme)

    def _metrics(self) -> Iterator[Find]:
        here = self._page.metrics()
        for name, metric in METRICS.items():
            explain = Help({}, [(f"{title_of(name)} ({name})", metric.description)])
            do = here.get(name) or partial(self.app.push_screen, explain)
            yield Find(f"{title_of(name)}  {name}", f"metric: {metric.description}", do)

    def _read(self) -> Stored:
        from benchctl.profile.find import title_of as title_of_profile

        page = self._page
        profiles = [
            Find(
                f"{profile.name}  {title_of_profile(profile.path)}", "profile: shows its plan",
                partial(page.want_plan, profile.path),
            )
            for profile in find_profiles(Path()) if profile.path is not None
        ]  # fmt: skip
        try:
            with closing(Reader(page.around.store)) as reader:
                outlines = reader.outlines()
                lately = reader.runs_of([outline.id for outline in outlines[:LATELY]])
        except StoreError:  # the screen says so
            return Stored((), profiles)
        hosts = {run.id: hosts_of(run) for run in lately}
        runs = [_found_run(outline, page, hosts.get(outline.id, ())) for outline in outlines]
        named = dict.fromkeys(host for some in hosts.values() for host in some)
        measure = [
            Find(host, "host: plans to measure to it", partial(page.want_plan, host))
            for host in named
        ]
        return Stored(runs, profiles, measure)


def _found_run(run: RunOutline, page: Page, hosts: Sequence[str]) -> Find:
    ago = format_ago(page.around.clock() - run.created_time)
    shown = ", ".join([state(run.status).text, ago, *run.tags, *hosts])
    name = "live" if run.status is Status.RUNNING else "summary"
    return Find(f"{run.profile}  {run.name}", f"run: {shown}", partial(page.want, name, run.id))


def hosts_of(run: Run) -> Sequence[str]:
    """Return the remote addresses of the servers and hosts of a run."""
    network = run.settings.network
    reached = (host.address for host in network.remote.values())
    return [*dict.fromkeys([*(peer.host for peer in network.peers.values()), *reached])]


def _is_everywhere(binding: Binding) -> bool:
    return (binding.id or "").startswith("app.")


def _has(find: Find, words: Sequence[str]) -> bool:
    text = f"{find.name} {find.about}".casefold()
    return all(word in text for word in words)
