"""Every key of every screen, by its id: what can be remapped, and what the documents list."""

from __future__ import annotations

from textual.binding import Binding

from benchctl.tui.app import BenchApp
from benchctl.tui.screens.compare import CompareScreen
from benchctl.tui.screens.history import HistoryScreen
from benchctl.tui.screens.live import LiveScreen
from benchctl.tui.screens.modals import Ask, Dialog, Help, Picker
from benchctl.tui.screens.plan import PlanScreen
from benchctl.tui.screens.summary import SummaryScreen
from benchctl.tui.widgets.scrolled import Scrolled
from benchctl.tui.widgets.table import Table

OWNERS = (
    BenchApp, PlanScreen, LiveScreen, SummaryScreen, HistoryScreen, CompareScreen, Table, Scrolled,
    Dialog, Help, Ask, Picker,
)  # fmt: skip


def all_bindings() -> dict[str, Binding]:
    """Return our bindings by id."""
    found = {}
    for owner in OWNERS:
        for binding in owner.BINDINGS:
            assert isinstance(binding, Binding)
            assert binding.id is not None
            found[binding.id] = binding
    return found
