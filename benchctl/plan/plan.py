"""From a profile to an ordered list of trials, and to the run that a store can hold.

Every point is bound once before anything runs, so that a wrong value anywhere in the matrix is
found first. Trials are generated on demand: a hundred thousand need little memory.
"""

from __future__ import annotations

import itertools
import math
import random
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from benchctl.backends import Registry
from benchctl.errors import UsageError
from benchctl.plan.bind import Binder
from benchctl.plan.bound import BoundFlow, BoundTrial
from benchctl.plan.expectations import FigureTables
from benchctl.plan.matrix import Matrix, Point, build_matrix
from benchctl.plan.searching import search_of
from benchctl.profile.load import Document
from benchctl.profile.model import LabTable, Order
from benchctl.profile.values import seconds_and_share
from benchctl.run.planned import (
    DeclaredNetwork,
    Expectation,
    LabSettings,
    Parallel,
    PlannedChange,
    PlannedFlow,
    PlannedRun,
    PlannedTrial,
    Reported,
    Scalar,
    Search,
    Settings,
    Until,
)
from benchctl.toml.source import TomlSource
from benchctl.units import write_rate

# A user who adds one axis too many learns it here, not after a week of measuring.
MOST_TRIALS = 100_000
# Bounds the memory of a plan to some 200 MB. Nobody measures for longer than a year.
MOST_POINTS = 1_000_000
MOST_PLANNED = 20_000_000


