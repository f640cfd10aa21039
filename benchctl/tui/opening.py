"""Opens screens. What a screen needs is imported when it is first opened, not before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchctl.tui.screens.page import Page

Clock = Callable[[], float]


def open_plan(profile: Path | None = None) -> Page:
    """Open the profiles, with the cursor on one."""
    from benchctl.tui.screens.plan import PlanScreen

    return PlanScreen(profile)


def open_live(store: Path, run_id: int, clock: Clock) -> Page:
    """Open a run as it happens. Raises StoreError."""
    from benchctl.tui.model.feed import Feed
    from benchctl.tui.model.playhead import Playhead
    from benchctl.tui.screens.live import LiveScreen

    return LiveScreen(Feed(store, run_id), Playhead(clock))


def open_replay(store: Path, run_id: int, clock: Clock, at_s: float = 0.0) -> Page:
    """Open a run once more, some seconds after its beginning. Raises StoreError."""
    from benchctl.tui.model.feed import Feed
    from benchctl.tui.model.playhead import Playhead
    from benchctl.tui.screens.live import LiveScreen

    with ExitStack() as opened:
        feed = opened.enter_context(closing(Feed(store, run_id)))
        run = feed.view.run
        begin = run.started_time if run.started_time is not None else run.created_time
        playhead = Playhead(clock, begin, feed.last_time())
        playhead.seek(begin + at_s)
        opened.pop_all()
        return LiveScreen(feed, playhead)


def open_summary(store: Path, run_id: int) -> Page:
    """Open the results of a run. Raises StoreError."""
    from benchctl.tui.screens.summary import SummaryScreen

    return SummaryScreen(store, run_id)


def open_history(store: Path) -> Page:
    """Open the list of all runs."""
    from benchctl.tui.screens.history import HistoryScreen

    return HistoryScreen(store)


def open_compare(store: Path, run_ids: Sequence[int]) -> Page:
    """Open two runs or more side by side. Raises StoreError."""
    from benchctl.tui.screens.compare import CompareScreen

    return CompareScreen(store, run_ids)
