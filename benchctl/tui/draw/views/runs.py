"""The list of all runs as rows of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from benchctl.analysis.runs.compare import Verdict
from benchctl.report.comparison.comparison import relative, signed
from benchctl.report.pivot import with_interval
from benchctl.run.record import BASELINE
from benchctl.tui.draw.plot.heat import INVALID
from benchctl.tui.draw.text.columns import Cells, Column
from benchctl.tui.draw.text.spans import PLAIN, Line, Span, state
from benchctl.tui.draw.views.verdicts import (
    GLYPHS,
    NOT_KEPT_UP,
    SEEN,
    described,
    tally,
    verdict_of,
)
from benchctl.tui.model.past import HistoryEntry
from benchctl.units import format_ago, format_range, format_time
from benchctl.visible import width_of

NOTHING = "-"
AGO = len("59 min ago")
WHEN = 6
"""The place of the column that says how long ago a run began, which changes all the time."""


def run_columns(rows: Sequence[Cells]) -> list[Column]:
    """Return the columns of the history for its rows, the most wanted first."""

    def widest(place: int, least: int) -> int:
        return max([least, *(width_of(row[place].text) for row in rows)])

    return [
        Column("", 1, fixed=True),
        Column("run", widest(1, 20), fixed=True),
        Column("profile", min(24, widest(2, 7))),
        Column("status", widest(3, 6)),
        Column("figure", widest(4, 11), right=True),
        Column("baseline", widest(5, 8), right=True),
        Column("when", AGO, right=True),
        Column("tags", widest(7, 4)),
        Column("of", widest(8, 2)),
        Column("began", 16),
        Column("host", widest(10, 4)),
    ]


def run_row(one: HistoryEntry, *, marked: bool) -> Cells:
    """Return one run as a row of the history."""
    run = one.run
    return [
        Span("●" if marked else " ", "strong"),
        Span(run.name),
        Span(run.profile),
        state(run.status),
        Span(_figure(one), PLAIN if one.valid else "bad"),
        _beside(one),
        Span(""),  # see `WHEN`
        Span(_tags(one), "dim"),
        Span(one.key.title),
        Span(format_time(run.created_time)),
        Span(one.host),
    ]


def _tags(one: HistoryEntry) -> str:
    return ", ".join(tag for tag in one.run.tags if tag != BASELINE)


def _figure(one: HistoryEntry) -> str:
    """Return the key figure with its interval; of several points, the range."""
    rows, mark = one.key.rows, "" if one.valid else f" {INVALID}"
    if not rows:
        return NOTHING
    if len(rows) == 1:
        return with_interval(rows[0]) + mark
    means = [row.spread.mean for row in rows]
    return format_range(one.key.metric, min(means), max(means)) + mark


def _beside(one: HistoryEntry) -> Span:
    """Return the difference from the baseline with its verdict; of several points, the verdicts."""
    if BASELINE in one.run.tags:
        return Span(BASELINE, "dim")
    if not one.compared:
        return Span(NOTHING, "dim")
    if len(one.compared) == 1:
        (only,) = one.compared
        ratio = only.metric.endswith("_ratio")
        change = signed(only.metric, only.difference) if ratio else relative(only)
        share = f"{change} " if change else ""
        verdict = verdict_of(only)
        return Span(f"{share}{verdict.text}", verdict.role)
    counted = Counter(verdict.verdict for verdict in one.compared if verdict.valid)
    role = next((SEEN[verdict] for verdict in SEEN if counted[verdict]), "dim")
    parts = [f"{GLYPHS[v]}{counted[v]}" for v in Verdict if counted[v]]
    if invalid := len(one.compared) - counted.total():
        parts.append(f"{INVALID}{invalid}")
    return Span("  ".join(parts), role)


def answer_text(one: HistoryEntry) -> tuple[str, str]:
    """Return what came out of a run in a few words, and their role: state, figure, verdict."""
    shown = state(one.run.status)
    figure = _figure(one) if one.key.rows else shown.text[2:]
    beside = _beside(one).text if one.compared else ""
    return (
        f"{shown.text[0]} {figure}  {beside}".rstrip(),
        "" if shown.role == "good" else shown.role,
    )


def run_lines(one: HistoryEntry, now: float, said: Sequence[str]) -> list[Line]:
    """Return a run in full: what it is, when it was, and the sentences that were ``said`` of it."""
    run = one.run
    rows = [
        ("run", run.name),
        ("status", state(run.status).text),
        ("began", f"{format_time(run.created_time)}, {format_ago(now - run.created_time)}"),
        ("host", one.host),
        ("tags", ", ".join(run.tags)),
    ]
    lines: list[Line] = [[Span(run.profile, "title"), Span(f"  {run.title}")], []]
    lines += [[Span(f"{name:<6}  ", "label"), Span(text)] for name, text in rows if text]
    return [*lines, [], *([Span(sentence)] for sentence in said)]


def about_run(one: HistoryEntry) -> Line:
    """Return the key figure of a run, its difference from the baseline, and its tags, in full."""
    tags = f"  [{', '.join(one.run.tags)}]" if one.run.tags else ""
    return [*_key_figure(one), Span(tags, "dim")]


def _key_figure(one: HistoryEntry) -> Line:
    key = one.key
    if not key.rows:
        return [Span("no figure was measured", "dim")]
    if len(one.compared) == 1 and len(key.rows) == 1:
        return described(one.compared[0])
    points = f" at {len(key.rows)} points" if len(key.rows) > 1 else ""
    line = [Span(f"{key.title}{points}", "strong"), Span(f": {_figure(one)}")]
    if not one.valid:
        line.append(Span(f" {NOT_KEPT_UP}", "bad"))
    if one.compared:
        line.append(Span(f"; against the baseline: {tally(one.compared)}"))
    return line
