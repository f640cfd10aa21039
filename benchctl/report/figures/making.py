"""Makes the figures of a run: `figures_of` is what everything that draws a run calls.

What is not asked for is chosen by what the run is: what changes during its trials is shown over
time, a mesh as a matrix, numbers of an axis as a curve, anything else as bars. A figure is made
when it is asked for, so that of many only one is in memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import product
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from benchctl.analysis.search.found import FOUND_RATE
from benchctl.errors import UsageError, nearest
from benchctl.metrics import PROBES
from benchctl.report.figures.axes import is_swept
from benchctl.report.figures.distributions import DISTRIBUTIONS, distributed
from benchctl.report.figures.figure import MAPS, Picture, PictureKind
from benchctl.report.figures.maps import heat, is_mesh, matrix
from benchctl.report.figures.means import by_axis, rows_of
from benchctl.report.figures.parts import REPEAT, Part, left_out
from benchctl.report.figures.plane import plane
from benchctl.report.figures.request import OF_SAMPLES, PictureRequest
from benchctl.report.figures.searched import searched
from benchctl.report.figures.segments import PANELS, sequences_of
from benchctl.report.figures.times import over_time, panels_of
from benchctl.report.report import Report, without_figures
from benchctl.report.traced import KEYS, chosen_of, traces_of
from benchctl.run.condition import parse_figure
from benchctl.run.record import Run
from benchctl.store.bulk import Bulk
from benchctl.store.read import Reader
from benchctl.units import quoted

TIME = "time"
"""The name of the x-axis of figures over time."""
COLUMNS = 600
"""Values of a line over time: about one for each dot that a figure in a paper has."""
BY_AXIS = (PictureKind.SWEEP, PictureKind.BARS, *MAPS, PictureKind.BOX)
"""Their x-axis is one of the run."""


class Wanted(Struct, frozen=True):
    """What figures are asked for; what is empty is chosen by the run.

    ``y`` are figures such as ``rtt_s`` or ``rtt_s.p95``. There is a figure for each value of the
    axes ``by``; with ``every`` for each value of every axis, and for each repeat, that would not be
    seen in one. ``only`` are the values of axes to show. Lines over time have ``columns`` values,
    from ``begin_s`` to ``end_s``.
    """

    kind: PictureKind | None = None
    x: str = ""
    y: Sequence[str] = ()
    series: str = ""
    by: Sequence[str] = ()
    only: Mapping[str, Collection[str]] = MappingProxyType({})
    every: bool = False
    columns: int = COLUMNS
    begin_s: float = 0.0
    end_s: float = math.inf

    @property
    def is_zoomed(self) -> bool:
        """Whether only a part of the time is asked for."""
        return self.begin_s > 0 or math.isfinite(self.end_s)


USUAL = Wanted()
"""What suits a run."""


def figures_of(
    reader: Reader, report: Report, wanted: Wanted = USUAL
) -> Generator[Picture, None, None]:
    """Yield the figures of a run; at least one.

    Raises UsageError for what the run does not have, and where nothing was measured; StoreError.
    Who does not take all closes the generator, which reads the store.
    """
    only = wanted.only
    if wanted.kind is PictureKind.SEQUENCE:
        only = {axis: texts for axis, texts in only.items() if axis not in KEYS}
    return _figures(reader, _only(report, only), wanted)


def _figures(reader: Reader, report: Report, wanted: Wanted) -> Generator[Picture, None, None]:
    run = report.run
    if not report.summary:
        raise UsageError(
            f"run {run.name}: {without_figures(report)}, so there is nothing to draw",
            f"see benchctl show {run.name} --trials",
        )
    if wanted.kind is PictureKind.SEQUENCE:
        yield from _of_packets(reader, report, wanted)
        return
    with closing(Bulk(reader.path)) as bulk:
        request = _resolved(report, wanted, bulk)
        makers: Mapping[PictureKind, Callable[[PictureRequest], Picture | None]] = {
            PictureKind.TIME: lambda request: over_time(request, bulk),
            **dict.fromkeys(DISTRIBUTIONS, lambda request: distributed(request, bulk)),
            PictureKind.PLANE: plane,
            PictureKind.SEARCH: searched,
            PictureKind.HEAT: _if_measured(heat),
            PictureKind.MATRIX: _if_measured(matrix),
            PictureKind.SWEEP: _if_measured(by_axis),
            PictureKind.BARS: _if_measured(by_axis),
        }
        names: set[str] = set()
        for part in _parts(report, request, wanted):
            figure = makers[request.kind](replace(request, part=part))
            if figure is not None:
                name, number = figure.name, 2
                while name in names:
                    name, number = f"{figure.name}-{number}", number + 1
                names.add(name)
                yield replace(figure, name=name)
        if not names:
            raise UsageError(f"run {run.name}: {_nothing(request)}", _MISSING[request.kind])


_RECORD = "capture = true of a flow does it; --only may have left nothing"
_MISSING: Mapping[PictureKind, str] = {
    **dict.fromkeys(
        (PictureKind.TIME, *DISTRIBUTIONS),
        "--kind bars shows what its tools reported at their end",
    ),
    PictureKind.PLANE: "it needs TCP flows whose sender's TCP_INFO was read",
    PictureKind.SEARCH: "a profile with [search] has it",
    **dict.fromkeys(MAPS, "--only may have left nothing"),
    PictureKind.SWEEP: "--only may have left nothing",
    PictureKind.BARS: "--only may have left nothing",
}


def _nothing(request: PictureRequest) -> str:
    if request.kind is PictureKind.SEARCH:
        return "it searched for no rate"
    if request.kind is PictureKind.PLANE:
        return "no flow has a window and a round-trip time"
    metrics = ", ".join(metric for metric, _ in request.metrics)
    what = "sample" if request.kind in OF_SAMPLES else "figure"
    return f"there is no {what} of {metrics}"


def _if_measured(
    maker: Callable[[PictureRequest], Picture],
) -> Callable[[PictureRequest], Picture | None]:
    """Return a maker of means that makes nothing of no rows."""
    return lambda request: maker(request) if any(rows_of(request)) else None


def _only(report: Report, only: Mapping[str, Collection[str]]) -> Report:
    """Return the part of a report with some values of axes. Raises UsageError."""
    holds = holding(report.run, only)
    return replace(
        report,
        trials=[trial for trial in report.trials if holds(trial.trial.point)],
        summary=[row for row in report.summary if holds(row.point)],
        measured=[measured for measured in report.measured if holds(measured.point)],
    )


def holding(
    run: Run, only: Mapping[str, Collection[str]]
) -> Callable[[Mapping[str, object]], bool]:
    """Return whether a point has some values of axes, as a function. Raises UsageError."""
    wanted: dict[str, list[str]] = {}
    for axis, texts in only.items():
        known = _axis(run, axis, "--only")
        values = [str(value) for value in run.values[known]]
        for listed in texts:
            for text in [listed] if listed in values else listed.split(","):
                if text not in values:
                    hint = nearest(text, values) or f"values are: {', '.join(values)}"
                    raise UsageError(f"--only: axis {known} has no value {quoted(text)}", hint)
                wanted.setdefault(known, []).append(text)

    def holds(point: Mapping[str, object]) -> bool:
        return all(str(point.get(axis)) in texts for axis, texts in wanted.items())

    return holds


def _resolved(report: Report, wanted: Wanted, bulk: Bulk) -> PictureRequest:
    """Return the request that all parts share. Raises UsageError."""
    run = report.run
    by = [_axis(run, name, "--by") for name in wanted.by if name != REPEAT]
    x = wanted.x if wanted.x in ("", TIME) else _axis(run, wanted.x, "--x")
    series = wanted.series and _axis(run, wanted.series, "--series")
    searched = run.settings.search.axis if run.settings.search else ""
    free = [
        axis
        for axis in run.varying
        if axis not in by and (axis != searched or x == searched) and len(_there(report, axis)) > 1
    ]
    # Hops have samples, and no means over repeats.
    of_hops = any(run.vocabulary.describe(text).by_stream for text in wanted.y)
    swept = () if of_hops else [axis for axis in free if axis != series]
    totals = wanted.kind is PictureKind.ALL
    kind = PictureKind.TIME if totals else wanted.kind or _kind(report, x, swept, bulk)
    if x and (x == TIME if kind in BY_AXIS else x != TIME or kind is not PictureKind.TIME):
        raise UsageError(f"a figure of kind {kind} has not {x} as its x-axis", "remove --x")
    if kind in BY_AXIS and not x:
        others = [axis for axis in free if axis != series]
        if kind is PictureKind.MATRIX:
            others = [axis for axis in others if is_mesh(report.trials, axis)]
        x = next((axis for axis in others if is_swept(run.values[axis])), "")
        if not x or kind is PictureKind.BARS:
            x = x or max(others, key=lambda axis: len(_there(report, axis)), default="")
    if kind is PictureKind.SWEEP and not x:
        raise UsageError(f"run {run.name}: no axis has several values to sweep", _axes_hint(run))
    if kind is PictureKind.MATRIX and not (x and is_mesh(report.trials, x)):
        raise UsageError(f"run {run.name}: no axis is a mesh of hosts", _axes_hint(run))
    if not series:
        others = [axis for axis in free if axis != x]
        series = max(others, key=lambda axis: len(_there(report, axis)), default="")
    if kind is PictureKind.HEAT and (not x or not series):
        raise UsageError(f"run {run.name}: a heat map needs two axes", _axes_hint(run))
    if wanted.is_zoomed and kind is not PictureKind.TIME:
        raise UsageError(f"--from, --to: a figure of kind {kind} has no time", "add --kind time")
    of_tries = bool(x) and x == searched
    metrics = _metrics(report, wanted, kind, bulk, of_tries=of_tries)
    return PictureRequest(
        report, kind, metrics, "" if x == TIME else x, series, Part(), wanted.columns,
        wanted.begin_s, wanted.end_s, totals,
    )  # fmt: skip


def _of_packets(reader: Reader, report: Report, wanted: Wanted) -> Iterator[Picture]:
    """Yield figures of the packet traces of a run. Raises UsageError."""
    if wanted.x not in ("", TIME) or wanted.series:
        raise UsageError("a figure of packets has no axis of the run", "remove --x and --series")
    if unknown := [text for text in wanted.y if text not in PANELS]:
        hint = nearest(unknown[0], PANELS) or f"they are: {', '.join(PANELS)}"
        raise UsageError(f"--y: a figure of packets has no {quoted(unknown[0])}", hint)
    request = PictureRequest(
        report, PictureKind.SEQUENCE, [(name, "") for name in wanted.y or PANELS[:2]], "", "",
        Part(), wanted.columns, wanted.begin_s, wanted.end_s,
    )  # fmt: skip
    by = [name for name in wanted.by if name in KEYS]
    only = {key: texts for key, texts in wanted.only.items() if key in KEYS}
    axes = replace(
        wanted,
        by=[name for name in wanted.by if name not in KEYS],
        only={axis: texts for axis, texts in wanted.only.items() if axis not in KEYS},
    )
    found = False
    for part in _parts(report, request, axes):
        part_request = replace(request, part=part)
        traces = [*traces_of(part_request.trials)]
        chosen = chosen_of(traces, reader.path, only, by, every=wanted.every)
        alone = not (by or wanted.every)
        notes = left_out(len(traces), 1, "traces") if alone else []
        for figure in sequences_of(part_request, chosen, notes):
            found = True
            yield figure
    if not found:
        raise UsageError(f"run {report.run.name}: no packets of it were recorded", _RECORD)


def _kind(report: Report, x: str, free: Sequence[str], bulk: Bulk) -> PictureKind:
    """Return the kind that suits a run."""
    run = report.run
    lab = run.settings.lab
    sampled = bool(bulk.metrics(run.id))
    changes = (lab is not None and lab.changes) or any(
        expectation.events for expectation in run.settings.expect
    )
    if x == TIME or (not x and sampled and (changes or not free)):
        return PictureKind.TIME
    if not x and run.settings.search is not None:
        return PictureKind.SEARCH
    swept = [x] if x else free
    if len(swept) == 1 and is_mesh(report.trials, swept[0]):
        return PictureKind.MATRIX
    return (
        PictureKind.SWEEP if any(is_swept(run.values[axis]) for axis in swept) else PictureKind.BARS
    )


def _there(report: Report, axis: str) -> set[str]:
    """Return the values of an axis that were measured."""
    return {str(row.point[axis]) for row in report.summary if axis in row.point}


def _axis(run: Run, name: str, option: str) -> str:
    """Return an axis of a run. Raises UsageError with the nearest name."""
    if name in run.values:
        return name
    found = [axis for axis in run.values if name in axis]
    if len(found) == 1:
        return found[0]
    hint = f"such as {', '.join(found)}" if found else nearest(name, run.values) or _axes_hint(run)
    raise UsageError(f"{option}: run {run.name} has no axis {quoted(name)}", hint)


def _axes_hint(run: Run) -> str:
    return f"its axes are: {', '.join(run.values) or 'none'}"


def _metrics(
    report: Report, asked: Wanted, kind: PictureKind, bulk: Bulk, *, of_tries: bool
) -> Sequence[tuple[str, str]]:
    """Return the metrics of a figure, each with its aggregate. Raises UsageError."""
    run = report.run
    sampled = kind in (PictureKind.TIME, *DISTRIBUTIONS)
    known = [
        *dict.fromkeys(
            row.metric for row in report.summary if not (of_tries and row.metric == FOUND_RATE)
        )
    ]
    if sampled:
        there = bulk.metrics(run.id)
        known = there or known
    wanted = (FOUND_RATE, *run.vocabulary.wanted)
    known.sort(key=lambda name: wanted.index(name) if name in wanted else len(wanted))
    found = []
    for text in asked.y:
        try:
            metric, aggregate = parse_figure(text)
        except ValueError as error:
            raise UsageError(f"--y: {error}") from None
        if metric not in known:
            hint = nearest(metric, known) or f"measured are: {', '.join(known)}"
            if run.vocabulary.describe(metric).by_stream and metric in bulk.metrics(run.id):
                hint = "it belongs to single streams: --kind time, cdf, histogram or box shows it"
            raise UsageError(f"--y: no metric {quoted(metric)} was measured", hint)
        if aggregate and sampled:
            raise UsageError(
                f"--y {text}: a figure of kind {kind} shows every sample", f"write --y {metric}"
            )
        found.append((metric, aggregate))
    if found:
        return found[:1] if kind in (*MAPS, *DISTRIBUTIONS) else found
    if kind is PictureKind.TIME:
        return [(metric, "") for metric in panels_of(run.vocabulary, known)]
    # What a probe saw beside a load is the other half of the answer.
    probed = [name for name in known[1:] if name in PROBES][:1]
    if asked.kind is None and kind in (PictureKind.BARS, PictureKind.SWEEP):
        return [(known[0], ""), *((name, "") for name in probed)]
    return [(known[0], "")]


def _parts(report: Report, request: PictureRequest, wanted: Wanted) -> Iterator[Part]:
    """Yield the parts of a run that have a figure each. Raises UsageError."""
    run = report.run
    by = [REPEAT if name == REPEAT else _axis(run, name, "--by") for name in wanted.by]
    shown = {request.x, request.series}
    if request.kind is PictureKind.SEARCH and run.settings.search is not None:
        shown = {run.settings.search.axis}
    if wanted.every:
        by += [axis for axis in run.varying if axis not in {*by, *shown}]
        if request.kind in (PictureKind.TIME, PictureKind.SEQUENCE) and REPEAT not in by:
            by.append(REPEAT)
    if twice := [axis for axis in by if axis in shown]:
        raise UsageError(
            f"--by {twice[0]}: each figure shows all values of it", "remove it, or --x or --series"
        )
    if REPEAT in by and request.kind not in OF_SAMPLES:
        raise UsageError(
            f"--by {REPEAT}: a figure of kind {request.kind} shows means over repeats",
            "add --kind time",
        )
    fixed = {
        _axis(run, axis, "--only"): text
        for axis, (text, *more) in wanted.only.items()
        if not more and text in map(str, run.values[_axis(run, axis, "--only")])
    }
    axes = [axis for axis in by if axis != REPEAT and len(_there(report, axis)) > 1]
    repeats = sorted({trial.trial.repeat for trial in report.trials}) if REPEAT in by else [0]
    if len(repeats) == 1:
        repeats = [0]
    values = [
        [str(value) for value in run.values[axis] if str(value) in _there(report, axis)]
        for axis in axes
    ]
    for texts in product(*values):
        where = {**fixed, **dict(zip(axes, texts, strict=True))}
        yield from (Part(where, repeat) for repeat in repeats)
