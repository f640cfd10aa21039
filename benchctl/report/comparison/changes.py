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


def change_matrix(a: Report, b: Report, comparisons: Sequence[Comparison]) -> Picture:
    """Return the matrix of the changes of one metric of one flow: those of the first comparison.

    Raises UsageError if no axis of B is a mesh, or no change is a share of A's mean.
    """
    axis = next((name for name in b.run.varying if is_mesh(b.trials, name)), None)
    found = [
        comparison
        for comparison in comparisons
        if comparison.relative is not None and comparison.flow
    ]
    if axis is None or not found:
        why = "no axis is a mesh of hosts" if axis is None else "nothing to compare it with"
        raise UsageError(f"run {b.run.name}: {why}", "--kind forest draws other differences")
    metric, flow = found[0].metric, found[0].flow
    mesh = Mesh(b, axis)
    shown = [
        comparison for comparison in found if (comparison.metric, comparison.flow) == (metric, flow)
    ]
    there = {mesh.pair_of(comparison): comparison for comparison in reversed(shown)}
    most = max([_LEAST, *(abs(comparison.relative or 0.0) for comparison in there.values())])
    cells = [
        _cell(column, row, there.get((source, target)))
        for row, source in enumerate(mesh.hosts)
        for column, target in enumerate(mesh.hosts)
    ]
    rows, columns = FROM_TO
    notes = ["in %; * marks a certain change"]
    if rest := len({comparison.metric for comparison in found}) - 1:
        notes.append(f"other metrics, for --y: {rest}")
    if others := {comparison.flow for comparison in found} - {flow}:
        notes.append(f"of flow {flow}, without {', '.join(sorted(others))}")
    panel = Panel(
        named_axis(rows, mesh.hosts), cells=cells,
        heat=Axis(f"change of {title_of(metric)}", "change_ratio", -most, most),
    )  # fmt: skip
    return Picture(
        PictureKind.MATRIX, "change-matrix", visible(b.run.title or b.run.profile),
        visible(f"B, {b.run.name}, against A, {a.run.name}"),
        named_axis(columns, mesh.hosts), [panel], notes=[*map(visible, notes)],
    )  # fmt: skip


def _cell(column: int, row: int, comparison: Comparison | None) -> HeatCell:
    if comparison is None or comparison.relative is None:
        return HeatCell(column, row, None, "")
    percent = round(comparison.relative * 100)  # which makes no "-0" of a little less
    text = f"{percent:+d}{'*' * comparison.verdict.is_certain}"
    return HeatCell(column, row, comparison.relative, text, comparison.valid)
