"""The list of all runs as rows of text: as many columns as fit, tags in the remaining width."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from benchctl.analysis.compare import Verdict
from benchctl.report.pivot import with_interval
from benchctl.tui.draw.columns import GAP, Cells, Column
from benchctl.tui.draw.heat import INVALID
from benchctl.tui.draw.spans import PLAIN, WIDTH, Line, Span, state
from benchctl.tui.draw.verdicts import GLYPHS, SEEN, described, tally, verdict_of
from benchctl.tui.model.past import BASELINE, Past
from benchctl.units import format_time, scale_of

NOTHING = "-"
LEAST_TAGS = 4


def run_columns(past: Sequence[Past], width: int) -> list[Column]:
    """Return the columns of the history that fit; the tags get the remaining width, if any."""
    profile = max([7, *(len(one.run.profile) for one in past)])
    wanted = [
        Column("", 1),
        Column("run", max([20, *(len(one.run.name) for one in past)])),
        Column("profile", min(profile, 24)),
        Column("status", WIDTH),
        Column("figure", max([11, *(len(_figure(one)) for one in past)]), right=True),
        Column("baseline", max([8, *(len(_beside(one).text) for one in past)])),
    ]
    left = width - sum(column.width + len(GAP) for column in wanted)
    hosts = max([4, *(len(one.host) for one in past)])
    for place, column in (
        (4, Column("of", max([2, *(len(one.key.title) for one in past)]))),
        (2, Column("when", 16)),
        (3, Column("host", hosts)),
    ):
        if column.width + len(GAP) <= left - LEAST_TAGS:
            wanted.insert(place, column)
            left -= column.width + len(GAP)
    return [*wanted, Column("tags", left)] if left >= LEAST_TAGS else wanted


def run_row(one: Past, heads: Sequence[Column], *, marked: bool) -> Cells:
    """Return one run as a row of the history."""
    run = one.run
    when = format_time(run.created_time)
    cells = {
        "": Span("●" if marked else " ", "strong"),
        "run": Span(run.name),
        "when": Span(when),
        "profile": Span(run.profile),
        "host": Span(one.host),
        "status": state(run.status),
        "of": Span(one.key.title),
        "figure": Span(_figure(one), PLAIN if one.valid else "bad"),
        "baseline": _beside(one),
        "tags": Span(", ".join(tag for tag in run.tags if tag != BASELINE), "dim"),
    }
    return [cells[column.head] for column in heads]


def _figure(one: Past) -> str:
    """Return the key figure with its interval; of several points, the range."""
    rows, mark = one.key.rows, "" if one.valid else f" {INVALID}"
    if not rows:
        return NOTHING
    if len(rows) == 1:
        return with_interval(rows[0]) + mark
    means = [row.spread.mean for row in rows]
    factor, unit = scale_of(one.key.metric, max(map(abs, means)))
    return f"{min(means) / factor:.3g} … {max(means) / factor:.3g} {unit}".rstrip() + mark


def _beside(one: Past) -> Span:
    """Return the difference from the baseline with its verdict; of several points, the verdicts."""
    if BASELINE in one.run.tags:
        return Span("is it", "dim")
    if not one.compared:
        return Span(NOTHING, "dim")
    if len(one.compared) == 1:
        (only,) = one.compared
        share = f"{only.relative * 100:+.1f} % " if only.relative is not None else ""
        verdict = verdict_of(only)
        return Span(f"{share}{verdict.text}", verdict.role)
    counted = Counter(verdict.verdict for verdict in one.compared)
    role = next((SEEN[verdict] for verdict in SEEN if counted[verdict]), "dim")
    return Span("  ".join(f"{GLYPHS[v]}{counted[v]}" for v in Verdict if counted[v]), role)


def about_run(one: Past) -> Line:
    """Return the key figure of a run, its difference from the baseline, and its tags, in full."""
    tags = f"  [{', '.join(one.run.tags)}]" if one.run.tags else ""
    return [*_key_figure(one), Span(tags, "dim")]


def _key_figure(one: Past) -> Line:
    key = one.key
    if not key.rows:
        return [Span("no figure was measured", "dim")]
    if len(one.compared) == 1 and len(key.rows) == 1:
        return described(one.compared[0])
    points = f" at {len(key.rows)} points" if len(key.rows) > 1 else ""
    line = [Span(f"{key.title}{points}", "strong"), Span(f": {_figure(one)}")]
    if one.compared:
        line.append(Span(f"; against the baseline: {tally(one.compared)}"))
    return line
