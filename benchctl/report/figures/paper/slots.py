"""Where bars and boxes stand: side by side, those that are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from benchctl.report.figures.figure import LineRole, Panel

# The rest of the distance between two places is free.
BAR = 0.8


class Slots(NamedTuple):
    """The numbers of the lines that have a bar or a box at each place of an even axis."""

    numbers: Mapping[float, Sequence[int]]

    @property
    def width(self) -> float:
        """The width of a bar."""
        return BAR / max(map(len, self.numbers.values()), default=1)

    def middle(self, x: float, number: int | None) -> float:
        """Return the middle of a line's bar at a place; of what is of no line, the place."""
        there = self.numbers.get(x, ())
        if number is None or number not in there:
            return x
        return x + (there.index(number) - (len(there) - 1) / 2) * self.width


def slots_of(panel: Panel) -> Slots:
    """Return where the bars and the boxes of a panel stand."""
    found: dict[float, set[int]] = {}
    for line in panel.lines:
        if line.role is LineRole.MEASURED and line.number is not None:
            for x in line.xs:
                found.setdefault(x, set()).add(line.number)
    for box in panel.boxes:
        found.setdefault(box.x, set()).add(box.number)
    return Slots({x: sorted(numbers) for x, numbers in found.items()})
