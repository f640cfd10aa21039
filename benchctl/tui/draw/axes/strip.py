"""A line by columns of dots: which columns have values, and their least, greatest and mean ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from benchctl.report.timeline.series import Range


class Strip(NamedTuple):
    """One entry for each column with values; ``places`` are the numbers of those columns."""

    places: Sequence[int]
    lows: Sequence[float]
    highs: Sequence[float]
    means: Sequence[float]


def strip_of(columns: Sequence[Range | None]) -> Strip:
    """Return columns as a strip."""
    places = [place for place, column in enumerate(columns) if column is not None]
    if not places:
        return Strip((), (), (), ())
    return Strip(places, *zip(*filter(None, columns), strict=True))
