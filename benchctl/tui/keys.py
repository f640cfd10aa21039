"""Every key of every screen, by its id: what can be remapped, and what the documents list."""

from __future__ import annotations

from textual.binding import Binding

from benchctl.tui.app import BenchApp
from benchctl.tui.compare import CompareScreen
from benchctl.tui.history import HistoryScreen
from benchctl.tui.live import LiveScreen
from benchctl.tui.modals import Ask, Help, Picker, Window
from benchctl.tui.plan import PlanScreen
from benchctl.tui.scrolled import Scrolled
from benchctl.tui.summary import SummaryScreen
from benchctl.tui.table import Table

OWNERS = (
    BenchApp, PlanScreen, LiveScreen, SummaryScreen, HistoryScreen, CompareScreen, Table, Scrolled,
    Window, Help, Ask, Picker,
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
