"""From a profile's name to a checked plan: the first step of ``plan``, ``run`` and the screens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchctl.backends import Registry, installed
from benchctl.engine.checks.network import check_congestion_control, check_interfaces
from benchctl.engine.prepare.consent import commands_of, unagreed
from benchctl.engine.prepare.ssh_hosts import check_hosts, check_ways, reached
from benchctl.engine.prepare.trust import distrust_hooks, distrust_services
from benchctl.errors import LabError, MissingError
from benchctl.hosts.sent.ports import is_own
from benchctl.plan.bound import BoundFlow
from benchctl.plan.network import planned_network
from benchctl.plan.parallel import side_by_side
from benchctl.plan.plan import MOST_TRIALS, Plan, make_plan
from benchctl.profile.find import NO_LAB, find_any, find_topology
from benchctl.profile.load import Document, Profiles, load_profile
from benchctl.run.planned import DeclaredNetwork, Hook, Network
from benchctl.toml.source import TomlSource, read_stdin, read_toml

if TYPE_CHECKING:
    from benchctl.engine.checks.tools import Tools
    from benchctl.lab.topology.model import Topology


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, its network, and the programs that were found.

    ``network`` is the one that the flows use: with a ``topology`` file, that of the lab;
    ``outside`` is the one of the profile.
    ``likely_there`` are what further programs on remote hosts are taken to be.
    ``services`` are the lab's hosts and the commands that run there while the lab exists.
    ``lab_fault`` is why the lab cannot be built on this machine.
    ``distrust`` says why other users may have written them or the commands of the profile's hosts,
    in the file ``distrusted``. ``commands`` are those that need agreement. ``lab_doubts`` are
    values of the topology that are hardly meant.
    """

    plan: Plan
    network: Network
    outside: DeclaredNetwork
    topology: TomlSource | None
    lab_fault: LabError | None
    registry: Registry
    tools: Tools
    likely_there: Tools
    services: tuple[tuple[str, tuple[str, ...]], ...]
    distrust: str
    distrusted: Path | None
    commands: Sequence[str]
    lab_doubts: Sequence[str] = ()

    @property
    def hooks(self) -> tuple[Hook, ...]:
        """The commands that run on hosts before and after trials and the run."""
        return self.plan.document.model.hooks

    @property
    def needs_trust(self) -> str:
        """Why the commands run only with ``--trust``, or if somebody agrees; empty if they run."""
        agreed = not unagreed(self.commands)
        return self.distrust or ("" if agreed else "you have not agreed to them yet")

    @property
    def missing(self) -> LabError | MissingError | None:
        """The error of what is missing on this machine: the lab, or the first program."""
        lacking = (tool for tool in self.tools.values() if isinstance(tool, MissingError))
        return self.lab_fault or next(lacking, None)


class _Layout(NamedTuple):
    """A plan and its network, as far as both are known without looking at this machine."""

    plan: Plan
    network: Network
    outside: DeclaredNetwork
    topology: Topology | None
    source: TomlSource | None
    registry: Registry


def check_file(name: str) -> None:
    """Check a profile, or a topology file, as far as this does not depend on this machine.

    ``-`` is stdin. Raises ProfileError, UsageError, or MissingError if a backend is missing.
    """
    source = read_stdin() if name == "-" else read_toml(find_any(name))
    if _TOPOLOGY_KEYS & source.data.keys() and "flows" not in source.data:
        from benchctl.lab.topology.topology import build_topology

        build_topology(source, {})
    else:
        _laid_out(load_profile(source), (), None, yes=False, asks=False)


_TOPOLOGY_KEYS = {"links", "routers", "switches", "local", "sysctl"}
"""Keys that no profile has."""


