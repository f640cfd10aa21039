"""How many commands run at once on a host: one without Python needs a session of SSH for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from benchctl.backends import Registry
from benchctl.hosts.hosts import Hosts
from benchctl.run.planned import Host, Network, PlannedFlow, PlannedTrial, Reach


async def check_sessions(
    hosts: Hosts,
    wanted: Iterable[Host],
    trials: Iterable[PlannedTrial],
    network: Network,
    registry: Registry,
) -> None:
    """Raise HostError if a host does not let as many commands run at once as a trial needs."""
    links = [await hosts.link(host) for host in wanted if host.reach]
    limited = [link for link in links if link.missing_features]
    if not limited:
        return
    most: Counter[Reach] = Counter()
    for trial in trials:
        ends = (end.reach for flow in trial.flows for end in _ends(flow, network, registry))
        most |= Counter(reach for reach in ends if reach)
    for link in limited:
        await link.check_room(most[link.reach])


def _ends(flow: PlannedFlow, network: Network, registry: Registry) -> Iterator[Host]:
    """Yield the hosts on which a flow runs a command."""
    yield network.hosts[flow.source]
    target = network.target(flow.to)
    if target is not None and registry.load(flow.backend).capabilities.needs_server:
        yield target
