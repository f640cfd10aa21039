"""Measures whether the links of a lab keep their promises on this machine, and its maximum rate.

Each link is measured by itself, in either direction, between the two neighbours on its segment that
have the fewest other emulated links between them:

1. *changed*: without jitter and loss, with another delay and a lower rate. More frames than the
queue holds are sent at once, which shows the queue, the order, and the effect of the change; 2.
*emptied*: without delay, jitter and loss and with a long queue, which datagrams fill at once. This
shows the rate. A link that is too fast for this shows it with TCP; 3. *as promised*, again: small
frames in both directions, further apart than the link needs to send them, show delay, jitter and
loss, and that the change was reverted.

What would take too long on a slow link is reported as not verified.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import permutations

from benchctl.lab.emulate.link import Change
from benchctl.lab.lab import Lab
from benchctl.lab.topology.addressing import assign
from benchctl.lab.topology.expect import UDP_HEADER_BYTES, tcp_payload_ratio
from benchctl.lab.topology.legs import LinkPath, Pair, pairs_of, rounds
from benchctl.lab.topology.model import (
    ETHERNET_HEADER_BYTES,
    Emulator,
    Interface,
    Kind,
    Link,
    LinkSettings,
    Node,
    Topology,
)
from benchctl.lab.topology.routing import Forwarding
from benchctl.lab.topology.segments import Hop
from benchctl.lab.verify.judgement import (
    RATE_TOLERANCE,
    Look,
    PromiseFinding,
    Train,
    arrival_rate_bps,
    due_of,
    judge_burst,
    judge_rate,
    judge_train,
    look_at,
)
from benchctl.lab.verify.prober import Prober
from benchctl.lab.verify.strain import Carried, carried
from benchctl.units import format_rate

# A loaded machine may disturb a measurement of a link, but hardly three in a row.
_LOOKS = 3
# With those in which the emulators themselves were held up, which do not count.
_MOST_LOOKS = 9
# Load of a link without a rate: more than any emulator carries.
_EVERYTHING_BPS = 1e10
_HEADERS_BYTES = ETHERNET_HEADER_BYTES + UDP_HEADER_BYTES
# IPv6's header beyond that of IPv4 (RFC 8200, 3).
_MORE_BYTES = {4: 0, 6: 20}
# Of a datagram: a mark and a number.
_LEAST_PAYLOAD_BYTES = 8
# A link is shown to have its rate by frames that it sends in this time, but by no fewer than these.
_FEW_FRAMES = 5
_FEW_S = 0.3
# From this rate on its queue does not hold all of them, and the sender has to be in time: TCP.
_TCP_BPS = 4e7
_FLOW_S = 0.25
# The same for a load of less than the rate, by a TCP that is paced: of some dozens of frames.
_PACED_BPS = 1.5e6

# Long enough for 2500 frames 160 us apart, as a probe sends them: to see a loss of 1 % between 0.4
# and 1.7 %, and a jitter to 7 %.
_TRAIN_S = 0.4
_TRAIN_GAP_S = 1e-4
# Further apart by a quarter than the link needs to send one, so it never queues them.
_APART = 1.25
# The delay that a busy machine may add to the last frame.
_PATIENCE_S = 0.2
# A longer delay is not verified, nor what depends on it.
_LONGEST_DELAY_S = 3.0

# A queue is shown to be full if it drains within this time, and if the frames arrive faster than
# they leave: a probe sends one in 10 to 20 us, the link may take this.
_BURST_S = 0.25
_BURST_SENDING_S = 4e-5
# At this rate a full frame takes three times as long, so that any queue fills.
_BURST_BPS = 1e8
# An emulator takes at most a few thousand at once.
_BURST_MOST = 4000
_BURST_LEAST = 10
_BURST_GAP_S = 1e-3
# A delay of at least this is changed to none, and others are increased by this.
_OTHER_DELAY_S = 5e-3


@dataclass(frozen=True, slots=True)
class Together:
    """The rate of one leg while others were loaded at the same time, in bits/s of frames.

    ``asked_bps`` is the required rate: that of the leg, or the load if that is less.
    """

    leg: LinkPath
    others: tuple[LinkPath, ...]
    asked_bps: float
    carried_bps: float

    @property
    def problem(self) -> str:
        """The missing rate, with both figures; empty if none is missing."""
        if self.carried_bps >= self.asked_bps * (1 - RATE_TOLERANCE):
            return ""
        names = sorted({name for other in self.others for name in other.links})
        return (
            f"{self.leg.name}: carries only {format_rate(self.carried_bps)} of "
            f"{format_rate(self.asked_bps)} while {', '.join(names)} "
            f"{'are' if len(names) > 1 else 'is'} busy too"
        )


def verify(lab: Lab, links: Iterable[str]) -> list[Look]:
    """Measure links of a lab against their promises, one after the other, before they are used.

    Bare cables promise nothing and are left out. A link out of tolerance is measured again before
    it counts as broken. Afterwards the links are empty and have their settings again. Raises
    LabError if a link cannot be measured.
    """
    looks: list[Look] = []
    for pair in pairs_of(lab.topology, links):
        with _probing(lab, [pair]) as probers:
            left, hops = _LOOKS, [hop for leg in pair.legs for hop in leg.hops]
            for _ in range(_MOST_LOOKS):
                before = lab.counted(hops)
                found = _look(lab, pair, probers)
                left -= _calm(carried(before, lab.counted(hops)))
                if not left or not any(look.problem for look in found):
                    break
        looks += found
    return looks


def together(lab: Lab, loads: Mapping[Hop, float]) -> tuple[list[Together], list[Carried]]:
    """Load links at the same time, each in one direction with so many bits per second of frames.

    A single one is not measured again. Also returns the counters of the emulators. Raises LabError.
    """
    found: list[Together] = []
    counted: list[Carried] = []
    several = [legs for legs in rounds(lab.topology, loads) if len(legs) > 1]
    pairs = pairs_of(lab.topology, [name for legs in several for leg in legs for name in leg.links])
    with _probing(lab, pairs) as probers, _changing(lab, pairs) as change:
        change(_emptied)
        for legs in several:
            left = _LOOKS
            for _ in range(_MOST_LOOKS):
                rates, meanwhile = _load(lab, legs, probers)
                left -= _calm(meanwhile)
                if not left or not any(rate.problem for rate in rates):
                    break
            found += rates
            counted += meanwhile
    return found, counted


def fail_on_a_path(lab: Lab, found: Iterable[Together]) -> list[Together]:
    """Return which of the failed links fail also if only those of one path are busy.

    One flow may use all of a path, while a trial may never load all links. Measures them again.
    Raises LabError.
    """
    failed: list[Together] = []
    for measured in found:
        hops = _path_over(lab.topology, measured.leg.hops) if measured.problem else ()
        again, _ = together(lab, {hop: hop.settings.rate_bps for hop in hops})
        failed += [each for each in again if each.problem]
    return list({(each.leg, each.others): each for each in failed}.values())


def _path_over(topology: Topology, hops: Sequence[Hop]) -> tuple[Hop, ...]:
    """Return the emulated links of a path that leads over some of them; empty without another."""
    forwarding = Forwarding(topology, topology.ip_versions[0])
    for source, goal in permutations(topology.hosts, 2):
        path = forwarding.walk(source, topology.interfaces(goal)[0]) or ()
        emulated = tuple(hop for hop in path if not hop.link.ideal)
        if set(hops) <= {*emulated} and len(emulated) > len(hops):
            return emulated
    return ()


def ceiling_bps(emulator: Emulator | None = None) -> float:
    """Return the maximum rate of one emulated link on this machine, in bits/s of Ethernet frames.

    The best of several measurements, since other work on the machine only slows it. Builds a lab of
    two hosts for some seconds. Raises LabError.
    """
    settings = LinkSettings(rate_bps=_EVERYTHING_BPS)
    ends = [Interface(name, "eth0", f"02:00:00:00:00:0{i}") for i, name in enumerate("ab", 1)]
    link = Link("link", (ends[0], ends[1]), (settings, settings))
    nodes = {name: Node(name, Kind.HOST) for name in "ab"}
    topology = assign(Topology("ceiling", nodes, {link.name: link}))
    (pair,) = pairs_of(topology, ["link"])
    with Lab.build(topology, emulator) as lab, _probing(lab, [pair]) as probers:
        return max(_rate_bps(leg, probers) for leg in pair.legs for _ in range(_LOOKS))


def _calm(counted: Iterable[Carried]) -> bool:
    """Return whether the machine let the emulators be in time."""
    return not any(carried.strain for carried in counted)


# --- measuring one link ----------------------------------------------------------------------

_Probers = Mapping[Interface, Prober]
_marks = itertools.count(1)
"""Of trains, so that a late frame is not taken for one of the next."""


@contextmanager
def _probing(lab: Lab, pairs: Iterable[Pair]) -> Iterator[_Probers]:
    with ExitStack() as stack:
        ends = {leg.source for pair in pairs for leg in pair.legs}
        yield {end: stack.enter_context(Prober(lab, end)) for end in ends}


def _look(lab: Lab, pair: Pair, probers: _Probers) -> list[Look]:
    findings: dict[LinkPath, list[PromiseFinding]] = {leg: [] for leg in pair.legs}
    with _changing(lab, [pair]) as change:
        change(_other)
        for leg in pair.legs:
            findings[leg] += _burst(leg, probers)
        change(_emptied)
        for leg in pair.legs:
            findings[leg] += judge_rate(leg, _rate_bps(leg, probers))
    for leg, train in _trains(pair, probers).items():
        findings[leg] += judge_train(leg, train)
    return [look_at(leg, found) for leg, found in findings.items()]


@contextmanager
def _changing(
    lab: Lab, pairs: Iterable[Pair]
) -> Iterator[Callable[[Callable[[LinkSettings], LinkSettings]], None]]:
    """Give a function that changes the settings of links; afterwards they are as before."""
    hops = [hop for pair in pairs for leg in pair.legs for hop in leg.hops]
    try:
        yield lambda how: _set(lab, {hop: how(hop.settings) for hop in hops})
    finally:
        _set(lab, {hop: hop.settings for hop in hops})


def _set(lab: Lab, settings: Mapping[Hop, LinkSettings]) -> None:
    lab.change_each({hop: Change(**asdict(new)) for hop, new in settings.items()})


def _emptied(settings: LinkSettings) -> LinkSettings:
    return LinkSettings(rate_bps=settings.rate_bps)


def _other(settings: LinkSettings) -> LinkSettings:
    delay_s, rate_bps = settings.delay_s, settings.rate_bps
    return LinkSettings(
        rate_bps=rate_bps if math.isinf(rate_bps) else min(rate_bps / 2, _BURST_BPS),
        delay_s=0.0 if delay_s >= _OTHER_DELAY_S else delay_s + _OTHER_DELAY_S,
        queue_packets=settings.queue_packets,
    )


def _burst(leg: LinkPath, probers: _Probers) -> list[PromiseFinding]:
    """Send more frames than the queue holds, and judge the result."""
    changed = leg.having(_other)
    slowest = min((hop.settings for hop in changed.hops), key=lambda setting: setting.rate_bps)
    rate_bps, queue = slowest.rate_bps, slowest.queue_packets
    if math.isinf(rate_bps):
        frames, size, gap_s = _BURST_LEAST, _least_bytes(leg), _BURST_GAP_S
    else:
        drained = int(rate_bps * _BURST_S / 8 / (queue + 1))
        fast_enough = max(_least_bytes(leg), math.ceil(rate_bps * _BURST_SENDING_S / 8))
        size = min(max(drained, fast_enough), leg.frame_bytes)
        in_time = max(2, int(rate_bps * _BURST_S / 8 / size))
        frames = min(2 * (queue + 1) + _BURST_LEAST, _BURST_MOST)
        frames, gap_s = min(frames, in_time) if queue > in_time else frames, 0.0
    rest_s = changed.sending_s(size) - 8 * size / rate_bps
    settings = replace(slowest, delay_s=changed.delay_s + rest_s)
    source, target = probers[leg.source], probers[leg.target]
    mark = next(_marks)
    sent_ns = [] if _too_slow(leg) else source.ask(
        "send", **target.udp, mark=mark, count=frames, size=size - _headers_bytes(leg), gap_s=gap_s,
        most_s=_BURST_S,
    )  # fmt: skip
    if not sent_ns:
        return judge_burst(leg, settings, Train(size, [], []))
    due_ns = due_of(settings, size, sent_ns)
    rest_s = (max(due_ns.values()) - sent_ns[-1]) / 1e9 + _PATIENCE_S
    # Frames beyond those that the model passes follow immediately, if any.
    more_s = _BURST_GAP_S + _BURST_LEAST * 8 * size / rate_bps
    got, unread = target.ask("got", mark=mark, count=len(due_ns), patience_s=rest_s, more_s=more_s)
    return judge_burst(leg, settings, Train(size, sent_ns, got, unread))


def _trains(pair: Pair, probers: _Probers) -> dict[LinkPath, Train]:
    """Send small frames both ways at the same time, each on an idle link."""
    slow = [leg for leg in pair.legs if _too_slow(leg) or leg.delay_s > _LONGEST_DELAY_S]
    legs = [leg for leg in pair.legs if leg not in slow]
    mark = next(_marks)
    for leg in legs:
        gap_s = max(
            _TRAIN_GAP_S,
            _APART * max(8 * _least_bytes(leg) / hop.settings.rate_bps for hop in leg.hops),
        )
        count = math.ceil(_TRAIN_S / gap_s)
        probers[leg.source].order(
            "send", **probers[leg.target].udp, mark=mark, count=count, most_s=_TRAIN_S,
            size=_least_bytes(leg) - _headers_bytes(leg), gap_s=gap_s,
        )  # fmt: skip
    sent = {leg: probers[leg.source].answer() for leg in legs}
    for leg in legs:
        rest_s = leg.delay_s + leg.jitter_s + leg.sending_s(_least_bytes(leg)) + _PATIENCE_S
        probers[leg.target].order(
            "got", mark=mark, count=len(sent[leg]), patience_s=rest_s, more_s=0.0
        )
    trains = {leg: Train(_least_bytes(leg), [], []) for leg in pair.legs}
    for leg in legs:
        got, unread = probers[leg.target].answer()
        trains[leg] = Train(_least_bytes(leg), sent[leg], got, unread)
    return trains


def _too_slow(leg: LinkPath) -> bool:
    return leg.sending_s(_least_bytes(leg)) > _FEW_S


def _headers_bytes(leg: LinkPath) -> int:
    """Return the bytes of a frame of UDP besides its payload."""
    return _HEADERS_BYTES + _MORE_BYTES[leg.source.ip_version]


def _least_bytes(leg: LinkPath) -> int:
    return _headers_bytes(leg) + _LEAST_PAYLOAD_BYTES


# --- rates ----------------------------------------------------------------------------------


def _rate_bps(leg: LinkPath, probers: _Probers) -> float:
    """Return the rate of frames at which bytes arrive over an emptied link; NaN if too slow."""
    if math.isinf(leg.rate_bps):
        return math.nan
    finish = _begin_flow(leg, leg.rate_bps, probers)
    return finish()


def _begin_flow(leg: LinkPath, load_bps: float, probers: _Probers) -> Callable[[], float]:
    """Start to load a leg; returns a function that waits for the rate of arrived frames."""
    source, target = probers[leg.source], probers[leg.target]
    if leg.rate_bps >= (_PACED_BPS if load_bps < leg.rate_bps else _TCP_BPS):
        rate_bps = min(leg.rate_bps, _EVERYTHING_BPS)
        pace_bps = load_bps if load_bps < leg.rate_bps else math.inf
        source.order(
            "flow", **target.tcp, rate_bps=rate_bps, pace_bps=min(pace_bps, 2 * _EVERYTHING_BPS),
            seconds=_FLOW_S,
        )  # fmt: skip
        mtu = leg.frame_bytes - ETHERNET_HEADER_BYTES
        return lambda: (
            float(source.answer()) / tcp_payload_ratio(mtu, ip_version=leg.source.ip_version)
        )
    share = int(leg.rate_bps * _FEW_S / 8 / _BURST_LEAST)
    size = min(max(share, _least_bytes(leg)), leg.frame_bytes)
    count = 1 + int(leg.rate_bps * _FEW_S / 8 / size)
    if count <= _FEW_FRAMES:
        return lambda: math.nan
    mark = next(_marks)
    source.order(
        "send", **target.udp, mark=mark, count=count, size=size - _headers_bytes(leg), gap_s=0.0,
        most_s=_FEW_S,
    )  # fmt: skip

    def finish() -> float:
        sent_ns = source.answer()
        got, _ = target.ask(
            "got", mark=mark, count=len(sent_ns), patience_s=2 * _FEW_S + _PATIENCE_S, more_s=0.0
        )
        return arrival_rate_bps(Train(size, sent_ns, got), leg.rate_bps)

    return finish


def _load(
    lab: Lab, legs: Mapping[LinkPath, float], probers: _Probers
) -> tuple[list[Together], list[Carried]]:
    """Load legs at the same time."""
    hops = [hop for leg in legs for hop in leg.hops]
    before = lab.counted(hops)
    finishing = {leg: _begin_flow(leg, load_bps, probers) for leg, load_bps in legs.items()}
    rates = {leg: finish() for leg, finish in finishing.items()}
    return [
        Together(
            leg=leg,
            others=tuple(other for other in legs if other is not leg),
            asked_bps=load_bps,
            carried_bps=rates[leg],
        )
        for leg, load_bps in legs.items()
        if not math.isnan(rates[leg])
    ], carried(before, lab.counted(before))
