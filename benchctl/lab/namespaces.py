"""Builds a lab in the kernel: namespaces, cables, addresses, routes, names.

Runs inside the keeper process, which is alone in its mount and PID namespaces. Network namespaces
have no names: a descriptor holds each, and the process that holds the descriptors takes them with
it. Nothing here connects a namespace of the lab to one outside it.
"""

from __future__ import annotations

import fcntl
import socket
import struct
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyroute2 import IPRoute

from benchctl.lab import names
from benchctl.lab.addressing import segments
from benchctl.lab.model import Emulator, Interface, Kind, Link, Node, Topology
from benchctl.lab.routing import interface_tables
from benchctl.lab.syscalls import MS_BIND, enter_network, mount, new_network, unmount

BRIDGE = "switch"
"""The device that joins the ports of a switch."""

_EVERY_NODE = {
    # The lab is IPv4; neighbour and router discovery would be noise on idle links.
    "net.ipv6.conf.all.disable_ipv6": "1",
    "net.ipv6.conf.default.disable_ipv6": "1",
    # These two come from the machine's own settings otherwise, and drop what arrives by an
    # interface that is not the way back.
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.default.rp_filter": "0",
    "net.ipv4.conf.all.send_redirects": "0",
    "net.ipv4.conf.default.send_redirects": "0",
    # The kernel would start a trial's connections with what it learnt from the trial before.
    "net.ipv4.tcp_no_metrics_save": "1",
}

# linux/sockios.h, linux/ethtool.h. Frames then are what a cable carries: whole, at most one MTU,
# with their checksums, one by one.
_SIOCETHTOOL = 0x8946
_OFFLOADS = {"tx checksum": 0x17, "tso": 0x1F, "gso": 0x24, "gro": 0x2C}


