"""The big figures at the top of the live screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchctl.tui.painted import Painted
from benchctl.tui.spans import Line, Span, fit

# Wide enough for "94.1 Mbit/s"; a tile never changes its width while figures change.
LEAST_WIDTH = 11
GAP = 1
# Rows of a tall digit.
TALL = 3
# Digits as dots, three (or one) wide and five high, a row after the other.
_DOTS = {
    "0": "111101101101111", "1": "010110010010111", "2": "111001111100111",
    "3": "111001111001111", "4": "101101111001001", "5": "111100111001111",
    "6": "111100111101111", "7": "111001001001001", "8": "111101111101111",
    "9": "111101111001111", "-": "000000111000000", ".": "00001", ":": "01010", " ": "00000",
}  # fmt: skip
_HALVES = " ▀▄█"


@dataclass(frozen=True, slots=True)
class Tile:
    """One figure: its name, its value with unit, and whether it is good or bad news."""

    name: str
    value: str
    role: str = "strong"


def lay_out(tiles: Sequence[Tile], width: int, *, tall: bool) -> list[Line]:
    """Return the tiles side by side; those for which there is no room are left out."""
    fitting = max(1, min(len(tiles), (width + GAP) // (LEAST_WIDTH + GAP)))
    each = (width + GAP) // fitting - GAP
    shown = tiles[:fitting]
    gap = Span(" " * GAP)

    def row(cells: Sequence[Span]) -> Line:
        return [span for cell in cells for span in (cell, gap)][:-1]

    if not tall:
        return [
            row([Span(fit(tile.name, each), "label") for tile in shown]),
            row([Span(fit(tile.value, each), tile.role) for tile in shown]),
        ]
    return [
        row([Span(fit(tile.name, each), "label") for tile in shown]),
        *(
            row([Span(fit(_tall(tile.value, line, each), each), tile.role) for tile in shown])
            for line in range(TALL)
        ),
    ]


def _tall(value: str, line: int, width: int) -> str:
    """Return one of the three lines of a value; one that is no number, or too wide, has only one.

    The unit stands beside the last line of the number.
    """
    number, _, unit = value.partition(" ")
    last = line == TALL - 1
    if all(character in _DOTS for character in number):
        digits = " ".join(_halves(_DOTS[character], line) for character in number)
        if len(digits) + 1 + len(unit) <= width:
            return f"{digits} {unit}" if last else digits
    return value if last else ""


def _halves(dots: str, line: int) -> str:
    wide = len(dots) // 5
    upper = dots[2 * line * wide : (2 * line + 1) * wide]
    lower = dots[(2 * line + 1) * wide : (2 * line + 2) * wide] or "0" * wide
    return "".join(_HALVES[int(u) + 2 * int(d)] for u, d in zip(upper, lower, strict=True))


class Tiles(Painted):
    """The tiles as a widget; tall digits where it is four lines high."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._tiles: Sequence[Tile] = ()

    def show(self, tiles: Sequence[Tile]) -> None:
        """Show these tiles, the most important one first."""
        if tiles != self._tiles:
            self._tiles = tiles
            self.repaint()

    def paint(self, width: int, height: int) -> Sequence[Line]:
        return lay_out(self._tiles, width, tall=height > TALL) if self._tiles else []
