"""Network devices: commands for ip and tc, and calls to the kernel."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import time
from array import array
from collections.abc import Iterable, Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from typing import IO, Any

from benchctl.hosts.log import command_log
from benchctl.lab.topology.model import Interface

# linux/sockios.h, linux/ethtool.h. Without offloads, frames are as on a cable: one by one, at most
# one MTU long, with their checksums.
_SIOCETHTOOL = 0x8946
_SIOCGIFFLAGS = 0x8913
_IFF_RUNNING = 0x40
_RUNNING_TIMEOUT_S = 10.0
_RUNNING_POLL_S = 0.001
# tc answers within some milliseconds; the rest is for slow machines.
_ANSWER_TIMEOUT_S = 5.0
_SET_GRO = 0x2C
_OFFLOADS = {"tx checksum": 0x17, "tso": 0x1F, "gso": 0x24, "gro": _SET_GRO}


class BuildError(Exception):
    """The kernel, or a program that configures it, reported an error."""


def program_path(name: str) -> str | None:
    """Return the path of a program; None if it is missing.

    On Debian, the PATH of ordinary users lacks sbin, where tc is.
    """
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")


def run_ip(lines: Sequence[str], version: int = 4) -> None:
    """Pass lines to ip, in this process's network namespace. Raises BuildError.

    ``version`` is the IP version of rules, which they do not name themselves.
    """
    argv = ("ip", *(("-6",) if version == 6 else ()), "-batch", "-")
    process = _start(argv, subprocess.PIPE)
    ended = command_log().started("lab", argv, process.pid)
    _, words = process.communicate("\n".join(lines))
    ended(process.returncode)
    if process.returncode:
        raise BuildError(f"ip: {' '.join(words.split())}")


class Tc:
    """A tc for the network namespace in which it is started, and for many changes and questions.

    To start one for each would take longer than all that it does.
    """

    def __init__(self) -> None:
        self._words = os.fdopen(os.memfd_create("tc"), "w+b")
        argv = ("tc", "-statistics", "-json", "-batch", "-")
        self._process = _start(argv, self._words)
        self._log_end = command_log().started("lab", argv, self._process.pid)

    def run(self, lines: Sequence[str]) -> None:
        """Pass lines to it, and wait until the kernel has them. Raises BuildError."""
        # The shortest question that does not limit later ones to a device.
        self._ask([*lines, "filter show dev lo"])

    def qdiscs(self) -> list[dict[str, Any]]:
        """Return the disciplines of the network namespace, with counters. Raises BuildError."""
        return self._ask(["qdisc show"])

    def _ask(self, lines: Sequence[str]) -> list[dict[str, Any]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        answer = ""
        if not self._process.stdin.closed:
            with suppress(BrokenPipeError):
                self._process.stdin.write("".join(f"{line}\n" for line in lines))
                self._process.stdin.flush()
                if wait([self._process.stdout.fileno()], _ANSWER_TIMEOUT_S):
                    answer = self._process.stdout.readline()
        if not answer:
            raise BuildError(f"tc: {self.close() or 'it does not answer'}")
        rows: list[dict[str, Any]] = json.loads(answer)
        return rows

    def close(self) -> str:
        """End it; returns its last words, which are those of an error."""
        if self._words.closed:
            return ""
        with suppress(BrokenPipeError):
            self._process.communicate()
        # Not its exit code, which the keeper may have collected already.
        self._words.seek(0)
        words = " ".join(self._words.read().decode("utf-8", "replace").split())
        self._words.close()
        self._log_end(int(bool(words)))
        return words


def set_offloads(devices: Iterable[str], ordered: bool) -> None:
    """Turn a device's offloads off, except GRO if it is to deliver in order.

    With GRO, veth has one ring for all processors instead of a backlog for each (veth_xmit in
    drivers/net/veth.c). GRO merges nothing here, because cables have ``gro_max_size 1``.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for device in devices:
            for command in _OFFLOADS.values():
                # struct ethtool_value, reached by pointer from struct ifreq.
                value = array("I", [command, ordered and command == _SET_GRO])
                request = struct.pack("@16sP", device.encode(), value.buffer_info()[0])
                fcntl.ioctl(sock, _SIOCETHTOOL, request)


# include/uapi/linux/{netlink,rtnetlink,neighbour}.h: struct nlmsghdr, struct ndmsg, and attributes.
_NETLINK_ROUTE, _RTM_NEWNEIGH, _NLMSG_ERROR = 0, 28, 2
_REQUEST, _ACK, _CREATE = 0x1, 0x4, 0x400
_PERMANENT = 0x80
_NDA_DST, _NDA_LLADDR = 1, 2
_FAMILIES = {4: socket.AF_INET, 6: socket.AF_INET6}
_HEADER, _ERROR = struct.Struct("=IHHII"), struct.Struct("=i")
# Well within the send buffer of a socket.
_BATCH = 256


def add_neighbours(found: Iterable[tuple[str, Interface]], version: int) -> None:
    """Enter the hardware addresses of others on the segments of devices, for ever.

    So no frame is spent, or lost, on address resolution. ip(8) takes 40 us for each, which is
    seconds for hundreds of hosts on a switch. Raises BuildError.
    """
    indexes = {name: index for index, name in socket.if_nameindex()}
    messages = []
    for device, other in found:
        body = struct.pack("=BxHiHBB", _FAMILIES[version], 0, indexes[device], _PERMANENT, 0, 0)
        address, mac = other.at(version).ip.packed, bytes.fromhex(other.mac.replace(":", ""))
        body += struct.pack("=HH", 4 + len(address), _NDA_DST) + address
        messages.append(body + struct.pack("=HH6s2x", 10, _NDA_LLADDR, mac))
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_ROUTE) as sock:
        for start in range(0, len(messages), _BATCH):
            batch = messages[start : start + _BATCH]
            flags = [_REQUEST | _CREATE] * (len(batch) - 1) + [_REQUEST | _CREATE | _ACK]
            sock.send(b"".join(
                _HEADER.pack(_HEADER.size + len(body), _RTM_NEWNEIGH, each, number, 0) + body
                for number, (body, each) in enumerate(zip(batch, flags, strict=True))
            ))  # fmt: skip
            # An error is answered at once; the last one is answered in any case.
            (code,) = _ERROR.unpack_from(sock.recv(1 << 16), _HEADER.size)
            if code:
                raise BuildError(f"neighbours of {', '.join(indexes)}: {os.strerror(-code)}")


def await_running(devices: Sequence[str]) -> None:
    """Wait until devices carry frames; the kernel enables them asynchronously (linkwatch)."""
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


def _start(argv: Sequence[str], stderr: IO[bytes] | int) -> subprocess.Popen[str]:
    try:
        program = program_path(argv[0]) or argv[0]
        return subprocess.Popen(
            [program, *argv[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr,
            text=True,
        )  # fmt: skip
    except FileNotFoundError:
        raise BuildError(f"no program {argv[0]}; install iproute2") from None
