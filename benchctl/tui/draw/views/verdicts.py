"""The differences between two runs in words and glyphs, for Compare and History. Pure."""

from __future__ import annotations

from benchctl.analysis.runs.compare import Comparison, Verdict
from benchctl.analysis.runs.summary import at_point
from benchctl.metrics import title_of
from benchctl.report.comparison.comparison import NOT_VALID as NO_VERDICT
from benchctl.report.comparison.comparison import (
    full_verdict,
    interval,
    relative,
    signed,
    verdict_text,
)
from benchctl.report.lines.spans import Span

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
NOT_KEPT_UP = f"{NO_VERDICT}: an emulator did not keep up"


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
        verdict = Span(NOT_KEPT_UP, "bad")
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
