"""Links emulated by the kernel: built, changed over time, and counted.

`netem` writes the commands. All of them run in the one network namespace that holds the emulator's
ends of the cables.
"""

from __future__ import annotations

import math
import os
import re
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from benchctl.lab.build.devices import BuildError, Tc, await_running, run_ip, set_offloads
from benchctl.lab.build.namespaces import new_quiet_network
from benchctl.lab.build.script import Ends
from benchctl.lab.emulate import netem
from benchctl.lab.emulate.link import NEVER_NS, Change, SettingsSchedule
from benchctl.lab.emulate.messages import DirectionCounters, LinkDirection
from benchctl.lab.syscalls import enter_network
from benchctl.lab.topology.model import Interface, Link, LinkSettings

# Step of a ramp: shorter than any interval of a flow; costs 4 % of a processor.
_STEP_NS = 10_000_000

# For the self-test: an EtherType for local experiments (IEEE 802), and ample time for a 1 ms link.
_ETHERTYPE = 0x88B5
_BROADCAST = b"\xff" * 6
_PATIENCE_S = 2.0

# The column of /proc/net/dev that counts frames which a device dropped instead of sending.
_DROPPED = 11


# Earlier kernels left softirqs to the thread ksoftirqd while it was awake, and a program that sends
# without a pause delayed it: frames were late by a millisecond (kernel/softirq.c).
_PUNCTUAL = (6, 5)


def several_processors() -> bool:
    """Return whether frames may be reordered by being handled on different processors."""
    return (os.cpu_count() or 1) > 1


@dataclass(frozen=True, slots=True)
class LinkPlace:
    """A link, the emulator's devices of its ends, and the networks of the nodes at them."""

    link: Link
    devices: Ends
    networks: tuple[int, int]


@dataclass(slots=True)
class _KernelDirection:
    """One direction of a link; ``known`` are the lines that the kernel has got.

    ``source`` is the device that its frames leave by, with its network.
    """

    source: tuple[int, str]
    ends: Ends
    wires: list[Ends]
    mtu: int
    course: SettingsSchedule
    delay_s: float = 0.0
    long: bool = False
    known: dict[str, str] = field(default_factory=dict)

    @property
    def passed(self) -> list[Ends]:
        """The wires that its frames pass."""
        return self.wires if self.long else self.wires[:1]

    def lines(self, settings: LinkSettings, empty: Callable[[_KernelDirection], bool]) -> list[str]:
        """Return the lines for these settings that the kernel does not have yet.

        ``empty`` says whether no frame is in transit, and so none can be overtaken.
        """
        was_long = self.long
        self.long = settings.jitter_s > 0 or settings.delay_s < self.delay_s
        self.long = self.long or (was_long and not empty(self))
        self.delay_s = settings.delay_s
        lines = netem.direction(self.ends, self.passed, settings, self.mtu)
        news = [line for name, line in lines.items() if self.known.get(name) != line]
        self.known |= lines
        if was_long and not self.long:
            name, line = netem.shortcut(self.wires[0])
            del self.known[name]
            news.append(line)
        return news


