"""What is said of figures that break a law, and of those that are known in coarse steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from benchctl.analysis.runs.summary import SummaryRow, at_point, point_key
from benchctl.metrics import Breach, title_of
from benchctl.run.record import Figure
from benchctl.units import format_ratio, format_value

if TYPE_CHECKING:
    from benchctl.analysis.results import FlowReport
    from benchctl.report.report import Report

# By the origin of a figure, where it says too little.
_SOURCES = {"tool": "tool's other figures"}
# A step of less is within what readers take two figures for the same.
COARSE = 0.05


def is_coarse(figure: Figure) -> bool:
    """Return whether one step of a figure is a large part of it."""
    step = figure.resolution
    return step is not None and figure.value != 0 and step / abs(figure.value) > COARSE


def law_texts(metric: str, figure: Figure) -> Iterator[str]:
    """Yield what is said behind one figure; nothing of most."""
    if figure.broken is not None:
        rejected = figure.rejected
        which = "" if rejected is None else f"not {format_value(metric, rejected)}, which "
        yield f"{which}cannot be: {figure.broken.words}"
    if is_coarse(figure):
        yield _steps(metric, figure)


def _steps(metric: str, figure: Figure) -> str:
    step = figure.resolution or 0.0
    return (
        f"known in steps of {format_value(metric, step)}, {format_ratio(step / abs(figure.value))}"
        " of the figure"
    )


def law_lines(report: Report) -> Iterator[str]:
    """Yield a line for each law that a flow breaks, and for each metric known in coarse steps."""
    broken: dict[tuple[str, str, str, bool], list[tuple[str, Breach, dict[str, Figure]]]] = {}
    coarse: dict[str, list[tuple[str, Figure]]] = {}
    for where, flow_report in _placed(report):
        laws: dict[tuple[str, Breach, bool], dict[str, Figure]] = {}
        for (direction, metric), figure in flow_report.reported.items():
            if figure.broken is not None:
                key = direction, figure.broken, figure.counts
                laws.setdefault(key, {})[metric] = figure
            if is_coarse(figure) and metric in report.run.vocabulary.wanted:
                coarse.setdefault(metric, []).append(
                    (f"{flow_report.flow.name} {direction}{where}", figure)
                )
        for (direction, how, counts), own in laws.items():
            of_law = flow_report.flow.name, direction, how.law, counts
            broken.setdefault(of_law, []).append((where, how, own))
    for (flow, direction, _, counts), found in broken.items():
        where, how, own = found[0]
        text = _replaced(own) if counts else f"{', '.join(map(title_of, own))} count nowhere"
        yield f"cannot be: {how.words}: {flow} {direction}{where}{_more(found)}; {text}"
    for metric, steps in coarse.items():
        of, figure = max(steps, key=lambda step: (step[1].resolution or 0.0) / abs(step[1].value))
        yield f"{title_of(metric)} of {of}{_more(steps)}: {_steps(metric, figure)}"


def _placed(report: Report) -> Iterator[tuple[str, FlowReport]]:
    for ended in report.trials:
        where = f", trial {ended.trial.position + 1}{at_point(ended.trial.point, ' ({})')}"
        yield from ((where, flow) for flow in ended.flows)


def _more(found: Sequence[object]) -> str:
    return f", and {len(found) - 1} more" if len(found) > 1 else ""


def _replaced(figures: Mapping[str, Figure]) -> str:
    return ", ".join(
        f"{title_of(name)} {format_value(name, figure.value)} is from the"
        f" {_SOURCES.get(figure.origin, figure.origin)}, not the tool's"
        f" {format_value(name, figure.rejected or 0.0)}"
        for name, figure in figures.items()
    )


def place_of(row: SummaryRow) -> tuple[Any, ...]:
    """Return what a row is of: its point, flow, direction and metric."""
    return point_key(row.point), row.flow, row.direction, row.metric


def broken_counts(report: Report) -> dict[tuple[Any, ...], int]:
    """Return in how many repeats each figure breaks a law, by its place."""
    return {place_of(row): row.spread.n for row in report.broken}
