"""From a profile to an ordered list of trials.

Everything is bound once before anything runs, so that one wrong value anywhere in the matrix is
found first. A plan makes its trials when asked: a hundred thousand of them cost no memory.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from benchctl.backends import Registry
from benchctl.errors import UsageError
from benchctl.profile.bind import Binder, Trial
from benchctl.profile.load import Document, nearest
from benchctl.profile.matrix import Matrix, Point, build_matrix
from benchctl.profile.model import Order, Scalar

# A person who writes an axis too many notices here, not after a week of measuring.
MOST_TRIALS = 100_000


@dataclass(frozen=True, slots=True)
class Plan:
    """All trials of a profile, in order."""

    document: Document
    matrix: Matrix
    points: tuple[Point, ...]
    order: array[int]
    """Position in points x repeats of each trial: ``point * repeats + repeat``."""
    repeats: int
    seed: int
    duration_s: float
    """Expected time of all trials and pauses, without attempts that fail."""
    _binder: Binder

    def __len__(self) -> int:
        return len(self.order)

    def trial(self, index: int) -> Trial:
        """Return the trial that runs as number ``index``, from 0."""
        point, repeat = divmod(self.order[index], self.repeats)
        return self._binder.bind(self.points[point], index, repeat + 1)

    def __iter__(self) -> Iterator[Trial]:
        return map(self.trial, range(len(self)))

    @property
    def varying(self) -> tuple[str, ...]:
        """The axes that have more than one value among the points."""
        seen: dict[str, set[Scalar]] = {}
        for point in self.points:
            for value in point:
                seen.setdefault(value.axis, set()).add(value.shown)
        return tuple(axis for axis in self.matrix.axes if len(seen.get(axis, ())) > 1)


def make_plan(
    document: Document,
    registry: Registry,
    *,
    hosts: Collection[str] = (),
    interfaces: Collection[str] = (),
    only: Sequence[str] = (),
    repeats: int | None = None,
    most_trials: int | None = MOST_TRIALS,
    draw_seed: int | None = None,
) -> Plan:
    """Plan a profile.

    ``hosts`` and ``interfaces`` are names known beside those of the profile (a lab's). ``only``
    keeps points whose axis has a value: ``server=paris,tashkent``. ``most_trials`` refuses a
    larger matrix (None: no limit). ``draw_seed`` is the seed where the profile gives none.

    Raises ProfileError (with file, line and key), UsageError, or MissingError for a backend that
    is not there.
    """
    run = document.model.run
    repeats = run.repeats if repeats is None else repeats
    matrix = build_matrix(document)
    if most_trials is not None and matrix.size * repeats > most_trials:
        raise document.error(
            ("axes",),
            f"a matrix of {matrix.size * repeats:,} trials",
            f"more than {most_trials:,} need --yes; narrow it with --only, or take an axis out",
        )
    points = _keep(tuple(matrix.points()), matrix, only)
    if not points:
        raise document.error(("exclude",), "no point of the matrix is left to measure")
    seed = run.seed if run.seed is not None else draw_seed
    seed = random.SystemRandom().randrange(2**31) if seed is None else seed
    binder = Binder(document, registry, matrix, hosts, interfaces)
    measuring_s = repeats * sum(binder.bind(point, 0, 1).duration_s for point in points)
    order = _order(run.order, len(points), repeats, seed)
    pausing_s = (len(order) - 1) * run.pause
    return Plan(document, matrix, points, order, repeats, seed, measuring_s + pausing_s, binder)


def _order(order: Order, points: int, repeats: int, seed: int) -> array[int]:
    positions = array("Q", range(points * repeats))
    if order is Order.INTERLEAVED:
        return array("Q", (p * repeats + r for r in range(repeats) for p in range(points)))
    if order is Order.SHUFFLED:
        random.Random(seed).shuffle(positions)
    return positions


def _keep(points: tuple[Point, ...], matrix: Matrix, only: Sequence[str]) -> tuple[Point, ...]:
    for text in only:
        axis, equals, values = text.partition("=")
        if not equals:
            raise UsageError(f"--only {text}: not of the form axis=value")
        if axis not in matrix.axes:
            hint = nearest(axis, matrix.axes) or f"axes are: {', '.join(matrix.axes) or 'none'}"
            raise UsageError(f'--only {text}: no axis "{axis}"', hint)
        there = {str(v.shown): v.shown for point in points for v in point if v.axis == axis}
        wanted = set()
        for value in values.split(","):
            if value not in there:
                raise UsageError(
                    f'--only {text}: axis "{axis}" has no value "{value}"',
                    nearest(value, there) or f"values are: {', '.join(there)}",
                )
            wanted.add(there[value])
        points = tuple(
            point for point in points if any(v.axis == axis and v.shown in wanted for v in point)
        )
    return points
