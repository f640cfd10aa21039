"""The first and the last line of every screen: the title and the main keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

from textual import events
from textual.binding import Binding

from benchctl.report.lines.spans import ELLIPSIS, Line, Span
from benchctl.tui.widgets.painted import Painted
from benchctl.visible import fitting, padded, width_of

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
        right = sum(width_of(span.text) for span in self._state) + 1
        free = width - sum(width_of(span.text) for span in names) - right
        if free < 1:  # the status matters most
            ends = accumulate(width_of(span.text) for span in self._state)
            whole = [span for span, end in zip(self._state, ends, strict=True) if end <= width]
            return [whole or names]
        about = self._about
        if width_of(about) > free:
            about = about[: fitting(about, free - 1)] + ELLIPSIS
        return [[*names, Span(padded(about, free)), Span(" "), *self._state]]

    def on_click(self, event: events.Click) -> None:
        """Show the screen whose name was clicked."""
        place = 0
        for span, action in self._switcher(self.size.width):
            place += len(span.text)
            if event.x < place:
                if action:
                    self.call_later(self.app.run_action, action)
                return


class BarKeys(NamedTuple):
    """What some keys do, in a word, and those keys: each as it is shown, and its name."""

    what: str
    keys: Sequence[tuple[str, str]]

    @property
    def shown(self) -> str:
        """The keys as they are shown."""
        return " ".join(display for display, _ in self.keys)

    @property
    def width(self) -> int:
        """How many characters they take."""
        return len(self.shown) + len(self.what) + 3


class KeyBar(Painted):
    """The main keys of this screen, `?` for the others, and the palette.

    Textual's Footer has a widget for each key: the first frame comes 85 ms later, and a change of
    the keys, as with every move of the focus, takes 35 ms instead of 4.6 ms (``python bench
    widgets``).
    """

    DEFAULT_CSS = """
    KeyBar { height: 1; background: $panel; }
    """

    def __init__(self, matters: Callable[[Binding], bool] = lambda _: True) -> None:
        """Show the keys that ``matters`` accepts."""
        super().__init__()
        self._matters = matters

    def on_mount(self) -> None:
        """Follow the keys as the focus moves and as they are remapped."""
        self.screen.bindings_updated_signal.subscribe(self, lambda _: self.repaint())

    def _keys(self) -> list[BarKeys]:
        found: dict[str, dict[str, tuple[str, str]]] = {}
        for _, binding, enabled, _ in self.screen.active_bindings.values():
            if binding.show and enabled and self._matters(binding):
                display = self.app.get_key_display(binding)
                pair = found.setdefault(binding.description, {})
                pair.setdefault(binding.action, (display, binding.key))
        keys = [BarKeys(what, [*pair.values()]) for what, pair in found.items()]
        palette = BarKeys("Palette", [("^p", self.app.COMMAND_PALETTE_BINDING)])
        # Where there is no room for all, the key that shows the others stays.
        others = [key for key, pair in zip(keys, found.values(), strict=True) if "keys" not in pair]
        keys.append(palette)
        for dropped in (palette, *reversed(others)):
            if sum(key.width for key in keys) - 1 <= self.size.width:  # the last one is blank
                break
            keys.remove(dropped)
        return keys

    def paint(self, width: int, height: int) -> Sequence[Line]:
        spans: list[Span] = []
        for key in self._keys():
            spans += [Span(f" {key.shown} ", "keys"), Span(f"{key.what} ")]
        return [spans]

    def on_click(self, event: events.Click) -> None:
        """Do the action of a clicked key; of several for one thing, of the one that was hit."""
        place = 0
        for bar in self._keys():
            place += bar.width
            if event.x < place:
                ends = accumulate(len(display) + 1 for display, _ in bar.keys)
                begin = place - bar.width + 1
                hit = (
                    key
                    for end, (_, key) in zip(ends, bar.keys, strict=True)
                    if event.x < begin + end
                )
                self.app.simulate_key(next(hit, bar.keys[0][1]))
                return
