"""The first and the last line of every screen: the title and the main keys."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from textual import events

from benchctl.tui.draw.spans import Line, Span
from benchctl.tui.widgets.painted import Painted

# From these widths on, the first line has the keys of all screens, and their names.
LEAST_SWITCHER, WHOLE_SWITCHER = 60, 110


class TitleBar(Painted):
    """The switcher of screens at the left, the subject, and its status at the right."""

    DEFAULT_CSS = """
    TitleBar { height: 1; background: $panel; }
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.screen_name = name
        """What the shown screen is called, if not as its key says."""
        self._about = ""
        self._state: Sequence[Span] = ()
        self._screens: Sequence[tuple[str, str, str]] = ()
        """Key, name and action of each screen."""

    def on_mount(self) -> None:
        """Follow the keys of the screens as they are remapped."""
        self.screen.bindings_updated_signal.subscribe(self, lambda _: self._find_screens())

    def _find_screens(self) -> None:
        found = {
            binding.action: (self.app.get_key_display(binding), binding.description, binding.action)
            for _, binding, _, _ in self.screen.active_bindings.values()
            if (binding.id or "").startswith("app.") and binding.action.startswith("show(")
        }
        # While words are typed, digits are none of the keys.
        if found and self._screens != (screens := [*found.values()]):
            self._screens = screens
            self.repaint()

    def show(self, about: str, state: Sequence[Span] = ()) -> None:
        """Show the subject and the status."""
        if (about, state) != (self._about, self._state):
            self._about, self._state = about, state
            self.repaint()

    def _switcher(self, width: int) -> list[tuple[Span, str]]:
        """Return keys and names of the screens, each with its action, as far as there is room.

        The others have their key alone; if that is too wide, the screen has its name alone.
        """
        here = self._here
        if width < LEAST_SWITCHER or not any(action == here for _, _, action in self._screens):
            return [(Span(f" {self.screen_name} ", "title"), "")]
        whole = width >= WHOLE_SWITCHER
        parts = []
        for key, name, action in self._screens:
            if action == here:
                parts.append((Span(f" {key} {self.screen_name}", "title"), action))
            else:
                parts.append((Span(f" {key} {name.split()[0]}" if whole else f" {key}"), action))
            if whole:
                parts.append((Span(" "), ""))
        return parts

    @property
    def _here(self) -> str:
        return f"show('{getattr(self.screen, 'NAME', '')}')"

    def paint(self, width: int, height: int) -> Sequence[Line]:
        names = [span for span, _ in self._switcher(width)] + [Span(" ")]
        right = sum(len(span.text) for span in self._state) + 1
        free = width - sum(len(span.text) for span in names) - right
        if free < 1:  # the status matters most
            ends = accumulate(len(span.text) for span in self._state)
            fitting = [span for span, end in zip(self._state, ends, strict=True) if end <= width]
            return [fitting or names]
        about = self._about if len(self._about) <= free else self._about[: free - 1] + "…"
        return [[*names, Span(about.ljust(free)), Span(" "), *self._state]]

    def on_click(self, event: events.Click) -> None:
        """Show the screen whose name was clicked."""
        place = 0
        for span, action in self._switcher(self.size.width):
            place += len(span.text)
            if event.x < place:
                if action:
                    self.call_later(self.app.run_action, action)
                return


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
