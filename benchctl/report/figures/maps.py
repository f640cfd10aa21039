"""Maps of means over repeats: of two axes, or of the pairs of a mesh."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from benchctl.analysis.results import TrialReport
from benchctl.analysis.runs.compare import Comparison
from benchctl.analysis.runs.summary import SummaryRow
from benchctl.metrics import Direction, title_of
from benchctl.report.figures.axes import UNSEEN, named_axis, title_of_axis
from benchctl.report.figures.figure import Axis, HeatCell, Panel, Picture
from benchctl.report.figures.means import doubts, repeats_note, rows_of, source_of, values_of
from benchctl.report.figures.parts import left_out, names_of
from benchctl.report.figures.request import PictureRequest
from benchctl.report.report import Report
from benchctl.units import scale_of

Names = tuple[str, str]
"""Those of a row and of a column."""


def heat(request: PictureRequest) -> Picture:
    """Return a heat map of the x-axis and the one of the series."""
    rows = [row for row in rows_of(request)[0] if request.series in row.point]
    down = [str(value) for value in values_of(request, rows, request.series)]
    across = [str(value) for value in values_of(request, rows)]

    def pair_of(row: SummaryRow) -> Names:
        return str(row.point[request.series]), str(row.point[request.x])

    titles = title_of_axis(request.series), title_of_axis(request.x)
    return _map(request, rows, {request.series}, pair_of, (down, across), titles)


def matrix(request: PictureRequest) -> Picture:
    """Return the matrix of a mesh: data go from the host of a row to that of a column."""
    mesh = Mesh(request.report, request.x)
    rows, names = rows_of(request)[0], (mesh.hosts, mesh.hosts)
    return _map(request, rows, set(), mesh.pair_of, names, FROM_TO)


FROM_TO = ("from", "to")
"""The titles of the rows and the columns of a matrix."""


class Mesh:
    """The pairs of hosts that are the values of an axis; ``hosts`` are in the profile's order."""

    def __init__(self, report: Report, axis: str) -> None:
        self._axis = axis
        self._pairs = {
            (str(trial.trial.point[axis]), flow.name): (flow.source, flow.to)
            for trial in report.trials
            if axis in trial.trial.point
            for flow in trial.trial.flows
        }
        order = {str(value): place for place, value in enumerate(report.run.values.get(axis, ()))}
        pairs = sorted(self._pairs.items(), key=lambda item: order.get(item[0][0], 0))
        self.hosts = [*dict.fromkeys(host for _, pair in pairs for host in pair)]

    def pair_of(self, row: SummaryRow | Comparison) -> Names:
        """Return from where to where data go."""
        source, target = self._pairs[str(row.point[self._axis]), row.flow]
        return (target, source) if row.direction == Direction.RECEIVE else (source, target)

    def is_filled(self, pairs: Iterable[Names]) -> bool:
        """Return whether so many pairs are a matrix: one that is mostly empty is none."""
        return 2 * len({*pairs}) >= len(self.hosts) * (len(self.hosts) - 1)


def is_mesh(trials: Iterable[TrialReport], axis: str) -> bool:
    """Return whether the values of an axis are pairs of hosts, of which no host is in each."""
    pairs = {
        (str(trial.trial.point[axis]), (trial.trial.flows[0].source, trial.trial.flows[0].to))
        for trial in trials
        if axis in trial.trial.point and trial.trial.flows
    }
    of_values, of_pairs = (dict(pairs), {pair: value for value, pair in pairs})
    sources, targets = ({pair[end] for pair in of_pairs} for end in (0, 1))
    one_each = len(of_values) == len(of_pairs) == len(pairs)
    return one_each and len(sources) > 1 and len(targets) > 1


def _map(
    request: PictureRequest, rows: Sequence[SummaryRow], shown: set[str],
    place: Callable[[SummaryRow], Names], names: tuple[Sequence[str], Sequence[str]], titles: Names,
) -> Picture:  # fmt: skip
    """Return a map of rows of the summary, whose cells' places are those of ``names``."""
    ((metric, aggregate), *_) = request.metrics
    axes = [axis for axis in request.axes if axis not in shown]
    naming = names_of(map(source_of, rows), axes, request.x)
    keys = [*dict.fromkeys(naming.key(source_of(row)) for row in rows)]
    rows = [row for row in rows if naming.key(source_of(row)) == keys[0]]
    there: Mapping[Names, SummaryRow] = {place(row): row for row in rows}
    means = [row.spread.mean for row in rows]
    title = title_of(metric) + (f", {aggregate}" if aggregate else "")
    low, high = min(means), max(means)
    scale = Axis(title, metric, low, high, log=low > 0 and high >= UNSEEN * low)
    factor, _ = scale_of(metric, max(map(abs, means)))
    down, across = names

    def cell(row: int, column: int, summary_row: SummaryRow | None) -> HeatCell:
        mean = None if summary_row is None else summary_row.spread.mean
        text = "" if mean is None else f"{mean / factor:.3g}"
        return HeatCell(column, row, mean, text, summary_row is None or summary_row.valid)

    cells = [
        cell(row, column, there.get((of_row, of_column)))
        for row, of_row in enumerate(down)
        for column, of_column in enumerate(across)
    ]
    notes = [*repeats_note(rows, ""), *left_out(len(keys), 1, "maps"), *doubts(rows)]
    if keys[0] and len(keys) > 1:
        notes.insert(0, f"{naming.title}: {', '.join(keys[0])}")
    panel = Panel(named_axis(titles[0], down), cells=cells, heat=scale)
    return request.figure(named_axis(titles[1], across), [panel], [], "", notes)
