"""Every run with its key figure and how it differs from its baseline: pure, from the store's rows.

A run's key figure is the mean over all its points, flows and directions of the first metric that
people look for; the baseline is the newest run of the same profile that is tagged so.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from benchctl.report.pivot import INSTEAD, KEY_METRICS
from benchctl.store.read import Run
from benchctl.tui.draw.columns import GAP, Column, Row
from benchctl.tui.draw.spans import Span
from benchctl.tui.draw.states import WIDTH, state
from benchctl.tui.model.metrics import title
from benchctl.tui.model.runview import DIED
from benchctl.units import format_value

BASELINE = "baseline"
NOTHING = "-"
LEAST_TAGS = 4
FIGURES = tuple(name for key in KEY_METRICS for name in (key, INSTEAD.get(key)) if name)
"""The metrics a key figure may be of, the most wanted first."""

Means = Mapping[str, Mapping[str, float]]
"""The means of one run by metric and place."""


@dataclass(frozen=True, slots=True)
class Past:
    """One run as the history shows it."""

    run: Run
    status: str
    metric: str
    figure: float | None
    difference: float | None
    """Relative to the baseline: the mean over the places that both have."""

    def matches(self, text: str) -> bool:
        """Return whether every word of a text is found in what is shown of the run."""
        told = " ".join(
            [self.run.name, self.run.profile, self.status, _host(self.run), *self.run.tags]
        )
        return all(word.lower() in told.lower() for word in text.split())


def past_of(
    runs: Sequence[Run], means: Mapping[int, Means], alive: Mapping[int, bool]
) -> list[Past]:
    """Return every run with its figures. ``alive`` says of which a runner is there."""
    baselines: dict[str, Run] = {}
    for run in runs:  # the newest first
        if BASELINE in run.tags:
            baselines.setdefault(run.profile, run)
    found = []
    for run in runs:
        own = means.get(run.id, {})
        metric = next((name for name in FIGURES if name in own), "")
        figure = _mean(own[metric].values()) if metric else None
        baseline = baselines.get(run.profile)
        difference = None
        if metric and baseline is not None and baseline.id != run.id:
            difference = _difference(own[metric], means.get(baseline.id, {}).get(metric, {}))
        dead = run.status == "running" and not alive.get(run.id, False)
        found.append(Past(run, DIED if dead else run.status, metric, figure, difference))
    return found


def _mean(values: Collection[float]) -> float:
    return math.fsum(values) / len(values)


def _difference(own: Mapping[str, float], base: Mapping[str, float]) -> float | None:
    shares = [own[place] / base[place] - 1 for place in own if base.get(place)]
    return _mean(shares) if shares else None


def _host(run: Run) -> str:
    return str(run.facts.get("hostname", ""))


def columns(past: Sequence[Past], width: int) -> list[Column]:
    """Return the columns of the history that fit; the tags have what is left of the width."""
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
    hosts = max([4, *(len(_host(one.run)) for one in past)])
    for place, column in (
        (4, Column("of", 12)),
        (2, Column("when", 16)),
        (3, Column("host", hosts)),
    ):
        if column.width + len(GAP) <= left - LEAST_TAGS:
            wanted.insert(place, column)
            left -= column.width + len(GAP)
    return [*wanted, Column("tags", max(LEAST_TAGS, left))]


def row(one: Past, heads: Sequence[Column], *, marked: bool) -> Row:
    """Return one run in the columns of the history."""
    run = one.run
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.created_time))
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
        "host": Span(_host(run)),
        "status": state(one.status),
        "of": Span(title(one.metric)),
        "figure": Span(figure),
        "baseline": difference,
        "tags": Span(", ".join(tag for tag in run.tags if tag != BASELINE), "dim"),
    }
    return [cells[column.head] for column in heads]
