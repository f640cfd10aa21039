"""What planning in a lab needs beside the profile: its topology, and whether both fit together."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from benchctl.errors import ProfileError
from benchctl.lab.topology.expect import path
from benchctl.lab.topology.model import Topology
from benchctl.lab.topology.topology import build_topology
from benchctl.plan.network import ends_of, names_of
from benchctl.plan.plan import Plan
from benchctl.plan.promise import overflow_s
from benchctl.profile.find import find_topology
from benchctl.profile.load import Document
from benchctl.profile.model import LabTable
from benchctl.profile.values import is_address
from benchctl.run.planned import DeclaredNetwork, Search
from benchctl.toml.source import Key, TomlSource, read_toml


def read_topology(document: Document, lab: LabTable) -> tuple[Topology, TomlSource]:
    """Return the topology of a profile with the settings of ``--set``, and its file.

    Raises ProfileError.
    """
    try:
        source = read_toml(find_topology(lab.topology, document.topology))
    except ProfileError as error:
        raise document.error(("lab", "topology"), error.message, error.hint) from None
    targets = document.overrides.targets.items()
    settings = {".".join(map(str, key[1:])): value for key, value in targets if key[0] == "lab"}
    return build_topology(source, settings), source


def fitted(plan: Plan, outside: DeclaredNetwork, topology: Topology, source: TomlSource) -> Plan:
    """Return a plan that fits its lab, with what its search needs to know of it.

    Raises ProfileError.
    """
    _check_lab(plan, outside, topology, source)
    if plan.search is None:
        return plan
    overflows = _overflows(plan.search, plan, outside, source)
    return replace(plan, search=replace(plan.search, overflow_s=max(overflows) or None))


def _check_lab(
    plan: Plan, outside: DeclaredNetwork, topology: Topology, source: TomlSource
) -> None:
    """Check what needs both profile and topology. Raises ProfileError."""
    names = names_of(topology)
    hint = f"hosts are: {', '.join(names)}"
    for flow in plan.routes:
        peer = outside.peers.get(flow.to)
        if peer is not None and peer.host not in names and not is_address(peer.host):
            where: Key = ("servers", flow.to, "host")
            what = f'the lab has no host "{peer.host}", and no way out'
            raise plan.document.error(where, what, f"make it an alias of one; {hint}")
    for flow in plan.routes:
        for ends in ends_of(outside, topology, [flow]).values():
            try:
                path(topology, *ends, flow.interface)
            except LookupError as error:
                where = ("flows", flow.name, *(["interface"] if flow.interface else []))
                hint = "hosts do not forward; a router joins two networks"
                raise plan.document.error(where, str(error), hint) from None
    # An axis may set an invalid value of the lab.
    labs = [build_topology(source, settings) for settings in plan.labs]
    if not all(plan.ip_versions <= {*lab.ip_versions} for lab in labs):
        _check_versions(plan, source)
    lab = plan.document.model.lab
    for index, change in enumerate(lab.changes if lab else ()):
        if change.link not in topology.links:
            links = ", ".join(topology.links)
            raise plan.document.error(
                ("lab", "changes", index, "link"), f'no link "{change.link}"', f"links are: {links}"
            )


def _check_versions(plan: Plan, source: TomlSource) -> None:
    """Raise ProfileError for a flow over an IP version that the lab of its point has not."""
    for index in range(len(plan)):
        trial = plan.trial(index)
        versions = build_topology(source, trial.plan.lab).ip_versions
        for flow in trial.flows:
            if flow.demand.ip_version not in (None, *versions):
                wanted = f"ipv{flow.demand.ip_version}"
                raise plan.document.error(
                    ("flows", flow.plan.name), f"the lab has no IPv{flow.demand.ip_version}",
                    f"set {wanted} = true in {source.path.name}, or use --set lab.{wanted}=true",
                )  # fmt: skip


def _overflows(
    search: Search, plan: Plan, outside: DeclaredNetwork, source: TomlSource
) -> Iterator[float]:
    """Yield how long an excess of the precision takes to overflow a queue, at each point."""
    for index in range(len(plan.points)):
        trial = plan.trial(index)
        topology = build_topology(source, trial.plan.lab)
        ends = ends_of(outside, topology, trial.plan.flows)
        yield overflow_s(search, trial.flows, ends, topology)
