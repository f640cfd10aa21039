"""What comes of an import: runs, and files that are left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchctl.run.planned import Scalar


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """An imported run, and how many of its trials have failed."""

    name: str
    profile: str
    kind: str
    trials: int
    failed: int
    axes: Mapping[str, Sequence[Scalar]]


@dataclass(frozen=True, slots=True)
class Left:
    """A file that was not imported, and why; ``is_fault`` is False where that was expected."""

    file: str
    why: str
    is_fault: bool = True
