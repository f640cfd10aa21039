"""Where the trials of a run take place: on this machine, or in a lab."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchctl.analysis.flow.laws import PathBounds
from benchctl.errors import LabError
from benchctl.plan.bound import BoundTrial
from benchctl.run.planned import Network

if TYPE_CHECKING:
    from benchctl.lab.verify.strain import Carried
    from benchctl.plan.promise import Promises


@dataclass
class Site:
    """Where trials take place: a network that exists already, or a `LabSite`."""

    network: Network
    changes: bool = False
    """Whether something changes during a trial, at times after its common start."""
    was_probed: bool = False
    """Whether `prepare` has just changed links for a time, to verify them."""

    async def prepare(self, trial: BoundTrial) -> Network:
        """Return the network of one attempt at a trial, ready to measure on. Raises LabError."""
        return self.network

    async def prepare_for(self, trials: Iterable[BoundTrial], at_once: int) -> Network:
        """Return the network of trials that run at the same time, ready to measure on.

        ``at_once`` of them do. Raises LabError.
        """
        return self.network

    def links_of(self, trial: BoundTrial) -> frozenset[str]:
        """Return the links, with their directions, that no other trial may use meanwhile."""
        return frozenset()

    def begin(self, common_start: float) -> None:
        """Record a trial's common start, in Unix time."""

    def expected(self, trial: BoundTrial) -> Mapping[str, Promises]:
        """Return what is expected of the trial's flows, by name."""
        return {}

    def bottlenecks(self, trial: BoundTrial) -> Mapping[str, Mapping[str, str]]:
        """Return the link that limits each of the trial's flows by theory, by direction."""
        return {}

    def bounds(self, trial: BoundTrial) -> Mapping[str, Mapping[str, PathBounds]]:
        """Return what the links allow each of the trial's flows at most, by direction."""
        return {}

    async def carried(self, trial: BoundTrial) -> Sequence[Carried]:
        """Return what the links of the trial's flows carried since it was prepared."""
        return ()

    async def counters(self, node: str) -> Mapping[str, Any]:
        """Return what a node of the lab has counted, as `benchctl.hosts.sent.counters.read`.

        Raises LabError.
        """
        raise LabError("there is no lab")

    async def failure_reason(self) -> str:
        """Return why the prepared network has failed; empty if it works."""
        return ""

    async def close(self) -> None:
        """Remove everything that was built."""
