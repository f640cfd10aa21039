"""What the plan screen offers: a host, profiles, runs. Pure."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from msgspec import Struct

HOST_TEXT = "throughput both ways, round trips idle and under load, loss"


class OfferKind(StrEnum):
    """The sections of the list, as they are called."""

    RUNNING = "Running now"
    HOST = "Measure"
    OWN = "My profiles"
    PAST = "Last runs"
    EXAMPLE = "Examples"


class Offer(Struct, frozen=True):
    """One line of the list.

    ``name`` is that of a profile, as commands take it or a path; of a run, that of its profile; of
    a host, its name, which is empty until it is asked for.
    """

    kind: OfferKind
    name: str = ""
    text: str = ""
    role: str = ""
    path: Path | None = None
    run: str = ""
    run_id: int = 0
    created_time: float = 0.0

    @property
    def key(self) -> tuple[Path | None, int]:
        """What it is, whatever is said of it."""
        return self.path, self.run_id

    @property
    def is_planned(self) -> bool:
        """Whether there is a plan of it."""
        return self.path is not None or (self.kind is OfferKind.HOST and bool(self.name))

    @property
    def command(self) -> list[str]:
        """The command that shows or does the same."""
        if self.path is not None:
            shipped = self.kind is OfferKind.EXAMPLE
            return ["benchctl", "plan", self.name if shipped else str(self.path)]
        if self.kind is OfferKind.HOST:
            return ["benchctl", "quick", self.name or "HOST"]
        return ["benchctl", "show", self.run]
