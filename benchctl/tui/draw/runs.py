"""The list of all runs as rows of text: as many columns as fit, tags in the remaining width."""

from __future__ import annotations

from collections.abc import Sequence

from benchctl.metrics import title_of
from benchctl.tui.draw.columns import GAP, Cells, Column
from benchctl.tui.draw.spans import WIDTH, Span, state
from benchctl.tui.model.past import BASELINE, Past
from benchctl.units import format_time, format_value

NOTHING = "-"
LEAST_TAGS = 4


def run_columns(past: Sequence[Past], width: int) -> list[Column]:
    """Return the columns of the history that fit; the tags get the remaining width."""
    profile = max([7, *(len(one.run.profile) for one in past)])
    wanted = [
        Column("", 1),
        Column("run", max([20, *(len(one.run.name) for one in past)])),
        Column("profile", min(profile, 24)),
        Column("status", WIDTH),
        Column("figure", 11, right=True),
        Column("baseline", 9, right=True),
    ]
    left = width - sum(column.width + len(GAP) for column in wanted)
    hosts = max([4, *(len(one.host) for one in past)])
    for place, column in (
        (4, Column("of", 12)),
        (2, Column("when", 16)),
        (3, Column("host", hosts)),
    ):
        if column.width + len(GAP) <= left - LEAST_TAGS:
            wanted.insert(place, column)
            left -= column.width + len(GAP)
    return [*wanted, Column("tags", max(LEAST_TAGS, left))]


def run_row(one: Past, heads: Sequence[Column], *, marked: bool) -> Cells:
    """Return one run as a row of the history."""
    run = one.run
    when = format_time(run.created_time)
    figure = format_value(one.metric, one.figure) if one.figure is not None else NOTHING
    if BASELINE in run.tags:
        difference = Span("is it", "dim")
    elif one.difference is None:
        difference = Span(NOTHING, "dim")
    else:
        difference = Span(f"{one.difference * 100:+.1f} %")
    cells = {
        "": Span("●" if marked else " ", "strong"),
        "run": Span(run.name),
        "when": Span(when),
        "profile": Span(run.profile),
        "host": Span(one.host),
        "status": state(one.run.status),
        "of": Span(title_of(one.metric)),
        "figure": Span(figure),
        "baseline": difference,
        "tags": Span(", ".join(tag for tag in run.tags if tag != BASELINE), "dim"),
    }
    return [cells[column.head] for column in heads]
