"""Do the links of a lab keep their promises here, and what could this machine carry at most?

Each link is measured by itself, between the two neighbours on its segment that have the fewest
other emulated links between them.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

from benchctl.errors import LabError
from benchctl.hosts.host import Host
from benchctl.lab import probe
from benchctl.lab.addressing import assign
from benchctl.lab.expect import NetworkPath, tcp_payload_ratio
from benchctl.lab.lab import Lab
from benchctl.lab.link import Change
from benchctl.lab.model import Emulator, Interface, Kind, Link, Node, Settings, Topology
from benchctl.lab.segments import Hop, cables, segments
from benchctl.units import format_duration, format_rate

_PROBE = (sys.executable, "-I", "-S", str(Path(probe.__file__)))
_PROBE_TIMEOUT_S = 60.0
# A loaded machine may spoil a look at a link, but hardly three in a row.
_LOOKS = 3
# A quarter of a second is told to a few in a hundred on a machine that does other things, too.
_RATE_TOLERANCE = 0.05
# An emulator on an idle machine adds a third of this to a round trip.
_RTT_TOLERANCE_S = 1e-3
# What is asked of a link without a rate: more than any emulator carries.
_EVERYTHING_BPS = 1e10


@dataclass(frozen=True, slots=True)
class Look:
    """What links promise, and what they were measured to do.

    ``links`` is one name, or several where switches leave no way to measure one alone. Rates are
    there and back, in bits per second of Ethernet frames; infinite where nothing is promised.
    """

    links: tuple[str, ...]
    promised_rtt_s: float
    rtt_s: float
    rtt_tolerance_s: float
    promised_bps: tuple[float, float]
    rates_bps: tuple[float, float]

    @property
    def problem(self) -> str:
        """What is out of tolerance, with both figures; empty when the promises are kept."""
        name = f"link {', '.join(self.links)}"
        if math.isnan(self.rtt_s):
            return f"{name}: no probe came back"
        if not abs(self.rtt_s - self.promised_rtt_s) <= self.rtt_tolerance_s:
            return (
                f"{name}: promises a round trip of {format_duration(self.promised_rtt_s)}, "
                f"takes {format_duration(self.rtt_s)} here"
            )
        for promised_bps, rate_bps in zip(self.promised_bps, self.rates_bps, strict=True):
            if math.isfinite(promised_bps) and not math.isclose(
                rate_bps, promised_bps, rel_tol=_RATE_TOLERANCE
            ):
                return (
                    f"{name}: promises {format_rate(promised_bps)}, "
                    f"carries {format_rate(rate_bps)} here"
                )
        return ""


def verify(lab: Lab, links: Iterable[str]) -> list[Look]:
    """Measure links of a lab against their promises, one after the other, before they are used.

    Links that are bare cables promise nothing and are left out. One that is out of tolerance is
    looked at again before that is believed. While a rate is measured, the link neither delays nor
    loses frames and its queue is long, so that TCP fills it at once; afterwards it is empty.
    Raises LabError when a link cannot be measured.
    """
    looks: list[Look] = []
    for name in links:
        link = lab.topology.links[name]
        if link.ideal or any(name in look.links for look in looks):
            continue
        start, end = _neighbours(lab.topology, link)
        for _ in range(_LOOKS):
            look = _look(lab, start, end)
            if not look.problem:
                break
        looks.append(look)
    return looks


def ceiling_bps(emulator: Emulator | None = None) -> float:
    """Return the rate that one emulated link carries here at most, in bits of Ethernet frames.

    The best of several looks, as other work on the machine only takes away. Builds a lab of two
    hosts for some seconds. Raises LabError.
    """
    settings = Settings(rate_bps=_EVERYTHING_BPS)
    ends = [Interface(name, "eth0", f"02:00:00:00:00:0{i}") for i, name in enumerate("ab", 1)]
    link = Link("link", (ends[0], ends[1]), (settings, settings))
    nodes = {name: Node(name, Kind.HOST) for name in "ab"}
    topology = assign(Topology("ceiling", nodes, {link.name: link}))
    with Lab.build(topology, emulator) as lab:
        start, end = lab.topology.links[link.name].ends
        return max(max(_look(lab, start, end).rates_bps) for _ in range(_LOOKS))


def _neighbours(topology: Topology, link: Link) -> tuple[Interface, Interface]:
    """Return the two interfaces between which a link is measured best."""
    found: list[tuple[int, Interface, Interface]] = []
    for segment in segments(topology):
        for start, end in permutations(segment, 2):
            hops = cables(topology, start, end)
            if any(hop.link is link for hop in hops):
                found.append((sum(not hop.link.ideal for hop in hops), start, end))
    if not found:
        raise LabError(
            f"link {link.name} cannot be measured: no two hosts have it between them",
            "switches alone see nothing; put a host at its end",
        )
    _, start, end = min(found, key=lambda item: item[0])
    return start, end


def _look(lab: Lab, start: Interface, end: Interface) -> Look:
    path = NetworkPath(cables(lab.topology, start, end), cables(lab.topology, end, start))
    shaped = [hop for hop in (*path.there, *path.back) if not hop.link.ideal]
    promised_bps = (_rate_bps(path.there), _rate_bps(path.back))
    with _answering(lab.nodes[end.node], end.ip) as ask:
        rtts_s = ask(lab.nodes[start.node], "rtt")
        for hop in shaped:
            lab.change(hop.link.name, _all_but_rate(Settings()), hop.start.node)
        rates = [f"{min(rate_bps, _EVERYTHING_BPS):.0f}" for rate_bps in promised_bps]
        there_bps, back_bps = ask(lab.nodes[start.node], "rate", *rates)
        for hop in shaped:
            lab.change(hop.link.name, _all_but_rate(hop.settings), hop.start.node)
    payload_ratio = tcp_payload_ratio(path.mtu)
    return Look(
        links=tuple(dict.fromkeys(hop.link.name for hop in shaped)),
        promised_rtt_s=path.rtt_s(),
        rtt_s=min(rtts_s, default=math.nan),
        rtt_tolerance_s=sum(_RTT_TOLERANCE_S / 2 + hop.settings.jitter_s for hop in shaped),
        promised_bps=promised_bps,
        rates_bps=(there_bps / payload_ratio, back_bps / payload_ratio),
    )


def _all_but_rate(settings: Settings) -> Change:
    """Return the change to these settings that leaves the rate as it is."""
    return Change(
        delay_s=settings.delay_s,
        jitter_s=settings.jitter_s,
        loss_ratio=settings.loss_ratio,
        queue_packets=settings.queue_packets,
    )


def _rate_bps(hops: Iterable[Hop]) -> float:
    return min(hop.settings.rate_bps for hop in hops)


@contextmanager
def _answering(host: Host, address: str) -> Iterator[Callable[..., list[float]]]:
    """Run a probe that answers, and yield a function that asks it from another host."""
    answering = subprocess.Popen(
        [*host.prefix, *_PROBE, "answer", address],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip

    def ask(source: Host, kind: str, *arguments: str) -> list[float]:
        result = subprocess.run(
            [*source.prefix, *_PROBE, kind, address, port, *arguments],
            capture_output=True, text=True, check=False, start_new_session=True,
            timeout=_PROBE_TIMEOUT_S,
        )  # fmt: skip
        if result.returncode:
            last = (result.stderr.strip().splitlines() or ["no message"])[-1]
            raise LabError(f"cannot measure from {source.name} to {host.name}: {last}")
        found: list[float] = json.loads(result.stdout)
        return found

    with answering as process:
        assert process.stdin is not None
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        try:
            yield ask
        finally:
            process.stdin.close()
