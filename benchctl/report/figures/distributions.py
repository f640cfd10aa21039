"""Figures of how samples are distributed: cumulative shares (CDF), histograms, and boxes."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, compress, pairwise, zip_longest

from msgspec import Struct, field

from benchctl.analysis.statistics import quantile
from benchctl.metrics import Fold, title_of
from benchctl.report.figures.axes import named_axis, title_of_axis
from benchctl.report.figures.figure import Axis, Box, Panel, Picture, PictureKind, PictureLine
from benchctl.report.figures.parts import Source, left_out, names_of
from benchctl.report.figures.request import PictureRequest, numbered
from benchctl.report.figures.times import flow_lines
from benchctl.report.report import place_of
from benchctl.report.timeline.traces import ALL, ENDS
from benchctl.store.bulk import Bulk

DISTRIBUTIONS = (PictureKind.CDF, PictureKind.HISTOGRAM, PictureKind.BOX)
# Fewer show no shape; more are finer than a figure.
LEAST_BINS, MOST_BINS = 10, 100


class _Pool(Struct):
    """The samples of one line at one place of the x-axis, of all its repeats."""

    source: Source
    values: array[float] = field(default_factory=lambda: array("d"))
    trials: int = 0


def distributed(request: PictureRequest, bulk: Bulk) -> Picture | None:
    """Return the distribution of a part's samples; None without any. Raises StoreError."""
    metric, _ = request.metrics[0]
    axis = request.x if request.kind is PictureKind.BOX else ""
    pools = [*_pools(request, metric, bulk)]
    if not pools:
        return None
    naming = names_of((pool.source for pool in pools), request.axes, axis)
    numbers, count = numbered((naming.key(pool.source), pool.source) for pool in pools)
    shown = [
        (numbers[naming.key(pool.source)], sorted(pool.values), pool)
        for pool in pools
        if naming.key(pool.source) in numbers
    ]
    total = sum(len(values) for _, values, _ in shown)
    trials = max(pool.trials for pool in pools)
    of = f" of up to {trials} repeats, all together" if trials > 1 else ""
    notes = [f"{total:,} samples{of}", *left_out(count, len(numbers), "lines")]
    names = [", ".join(key) for key in numbers]
    described = request.run.vocabulary.describe(metric)
    low, high = min(values[0] for _, values, _ in shown), max(values[-1] for _, values, _ in shown)
    values_axis = Axis(title_of(metric), metric, low, high)
    if request.kind is not PictureKind.BOX:
        lines = [(names[number], number, values) for number, values, _ in shown]
        panel = shape_of(request.kind, lines, request.columns)
        return request.figure(values_axis, [panel], names, naming.title, notes)
    places = [*dict.fromkeys(str(pool.source.point.get(axis, "")) for _, _, pool in shown)]
    if axis:
        known = [str(value) for value in request.run.values[axis]]
        places.sort(key=lambda text: known.index(text) if text in known else len(known))
        x = named_axis(title_of_axis(axis), places)
    else:
        x = named_axis(naming.title, [name or request.run.profile for name in names])
    boxes = []
    for number, values, pool in shown:
        place = places.index(str(pool.source.point.get(axis, ""))) if axis else number
        p5, q1, middle, q3, p95 = (
            quantile(values, share) for share in (0.05, 0.25, 0.5, 0.75, 0.95)
        )
        box = Box(
            float(place), number if axis else 0, values[0], p5, q1, middle, q3, p95, values[-1],
            len(values),
        )  # fmt: skip
        boxes.append(box)
    notes.insert(0, "box: quartiles; whiskers: 5 % and 95 %; points: least and greatest")
    from_zero = described.fold in (Fold.RATE, Fold.COUNT) and low >= 0
    y = Axis(title_of(metric), metric, low, high, from_zero=from_zero)
    named = (names, naming.title) if axis else ([""], "")
    return request.figure(x, [Panel(y, boxes=boxes)], *named, notes)


def shape_of(
    kind: PictureKind, lines: Sequence[tuple[str, int, Sequence[float]]], most: int
) -> Panel:
    """Return the plot of a CDF, of at most ``most`` steps, or else of a histogram.

    Lines are a name, a number and samples in order of value.
    """
    if kind is PictureKind.CDF:
        share = Axis("share of samples", "share_ratio", 0.0, 1.0, from_zero=True)
        return Panel(share, [PictureLine(n, k, *_cumulated(v, most)) for n, k, v in lines])
    edges = edges_of([values for _, _, values in lines])
    drawn = [PictureLine(n, k, *_outline(edges, counts_in(v, edges))) for n, k, v in lines]
    greatest = max(max(line.ys) for line in drawn)
    return Panel(Axis("samples", "", 0.0, greatest, from_zero=True), drawn)


