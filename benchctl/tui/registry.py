"""The screens by name, for the app's keys, the command line and docs/tui.md.

A screen's module is imported when it is first opened.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from benchctl.tui.screens.base.page import Page


class ScreenEntry(NamedTuple):
    """One screen: its name, its key, and the minimum number of runs."""

    key: str
    title: str
    runs: int
    place: str
    """Its module among the screens, and its class."""

    def load(self) -> type[Page]:
        """Import the screen's class, which takes the surroundings and the ids of the runs."""
        module, name = self.place.split(":")
        page: type[Page] = getattr(import_module(f"benchctl.tui.screens.{module}"), name)
        return page


SCREENS = {
    "plan": ScreenEntry("1", "Plan", 0, "plan:PlanScreen"),
    "live": ScreenEntry("2", "Live or replay", 1, "live:LiveScreen"),
    "summary": ScreenEntry("3", "Summary", 1, "summary:SummaryScreen"),
    "history": ScreenEntry("4", "History", 0, "history:HistoryScreen"),
    "compare": ScreenEntry("5", "Compare", 2, "compare:CompareScreen"),
}