def planned(
    profile: Profiles,
    assignments: Sequence[str] | None,
    only: Sequence[str] | None,
    repeats: int | None,
    yes: bool,
    lab: str | None = None,
) -> Planned:
    """Load, check and plan a profile, and look for its tools. Sends nothing.

    ``lab`` is a topology file that replaces the profile's own; `NO_LAB` leaves that out. Raises
    ProfileError, UsageError, or MissingError if a backend or a device is missing.
    """
    # `check_file` starts no program, and need not wait for asyncio.
    from benchctl.engine.checks.tools import check_root, likely, look, needed

    no_lab = lab == NO_LAB
    chosen = [f"lab.topology={find_topology(lab).resolve()}"] if lab and not no_lab else []
    document = load_profile(profile, [*(assignments or ()), *chosen], lab=not no_lab)
    options = [f"--lab {NO_LAB}"] if no_lab else []
    options += [f"--only {text}" for text in only or ()]
    options += [f"--repeat {repeats}"] if repeats is not None else []
    document = replace(document, options=tuple(options))
    layout = _laid_out(document, only or (), repeats, yes=yes, asks=True)
    plan, network, outside, topology, source, registry = layout
    lab_fault: LabError | None = None
    lab_doubts: Sequence[str] = ()
    if topology is not None:
        from benchctl.lab import capability
        from benchctl.lab.topology.doubts import doubts

        lab_fault, lab_doubts = capability.fault(), tuple(doubts(topology))
    else:
        check_interfaces(network)
        _check_sources(document, network)
        check_root(registry, plan.routes, network)
    tools = look(registry, needed(plan.routes, network))
    there = likely(registry, needed(plan.routes, network, remote=True) - tools.keys())
    _check_commands(plan, network, tools)
    nodes = topology.nodes.values() if topology else ()
    services = tuple((node.name, service.argv) for node in nodes for service in node.services)
    doubt = distrust_services(topology) if topology else ""
    file = topology.path if topology else None
    if not doubt:
        file, doubt = distrust_hooks(document) or (None, "")
    return Planned(
        plan, network, outside, source, lab_fault, registry, tools, there, services, doubt, file,
        commands_of(document, topology), lab_doubts,
    )  # fmt: skip


def _laid_out(
    document: Document, only: Sequence[str], repeats: int | None, *, yes: bool, asks: bool
) -> _Layout:
    """Plan a profile; ``asks`` the programs of this machine where hosts are."""
    registry = installed()
    topology = source = None
    if document.model.lab is not None:  # else nobody waits for the import of the labs' room
        from benchctl.engine.prepare.lab_planning import fitted, read_topology

        topology, source = read_topology(document, document.model.lab)
    check_hosts(document, topology)
    outside = reached(document) if asks else document.model.outside
    network = outside.network if topology is None else planned_network(outside, topology)
    plan = make_plan(
        document,
        registry,
        hosts=network.hosts,
        interfaces={label for host in network.hosts.values() for label in host.interfaces},
        only=only,
        repeats=repeats,
        most_trials=None if yes else MOST_TRIALS,
    )
    if topology is not None and source is not None:
        plan = fitted(plan, outside, topology, source)
    plan = side_by_side(plan, network)
    check_ways(document, plan.routes, network)
    for flow in plan.routes:
        network.interface(flow)
    return _Layout(plan, network, outside, topology, source, registry)


def _check_commands(plan: Plan, network: Network, tools: Tools) -> None:
    """Raise ProfileError for a flow that its tool cannot measure; missing tools are not asked."""
    from benchctl.engine.checks.tools import commands_of_flow

    missing = {name for (name, _), tool in tools.items() if isinstance(tool, MissingError)}

    def build(flow: BoundFlow) -> None:
        ends = network.hosts[flow.plan.source], network.target(flow.plan.to)
        if flow.plan.backend not in missing and not any(end and end.reach for end in ends):
            commands_of_flow(flow, network, tools)
            wanted = vars(flow.parameters).get("congestion_control")
            if wanted is not None:
                check_congestion_control(wanted)

    plan.check_commands(build)


def _check_sources(document: Document, network: Network) -> None:
    """Raise ProfileError if this machine does not have a source address."""
    for name, interface in network.interfaces.items():
        if interface.address is not None and not is_own(interface.address):
            raise document.error(
                ("interfaces", name, "address"),
                f"this machine does not have the address {interface.address}",
                f"choose another with --set interfaces.{name}.address=ADDRESS",
            )