def _pools(request: PictureRequest, metric: str, bulk: Bulk) -> Iterator[_Pool]:
    """Yield the samples of each point, flow and direction that has some."""
    pools: dict[tuple[object, ...], _Pool] = {}
    vocabulary = request.run.vocabulary
    for trial in request.trials:
        series = _series(bulk, [flow.flow.id for flow in trial.flows], metric)
        for flow in trial.flows:
            for flow_line in flow_lines(flow, [metric]):
                source = Source(trial.trial.point, flow_line.name, flow_line.direction)
                key = (str(sorted(source.point.items())), source.flow, source.direction)
                pool = pools.setdefault(key, _Pool(source))
                before = len(pool.values)
                own = series.get((flow.flow.id, flow_line.direction), {})
                if flow_line.stream != ALL:
                    stream = flow_line.stream
                    own = {role: {stream: of[stream]} for role, of in own.items() if stream in of}
                pool.values.extend(_values(own, vocabulary.describe(metric).fold))
                pool.trials += len(pool.values) > before
    found = [pool for pool in pools.values() if pool.values]
    yield from sorted(found, key=lambda pool: place_of(request.run, pool.source.point))


def _series(
    bulk: Bulk, flows: Sequence[int], metric: str
) -> Mapping[tuple[int, str], Mapping[str, Mapping[int, array[float]]]]:
    """Return values by flow and direction, role, and stream; none of the omitted part."""
    found: dict[tuple[int, str], dict[str, dict[int, array[float]]]] = {}
    for column in bulk.columns(flows, [metric]):
        of_role = found.setdefault((column.flow_id, column.direction), {}).setdefault(
            column.role, {}
        )
        values: Iterable[float] = column.values[metric]
        if any(column.omitted):
            values = compress(values, (not omitted for omitted in column.omitted))
        of_role.setdefault(column.stream, array("d")).extend(values)
    return found


def _values(series: Mapping[str, Mapping[int, array[float]]], fold: Fold) -> Iterator[float]:
    """Yield the samples of a flow: of a rate or a count the sums over its streams."""
    columns = next((series[role] for role in ENDS if role in series), {}).values()
    found: Iterator[float] = chain.from_iterable(columns)
    if fold in (Fold.RATE, Fold.COUNT):
        found = map(sum, zip_longest(*columns, fillvalue=math.nan))
    yield from filter(math.isfinite, found)


def edges_of(lines: Sequence[Sequence[float]]) -> list[float]:
    """Return the edges of equal bins for all lines, the least and the greatest value among them.

    ``lines`` are sorted values. Freedman and Diaconis (Probability Theory and Related Fields 57,
    1981): the width is twice the distance of the quartiles by the cube root of the number of
    values; here the least of all lines, which may be far apart.
    """
    low, high = min(values[0] for values in lines), max(values[-1] for values in lines)
    widths = [
        2 * (quantile(values, 0.75) - quantile(values, 0.25)) / len(values) ** (1 / 3)
        for values in lines
    ]
    width = min((width for width in widths if width > 0), default=math.inf)
    bins = max(math.ceil(min((high - low) / width, MOST_BINS)), LEAST_BINS)
    if high - low <= math.ulp(max(abs(low), abs(high))) * bins:
        return [low, math.nextafter(high, math.inf)]
    return [*(low + (high - low) * n / bins for n in range(bins)), high]


def counts_in(ordered: Sequence[float], edges: Sequence[float]) -> list[int]:
    """Return how many of the sorted values are in each bin; the last one holds its upper edge."""
    reached = [bisect_left(ordered, edge) for edge in edges[:-1]]
    return [after - before for before, after in pairwise([*reached, len(ordered)])]


def _outline(
    edges: Sequence[float], counts: Sequence[int]
) -> tuple[list[float], list[float]]:  # fmt: skip
    """Return the upper border of the bins as a line."""
    xs, ys = [edges[0]], [0.0]
    for (low, high), count in zip(pairwise(edges), counts, strict=True):
        xs += (low, high)
        ys += (float(count), float(count))
    return [*xs, edges[-1]], [*ys, 0.0]


def _cumulated(ordered: Sequence[float], most: int) -> tuple[list[float], list[float]]:
    """Return a CDF's steps: values, and the share of samples up to each.

    Of more than ``most`` samples those at equal ranks, the first and the last among them.
    """
    n = len(ordered)
    ranks = range(n) if n <= most else [round(k * (n - 1) / (most - 1)) for k in range(most)]
    return [ordered[rank] for rank in ranks], [(rank + 1) / n for rank in ranks]
