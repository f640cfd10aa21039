"""Builds a lab in the kernel: namespaces, cables, addresses, routes, names.

Runs inside the keeper process, which is alone in its mount and PID namespaces. Network namespaces
have no names: a descriptor holds each, and they end with the process that holds the descriptors.
Nothing here connects a namespace of the lab to one outside it.

ip and tc do the work, in readable batches (`script`). A lab of a dozen nodes takes a fraction of a
second.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchctl.lab.build import script, ssh
from benchctl.lab.build.devices import (
    BuildError,
    add_neighbours,
    await_running,
    run_ip,
    set_offloads,
)
from benchctl.lab.syscalls import (
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_RDONLY,
    enter_mounts,
    enter_network,
    mount,
    new_mounts,
    new_network,
    unmount,
)
from benchctl.lab.topology.model import Kind, Node, Topology

IPV6 = Path("/proc/sys/net/ipv6")
"""Missing from a kernel without IPv6."""
_WITHOUT_IPV6 = {
    # Neighbour and router discovery would be noise on idle links.
    "net.ipv6.conf.all.disable_ipv6": "1",
    "net.ipv6.conf.default.disable_ipv6": "1",
}
_WITH_IPV6 = {
    "net.ipv6.conf.all.disable_ipv6": "0",
    "net.ipv6.conf.default.disable_ipv6": "0",
    # No link-local addresses (IN6_ADDR_GEN_MODE_NONE in linux/if_link.h), so no router discovery.
    "net.ipv6.conf.default.addr_gen_mode": "1",
    # Joining the groups of neighbour discovery is reported twice, in milliseconds: the second time
    # within one (RFC 3810, 9.11), before anything is measured.
    "net.ipv6.conf.default.mldv2_unsolicited_report_interval": "1",
}
_EVERY_NODE = {
    # A new namespace inherits these from the machine. They would drop packets that arrive by an
    # interface other than the route back.
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.default.rp_filter": "0",
    "net.ipv4.conf.all.send_redirects": "0",
    "net.ipv4.conf.default.send_redirects": "0",
    # Otherwise the kernel would start a trial's connections with metrics cached in the trial
    # before.
    "net.ipv4.tcp_no_metrics_save": "1",
}


class Namespaces:
    """The network namespaces of a lab; `build` makes them."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self.descriptors: dict[str, int] = {}
        """By node."""
        self.mounts: dict[str, int] = {}
        """By node: mount namespaces with a /proc of the lab and a /sys of the node."""
        self._home = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        self.emulator = -1
        """The namespace where emulators have their ends of the cables."""

    def create(self) -> None:
        """Create the namespaces, still empty. Raises BuildError or OSError."""
        if 6 in self._topology.ip_versions and not IPV6.exists():
            raise BuildError("this kernel has no IPv6, which the topology asks for")
        _mount_names(self._topology)
        for node in self._topology.nodes.values():
            self.descriptors[node.name] = _create(self._sysctl(node))
            self.mounts[node.name] = new_mounts()
            mount_view()
            enter_mounts(self._home)
        self.emulator = new_quiet_network()

    def connect(self, emulated: Mapping[str, script.Ends], ordered: bool = False) -> None:
        """Create the cables, with room for emulators, and configure the nodes.

        ``emulated`` maps links to the emulator's devices; with ``ordered`` their cables deliver in
        order on several processors. Raises BuildError or OSError.
        """
        enter_network(self.emulator)
        run_ip(script.cables(self._topology, emulated, self._place, ordered))
        for ends in emulated.values():
            set_offloads(ends, ordered)
        for name, node in self._topology.nodes.items():
            enter_network(self.descriptors[name])
            for link in self._topology.links_of(name):
                devices = [end.device for end in link.ends if end.node == name]
                set_offloads(devices, ordered and link.name in emulated)
            lines = script.node(node, self._topology.interfaces(name))
            if node.kind is Kind.SWITCH:
                run_ip(lines)
                continue
            for version in self._topology.ip_versions:
                run_ip(lines + script.network(self._topology, node, version), version)
                lines = []
                add_neighbours(script.neighbours(self._topology, node), version)
        for name in self._topology.nodes:
            enter_network(self.descriptors[name])
            await_running([end.device for end in self._topology.interfaces(name)])

    @contextmanager
    def view(self, node: str) -> Iterator[None]:
        """Let this process see files as the commands of a node do."""
        enter_mounts(self.mounts[node])
        try:
            yield
        finally:
            enter_mounts(self._home)

    def _sysctl(self, node: Node) -> Mapping[str, str]:
        forwards = str(int(node.kind is Kind.ROUTER))
        settings = {"net.ipv4.ip_forward": forwards, **_EVERY_NODE}
        if 6 in self._topology.ip_versions and node.kind is not Kind.SWITCH:
            settings |= {**_WITH_IPV6, "net.ipv6.conf.all.forwarding": forwards}
        elif IPV6.exists():
            settings |= _WITHOUT_IPV6
        return {**settings, **node.sysctl}

    def _place(self, node: str) -> str:
        # Programs that this process starts share its /proc, where its number differs from the one
        # in its own PID namespace.
        return f"/proc/{Path('/proc/self').readlink()}/fd/{self.descriptors[node]}"