class KernelLinks:
    """The links of a lab that the kernel emulates.

    ``network`` is where the emulator's devices are. Raises BuildError.
    """

    def __init__(self, network: int, places: Mapping[str, LinkPlace]) -> None:
        self._network = network
        self._directions: dict[LinkDirection, _KernelDirection] = {}
        self._next_ns = 0
        lines: list[str] = []
        devices: list[str] = []
        for index, (name, place) in enumerate(places.items()):
            link, wires = place.link, netem.wires(index)
            for wire in wires:
                lines += netem.cable(wire, link.mtu)
                devices += wire
            for number, settings in enumerate(link.settings):
                self._directions[name, number] = _KernelDirection(
                    source=(place.networks[number], link.ends[number].device),
                    ends=_turned(place.devices) if number else place.devices,
                    wires=[_turned(wire) for wire in wires] if number else wires,
                    mtu=link.mtu,
                    course=SettingsSchedule(settings),
                )
        enter_network(network)
        run_ip(lines)
        set_offloads(devices, several_processors())
        await_running(devices)
        self._tc = Tc()
        self._tell(
            (direction, direction.course.settings) for direction in self._directions.values()
        )

    def change(self, changes: Mapping[LinkDirection, Change]) -> None:
        """Take new settings, now or for later. Raises BuildError."""
        now_ns = time.monotonic_ns()
        for direction, change in changes.items():
            self._directions[direction].course.add(change, now_ns)
        self._next_ns = 0
        self.advance()

    def advance(self) -> float | None:
        """Apply due changes; returns the seconds until the next one, or None.

        Raises BuildError.
        """
        now_ns = time.monotonic_ns()
        if now_ns >= self._next_ns:
            due, self._next_ns = [], NEVER_NS
            for direction in self._directions.values():
                course = direction.course
                if course.next_ns <= now_ns:
                    course.advance(now_ns)
                    # The mean of the step that begins, so that a ramp in steps is neither early nor
                    # late.
                    due.append((direction, course.at(now_ns + _STEP_NS // 2)))
                next_ns = course.next_ns if course.next_ns > now_ns else now_ns + _STEP_NS
                self._next_ns = min(self._next_ns, next_ns)
            self._tell(due)
        return None if self._next_ns == NEVER_NS else (self._next_ns - now_ns) / 1e9

    def counters(self, directions: Iterable[LinkDirection]) -> list[DirectionCounters]:
        """Return the counters of each direction. Raises BuildError."""
        qdiscs = {(row["dev"], row["kind"]): row for row in self._tc.qdiscs()}
        return [self._counters(self._directions[direction], qdiscs) for direction in directions]

    def close(self) -> None:
        """End what changes them; the links stay as they are."""
        self._tc.close()

    def _counters(
        self, direction: _KernelDirection, qdiscs: Mapping[tuple[str, str], Mapping[str, Any]]
    ) -> DirectionCounters:
        (near, far), wires = direction.ends, direction.wires
        enter_network(self._network)
        queue, last = qdiscs[wires[0][0], "pfifo"], qdiscs[far, "netem"]
        refused = _undelivered(far, *(wire[0] for wire in wires))
        network, device = direction.source
        enter_network(network)
        missed = _undelivered(device)
        return DirectionCounters(
            arrived=qdiscs[near, "ingress"]["packets"], delivered=last["packets"],
            dropped=queue["drops"], lost=last["drops"], queued=queue["qlen"], queue_max=None,
            late=None, late_max_ns=None, missed=missed, refused=refused,
        )  # fmt: skip

    def _tell(self, due: Iterable[tuple[_KernelDirection, LinkSettings]]) -> None:
        """Pass new settings to the kernel, in one batch."""
        waiting = cache(self._waiting)
        lines: list[str] = []
        for direction, settings in due:
            lines += direction.lines(
                settings, lambda kernel_direction: self._empty(kernel_direction, waiting)
            )
        if lines:
            self._tc.run(lines)

    def _empty(self, direction: _KernelDirection, waiting: Callable[[], set[str]]) -> bool:
        """Return whether no frame waits or is in transit."""
        # A ramp has no time for this query at every step.
        if direction.course.next_ns <= time.monotonic_ns():
            return False
        leaving = {direction.ends[1], *(wire[0] for wire in direction.wires)}
        return waiting().isdisjoint(leaving)

    def _waiting(self) -> set[str]:
        """Return the devices of the emulator at which frames wait."""
        return {row["dev"] for row in self._tc.qdiscs() if row["qlen"]}


def _turned(ends: Ends) -> Ends:
    return ends[1], ends[0]


def _undelivered(*devices: str) -> int:
    """Return how many frames the devices here could not deliver to their busy far ends."""
    lines = (line.split(":") for line in Path("/proc/self/net/dev").read_text().splitlines()[2:])
    counts = {name.strip(): counts.split() for name, counts in lines}
    return sum(int(counts[device][_DROPPED]) for device in devices if device in counts)


def unpunctual() -> str:
    """Return why links emulated by the kernel may be late here, or an empty text."""
    release = os.uname().release
    if tuple(int(part) for part in re.findall(r"\d+", release)[:2]) >= _PUNCTUAL:
        return ""
    return f"Linux {release} hands frames to ksoftirqd, which a busy sender delays; 6.5 does not"


def refusal() -> str:
    """Return why the kernel cannot emulate links here, or an empty text.

    Builds a link in a network namespace of its own, changes it, and sends frames both ways; this
    process is in another namespace afterwards.
    """
    try:
        _try()
    except (BuildError, OSError) as error:
        return str(error)
    return ""


def _try() -> None:
    network = new_quiet_network()
    try:
        outer, inner = ("self0a", "self0b"), ("link0a", "link0b")
        pairs = zip(outer, inner, strict=True)
        lines = [line for pair in pairs for line in netem.cable(pair, 1500)]
        run_ip(lines)
        set_offloads([*outer, *inner], several_processors())
        await_running([*outer, *inner])
        slow = LinkSettings(rate_bps=10e6, delay_s=1e-3, loss_ratio=0.0, queue_packets=10)
        lossy = replace(slow, loss_ratio=1.0)
        ends = [Interface("", device, "") for device in outer]
        link = Link("self-test", (ends[0], ends[1]), (lossy, slow))
        links = KernelLinks(network, {link.name: LinkPlace(link, inner, (network, network))})
        with closing(links), ExitStack() as stack:
            there, back = (stack.enter_context(_Wire(device)) for device in outer)
            there.send(b"lost")
            back.send(b"back")
            there.expect(b"back", "frames do not pass a link")
            for change in (
                Change(rate_bps=math.inf, delay_s=0.0, loss_ratio=0.0),
                Change(rate_bps=10e6, jitter_s=1e-4, delay_s=1e-3, queue_packets=20),
            ):
                links.change({(link.name, 0): change})
                there.send(b"changed")
                back.expect(b"changed", "frames do not pass a link whose settings change")
            (counters,) = links.counters([(link.name, 0)])
        if (counters.arrived, counters.delivered, counters.lost) != (3, 2, 1):
            raise BuildError(f"the kernel's counters are not those of the frames: {counters}")
    finally:
        os.close(network)


class _Wire:
    """Sends and receives frames at a device; a context manager."""

    def __init__(self, device: str) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETHERTYPE))
        self._socket.bind((device, _ETHERTYPE))
        self._socket.settimeout(_PATIENCE_S)

    def __enter__(self) -> _Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        self._socket.send(_BROADCAST + bytes(6) + _ETHERTYPE.to_bytes(2, "big") + data.ljust(46))

    def expect(self, data: bytes, otherwise: str) -> None:
        try:
            frame, address = self._socket.recvfrom(2048)
            while address[2] == socket.PACKET_OUTGOING:
                frame, address = self._socket.recvfrom(2048)
        except TimeoutError:
            raise BuildError(otherwise) from None
        if frame[14:].rstrip() != data:
            raise BuildError(otherwise)
