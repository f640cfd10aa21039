"""Our widgets beside Textual's, and our table of styles beside its own: what a change costs.

Each is shown in an app without a terminal. A change of all visible figures, as one tick makes it,
is timed until it is drawn; so is opening a list of many trials.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any

import table
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import DataTable, Digits, Footer, OptionList, Sparkline, TabbedContent, TabPane
from textual.widgets.option_list import Option

from benchctl.report.lines.spans import Span
from benchctl.tui import themes
from benchctl.tui.draw.plot.plot import BRAILLE
from benchctl.tui.draw.text.columns import Column
from benchctl.tui.draw.views.flowlist import spark
from benchctl.tui.draw.views.tiles import Tile
from benchctl.tui.widgets.bars import KeyBar
from benchctl.tui.widgets.chartview import Tiles
from benchctl.tui.widgets.table import Table

ROWS, TRIALS = 8, 10_000
LISTS = 4
CHANGES = 50
SPARK = 24
# As the Live screen has.
TILES, KEYS = 7, 9
HEADS = ("flow", "now", "mean", "course")


def main() -> None:
    table.head(f"widgets: {ROWS} flows changed at once, a list of {TRIALS:,} trials")
    for name, measure in (
        ("our table and sparklines", _ours),
        ("Textual's DataTable, sparklines as text", _theirs),
        ("Textual's OptionList, rows as text", _options),
        ("Textual's Sparkline, one for each flow", _sparklines),
    ):
        print(f"{name + ', a change of all rows':<58}{_measured(*measure()):>11.2f} ms")
    print(
        f"{f'our table, {TRIALS:,} trials to the first frame':<58}{_opened(_our_trials):>11.1f} ms"
    )
    told = f"DataTable, {TRIALS:,} trials to the first frame"
    print(f"{told:<58}{_opened(_their_trials):>11.1f} ms")
    told = f"OptionList, {TRIALS:,} trials to the first frame"
    print(f"{told:<58}{_opened(_option_trials):>11.1f} ms")
    for name, build, measure in (
        ("our lists by a class of the screen", _lists, _next_list),
        ("Textual's TabbedContent", _Tabs, _next_tab),
    ):
        print(f"{f'{name}, {LISTS} lists to the first frame':<58}{_opened(build):>11.1f} ms")
        shown = build()
        print(f"{f'{name}, another list':<58}{_measured(shown, measure(shown)):>11.2f} ms")
    for name, page in (("our table of styles", _Page), ("Textual's component classes", _Classes)):
        print(f"{f'{name}, a change of class':<58}{_classes(page):>11.2f} ms")
    for name, measure in (("our tiles", _tiles), ("Textual's Digits", _digits)):
        print(f"{f'{name}, a change of {TILES}':<58}{_measured(*measure()):>11.2f} ms")
    for name, build in (("our bar of keys", KeyBar), ("Textual's Footer", Footer)):
        print(f"{f'{name}, {KEYS} keys to the first frame':<58}{_opened(build):>11.1f} ms")
        bar = build()
        print(f"{f'{name}, when the keys change':<58}{_measured(bar, _keys_of(bar)):>11.2f} ms")


def _row(number: int, change: int) -> tuple[str, str, str]:
    return f"● {number} h{number}", f"{number}.{change % 90 + 10} Gbit/s", f"{number}.00 Gbit/s"


def _course(number: int, change: int) -> list[float]:
    return [float((number * 7919 + (place + change) * 104729) % 1000) for place in range(SPARK)]


def _ours() -> tuple[Widget, Callable[[int], None]]:
    shown = Table()
    columns = [Column("flow", 8, fixed=True), Column("now", 11, right=True)]
    columns += [Column("mean", 11, right=True), Column("course", SPARK, right=True)]

    def change(number: int) -> None:
        def row(index: int) -> list[Span]:
            course = spark(_course(index, number), BRAILLE.bars, from_zero=True)
            return [*map(Span, _row(index, number)), Span(course, f"curve-{index}")]

        shown.show(columns, ROWS, row)

    return shown, change


def _theirs() -> tuple[Widget, Callable[[int], None]]:
    shown: DataTable[str] = DataTable()

    def change(number: int) -> None:
        if not shown.columns:
            for head in HEADS:
                shown.add_column(head, key=head, width=SPARK)
            for index in range(ROWS):
                shown.add_row(*_row(index, 0), "", key=str(index))
        for index in range(ROWS):
            course = spark(_course(index, number), BRAILLE.bars, from_zero=True)
            for head, text in zip(HEADS, (*_row(index, number), course), strict=True):
                shown.update_cell(str(index), head, text)

    return shown, change


def _sparklines() -> tuple[Widget, Callable[[int], None]]:
    lines = [Sparkline() for _ in range(ROWS)]

    def change(number: int) -> None:
        for index, line in enumerate(lines):
            line.data = _course(index, number)

    return Vertical(*lines), change


def _options() -> tuple[Widget, Callable[[int], None]]:
    shown = OptionList(*(Option("", id=str(index)) for index in range(ROWS)))

    def change(number: int) -> None:
        for index in range(ROWS):
            course = spark(_course(index, number), BRAILLE.bars, from_zero=True)
            text = "  ".join((*_row(index, number), course))
            shown.replace_option_prompt(str(index), text)

    return shown, change


def _list(number: int) -> Table:
    shown = Table(id=f"list-{number}")
    shown.show([Column("row", 8)], ROWS, lambda index: [Span(f"{number}.{index}")])
    return shown


def _lists() -> Widget:
    return Vertical(*(_list(number) for number in range(LISTS)))


def _next_list(shown: Widget) -> Callable[[int], None]:
    def change(number: int) -> None:
        for place, one in enumerate(shown.children):
            one.display = place == number % LISTS

    return change


class _Tabs(Vertical):
    def compose(self) -> ComposeResult:
        with TabbedContent():
            for number in range(LISTS):
                with TabPane(f"list {number}", id=f"pane-{number}"):
                    yield _list(number)


def _next_tab(shown: Widget) -> Callable[[int], None]:
    def change(number: int) -> None:
        shown.query_one(TabbedContent).active = f"pane-{number % LISTS}"

    return change


def _tiles() -> tuple[Widget, Callable[[int], None]]:
    shown = Tiles()
    shown.styles.height = 4

    def change(number: int) -> None:
        shown.show([Tile(f"t{n}", f"{number}.{n} Mbit/s", 8) for n in range(TILES)])

    return shown, change


def _digits() -> tuple[Widget, Callable[[int], None]]:
    digits = [Digits() for _ in range(TILES)]

    def change(number: int) -> None:
        for n, one in enumerate(digits):
            one.update(f"{number}.{n}")

    return Horizontal(*digits), change


def _keys_of(bar: Widget) -> Callable[[int], None]:
    def change(number: int) -> None:
        bar.screen.set_class(bool(number % 2), "-other")
        bar.screen.refresh_bindings()

    return change


def _our_trials() -> Widget:
    shown = Table()
    columns = [Column("#", 6, right=True), Column("state", 8), Column("figure", 11, right=True)]
    shown.show(columns, TRIALS, lambda index: [*map(Span, (str(index), "ok", "94.1 Mbit/s"))])
    return shown


def _option_trials() -> Widget:
    return OptionList(*(f"{n:>6}  ok        94.1 Mbit/s" for n in range(TRIALS)))


def _their_trials() -> Widget:
    shown: DataTable[str] = DataTable()
    shown.add_columns("#", "state", "figure")
    rows: Iterable[tuple[str, ...]] = ((str(n), "ok", "94.1 Mbit/s") for n in range(TRIALS))
    shown.add_rows(rows)
    return shown


class _Page(Screen[None]):
    BINDINGS = [Binding(chr(ord("a") + n), f"do({n})", f"Key {n}") for n in range(KEYS)]  # noqa: RUF012

    def __init__(self, shown: Widget) -> None:
        super().__init__()
        self._shown = shown

    def compose(self) -> ComposeResult:
        yield self._shown

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "do" or parameters != (0,) or not self.has_class("-other")


class _Classes(_Page):
    COMPONENT_CLASSES = {f"role--{role}" for role in themes.LOOKS}  # noqa: RUF012
    DEFAULT_CSS = " ".join(f".role--{role} {{ color: red; }}" for role in themes.LOOKS)


class _App(App[None]):
    def get_theme_variable_defaults(self) -> dict[str, str]:
        return themes.variables(self.current_theme)


def _run(build: Callable[[], Widget], then: Callable[[Any], Any], page: type[_Page] = _Page) -> Any:
    async def go() -> Any:
        app = _App()
        async with app.run_test(size=(120, 40)) as pilot:
            begun = time.perf_counter()
            await app.push_screen(page(build()))
            await pilot.pause()
            return await then((pilot, begun))

    return asyncio.run(go())


def _opened(build: Callable[[], Widget]) -> float:
    async def then(state: Any) -> float:
        return (time.perf_counter() - state[1]) * 1e3

    return statistics.median(float(_run(build, then)) for _ in range(3))


def _classes(page: type[_Page]) -> float:
    shown = Table()
    change = lambda number: shown.screen.set_class(bool(number % 2), "-other")  # noqa: E731
    return _measured(shown, change, page)


def _measured(shown: Widget, change: Callable[[int], None], page: type[_Page] = _Page) -> float:
    async def then(state: Any) -> float:
        pilot = state[0]
        change(0)
        await pilot.pause()
        times = []
        for number in range(1, CHANGES):
            begun = time.process_time()
            change(number)
            pilot.app.screen._compositor.render_strips()
            await pilot.pause()
            times.append((time.process_time() - begun) * 1e3)
        return statistics.median(times)

    return float(_run(lambda: shown, then, page))
