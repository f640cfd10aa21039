"""The figures of a page: the means that suit the run, and its trials over time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import islice

from benchctl.analysis.results import TrialReport
from benchctl.errors import UsageError
from benchctl.report.figures.figure import Picture, PictureKind
from benchctl.report.figures.making import Wanted, figures_of
from benchctl.report.figures.segments import PANELS
from benchctl.report.figures.times import MOST_LINES, panels_of
from benchctl.report.page.blocks import Block, Paragraph, PictureBlock
from benchctl.report.report import Report
from benchctl.store.read import Reader

# Of means, and over time. More are looked at by nobody, and benchctl plot draws all.
MOST_FIGURES = 48
# Of packets: each reads a file, which takes seconds if it is long.
MOST_SEQUENCES = 8


def pictures_of(reader: Reader, report: Report) -> Iterator[Block]:
    """Yield the figures of a run. Raises StoreError."""
    yield from _of_samples(reader, report)
    yield from _of_packets(reader, report)


def _of_samples(reader: Reader, report: Report) -> Iterator[Block]:
    kinds: set[PictureKind] = set()
    problem = ""
    for wanted in (_means(report), *_over_time(report)):
        try:
            figures = figures_of(reader, report, wanted)
            for figure in islice(figures, MOST_FIGURES):
                kinds.add(figure.kind)
                yield PictureBlock(figure)
            more: Picture | None = next(figures, None)
        except UsageError as error:  # of this kind there is nothing
            problem = problem or error.message
            continue
        if more is not None:
            yield Paragraph(f"More than {MOST_FIGURES} figures: benchctl plot --all draws each.")
        if wanted.kind is None and PictureKind.TIME in kinds:
            return  # it suits the run, and there they are
    if not kinds:
        yield Paragraph(problem)


def _of_packets(reader: Reader, report: Report) -> Iterator[Block]:
    """Yield a figure for each flow whose packets were recorded."""
    if not any(flow.flow.captures for trial in report.trials for flow in trial.flows):
        return
    by = [*report.run.varying, "flow"]
    wanted = Wanted(kind=PictureKind.SEQUENCE, y=PANELS, by=by)
    try:
        with closing(figures_of(reader, report, wanted)) as figures:
            yield from map(PictureBlock, islice(figures, MOST_SEQUENCES))
            if next(figures, None) is not None:
                yield Paragraph(
                    f"More than {MOST_SEQUENCES} figures of packets: benchctl plot"
                    " --kind time-sequence --all draws each."
                )
    except UsageError as error:  # its file is gone, say
        yield Paragraph(error.message)


def _means(report: Report) -> Wanted:
    """Return what shows the figures of the summary."""
    measured = dict.fromkeys(row.metric for row in report.summary)
    return Wanted(every=True, y=panels_of(report.run.vocabulary, [*measured]))


def _over_time(report: Report) -> Iterator[Wanted]:
    """Yield what shows the trials over time: each point, or the values of one axis as lines.

    Metrics share a figure unless it has more flows than can be told apart.
    """
    run = report.run
    if run.settings.search is not None:
        return  # a try is one point of the bracket
    axes = run.varying
    flows = max((len({key for key, _ in _lines(trial)}) for trial in report.trials), default=0)
    as_lines = flows == 1 and axes and len(run.values[axes[-1]]) <= MOST_LINES
    by = axes[:-1] if as_lines else axes
    if flows <= MOST_LINES:
        yield Wanted(kind=PictureKind.TIME, by=by)
        return
    measured = dict.fromkeys(metric for trial in report.trials for _, metric in _lines(trial))
    for metric in panels_of(run.vocabulary, [*measured]):
        yield Wanted(kind=PictureKind.TIME, by=by, y=[metric])


def _lines(report: TrialReport) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield each flow and direction of a trial with each of its metrics."""
    for flow in report.flows:
        yield from (((flow.flow.name, direction), metric) for direction, metric in flow.figures)
