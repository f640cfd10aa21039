"""How the pairs of a mesh changed between two runs: a matrix whose colours are the changes."""

from __future__ import annotations

from collections.abc import Sequence

from benchctl.analysis.runs.compare import Comparison
from benchctl.errors import UsageError
from benchctl.metrics import title_of
from benchctl.report.figures.axes import named_axis
from benchctl.report.figures.figure import Axis, HeatCell, Panel, Picture, PictureKind
from benchctl.report.figures.maps import FROM_TO, Mesh, is_mesh
from benchctl.report.report import Report
from benchctl.visible import visible

# Without any change, so that there is a scale.
_LEAST = 0.01


def mesh_axis(report: Report) -> str | None:
    """Return the axis of a run whose values are the pairs of a mesh; None without one."""
    axes = report.run.varying
    return next((name for name in axes if is_mesh(report.trials, name)), None)


def change_matrix(a: Report, b: Report, comparisons: Sequence[Comparison]) -> Picture:
    """Return the matrix of the changes of one metric: that of the first comparison.

    Raises UsageError if no axis of B is a mesh, or no change is a share of A's mean.
    """
    axis = mesh_axis(b)
    found = [one for one in comparisons if one.relative is not None]
    if axis is None or not found:
        why = "no axis is a mesh of hosts" if axis is None else "nothing to compare it with"
        raise UsageError(f"run {b.run.name}: {why}", "--kind forest draws other differences")
    metric = found[0].metric
    mesh = Mesh(b.trials, axis)
    there = {mesh.pair_of(one): one for one in reversed(found) if one.metric == metric}
    most = max([_LEAST, *(abs(one.relative or 0.0) for one in there.values())])
    cells = [
        _cell(column, row, there.get((source, target)))
        for row, source in enumerate(mesh.hosts)
        for column, target in enumerate(mesh.hosts)
    ]
    rows, columns = FROM_TO
    notes = ["in %; * marks a certain change"]
    if rest := len({one.metric for one in found}) - 1:
        notes.append(f"other metrics, for --y: {rest}")
    panel = Panel(
        named_axis(rows, mesh.hosts), cells=cells,
        heat=Axis(f"change of {title_of(metric)}", "change_ratio", -most, most),
    )  # fmt: skip
    return Picture(
        PictureKind.MATRIX, "change-matrix", visible(b.run.title or b.run.profile),
        visible(f"B, {b.run.name}, against A, {a.run.name}"),
        named_axis(columns, mesh.hosts), [panel], notes=notes,
    )  # fmt: skip


def _cell(column: int, row: int, one: Comparison | None) -> HeatCell:
    if one is None or one.relative is None:
        return HeatCell(column, row, None, "")
    text = f"{one.relative * 100:+.0f}{'*' * one.verdict.is_certain}"
    return HeatCell(column, row, one.relative, text, one.valid)
