"""One figure that was asked for, with every name resolved, and what its makers share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from benchctl.analysis.results import NOT_VALID_HERE, TrialReport
from benchctl.report.figures.figure import Axis, NamedTick, Panel, Picture, PictureKind
from benchctl.report.figures.parts import MOST_LINES, Part, Source, without_common
from benchctl.report.report import Report
from benchctl.run.record import Run, Trial
from benchctl.run.status import Status
from benchctl.visible import visible

OF_SAMPLES = (
    PictureKind.TIME, PictureKind.CDF, PictureKind.HISTOGRAM, PictureKind.BOX, PictureKind.PLANE,
    PictureKind.SEQUENCE,
)  # fmt: skip
"""These show trials; the others means over repeats."""
# As long as a file's name may be, without the ending, in bytes of any alphabet.
_LONGEST_NAME = 200


class PictureRequest(Struct, frozen=True):
    """A figure of a ``kind``: of ``metrics``, each with its aggregate, in one ``part`` of a run.

    ``x`` is an axis, or empty: flows for bars. ``series`` is the axis that lines are named by
    first; in a heat map it goes down. Lines over time have ``columns`` values at most, and are
    shown from ``begin_s`` to ``end_s``, with ``totals`` below their sums.
    """

    report: Report
    kind: PictureKind
    metrics: Sequence[tuple[str, str]]
    x: str
    series: str
    part: Part
    columns: int
    begin_s: float = 0.0
    end_s: float = math.inf
    totals: bool = False

    @property
    def run(self) -> Run:
        """The run that the figure is of."""
        return self.report.run

    @property
    def axes(self) -> list[str]:
        """The axes that may distinguish lines, the most important first."""
        axes = [axis for axis in self.run.varying if axis not in self.part.where]
        return sorted(axes, key=lambda axis: axis != self.series)

    def figure(
        self, x: Axis, panels: Sequence[Panel], names: Sequence[str], series: str,
        notes: Iterable[str],
    ) -> Picture:  # fmt: skip
        """Return the figure with its titles, its name and what can be said of every kind."""
        run, about = self.run, self.part.about
        name = "-".join(part for part in (self.kind.value, self._measured, self.part.name) if part)
        while len(name.encode()) > _LONGEST_NAME:
            name = name[:-1]
        names, of_names = without_common(names)
        x, of_x = _without_common(x)
        panels = [replace(panel, y=_without_common(panel.y)[0]) for panel in panels]
        notes = [*notes, *self._of_trials(), *dict.fromkeys([*of_names, *of_x])]
        return Picture(
            self.kind, name, visible(run.title or run.profile), visible(about), x, panels,
            visible(series), [*map(visible, names)], [*map(visible, notes)],
        )  # fmt: skip

    @property
    def _measured(self) -> str:
        if self.kind in (PictureKind.PLANE, PictureKind.SEARCH) or len(self.metrics) > 1:
            return ""
        return "-".join(".".join(filter(None, metric)) for metric in self.metrics)

    @property
    def trials(self) -> list[TrialReport]:
        """The trials of the part."""
        return [
            trial
            for trial in self.report.trials
            if self.part.holds(trial.trial.point) and self.part.repeat in (0, trial.trial.repeat)
        ]

    def _of_trials(self) -> Iterator[str]:
        """Yield notes about trials that measured nothing to their end, or nothing valid."""
        trials = [trial.trial for trial in self.trials]
        invalid = sum(not all(link["kept"] for link in trial.links) for trial in trials)
        if invalid and self.kind in OF_SAMPLES:
            yield f"{_of(invalid, trials)} {NOT_VALID_HERE}"
        failed = sum(trial.status is not Status.OK for trial in trials)
        if failed:
            yield f"{_of(failed, trials)} not measured to the end"


def _without_common(axis: Axis) -> tuple[Axis, list[str]]:
    """Return an axis of words without what all of them have in common, and a note about it."""
    if not axis.even:
        return axis, []
    names, notes = without_common([tick.text for tick in axis.ticks])
    ticks = [NamedTick(tick.value, name) for tick, name in zip(axis.ticks, names, strict=True)]
    return replace(axis, ticks=ticks), notes


def _of(some: int, trials: Sequence[Trial]) -> str:
    return "the trial was" if len(trials) == 1 else f"{some} of {len(trials)} trials were"


def numbered(
    sources: Iterable[tuple[tuple[str, ...], Source]], most: int = MOST_LINES
) -> tuple[dict[tuple[str, ...], int], int]:
    """Return the number of each line by its key, in order of appearance, and how many there are.

    Only the first ``most`` have a number.
    """
    keys = [*dict.fromkeys(key for key, _ in sources)]
    return {key: number for number, key in enumerate(keys[:most])}, len(keys)
