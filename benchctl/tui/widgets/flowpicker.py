"""The list of flows, in which the lines of the plots are picked."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from benchctl.tui.draw.plot.choice import Choice
from benchctl.tui.draw.views.flowlist import FlowList
from benchctl.tui.meanings import ONLY
from benchctl.tui.widgets.table import Table


class FlowPicker(Table):
    """A list of flows: a click or enter hides a line or shows it."""

    CLICKS = 1
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "only", ONLY, show=False, id="flows.only"),
        Binding("i", "streams", "Single streams of the flow", show=False, id="flows.streams"),
    ]
    _list: FlowList | None = None

    class Picked(Message):
        """Other lines are wanted."""

        def __init__(self, choice: Choice) -> None:
            super().__init__()
            self.choice = choice

    def show_flows(self, flows: FlowList) -> None:
        """Show a list of flows, as high as it is, within the limits of the screen."""
        self._list = flows
        self.show(flows.columns(), len(flows.rows), flows.row)
        self.styles.height = len(flows.rows) + 1

    def moved(self, choice: Choice) -> Choice:
        """Return the choice after the cursor has moved; a line that is alone goes with it."""
        return self._list.moved(choice, self.index) if self._list is not None else choice

    def action_choose(self) -> None:
        """Show the line under the cursor, or hide it."""
        if self._list is not None:
            self.post_message(self.Picked(self._list.toggled(self.index)))

    def action_only(self) -> None:
        """Show only the line under the cursor, or all."""
        if self._list is not None:
            self.post_message(self.Picked(self._list.only(self.index)))

    def action_streams(self) -> None:
        """Show the single streams of the flow under the cursor, or hide them."""
        if self._list is not None:
            self.post_message(self.Picked(self._list.streams(self.index)))
