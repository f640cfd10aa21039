"""Every run with its key figure and its difference from its baseline: pure, from the store's rows.

A run's key figure is the mean of its main metric over all its points, flows and directions. The
baseline is the newest run of the same profile with the tag ``baseline``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from benchctl.run.record import Run

BASELINE = "baseline"

Means = Mapping[str, Mapping[str, float]]
"""The means of one run by metric and place."""


@dataclass(frozen=True, slots=True)
class Past:
    """One run in the history."""

    run: Run
    metric: str
    figure: float | None
    difference: float | None
    """Relative to the baseline: the mean over the places in both."""

    @property
    def host(self) -> str:
        """The machine that measured it, if known."""
        return str(self.run.facts.get("hostname", ""))

    def matches(self, text: str) -> bool:
        """Return whether every word of a text occurs in the run's row."""
        told = " ".join(
            [self.run.name, self.run.profile, self.run.status, self.host, *self.run.tags]
        )
        return all(word.lower() in told.lower() for word in text.split())


def past_of(runs: Sequence[Run], means: Mapping[int, Means]) -> list[Past]:
    """Return every run with its figures."""
    baselines: dict[str, Run] = {}
    for run in runs:  # the newest first
        if BASELINE in run.tags:
            baselines.setdefault(run.profile, run)
    found = []
    for run in runs:
        own = means.get(run.id, {})
        metric = next((name for name in run.vocabulary.wanted if name in own), "")
        figure = fmean(own[metric].values()) if metric else None
        baseline = baselines.get(run.profile)
        difference = None
        if metric and baseline is not None and baseline.id != run.id:
            difference = _difference(own[metric], means.get(baseline.id, {}).get(metric, {}))
        found.append(Past(run, metric, figure, difference))
    return found


def _difference(own: Mapping[str, float], base: Mapping[str, float]) -> float | None:
    shares = [own[place] / base[place] - 1 for place in own if base.get(place)]
    return fmean(shares) if shares else None
