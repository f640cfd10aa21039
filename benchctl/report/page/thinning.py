"""Lines of fewer points: a page of many figures stays small, and no peak disappears. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

from msgspec.structs import replace

from benchctl.report.figures.figure import PictureLine


def thinned(line: PictureLine, most: int, *, merge: bool) -> PictureLine:
    """Return a line of at most ``most`` points, of which there must be three or more.

    With ``merge``, neighbours become their mean, and ``lows`` and ``highs`` span all that they are
    of: right for values over time; a gap stays one. Otherwise some points are kept, both ends among
    them.
    """
    count = len(line.xs)
    if count <= most:
        return line
    if not merge:
        kept = sorted({round(place * (count - 1) / (most - 1)) for place in range(most)})
        return _taken(line, lambda values: [values[place] for place in kept])
    gaps = sum(map(math.isnan, line.ys))
    parts = max(most // 3, most - 2 * gaps)  # a gap divides a group, and is a point of its own
    bounds = [place * count // parts for place in range(parts + 1)]
    groups = [group for pair in pairwise(bounds) for group in _divided(range(*pair), line.ys)]

    def fold(values: Sequence[float], of: Callable[[Iterable[float]], float]) -> list[float]:
        known = [[values[i] for i in group if math.isfinite(values[i])] for group in groups]
        return [of(some) if some else math.nan for some in known]

    return replace(
        line,
        xs=fold(line.xs, _mean),
        ys=fold(line.ys, _mean),
        lows=fold(_known(line.lows, line.ys), min),
        highs=fold(_known(line.highs, line.ys), max),
    )


def _divided(group: range, ys: Sequence[float]) -> Iterator[range]:
    """Yield the part of a group before its first gap, the gap, and the rest, if they are there."""
    gap = next((place for place in group if math.isnan(ys[place])), group.stop)
    after = min(gap + 1, group.stop)
    yield from filter(None, (range(group.start, gap), range(gap, after), range(after, group.stop)))


def _taken(line: PictureLine, take: Callable[[Sequence[float]], list[float]]) -> PictureLine:
    return replace(
        line, xs=take(line.xs), ys=take(line.ys),
        lows=take(line.lows) if line.lows else (), highs=take(line.highs) if line.highs else (),
    )  # fmt: skip


def _known(ends: Sequence[float], ys: Sequence[float]) -> Sequence[float]:
    """Return the ends of ranges; a value without a range is its own."""
    if not ends:
        return ys
    return [end if math.isfinite(end) else y for end, y in zip(ends, ys, strict=True)]


def _mean(values: Iterable[float]) -> float:
    some = list(values)
    return math.fsum(some) / len(some)
