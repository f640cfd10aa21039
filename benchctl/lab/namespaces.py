"""Builds a lab in the kernel: namespaces, cables, addresses, routes, names.

Runs inside the keeper process, which is alone in its mount and PID namespaces. Network namespaces
have no names: a descriptor holds each, and the process that holds the descriptors takes them with
it. Nothing here connects a namespace of the lab to one outside it.

The work is done by ip and tc, in batches: a person can read what is asked of the kernel
(`script`), and a lab of a dozen nodes stands in a fraction of a second.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import subprocess
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchctl.lab import names, script
from benchctl.lab.capability import program_path
from benchctl.lab.model import Kind, Link, Settings, Topology
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

_EVERY_NODE = {
    # The lab is IPv4; neighbour and router discovery would be noise on idle links.
    "net.ipv6.conf.all.disable_ipv6": "1",
    "net.ipv6.conf.default.disable_ipv6": "1",
    # A new namespace takes these from the machine's own settings, and with them drops what
    # arrives by an interface that is not the way back.
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.default.rp_filter": "0",
    "net.ipv4.conf.all.send_redirects": "0",
    "net.ipv4.conf.default.send_redirects": "0",
    # The kernel would start a trial's connections with what it learnt from the trial before.
    "net.ipv4.tcp_no_metrics_save": "1",
}

# linux/sockios.h, linux/ethtool.h. Without them frames are what a cable carries: one by one, at
# most one MTU long, with their checksums.
_SIOCETHTOOL = 0x8946
_SIOCGIFFLAGS = 0x8913
_IFF_RUNNING = 0x40
_RUNNING_TIMEOUT_S = 10.0
_RUNNING_POLL_S = 0.001
_OFFLOADS = {"tx checksum": 0x17, "tso": 0x1F, "gso": 0x24, "gro": 0x2C}


class BuildError(Exception):
    """The kernel, or a program that talks to it, refused."""


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
        """Create the namespaces, still empty. Raises OSError."""
        _mount_names(self._topology)
        for node in self._topology.nodes.values():
            forward = {"net.ipv4.ip_forward": str(int(node.kind is Kind.ROUTER))}
            self.descriptors[node.name] = _create({**forward, **_EVERY_NODE, **node.sysctl})
            self.mounts[node.name] = new_mounts()
            mount_view()
            enter_mounts(self._home)
        self.emulator = _create(_EVERY_NODE)

    def connect(self, emulated: Sequence[Link]) -> None:
        """Lay the cables, with room for an emulator on some, and configure the nodes.

        Raises BuildError or OSError.
        """
        devices = {link.name: self.devices(link) for link in emulated}
        enter_network(self.emulator)
        run_batch("ip", script.cables(self._topology, devices, self._place))
        for pair in devices.values():
            for device in pair:
                _set_offloads_off(device)
        for name, node in self._topology.nodes.items():
            enter_network(self.descriptors[name])
            for end in self._topology.interfaces(name):
                _set_offloads_off(end.device)
            run_batch("ip", script.node(self._topology, node))
        for name in self._topology.nodes:
            enter_network(self.descriptors[name])
            _await_running([end.device for end in self._topology.interfaces(name)])

    def devices(self, link: Link) -> tuple[str, str]:
        """Return the emulator's devices of a link, in the order of its ends."""
        index = list(self._topology.links).index(link.name)
        return f"link{index}a", f"link{index}b"

    def emulate(self, link: Link, direction: int, settings: Settings) -> None:
        """Let the kernel emulate one direction of a link. Raises BuildError."""
        end = link.ends[direction]
        enter_network(self.descriptors[end.node])
        run_batch("tc", script.disciplines(end.device, settings, link.mtu))

    @contextmanager
    def view(self, node: str) -> Iterator[None]:
        """Let this process see files as the commands of a node do."""
        enter_mounts(self.mounts[node])
        try:
            yield
        finally:
            enter_mounts(self._home)

    def _place(self, node: str) -> str:
        # This process's /proc is the one that programs it starts have, too; its number there is
        # not the one it has in its own PID namespace.
        return f"/proc/{Path('/proc/self').readlink()}/fd/{self.descriptors[node]}"


def run_batch(program: str, lines: Sequence[str]) -> None:
    """Give lines to ip or tc, in this process's network namespace. Raises BuildError."""
    try:
        result = subprocess.run(
            [program_path(program) or program, "-batch", "-"], input="\n".join(lines),
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        raise BuildError(f"no program {program}; install iproute2") from None
    if result.returncode:
        what = " ".join(result.stderr.split())
        raise BuildError(f"{program}: {what}")


def kernel_cannot_emulate() -> str:
    """Return why the kernel cannot emulate links, or an empty text; changes qdiscs of ``lo``."""
    try:
        run_batch("tc", script.disciplines("lo", script.EVERY_KIND, 1500))
    except BuildError as error:
        return str(error)
    return ""


def _create(sysctl: Mapping[str, str]) -> int:
    descriptor = new_network()
    for name, value in sysctl.items():
        try:
            Path("/proc/sys", *name.split(".")).write_text(value)
        except OSError as error:
            raise BuildError(f"sysctl {name} = {value}: {error.strerror}") from None
    return descriptor


def _await_running(devices: Sequence[str]) -> None:
    """Wait until devices carry frames; the kernel gets there in its own time (linkwatch)."""
    deadline_s = time.monotonic() + _RUNNING_TIMEOUT_S
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for device in devices:
            request = struct.pack("16sh22x", device.encode(), 0)
            while (
                not struct.unpack_from("16xh", fcntl.ioctl(sock, _SIOCGIFFLAGS, request))[0]
                & _IFF_RUNNING
            ):
                if time.monotonic() > deadline_s:
                    raise BuildError(f"the device {device} does not come up")
                time.sleep(_RUNNING_POLL_S)


def _set_offloads_off(device: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for command in _OFFLOADS.values():
            # struct ethtool_value, reached by pointer from struct ifreq.
            value = array("I", [command, 0])
            request = struct.pack("@16sP", device.encode(), value.buffer_info()[0])
            fcntl.ioctl(sock, _SIOCETHTOOL, request)


def mount_view() -> str:
    """Mount a /proc of this process's PID namespace and a /sys of its network namespace.

    Returns why the kernel refuses, or an empty text. It does where the /proc or /sys that are there
    are not whole, as in some containers (mount_too_revealing in fs/namespace.c); they stay then.
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
    """Put the lab's names in place of the machine's, in this mount namespace only."""
    nsswitch = Path("/etc/nsswitch.conf")
    files = {
        Path("/etc/hosts"): names.hosts_file(topology),
        nsswitch: names.nsswitch_file(nsswitch.read_text() if nsswitch.exists() else ""),
    }
    # A file system in memory, mounted only until its files are bound to their places.
    mount("lab", "/tmp", "tmpfs")
    for place, text in files.items():
        if not place.exists():
            continue  # and then nobody looks there
        draft = Path("/tmp", place.name)
        draft.write_text(text)
        mount(str(draft), str(place), flags=MS_BIND)
    unmount("/tmp")
    # glibc asks this daemon, which lives outside the lab, before it reads any file.
    for cache in (Path("/run/nscd"), Path("/var/run/nscd")):
        if cache.is_dir():
            mount("lab", str(cache), "tmpfs")
