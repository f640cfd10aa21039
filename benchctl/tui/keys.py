"""Every key of every screen by its id, for remapping and documentation."""

from __future__ import annotations

from textual.binding import Binding
from textual.dom import DOMNode
from textual.keys import format_key

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
    pages = (entry.load() for entry in SCREENS.values())
    owners: list[type[DOMNode]] = [BenchApp, TablesScreen, *pages, FlowPicker, Table, Scrolled]
    owners += [Dialog, PickFrom, TrialWindow, FactsWindow, PacketsWindow, Help, Ask]
    bindings = [binding for owner in owners for binding in owner.BINDINGS]
    return {
        binding.id: binding
        for binding in bindings
        if isinstance(binding, Binding) and binding.id is not None
    }


def described() -> list[tuple[str, str]]:
    """Return, for each key, its name in the settings with the keys, and what it does."""
    return [
        (
            f"{name}  {' '.join(map(_typed, binding.key.split(',')))}",
            binding.tooltip or binding.description,
        )
        for name, binding in all_bindings().items()
    ]


def _typed(key: str) -> str:
    """Return a key as it is typed and named in ASCII: ``[`` for left_square_bracket, but left."""
    shown = format_key(key)
    return shown if len(shown) == 1 and shown.isascii() else key
