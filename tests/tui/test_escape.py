"""Escape has its effect at once, and sequences that arrive in parts are the keys that they are."""

from itertools import product

import pytest
from textual import constants
from textual._xterm_parser import XTermParser
from textual.events import Key

from benchctl.tui.terminal import ESCAPE_S, IDLE_S, messages

SEQUENCES = {
    "\x1b[A": ["up"],
    "\x1bOP": ["f1"],
    "\x1b[1;2D": ["shift+left"],
    "\x1b[15~": ["f5"],
    "q\x1b[Bj": ["q", "down", "j"],
}


class Line:
    """A terminal whose parts arrive one after the other, each after a time; None is silence."""

    def __init__(self, parts, monkeypatch):
        self.now, self.parts = 0.0, parts
        monkeypatch.setattr("textual._parser.get_time", lambda: self.now)
        monkeypatch.setattr(constants, "ESCAPE_DELAY", ESCAPE_S)

    def read(self, wait_s):
        if not self.parts:
            return None
        after_s, text = self.parts[0]
        if after_s > wait_s:
            self.now += wait_s
            self.parts[0] = after_s - wait_s, text
            return ""
        self.now += after_s
        self.parts.pop(0)
        return text

    def typed(self):
        found = messages(self.read, XTermParser())
        return [(one.key, self.now) for one in found if isinstance(one, Key)]


def test_escape_is_known_after_25_ms(monkeypatch):
    ((key, when_s),) = Line([(0.0, "\x1b"), (1.0, "")], monkeypatch).typed()
    assert key == "escape"
    assert ESCAPE_S <= when_s < ESCAPE_S + 0.005 < IDLE_S


@pytest.mark.parametrize("sequence", SEQUENCES)
@pytest.mark.parametrize("late_s", [0.0, ESCAPE_S - 0.001])
def test_a_sequence_in_any_parts_is_its_keys(monkeypatch, sequence, late_s):
    for cuts in product([False, True], repeat=len(sequence) - 1):
        parts = [sequence[0]]
        for character, cut in zip(sequence[1:], cuts, strict=True):
            if cut:
                parts.append("")
            parts[-1] += character
        line = Line([*((late_s, part) for part in parts), (1.0, "")], monkeypatch)
        assert [key for key, _ in line.typed()] == SEQUENCES[sequence], parts


def test_what_follows_escape_later_is_a_key_of_its_own(monkeypatch):
    line = Line([(0.0, "\x1b"), (0.030, "4"), (1.0, "")], monkeypatch)
    assert [key for key, _ in line.typed()] == ["escape", "4"]
