"""The list of all runs as rows of text."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from benchctl.report.comparison.comparison import beside_baseline, relative, signed, verdicts
from benchctl.report.lines.spans import PLAIN, Line, Span, state
from benchctl.report.past import HistoryEntry, delay_text, figure_text, figures_text
from benchctl.run.record import BASELINE
from benchctl.tui.draw.plot.heat import INVALID
from benchctl.tui.draw.text.columns import Cells, Column
from benchctl.tui.draw.views.verdicts import DOUBTFUL, counted_verdicts, described, verdict_of
from benchctl.units import format_ago, format_time
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
        replace(column, width=min(column.width, LESS_TEXT.get(column.head, column.width)))
        for column in columns
    ]
    if len({row[BEGAN].text[:4] for row in rows}) == 1:
        columns[BEGAN] = replace(columns[BEGAN], width=LESS_TIME)
    return columns


def run_row(entry: HistoryEntry, *, marked: bool) -> Cells:
    """Return one run as a row of the history."""
    run, shown = entry.run, state(entry.run.status)
    return [
        Span("●", "strong") if marked else Span(shown.text[0], shown.role),
        Span(""),  # see `WHEN`
        Span(format_time(run.created_time)),
        Span(run.profile),
        Span(_figure(entry), PLAIN if entry.valid else "bad"),
        _beside(entry),
        Span(_tags(entry), "dim"),
        shown,
        Span(run.name),
        Span(entry.key.title),
        Span(entry.host),
    ]


def _tags(entry: HistoryEntry) -> str:
    return ", ".join(tag for tag in entry.run.tags if tag != BASELINE)


def _figure(entry: HistoryEntry) -> str:
    mark = "" if entry.valid or not entry.key.rows else f" {INVALID}"
    return (figure_text(entry.key) or NOTHING) + mark


def _beside(entry: HistoryEntry) -> Span:
    """Return the difference from the baseline with its verdict; of several points, the verdicts."""
    if BASELINE in entry.run.tags:
        return Span(BASELINE, "dim")
    if not entry.compared:
        return Span(NOTHING, "dim")
    if len(entry.compared) == 1:
        (only,) = entry.compared
        ratio = only.metric.endswith("_ratio")
        change = signed(only.metric, only.difference) if ratio else relative(only)
        share = f"{change} " if change else ""
        verdict = verdict_of(only)
        return Span(f"{share}{verdict.text}", verdict.role)
    return counted_verdicts(entry.compared)


def answer_text(entry: HistoryEntry) -> tuple[str, str]:
    """Return what came out of a run in a few words, and their role: figure, verdict, failure."""
    shown, figure, why = state(entry.run.status), figures_text(entry), entry.failure
    beside = _beside(entry).text if entry.compared else ""
    parts = [f"{shown.text[0]} {figure or why or shown.text[2:]}", beside, delay_text(entry.key)]
    parts += [why] * bool(figure)
    return "  ".join(filter(None, parts)), "" if shown.role == "good" else shown.role


def run_lines(entry: HistoryEntry, now: float, said: Sequence[str]) -> list[Line]:
    """Return a run in full: what it is, when it was, and the sentences that were ``said`` of it."""
    run = entry.run
    rows = [
        ("run", run.name),
        ("status", state(run.status).text),
        ("began", f"{format_time(run.created_time)}, {format_ago(now - run.created_time)}"),
        ("host", entry.host),
        ("tags", ", ".join(run.tags)),
    ]
    lines: list[Line] = [[Span(run.profile, "title"), Span(f"  {run.title}")], []]
    lines += [[Span(f"{name:<6}  ", "label"), Span(text)] for name, text in rows if text]
    return [*lines, [], *([Span(sentence)] for sentence in said)]


def about_run(entry: HistoryEntry) -> Line:
    """Return a run's key figure, difference from the baseline, name and tags, in full."""
    tags = f" [{', '.join(entry.run.tags)}]" if entry.run.tags else ""
    return [*_key_figure(entry), Span(f"  {entry.run.name}{tags}", "dim")]


def _key_figure(entry: HistoryEntry) -> Line:
    key = entry.key
    if not key.rows:
        return [Span(f"no figure was measured{entry.failure and ': '}{entry.failure}", "dim")]
    if len(entry.compared) == 1 and len(key.rows) == 1:
        return described(entry.compared[0])
    points = f" at {len(key.rows)} points" if len(key.rows) > 1 else ""
    line = [Span(f"{key.title}{points}", "strong")]
    if entry.compared:
        line.append(Span(f", {beside_baseline(entry.compared)}: {verdicts(entry.compared)}"))
    line.append(Span(f"{';' if entry.compared else ':'} {_figure(entry)}"))
    if not entry.valid:
        line.append(Span(f" {DOUBTFUL}", "bad"))
    return line
