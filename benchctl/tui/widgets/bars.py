"""The first and the last line of every screen: the title and the main keys."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from textual import events

from benchctl.tui.draw.spans import Line, Span
from benchctl.tui.widgets.painted import Painted


class TitleBar(Painted):
    """The screen's name at the left, its subject, and its status at the right."""

    DEFAULT_CSS = """
    TitleBar { height: 1; background: $panel; }
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.screen_name = name
        self._about = ""
        self._state: Sequence[Span] = ()

    def show(self, about: str, state: Sequence[Span] = ()) -> None:
        """Show the subject and the status."""
        if (about, state) != (self._about, self._state):
            self._about, self._state = about, state
            self.repaint()

    def paint(self, width: int, height: int) -> Sequence[Line]:
        name = Span(f" {self.screen_name}  ", "title")
        right = sum(len(span.text) for span in self._state) + 1
        free = width - len(name.text) - right
        if free < 1:  # the status matters most
            ends = accumulate(len(span.text) for span in self._state)
            fitting = [span for span, end in zip(self._state, ends, strict=True) if end <= width]
            return [fitting or [name]]
        about = self._about if len(self._about) <= free else self._about[: free - 1] + "…"
        return [[name, Span(about.ljust(free)), Span(" "), *self._state]]


class KeyBar(Painted):
    """The main keys of this screen, `?` for the others, and the palette.

    Textual's Footer has a widget for each key: the first frame comes 85 ms later, and a change of
    the keys, as with every move of the focus, takes 35 ms instead of 4.6 ms (``python bench
    widgets``).
    """

    DEFAULT_CSS = """
    KeyBar { height: 1; background: $panel; }
    """

    def on_mount(self) -> None:
        """Follow the keys as the focus moves and as they are remapped."""
        self.screen.bindings_updated_signal.subscribe(self, lambda _: self.repaint())

    def _keys(self) -> list[tuple[str, str, str]]:
        seen: dict[str, tuple[str, str, str]] = {}
        for _, binding, enabled, _ in self.screen.active_bindings.values():
            if binding.show and enabled and binding.action not in seen:
                display = self.app.get_key_display(binding)
                seen[binding.action] = (display, binding.description, binding.key)
        keys = [*seen.values(), ("^p", "Palette", self.app.COMMAND_PALETTE_BINDING)]
        # Where there is no room for all, the key that shows the others stays.
        others = [key for key, action in zip(keys, seen, strict=False) if action != "keys"]
        for dropped in (keys[-1], *reversed(others)):
            if sum(map(_width, keys)) - 1 <= self.size.width:  # the last character is blank
                break
            keys.remove(dropped)
        return keys

    def paint(self, width: int, height: int) -> Sequence[Line]:
        spans: list[Span] = []
        for display, description, _ in self._keys():
            spans += [Span(f" {display} ", "keys"), Span(f"{description} ")]
        return [spans]

    def on_click(self, event: events.Click) -> None:
        """Do the action of a clicked key."""
        place = 0
        for key in self._keys():
            place += _width(key)
            if event.x < place:
                self.app.simulate_key(key[2])
                return


def _width(key: tuple[str, str, str]) -> int:
    """Return the width of a key's display and description on the bar."""
    return len(key[0]) + len(key[1]) + 3
