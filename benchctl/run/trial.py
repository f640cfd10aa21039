"""A trial as it is planned, and its flows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchctl.metrics import Direction

Scalar = str | int | float | bool
"""A value of an axis."""


@dataclass(frozen=True, slots=True)
class PlannedFlow:
    """One flow of a trial: names and parameters as written in the profile.

    ``delay_s`` is its own start, after the trial's common one.
    """

    name: str
    backend: str
    source: str
    to: str
    interface: str | None
    direction: Direction
    delay_s: float
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PlannedTrial:
    """One point of the matrix, one repeat.

    ``position`` counts from 0 in the order of execution, ``repeat`` from 1. ``lab`` holds settings
    of the topology for this point. ``duration_s`` is the expected time of its flows.
    """

    position: int
    repeat: int
    point: Mapping[str, Scalar]
    flows: tuple[PlannedFlow, ...]
    lab: Mapping[str, Any]
    duration_s: float
    deadline_s: float
