"""The differences between two runs in words and glyphs, for Compare and History. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from benchctl.analysis.results import NOT_KEPT_UP
from benchctl.analysis.runs.compare import Comparison, Verdict
from benchctl.analysis.runs.summary import at_point
from benchctl.metrics import title_of
from benchctl.report.comparison.changes import Changes
from benchctl.report.comparison.comparison import NOT_VALID as NO_VERDICT
from benchctl.report.comparison.comparison import (
    full_verdict,
    interval,
    relative,
    signed,
    verdict_text,
)
from benchctl.report.figures.maps import Names
from benchctl.report.lines.spans import Line, Span
from benchctl.tui.draw.text.columns import Cells, Column
from benchctl.visible import width_of

SEEN = {Verdict.BETTER: "good", Verdict.WORSE: "bad", Verdict.DIFFERENT: "warn"}
# A glyph beside the word, as everywhere.
GLYPHS = {
    Verdict.BETTER: "▲",
    Verdict.WORSE: "▼",
    Verdict.DIFFERENT: "≠",
    Verdict.SAME: "=",
    Verdict.APART: "~",
    Verdict.VARYING: "?",
    Verdict.FEW: "?",
}
SHORT = {Verdict.SAME: "none seen", Verdict.FEW: "too little"}
"""The line below the table has the full words."""
WORDS = {verdict: f"{GLYPHS[verdict]} {SHORT.get(verdict, verdict)}" for verdict in Verdict}
NOT_VALID = f"! {NO_VERDICT}"
DOUBTFUL = f"{NO_VERDICT}: {NOT_KEPT_UP}"

# A change of fewer per cent has a decimal.
EXACT = 10.0


def role_of(verdict: Verdict) -> str:
    """Return the role of a verdict."""
    return SEEN.get(verdict, "dim")


def verdict_of(comparison: Comparison) -> Span:
    """Return a verdict as a cell; invalid figures have none."""
    if not (comparison.a and comparison.b):
        return Span(f"- {verdict_text(comparison)}", "dim")
    if not comparison.valid:
        return Span(NOT_VALID, "bad")
    return Span(WORDS[comparison.verdict], role_of(comparison.verdict))


def counted_verdicts(compared: Collection[Comparison]) -> Span:
    """Count verdicts by their signs, and those that are not valid."""
    counted = Counter(comparison.verdict for comparison in compared if comparison.valid)
    seen = [role for verdict, role in SEEN.items() if counted[verdict]]
    role = "dim" if not seen else seen[0] if len(seen) == 1 else "warn"
    parts = [f"{GLYPHS[verdict]}{counted[verdict]}" for verdict in Verdict if counted[verdict]]
    if invalid := len(compared) - counted.total():
        parts.append(f"{NOT_VALID[0]}{invalid}")
    return Span("  ".join(parts), role)


class ChangeRows:
    """How a figure changed between each two hosts, as rows: verdict and change of each pair."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self.hosts = changes.mesh.hosts

    def columns(self) -> list[Column]:
        """Return the columns: host, its verdicts, a column for each target."""
        rows = [self.row(index) for index in range(len(self.hosts))]
        _, tallies, *cells = (
            [width_of(cell.text) for cell in column] for column in zip(*rows, strict=True)
        )
        names = Column("from", max([4, *map(width_of, self.hosts)]), fixed=True)
        each = max(max(column) for column in cells)
        heads = [Column(host, each, drawn=True) for host in self.hosts]
        return [names, Column("", max(tallies), fixed=True), *heads]

    def row(self, index: int) -> Cells:
        """Return the cells of a host."""
        host = self.hosts[index]
        own = [self._changes.pairs.get((host, to)) for to in self.hosts]
        cells = [Span("") if comparison is None else _change(comparison) for comparison in own]
        return [
            Span(host),
            counted_verdicts([comparison for comparison in own if comparison is not None]),
            *cells,
        ]

    def title(self, _: Names) -> Line:
        """Return what the cells are."""
        comparison = next(iter(self._changes.pairs.values()))
        unit = "pp" if comparison.metric.endswith("_ratio") else "%"
        name = f"change of {title_of(comparison.metric)} of {comparison.flow}"
        name += at_point(self._changes.at)
        return [Span(f"{name}, {unit}: from ↓ to →", "strong")]


def _change(comparison: Comparison) -> Span:
    is_ratio, verdict = comparison.metric.endswith("_ratio"), verdict_of(comparison)
    share = comparison.difference if is_ratio else comparison.relative
    if share is None:  # of zero
        change = signed(comparison.metric, comparison.difference)
    else:
        percent = round(share * 100, 1) + 0.0  # which makes no "-0.0" of a little less
        change = f"{percent:+.{int(abs(percent) < EXACT)}f}"
    return Span(f"{verdict.text[0]} {change}", verdict.role)


def described(comparison: Comparison) -> list[Span]:
    """Return a comparison as one line, for when its columns do not fit."""
    share = f" ({relative(comparison)})" if relative(comparison) else ""
    hidden = (
        comparison.verdict is Verdict.SAME
        and (comparison.low or 0.0) * (comparison.high or 0.0) > 0
    )
    # Of many figures, some intervals miss zero by chance.
    among = f" among {comparison.family} figures" if hidden else ""
    verdict = Span(f"{full_verdict(comparison)}{among}", role_of(comparison.verdict))
    if not (comparison.a and comparison.b):
        verdict = Span(verdict_text(comparison), "dim")
    elif not comparison.valid:
        verdict = Span(DOUBTFUL, "bad")
    return [
        Span(
            f"{title_of(comparison.metric)}{f' of {comparison.flow}' if comparison.flow else ''}",
            "strong",
        ),
        Span(at_point(comparison.point)),
        Span(f": {signed(comparison.metric, comparison.difference)}{share}, "),
        Span(f"95 % interval {interval(comparison)}; "),
        verdict,
    ]
