"""The list of all runs as rows of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from benchctl.analysis.runs.compare import Verdict
from benchctl.report.comparison.comparison import relative, signed
from benchctl.report.lines.spans import PLAIN, Line, Span, state
from benchctl.report.pivot import with_interval
from benchctl.run.record import BASELINE
from benchctl.tui.draw.plot.heat import INVALID
from benchctl.tui.draw.text.columns import Cells, Column
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
WHEN, BEGAN = 1, 2
"""The places of the columns that say how long ago a run began, which changes, and at what time."""
MOST_TEXT = 24
# Where there is little room: without the year, and with less of the words.
LESS_TEXT, LESS_TIME = {"profile": 16, "tags": 10}, len("11-21 03:25")


def run_columns(rows: Sequence[Cells]) -> list[Column]:
    """Return the columns of the history for its rows, the most wanted first."""

    def widest(place: int, least: int) -> int:
        return max([least, *(width_of(row[place].text) for row in rows)])

    return [
        Column("", 1, fixed=True),
        Column("ago", len("59 min"), right=True, fixed=True),
        Column("began", len("2026-11-21 03:25"), right=True, fixed=True),
        Column("profile", min(MOST_TEXT, widest(3, 7)), fixed=True),
        Column("figure", widest(4, 11), right=True),
        Column("baseline", widest(5, 8), right=True),
        Column("tags", min(MOST_TEXT, widest(6, 4)), fixed=True),
        Column("status", widest(7, 6)),
        Column("run", widest(8, 20)),
        Column("of", widest(9, 2)),
        Column("host", widest(10, 4)),
    ]


def narrowed(columns: Sequence[Column], rows: Sequence[Cells]) -> list[Column]:
    """Return the columns for 80 characters, which show when, what, the answer, and the tags."""
    columns = [
        replace(one, width=min(one.width, LESS_TEXT.get(one.head, one.width))) for one in columns
    ]
    if len({row[BEGAN].text[:4] for row in rows}) == 1:
        columns[BEGAN] = replace(columns[BEGAN], width=LESS_TIME)
    return columns


def run_row(one: HistoryEntry, *, marked: bool) -> Cells:
    """Return one run as a row of the history."""
    run, shown = one.run, state(one.run.status)
    return [
        Span("●", "strong") if marked else Span(shown.text[0], shown.role),
        Span(""),  # see `WHEN`
        Span(format_time(run.created_time)),
        Span(run.profile),
        Span(_figure(one), PLAIN if one.valid else "bad"),
        _beside(one),
        Span(_tags(one), "dim"),
        shown,
        Span(run.name),
        Span(one.key.title),
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
    """Return a run's key figure, difference from the baseline, name and tags, in full."""
    tags = f" [{', '.join(one.run.tags)}]" if one.run.tags else ""
    return [*_key_figure(one), Span(f"  {one.run.name}{tags}", "dim")]


def _key_figure(one: HistoryEntry) -> Line:
    key = one.key
    if not key.rows:
        return [Span("no figure was measured", "dim")]
    if len(one.compared) == 1 and len(key.rows) == 1:
        return described(one.compared[0])
    points = f" at {len(key.rows)} points" if len(key.rows) > 1 else ""
    line = [Span(f"{key.title}{points}", "strong")]
    if one.compared:
        line.append(Span(f", against the baseline: {tally(one.compared)}"))
    line.append(Span(f"{';' if one.compared else ':'} {_figure(one)}"))
    if not one.valid:
        line.append(Span(f" {NOT_KEPT_UP}", "bad"))
    return line