class Plan(Struct, frozen=True):
    """All trials of a profile, in order."""

    document: Document
    matrix: Matrix
    points: tuple[Point, ...]
    order: array[int]
    """Position in points x repeats of each trial: ``point * repeats + repeat``."""
    repeats: int
    seed: int
    duration_s: float
    """Expected time of all trials and pauses, without failed attempts.

    Of trials that run at the same time, the least that their hosts allow.
    """
    expected: tuple[Expectation, ...]
    reported: tuple[Reported, ...]
    until: Until | None
    search: Search | None
    parallel: Parallel | None
    _binder: Binder

    def __len__(self) -> int:
        return len(self.order)

    def trial(self, index: int) -> BoundTrial:
        """Return the trial that runs as number ``index``, from 0."""
        point, repeat = divmod(self.order[index], self.repeats)
        return self._binder.bind(self.points[point], index, repeat + 1)

    def of_points(self) -> Iterator[BoundTrial]:
        """Yield the first trial of every point."""
        return (self._binder.bind(point, number, 1) for number, point in enumerate(self.points))

    def __iter__(self) -> Iterator[PlannedTrial]:
        return (self.trial(index).plan for index in range(len(self)))

    def check_commands(self, build: Callable[[BoundFlow], object]) -> None:
        """Build the commands of every flow; see `Binder.check_commands`."""
        self._binder.check_commands(self.points, build)

    @property
    def values(self) -> dict[str, tuple[Scalar, ...]]:
        """The values of each axis that occur among the points, in order; the range of a search."""
        found: dict[str, dict[Scalar, None]] = {axis: {} for axis in self.matrix.axes}
        for value in dict.fromkeys(itertools.chain.from_iterable(self.points)):
            found[value.axis][value.shown] = None
        if (search := self.search) is not None:
            ends = f"{write_rate(search.low_bps)}..{write_rate(search.high_bps)}"
            found[search.axis] = {ends: None}
        return {axis: tuple(values) for axis, values in found.items()}

    @property
    def varying(self) -> tuple[str, ...]:
        """The axes that have more than one value among the points."""
        return tuple(axis for axis, values in self.values.items() if len(values) > 1)

    @property
    def most_duration_s(self) -> float:
        """The time of all tries that a search may make; of all trials without one."""
        return self.duration_s * (self.search.most if self.search else 1)

    @property
    def routes(self) -> tuple[PlannedFlow, ...]:
        """Every flow of the plan, once for each route and backend; any of its parameters."""
        return tuple(self._binder.routes.values())

    @property
    def ip_versions(self) -> frozenset[int]:
        """The IP versions that flows ask for."""
        return frozenset(self._binder.ip_versions)

    @property
    def labs(self) -> tuple[Mapping[str, Any], ...]:
        """The settings of the lab in the points, each once."""
        labs = map(self._binder.lab, self.points)
        return tuple({repr(lab): lab for lab in labs}.values())


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

    ``hosts`` and ``interfaces`` are names known besides those of the profile (a lab's). ``only``
    keeps points whose axis has a value: ``server=paris,tashkent``. ``repeats`` (1 or more) replaces
    the profile's. ``most_trials`` rejects a larger matrix (None: no limit). ``draw_seed`` gives the
    seed if the profile has none.

    Raises ProfileError (with file, line and key), UsageError, or MissingError if a backend is
    missing.
    """
    run = document.model.run
    whole = build_matrix(document)
    binder = Binder(document, registry, whole, hosts, interfaces)
    figures = FigureTables(document, whole, binder.backends)
    expected, reported, until = figures.expectations(), figures.reported(), figures.until()
    condition = figures.condition()
    if repeats is not None:
        until = None
    else:
        repeats = run.repeats if isinstance(run.repeats, int) else run.repeats.least
    if until is not None and condition is not None:
        what = "a search is repeated a number of times"
        raise document.error(("run", "repeats"), what, "such as 3: each is a search of its own")
    matrix = whole.only(only)
    trials = matrix.size * repeats
    too_many = matrix.size > MOST_POINTS or trials > MOST_PLANNED
    if too_many or (most_trials is not None and trials > most_trials):
        most = (
            f"the limits are {MOST_POINTS:,} points and {MOST_PLANNED:,} trials"
            if too_many
            else f"more than {most_trials:,} need --yes"
        )
        raise document.error(
            ("axes",),
            f"a matrix of {trials:,} trials: {_shape(matrix, repeats)}",
            f"{most}; narrow it with --only, or remove an axis",
        )
    points = tuple(matrix.points())
    if not points and only:
        raise UsageError(f"--only {' --only '.join(only)}: no point of the matrix is left")
    if not points:
        raise document.error(("exclude",), "no point of the matrix is left to measure")
    if only:
        shown = [{value.axis: value.shown for value in point}.items() for point in points]
        expected = tuple(e for e in expected if any(e.where.items() <= point for point in shown))
    seed = run.seed if run.seed is not None else draw_seed
    seed = random.SystemRandom().randrange(2**31) if seed is None else seed
    measuring_s = repeats * sum(map(binder.duration_s, points))
    order = _order(run.order, len(points), repeats, seed)
    pausing_s = (len(order) - 1) * run.pause
    duration_s = measuring_s + pausing_s
    return Plan(
        document,
        matrix,
        points,
        order,
        repeats,
        seed,
        duration_s,
        expected,
        reported,
        until,
        search_of(document, binder, points, condition),
        None,
        binder,
    )


def _shape(matrix: Matrix, repeats: int) -> str:
    """Write the factors of a matrix: ``10 streams x 4 window x 3 repeats``."""
    factors = [
        f"{len(steps)} {'+'.join(value.axis for value in steps[0])}" for steps in matrix.dimensions
    ]
    return " x ".join([*factors, f"{repeats} repeats"] if repeats > 1 else factors)


def _order(order: Order, points: int, repeats: int, seed: int) -> array[int]:
    positions = array("Q", range(points * repeats))
    if order is Order.INTERLEAVED:
        return array("Q", (p * repeats + r for r in range(repeats) for p in range(points)))
    if order is Order.SHUFFLED:
        random.Random(seed).shuffle(positions)
    return positions


def planned_run(
    plan: Plan,
    outside: DeclaredNetwork,
    topology: TomlSource | None,
    registry: Registry,
    server_wait_s: float = 0.0,
) -> PlannedRun:
    """Return a plan as a run.

    ``outside`` is the network outside the lab, ``topology`` the file of the lab, if any.
    """
    profile = plan.document.model
    text = plan.document.text
    lab = None
    if topology is not None and profile.lab is not None:
        lab = lab_settings(topology, profile.lab)
        text = f"{text}\n# {topology.path.name}\n{topology.text}"
    backends = dict.fromkeys(flow.backend for flow in plan.routes)
    # Readers of the run need no plugin.
    abilities = {name: registry.load(name).capabilities for name in backends}
    settings = Settings(
        plan.values,
        profile.run.order,
        plan.expected,
        profile.run.attempts,
        profile.run.backoff,
        profile.run.pause,
        outside,
        lab,
        plan.reported,
        tuple(metric for ability in abilities.values() for metric in ability.metrics),
        {name: ability.headline for name, ability in abilities.items()},
        server_wait_s,
        profile.hooks,
        plan.until,
        plan.search,
        parallel=plan.parallel,
        host_wait_s=profile.run.host_wait,
    )
    return PlannedRun(plan.document.name, profile.title, plan.seed, settings, plan, text)


def lab_settings(source: TomlSource, table: LabTable) -> LabSettings:
    """Return what `LabSite` needs of the topology file and of the profile's lab table."""
    changes = []
    for change in table.changes:
        rate = "unlimited" if change.rate == math.inf else change.rate
        written = {**dict(change), "rate": rate}
        for name in ("at", "ramp"):
            written[name], written[f"{name}_share"] = seconds_and_share(written[name])
        changes.append(PlannedChange(**written))
    return LabSettings(str(source.path), source.text, table.emulator, table.verify, tuple(changes))
