"""Every character of a foreign text shows, and nothing obeys it."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from benchctl.visible import fitting, padded, visible, visible_lines, width_of

ANYTHING = st.text(st.characters())
JOINERS = {"\u200c", "\u200d"}


def obeyed(text):
    """Return the characters that a terminal, or the layout of a line, may obey."""
    return {
        c for c in text
        if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") or unicodedata.bidirectional(c) in
        ("LRE", "LRO", "RLE", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI") or c in "\u200e\u200f\u061c"
    }  # fmt: skip


@given(ANYTHING)
def test_nothing_that_is_obeyed_is_left(text):
    assert obeyed(visible(text)) == set()
    assert obeyed(visible_lines(text)) <= {"\n", "\t", "\r"}
    assert "\r" not in visible_lines(text).replace("\r\n", "")


@given(ANYTHING)
def test_what_shows_already_stays_as_it_is(text):
    shown = "".join(c for c in text if c.isprintable() or c in JOINERS)
    assert visible(shown) == visible_lines(shown) == shown
    assert visible(visible(text)) == visible(text)


@pytest.mark.parametrize(
    ("text", "line", "lines"),
    [
        ("\x1b[2J", r"\x1b[2J", r"\x1b[2J"),
        ("\x9b31m", r"\x9b31m", r"\x9b31m"),
        ("abc\u202egnp.exe", r"abc\u202egnp.exe", r"abc\u202egnp.exe"),
        ("one\ntwo\tthree", r"one\ntwo\tthree", "one\ntwo\tthree"),
        ("one\r\ntwo\rthree", r"one\r\ntwo\rthree", "one\r\ntwo\\rthree"),
        ("caf\udce9", r"caf\udce9", r"caf\udce9"),
        ("été 数字 👩‍🔬 ±0.3 µs", "été 数字 👩‍🔬 ±0.3 µs", "été 数字 👩‍🔬 ±0.3 µs"),
    ],
)
def test_a_character_shows_as_its_escape(text, line, lines):
    assert (visible(text), visible_lines(text)) == (line, lines)


@pytest.mark.parametrize(
    "text", ["plain", "─±µ…▁⣿↑", "日本", "e\u0301", "🚀 go", "한국어x", "a\u200db", ""]
)
def test_text_is_as_wide_as_the_screens_draw_it(text):
    width = width_of(text)
    assert width == sum(map(cell_len, text))
    assert width_of(padded(text, 12)) == width_of(padded(text, 12, right=True)) == 12
    for room in range(-1, width + 2):
        kept = fitting(text, room)
        assert width_of(text[:kept]) <= max(0, room)
        assert kept == len(text) or width_of(text[: kept + 1]) > room
