"""Which of the lists of the live screen is shown, and has the focus.

Textual's TabbedContent shows another list in 50 ms instead of 15 ms (``python bench widgets``), and
has no way to show several side by side where there is room.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchctl.report.goals import has_goals
from benchctl.tui.screens.page import Surroundings
from benchctl.tui.screens.plots import PlotPage

LISTS = ("flows", "trials", "results", "goals", "remarks")
"""The ids of the lists. The one that is shown is a class of the screen, as in ``-list-trials``."""


class ListsPage(PlotPage):
    """A screen with the lists of a run: all side by side, or one at a time."""

    def __init__(self, around: Surroundings, run_id: int) -> None:
        super().__init__(around, run_id)
        self._before_pick = ""
        """The list from which the flows were picked; escape goes back to it."""

    @property
    def _shown_list(self) -> str:
        return next(name for name in LISTS if self.has_class(f"-list-{name}"))

    def action_pick(self) -> None:
        """Go to the list of flows."""
        if not self.query_one("#flows").has_focus:
            self._before_pick = self._shown_list
            self._show_list("flows")

    def back(self) -> bool:
        if super().back():
            return True
        before, self._before_pick = self._before_pick, ""
        if not before or not self.query_one("#flows").has_focus:
            return False
        self._show_list(before)
        return True

    def has_list(self, name: str) -> bool:
        """Return whether the run has what a list shows."""
        return name != "goals" or has_goals(self.view.run)

    def action_list(self) -> None:
        """Show the next list."""
        names: Sequence[str] = [name for name in LISTS if self.has_list(name)]
        if self.has_class("-tall") and not self.has_class("-narrow"):  # the first two are shown
            names = names[2:]
        place = names.index(self._shown_list) if self._shown_list in names else 0
        self._show_list(names[(place + 1) % len(names)])

    def _show_list(self, name: str) -> None:
        """Show a list, and move the focus to it."""
        for other in LISTS:
            self.set_class(other == name, f"-list-{other}")
        self.query_one(f"#{name}").focus()
        self.call_after_refresh(self.fit)
