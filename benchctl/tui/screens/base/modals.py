"""Small windows over a screen: all keys, a question, a line of text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, zip_longest
from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.style import Style
from textual.widgets import Input, Static

from benchctl.tui.widgets.words import Words
from benchctl.visible import visible, visible_lines

T = TypeVar("T")
QUESTION = "_question"
# Of a small window, where there is room; a frame and the blanks within, and what scrolls.
WIDTH, FRAME, SCROLLBAR = 76, 4, 2
# Between a key and what it does, and between columns.
BETWEEN = 2
# What a key does is wrapped into no fewer characters.
LEAST_WORDS = 8


class Dialog(ModalScreen[T]):
    """Base of the small windows: a frame in the middle, closed by escape without an answer."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Close", id="window.close")
    ]
    DEFAULT_CSS = f"""
    Dialog {{
        align: center middle;
        & > Vertical {{
            width: {WIDTH};
            max-width: 100%;
            height: auto;
            max-height: 90%;
            padding: 0 1;
            background: $surface;
            border: round $primary;
            border-title-color: $text-accent;
            border-subtitle-color: $foreground 60%;
        }}
        Table {{ height: auto; max-height: 20; }}
        Input, Input:focus {{ border: none; height: 1; padding: 0; background: $boost; }}
    }}
    """


def hints(*keys: tuple[str, str]) -> Content:
    """Return what keys of a window do, as its frame shows it: each has an action for a click."""
    shown = [Content.styled(text, Style.from_meta({"@click": f"screen.{do}"})) for text, do in keys]
    return Content("   ").join(shown)


class Help(Dialog[None]):
    """Every key of a screen, and the meaning of its plots and columns."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,f1,q", "dismiss(None)", "Close", show=False, id="help.close")
    ]
    DEFAULT_CSS = "Help .task { color: $text-accent; text-style: bold; }"

    def __init__(
        self, keys: Mapping[str, Sequence[tuple[str, str]]], meanings: Sequence[tuple[str, str]]
    ) -> None:
        """``keys`` are those of each task, with what they do."""
        super().__init__()
        self._keys = keys
        self._meanings = meanings

    def compose(self) -> ComposeResult:
        with Vertical() as frame:
            frame.border_title = "Keys, and what is shown"
            frame.border_subtitle = hints(("escape closes", "dismiss(None)"))
            with VerticalScroll():
                inside = min(WIDTH, self.app.size.width) - FRAME - SCROLLBAR
                columns = 2 if self.app.size.width >= WIDTH else 1
                longest = max(
                    (len(key) for some in self._keys.values() for key, _ in some), default=0
                )
                for task, keys in self._keys.items():
                    yield Static(task, markup=False, classes="task")
                    yield Static("\n".join(key_lines(keys, columns, inside, longest)), markup=False)
                meanings = "\n".join(f"{name}\n  {text}" for name, text in self._meanings)
                yield Static("\n" + visible_lines(meanings), markup=False)


def key_lines(keys: Sequence[tuple[str, str]], columns: int, width: int, longest: int) -> list[str]:
    """Return keys and their actions, in one column or two of a width, ordered downwards.

    ``longest`` is the width of keys.
    """
    # A window may be narrower than a key; what does not fit is cut.
    cell = max((width - BETWEEN * (columns - 1)) // columns, longest + BETWEEN + LEAST_WORDS)
    blank = " " * (longest + BETWEEN)
    entries = [
        textwrap.wrap(f"{key:>{longest}}{' ' * BETWEEN}{what}", cell, subsequent_indent=blank)
        for key, what in keys
    ]
    half = (len(entries) + 1) // 2 if columns == 2 else len(entries)
    left, right = ([*chain(*some)] for some in (entries[:half], entries[half:]))
    return [f"{a:<{cell + BETWEEN}}{b}".rstrip() for a, b in zip_longest(left, right, fillvalue="")]


class Ask(Dialog[bool]):
    """A question with yes and no; anything but ``y`` is no."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "dismiss(True)", "Yes", id="ask.yes"),
        Binding("n,enter,q", "dismiss(False)", "No", id="ask.no"),
    ]

    def __init__(self, question: str, detail: str = "") -> None:
        super().__init__()
        self._question = question
        self._detail = detail

    @property
    def layers(self) -> tuple[str, ...]:
        # Messages of before must not cover it.
        return (*super().layers, QUESTION)

    def compose(self) -> ComposeResult:
        with Vertical() as frame:
            frame.styles.layer = QUESTION
            frame.border_title = Content(visible(self._question))
            frame.border_subtitle = hints(("y yes", "dismiss(True)"), ("n no", "dismiss(False)"))
            # Nobody says yes to what has no room.
            with VerticalScroll() as scroll:
                scroll.styles.height, scroll.styles.max_height = "auto", "80vh"
                yield Static(visible_lines(self._detail), markup=False)


class Prompt(Dialog[str]):
    """One line of text; enter takes it."""

    def __init__(
        self, title: str, value: str = "", hint: str = "", words: Iterable[str] = ()
    ) -> None:
        super().__init__()
        self._title = title
        self._value = value
        self._hint = hint
        self._words = words

    def compose(self) -> ComposeResult:
        with Vertical() as frame:
            frame.border_title = Content(visible(self._title))
            frame.border_subtitle = hints(
                ("enter accepts", "accept"), ("escape cancels", "dismiss(None)")
            )
            yield Input(
                visible(self._value), placeholder=self._hint, select_on_focus=False,
                suggester=Words(self._words),
            )  # fmt: skip

    def on_input_submitted(self) -> None:
        """Return the line."""
        self.action_accept()

    def action_accept(self) -> None:
        """Return the line."""
        self.dismiss(self.query_one(Input).value.strip())
