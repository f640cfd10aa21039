"""The big figures at the top of the live screen, as text.

Of Textual's Digits each is a widget: a change of seven, as with every tick, takes 6.2 ms instead of
2.2 ms (``python bench widgets``). A figure that is too wide for tall digits has one line here.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from benchctl.report.lines.spans import Line, Span, shorten, whole

GAP = 1
# Height of a tall digit.
TALL = 3
# Width of "94.1" in tall digits, and what keeps such figures apart: one column is within a figure.
TALL_WIDTH, TALL_GAP = 13, 3
# Of a tile's width, what is not its unit: "94.1 ", less the ", " that stands before it in a name.
BESIDE_UNIT = 3
# Digits as dots, three (or one) wide and five high, a row after the other.
_DOTS = {
    "0": "111101101101111", "1": "010110010010111", "2": "111001111100111",
    "3": "111001111001111", "4": "101101111001001", "5": "111100111001111",
    "6": "111100111101111", "7": "111001001001001", "8": "111101111101111",
    "9": "111101111001111", "-": "000000111000000", ".": "00001", ":": "01010", " ": "00000",
}  # fmt: skip
_HALVES = " ▀▄█"


class Tile(Struct, frozen=True):
    """One figure: its name, its value with unit, and whether it is good or bad.

    It is at least ``width`` wide, and as its name; its width does not change with the figure.
    """

    name: str
    value: str
    width: int
    role: str = "strong"


def lay_out_tiles(tiles: Sequence[Tile], width: int, *, tall: bool) -> list[Line]:
    """Return the tiles side by side, as many as fit."""
    roomy = [
        replace(tile, width=max(TALL_WIDTH, len(tile.name) + tile.width - BESIDE_UNIT))
        for tile in tiles
    ]
    if tall and sum(tile.width + TALL_GAP for tile in roomy) - TALL_GAP <= width:
        shown, gap = roomy, TALL_GAP
    else:
        shown, gap = _fitting(tiles, width), GAP
    spare = max(0, (width + gap - sum(tile.width + gap for tile in shown)) // len(shown))

    def row(cells: Sequence[tuple[str, str]]) -> Line:
        return [
            Span(text.ljust(tile.width + spare + gap), role)
            for tile, (text, role) in zip(shown, cells, strict=True)
        ]

    def label(tile: Tile) -> str:
        return shorten(tile.name, tile.width + spare)

    if not tall:
        return [
            row([(label(tile), "label") for tile in shown]),
            row([(whole(tile.value, tile.width + spare), tile.role) for tile in shown]),
        ]
    values = [_tall(tile, tile.width + spare) for tile in shown]
    return [
        row([(name, "label") for name, _ in values]),
        *(
            row([(v[1][line], t.role) for v, t in zip(values, shown, strict=True)])
            for line in range(TALL)
        ),
    ]


def _fitting(tiles: Sequence[Tile], width: int) -> list[Tile]:
    """Return as many tiles as fit, the first one always."""
    shown: list[Tile] = []
    for tile in (replace(tile, width=max(tile.width, len(tile.name))) for tile in tiles):
        if not shown or sum(tile.width + GAP for tile in shown) + tile.width <= width:
            shown.append(tile)
    return shown


def _tall(tile: Tile, width: int) -> tuple[str, Sequence[str]]:
    """Return a tile's name with the unit, and the three lines of its number.

    A value that is not a number, or too wide, has only one line.
    """
    number, _, unit = tile.value.partition(" ")
    name = f"{tile.name}, {unit}" if unit else tile.name  # "resent 3 Mbit/s" would be a figure
    if all(character in _DOTS for character in number) and len(name) <= width:
        lines = [
            " ".join(_halves(_DOTS[character], line) for character in number)
            for line in range(TALL)
        ]
        if len(lines[0]) <= width:
            return name, lines
    return shorten(tile.name, width), ("", whole(tile.value, width), "")


def _halves(dots: str, line: int) -> str:
    wide = len(dots) // 5
    upper = dots[2 * line * wide : (2 * line + 1) * wide]
    lower = dots[(2 * line + 1) * wide : (2 * line + 2) * wide] or "0" * wide
    return "".join(_HALVES[int(u) + 2 * int(d)] for u, d in zip(upper, lower, strict=True))