def new_quiet_network() -> int:
    """Move this process into a new network namespace that sends nothing by itself.

    Returns a descriptor of it. Raises BuildError or OSError.
    """
    return _create({**_EVERY_NODE, **(_WITHOUT_IPV6 if IPV6.exists() else {})})


def _create(sysctl: Mapping[str, str]) -> int:
    descriptor = new_network()
    for name, value in sysctl.items():
        try:
            Path("/proc/sys", *name.split(".")).write_text(value)
        except OSError as error:
            raise BuildError(f"sysctl {name} = {value}: {error.strerror}") from None
    return descriptor


def mount_view() -> str:
    """Mount a /proc of this process's PID namespace and a /sys of its network namespace.

    Returns why the kernel refuses, or an empty text. It refuses if the existing /proc or /sys is
    partly covered, as in some containers (mount_too_revealing in fs/namespace.c); they stay then.
    """
    refused = []
    for kind, place in (("proc", "/proc"), ("sysfs", "/sys")):
        read_only = MS_RDONLY if os.statvfs(place).f_flag & os.ST_RDONLY else 0
        try:
            mount(kind, place, kind, MS_NOSUID | MS_NODEV | MS_NOEXEC | read_only)
        except OSError as error:
            refused.append(f"{place}: {error.strerror}")
    return ", ".join(refused)


def _mount_names(topology: Topology) -> None:
    """Replace the machine's names by the lab's, in this mount namespace only."""
    nsswitch = Path("/etc/nsswitch.conf")
    files = {
        Path("/etc/hosts"): script.hosts_file(topology),
        nsswitch: script.nsswitch_file(nsswitch.read_text() if nsswitch.exists() else ""),
    }
    serves_ssh = any(
        service.ordinary for node in topology.nodes.values() for service in node.services
    )
    if serves_ssh:
        files[ssh.USERS] = ssh.users_file(ssh.USERS.read_text())
    # A file system in memory, mounted only until its files are bound to their paths.
    mount("lab", "/tmp", "tmpfs")
    for place, text in files.items():
        if not place.exists():
            continue  # then it is not read either
        draft = Path("/tmp", place.name)
        draft.write_text(text)
        mount(str(draft), str(place), flags=MS_BIND)
    unmount("/tmp")
    if serves_ssh:
        ssh.mount_keys()
    # glibc asks this daemon, which runs outside the lab, before it reads any file.
    for cache in (Path("/run/nscd"), Path("/var/run/nscd")):
        if cache.is_dir():
            mount("lab", str(cache), "tmpfs")