class Namespaces:
    """The network namespaces of a lab; `build` makes them."""

    def __init__(self, topology: Topology, emulator: Emulator) -> None:
        self.topology = topology
        self.emulated = [
            link
            for link in topology.links.values()
            if emulator is not Emulator.KERNEL and not link.ideal
        ]
        self.descriptors: dict[str, int] = {}
        self.emulator = -1
        """The namespace where emulators have their ends of the cables."""

    def build(self) -> None:
        """Build everything. Raises OSError or NetlinkError where the kernel refuses."""
        _mount_names(self.topology)
        self.emulator = self._create(_EVERY_NODE)
        for node in self.topology.nodes.values():
            forward = {"net.ipv4.ip_forward": str(int(node.kind is Kind.ROUTER))}
            self.descriptors[node.name] = self._create({**forward, **_EVERY_NODE, **node.sysctl})
        with self._inside(self.emulator) as netlink:
            for index, link in enumerate(self.topology.links.values()):
                if link in self.emulated:
                    for side, end in zip("ab", link.ends, strict=True):
                        self._lay_emulated(netlink, f"{index}{side}", end, link)
                else:
                    self._lay(netlink, link)
        neighbours = _neighbours(self.topology)
        for node in self.topology.nodes.values():
            with self._inside(self.descriptors[node.name]) as netlink:
                self._configure(netlink, node, neighbours)

    def devices(self, link: Link) -> tuple[str, str]:
        """Return the emulator's devices of a link, in the order of its ends."""
        index = list(self.topology.links).index(link.name)
        return f"{index}a", f"{index}b"

    def _create(self, sysctl: dict[str, str]) -> int:
        descriptor = new_network()
        for name, value in sysctl.items():
            Path("/proc/sys", *name.split(".")).write_text(value)
        return descriptor

    @contextmanager
    def _inside(self, descriptor: int) -> Iterator[IPRoute]:
        enter_network(descriptor)
        with IPRoute() as netlink:
            netlink.link("set", index=1, state="up")
            yield netlink

    def _peer(self, end: Interface, mtu: int) -> dict[str, Any]:
        return {
            "ifname": end.device,
            "address": end.mac,
            "mtu": mtu,
            "net_ns_fd": self.descriptors[end.node],
        }

    def _lay(self, netlink: IPRoute, link: Link) -> None:
        """Lay a cable from node to node."""
        near, far = (self._peer(end, link.mtu) for end in link.ends)
        netlink.link("add", kind="veth", **near, peer=far)

    def _lay_emulated(self, netlink: IPRoute, device: str, end: Interface, link: Link) -> None:
        """Lay a cable from a node to its emulator."""
        peer = self._peer(end, link.mtu)
        netlink.link("add", kind="veth", ifname=device, mtu=link.mtu, state="up", peer=peer)
        _set_offloads_off(device)

    def _configure(
        self, netlink: IPRoute, node: Node, neighbours: dict[Interface, list[Interface]]
    ) -> None:
        ends = self.topology.interfaces(node.name)
        bridge = None
        if node.kind is Kind.SWITCH:
            netlink.link("add", ifname=BRIDGE, kind="bridge", state="up")
            bridge = socket.if_nametoindex(BRIDGE)
        index = {end.device: socket.if_nametoindex(end.device) for end in ends}
        for end in ends:
            _set_offloads_off(end.device)
            port = {"master": bridge} if bridge is not None else {}
            netlink.link("set", index=index[end.device], state="up", **port)
            if end.address is None:
                continue
            address = {"address": str(end.address.ip), "prefixlen": end.address.network.prefixlen}
            netlink.addr("add", index=index[end.device], **address)
            for other in neighbours[end]:
                # Known for ever: no frame is spent, or lost, on asking (ARP).
                netlink.neigh(
                    "add", ifindex=index[end.device], dst=other.ip, lladdr=other.mac,
                    state="permanent",
                )  # fmt: skip
        for table, end in interface_tables(self.topology, node):
            netlink.rule("add", table=table, priority=table, src=end.ip, src_len=32)
            netlink.rule("add", table=table, priority=table, oifname=end.device)
        for route in node.routes:
            metrics = {"metrics": {"initcwnd": route.initcwnd}} if route.initcwnd else {}
            gateway = {"gateway": route.via} if route.via else {"scope": "link"}
            # The kernel made the route to a device's own network in the main table already.
            action = "add" if route.table or route.via else "replace"
            netlink.route(
                action, dst=str(route.network), oif=index[route.device],
                table=route.table or 254, **gateway, **metrics,
            )  # fmt: skip


def _neighbours(topology: Topology) -> dict[Interface, list[Interface]]:
    return {
        end: [other for other in segment if other is not end]
        for segment in segments(topology)
        for end in segment
    }


def _set_offloads_off(device: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for command in _OFFLOADS.values():
            # struct ethtool_value, reached by pointer from struct ifreq.
            value = array("I", [command, 0])
            request = struct.pack("@16sP", device.encode(), value.buffer_info()[0])
            fcntl.ioctl(sock, _SIOCETHTOOL, request)


def _mount_names(topology: Topology) -> None:
    """Put the lab's names in place of the machine's, in this mount namespace only."""
    nsswitch = Path("/etc/nsswitch.conf")
    files = {
        Path("/etc/hosts"): names.hosts_file(topology),
        nsswitch: names.nsswitch_file(nsswitch.read_text() if nsswitch.exists() else ""),
    }
    # A file system in memory, mounted only until its files are bound to their places.
    mount("lab", "/tmp", "tmpfs")  # noqa: S108
    for place, text in files.items():
        if not place.exists():
            continue  # and then nobody looks there
        draft = Path("/tmp", place.name)  # noqa: S108
        draft.write_text(text)
        mount(str(draft), str(place), flags=MS_BIND)
    unmount("/tmp")  # noqa: S108
    # glibc asks this daemon, which lives outside the lab, before it reads any file.
    for cache in (Path("/run/nscd"), Path("/var/run/nscd")):
        if cache.is_dir():
            mount("lab", str(cache), "tmpfs")
