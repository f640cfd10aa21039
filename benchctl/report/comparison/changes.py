"""How the pairs of a mesh changed between two runs: a matrix whose colours are the changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from benchctl.analysis.runs.compare import Comparison
from benchctl.analysis.runs.summary import at_point
from benchctl.errors import UsageError
from benchctl.metrics import title_of
from benchctl.report.figures.axes import named_axis
from benchctl.report.figures.figure import Axis, HeatCell, Panel, Picture, PictureKind
from benchctl.report.figures.maps import FROM_TO, Mesh, Names, is_mesh
from benchctl.report.report import Report
from benchctl.visible import visible

# Without any change, so that there is a scale.
_LEAST = 0.01


class Changes(NamedTuple):
    """How one metric of one flow changed between the hosts of a mesh, by pair.

    ``at`` are the values of the other axes.
    """

    mesh: Mesh
    pairs: Mapping[Names, Comparison]
    at: Mapping[str, Any]

    @property
    def is_filled(self) -> bool:
        """Whether most pairs of hosts were compared."""
        return self.mesh.is_filled(self.pairs)


def changes_of(b: Report, of: Comparison, comparisons: Iterable[Comparison]) -> Changes | None:
    """Return the changes of the metric and the flow of one comparison, in both of whose runs it is.

    Other axes than that of the pairs have its values. None if no axis of B is a mesh.
    """
    axes = [name for name in b.run.varying if name in of.point]
    axis = next((name for name in axes if is_mesh(b.trials, name)), None)
    if axis is None or not of.flow:
        return None

    def place(comparison: Comparison) -> object:
        return comparison.metric, comparison.flow, {**comparison.point, axis: None}

    mesh = Mesh(b, axis)
    alike = [
        comparison
        for comparison in comparisons
        if comparison.a and comparison.b and place(comparison) == place(of)
    ]
    pairs = {mesh.pair_of(comparison): comparison for comparison in reversed(alike)}
    return Changes(mesh, pairs, {name: of.point[name] for name in axes if name != axis})


def change_matrix(a: Report, b: Report, comparisons: Sequence[Comparison]) -> Picture:
    """Return the matrix of the changes of one metric of one flow: those of the first comparison.

    Raises UsageError if no axis of B is a mesh, or no change is a share of A's mean.
    """
    found = [
        comparison
        for comparison in comparisons
        if comparison.relative is not None and comparison.flow
    ]
    changes = changes_of(b, found[0], found) if found else None
    if changes is None:
        why = "no axis is a mesh of hosts" if found else "nothing to compare it with"
        raise UsageError(f"run {b.run.name}: {why}", "--kind forest draws other differences")
    (mesh, there, at), metric, flow = changes, found[0].metric, found[0].flow
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
    if sum((comparison.metric, comparison.flow) == (metric, flow) for comparison in found) > len(
        there
    ):
        notes.append(at_point(at, "at {}, without other points"))
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
