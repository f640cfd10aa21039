"""From a profile's name to a checked plan: what ``plan``, ``run`` and the screens begin with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address

from benchctl.backends import Registry, installed
from benchctl.engine.network import check_interfaces, is_own
from benchctl.engine.preflight import Tools, check_root, look, needed
from benchctl.engine.trust import distrust_services
from benchctl.errors import ProfileError
from benchctl.lab.expect import path
from benchctl.lab.model import Topology
from benchctl.lab.topology import build_topology
from benchctl.plan.network import ends_of, names_of, planned_network
from benchctl.plan.plan import MOST_TRIALS, Plan, make_plan
from benchctl.profile.find import find_topology
from benchctl.profile.load import Document, load_profile
from benchctl.run.network import Network, Outside
from benchctl.toml.source import TomlSource, read_toml


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, the network it runs on, and what was found of the programs it needs.

    ``network`` is the one that its flows see: that of the lab whose file is ``topology``, where
    there is one. ``services`` are its hosts and the commands
    that run there while it stands; ``distrust`` says why they may not be the user's own.
    """

    plan: Plan
    network: Network
    topology: TomlSource | None
    registry: Registry
    tools: Tools
    services: tuple[tuple[str, tuple[str, ...]], ...]
    distrust: str


def planned(
    profile: str,
    assignments: Sequence[str] | None,
    only: Sequence[str] | None,
    repeats: int | None,
    yes: bool,
    lab: str | None = None,
) -> Planned:
    """Load, check and plan a profile, and look for its tools. Sends nothing.

    ``lab`` is a topology file that goes before the profile's own. Raises ProfileError, UsageError,
    or MissingError for a backend or a device that is not there.
    """
    chosen = [f"lab.topology={find_topology(lab).resolve()}"] if lab else []
    document = load_profile(profile, [*(assignments or ()), *chosen])
    registry = installed()
    outside = document.model.outside
    topology, source = _topology(document)
    network = outside.network if topology is None else planned_network(outside, topology)
    plan = make_plan(
        document,
        registry,
        hosts=network.hosts,
        interfaces={label for host in network.hosts.values() for label in host.interfaces},
        only=only or (),
        repeats=repeats,
        most_trials=None if yes else MOST_TRIALS,
    )
    if topology is not None and source is not None:
        _check_lab(plan, outside, topology, source)
    else:
        check_interfaces(network)
        _check_sources(document, network)
        check_root(registry, plan.routes)
    for flow in plan.routes:
        network.way(flow)
    tools = look(registry, needed(plan.routes, network))
    nodes = topology.nodes.values() if topology else ()
    services = tuple((node.name, service.argv) for node in nodes for service in node.services)
    doubt = distrust_services(topology) if topology else ""
    return Planned(plan, network, source, registry, tools, services, doubt)


def _topology(document: Document) -> tuple[Topology | None, TomlSource | None]:
    lab = document.model.lab
    if lab is None:
        return None, None
    try:
        source = read_toml(find_topology(lab.topology, document.topology))
    except ProfileError as error:
        raise document.error(("lab", "topology"), error.message, error.hint) from None
    return build_topology(source, {}), source


def _check_sources(document: Document, network: Network) -> None:
    """Raise ProfileError for a source address that this machine does not have."""
    for name, way in network.interfaces.items():
        if way.address is not None and not is_own(way.address):
            raise document.error(
                ("interfaces", name, "address"),
                f"this machine does not have the address {way.address}",
                f"choose another with --set interfaces.{name}.address=ADDRESS",
            )


def _check_lab(plan: Plan, outside: Outside, topology: Topology, source: TomlSource) -> None:
    """Check what only profile and topology together can get wrong. Raises ProfileError."""
    names = names_of(topology)
    hint = f"hosts are: {', '.join(names)}"
    for flow in plan.routes:
        peer = outside.peers.get(flow.to)
        if peer is not None and peer.host not in names and not _is_address(peer.host):
            where = ("servers", flow.to, "host")
            what = f'the lab has no host "{peer.host}", and no way out'
            raise plan.document.error(where, what, f"make it an alias of one; {hint}")
    for flow in plan.routes:
        for ends in ends_of(outside, topology, [flow]).values():
            try:
                path(topology, *ends, flow.interface)
            except LookupError as error:
                where = ("flows", flow.name, "interface")
                raise plan.document.error(where, str(error)) from None
    for settings in plan.labs:  # an axis of the lab may have a wrong value
        build_topology(source, settings)
    lab = plan.document.model.lab
    for index, change in enumerate(lab.changes if lab else ()):
        if change.link not in topology.links:
            links = ", ".join(topology.links)
            raise plan.document.error(
                ("lab", "changes", index, "link"), f'no link "{change.link}"', f"links are: {links}"
            )


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
