"""Which hosts the flows and the commands of a run need."""

from __future__ import annotations

from collections.abc import Iterable

from benchctl.run.planned import LOCAL, Hook, Host, Network, PlannedFlow


def needed_hosts(
    network: Network, flows: Iterable[PlannedFlow], hooks: Iterable[Hook]
) -> list[Host]:
    """Return the hosts that SSH reaches and that flows or commands need, and this machine."""
    if not any(host.reach for host in network.hosts.values()):
        return [LOCAL]
    names = {hook.host for hook in hooks} | names_of_ends(network, flows)
    needed = [network.hosts[name] for name in names]
    here = [LOCAL] if any(host.reach is None for host in needed) else []
    return here + [host for host in needed if host.reach]


def names_of_ends(network: Network, flows: Iterable[PlannedFlow]) -> set[str]:
    """Return the names of the hosts at the ends of flows."""
    return {name for flow in flows for name in (flow.source, flow.to) if name not in network.peers}
