"""Every key of every screen by its id, for remapping and documentation."""

from __future__ import annotations

from textual.binding import Binding
from textual.dom import DOMNode

from benchctl.tui.app import BenchApp
from benchctl.tui.registry import SCREENS
from benchctl.tui.screens.base.modals import Ask, Dialog, Help
from benchctl.tui.screens.base.pick import PickFrom
from benchctl.tui.screens.base.tables import TablesScreen
from benchctl.tui.screens.windows.detail import TrialWindow
from benchctl.tui.screens.windows.facts import FactsWindow
from benchctl.tui.screens.windows.packets import PacketsWindow
from benchctl.tui.widgets.flowpicker import FlowPicker
from benchctl.tui.widgets.scrolled import Scrolled
from benchctl.tui.widgets.table import Table


def all_bindings() -> dict[str, Binding]:
    """Return our bindings by id, in the order of the documents."""
    owners: list[type[DOMNode]] = [
        BenchApp,
        TablesScreen,
        *(entry.load() for entry in SCREENS.values()),
    ]
    owners += [
        FlowPicker,
        Table,
        Scrolled,
        Dialog,
        PickFrom,
        TrialWindow,
        FactsWindow,
        PacketsWindow,
        Help,
        Ask,
    ]
    bindings = [binding for owner in owners for binding in owner.BINDINGS]
    return {one.id: one for one in bindings if isinstance(one, Binding) and one.id is not None}
