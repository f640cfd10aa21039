"""A planned run: the settings that all its trials share, and the whole."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from benchctl.metrics import Direction, Metric
from benchctl.run.network import LOCAL, Outside
from benchctl.run.trial import PlannedTrial, Scalar


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """A change of a link of the lab during a trial, with the names of the profile's keys.

    In SI units; ``at`` counts from the common start. None means unchanged.
    """

    at: float
    link: str
    ramp: float = 0.0
    rate: float | Literal["unlimited"] | None = None
    delay: float | None = None
    jitter: float | None = None
    loss: float | None = None


@dataclass(frozen=True, slots=True)
class LabSettings:
    """The topology file, and the profile's settings of the lab."""

    path: str
    text: str
    emulator: str | None
    verify: bool
    changes: tuple[PlannedChange, ...] = ()


@dataclass(frozen=True, slots=True)
class Expectation:
    """A bound on the mean of a metric over the repeats of a point, in the metric's SI unit.

    If ``flow`` is None, every flow that has the metric must meet it. ``where`` maps axes to the
    value that a point must have; empty for every point.
    """

    metric: str
    flow: str | None = None
    where: Mapping[str, Scalar] = field(default_factory=dict)
    at_least: float | None = None
    at_most: float | None = None


@dataclass(frozen=True, slots=True)
class Reported:
    """Figures by metric that others reported, in SI units.

    ``flow`` and ``direction`` are None if they apply to all; ``where`` maps axes to the value that
    a point must have.
    """

    flow: str | None
    direction: Direction | None
    where: Mapping[str, Scalar]
    metrics: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings that all trials of a run share.

    ``values`` are those of every axis, in the order of the profile. ``network`` is the one outside
    the lab. ``metrics`` are those that only its backends define, ``headlines`` the headline metric
    of each backend's flows, so that readers of the run need no plugin. Fields with a default are
    missing from older stores.
    """

    values: Mapping[str, tuple[Scalar, ...]]
    order: str
    expect: tuple[Expectation, ...]
    attempts: int = 1
    backoff_s: float = 0.0
    pause_s: float = 0.0
    network: Outside = Outside({LOCAL.name: LOCAL.address})  # noqa: RUF009 (it is frozen)
    lab: LabSettings | None = None
    reported: tuple[Reported, ...] = ()
    metrics: tuple[Metric, ...] = ()
    headlines: Mapping[str, str] = field(default_factory=dict)


class PlannedTrials(Protocol):
    """Trials generated on demand: a hundred thousand need little memory."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[PlannedTrial]: ...


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A whole run before it is recorded."""

    profile: str
    title: str
    seed: int
    settings: Settings
    trials: PlannedTrials
    profile_text: str

    @property
    def profile_sha256(self) -> str:
        """Hash of the profile's text, in hexadecimal."""
        return hashlib.sha256(self.profile_text.encode()).hexdigest()
