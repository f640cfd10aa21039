"""The screens by name, for the app's keys, the command line and docs/tui.md.

A screen's module is imported when it is first opened.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchctl.tui.screens.page import Page


@dataclass(frozen=True, slots=True)
class Entry:
    """One screen: its name, its key, and the minimum number of runs."""

    key: str
    title: str
    runs: int
    load: Callable[[], type[Page]]
    """Imports the screen's class, which takes the surroundings and the ids of the runs."""


def _plan() -> type[Page]:
    from benchctl.tui.screens.plan import PlanScreen

    return PlanScreen


def _live() -> type[Page]:
    from benchctl.tui.screens.live import LiveScreen

    return LiveScreen


def _summary() -> type[Page]:
    from benchctl.tui.screens.summary import SummaryScreen

    return SummaryScreen


def _history() -> type[Page]:
    from benchctl.tui.screens.history import HistoryScreen

    return HistoryScreen


def _compare() -> type[Page]:
    from benchctl.tui.screens.compare import CompareScreen

    return CompareScreen


SCREENS = {
    "plan": Entry("1", "Plan", 0, _plan),
    "live": Entry("2", "Live or replay", 1, _live),
    "summary": Entry("3", "Summary", 1, _summary),
    "history": Entry("4", "History", 0, _history),
    "compare": Entry("5", "Compare", 2, _compare),
}
