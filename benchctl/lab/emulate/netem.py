"""How the kernel emulates a link: the devices that frames pass, and the lines for ip and tc. Pure.

The hosts' own devices stay plain cables, so that frames are cut and their sockets freed before any
queue. All disciplines stand in the emulator's namespace. Frames of one direction come in at the
link's near device, cross a cable that leads from this namespace into itself (a wire), and leave by
the link's far device::

    near ─▶ wire: htb, pfifo  ─▶ far: netem rate, delay, loss            (short)
    near ─▶ wire: htb, pfifo  ─▶ wire: netem rate  ─▶ far: netem delay, jitter, loss   (long)

- An ingress filter hands every frame on. The first one copies it and drops the original: a copy
  belongs to no socket, so a sender is not held up by what waits (tcf_mirred_act in
  net/sched/act_mirred.c).
- htb lets a frame go when its transmission begins, from a queue in packets that has the others, so
  a new rate holds for all that wait.
- netem with the same rate delivers at the end of the transmission, and smooths what htb let go too
  early.
- A frame is lost after its transmission, so it takes its part of the link's time.

The long form is for a direction that has jitter or whose delay has shrunk. netem's rate keeps
frames in order, which jitter must not, and adds each transmission to the frame before, so a link
that is always busy would keep an old delay for ever.

See tc-htb(8), tc-netem(8), tc-mirred(8), tc-matchall(8).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchctl.lab.build.script import WHOLE_FRAMES, Ends
from benchctl.lab.topology.model import ETHERNET_HEADER_BYTES, LinkSettings

# More than a cable between namespaces carries on any machine.
_UNLIMITED_BPS = 100e9
# htb's timer is late; time lost up to this is made up. It is also how much earlier than its
# transmission begins a frame may leave the queue.
_BURST_S = 1e-4
# Frames in transit do not count in the queue of packets, so netem, which holds them, must not fill
# before it: a second of full frames at 10 Gbit/s.
_FLYING_FRAMES = 825_000
# Less makes the kernel warn. It has no effect on a class without siblings.
_LEAST_QUANTUM_BYTES = 1000


def wires(index: int) -> list[Ends]:
    """Return the ends of a link's two wires, in the order of frames in its first direction."""
    return [(f"wire{index}a", f"wire{index}b"), (f"wire{index}c", f"wire{index}d")]


def cable(wire: Ends, mtu: int) -> list[str]:
    """Create a wire; lines for ip."""
    ends = [f"name {end} mtu {mtu} {WHOLE_FRAMES}" for end in wire]
    return [
        f"link add {ends[0]} type veth peer {ends[1]}",
        *(f"link set {end} up" for end in wire),
    ]


def direction(
    link: Ends, passed: Sequence[Ends], settings: LinkSettings, mtu: int
) -> dict[str, str]:
    """Return what emulates a direction, over one wire or two; lines for tc, by what they set.

    A change needs only the lines that differ, in this order; for one wire instead of two, also
    `shortcut`, when no frame is on the way.
    """
    near, far = link
    first, *more = passed
    rate_bps = round(min(settings.rate_bps, _UNLIMITED_BPS))
    burst_bytes = math.ceil(rate_bps / 8 * _BURST_S)
    quantum_bytes = max(_LEAST_QUANTUM_BYTES, mtu + ETHERNET_HEADER_BYTES)
    delay = f"delay {_us(settings.delay_s)} {_us(settings.jitter_s)} loss {settings.loss_ratio:.6%}"
    # On a wire of its own, a rate only keeps the order.
    last_bps = rate_bps if not more else 0 if settings.jitter_s else round(_UNLIMITED_BPS)
    lines = {
        f"{first[0]} root": f"qdisc replace dev {first[0]} root handle 1: htb default 1",
        f"{first[0]} rate": f"class replace dev {first[0]} parent 1: classid 1:1 htb "
        f"rate {rate_bps}bit burst {burst_bytes} cburst {burst_bytes} quantum {quantum_bytes}",
        f"{first[0]} queue": f"qdisc replace dev {first[0]} parent 1:1 handle 2: "
        f"pfifo limit {settings.queue_packets}",
    }
    for wire in more:
        lines[f"{wire[0]} root"] = _netem(wire[0], "", rate_bps)
    lines[f"{far} root"] = _netem(far, delay, last_bps)
    lines |= _hand_on(near, first[0], 2, how="mirror", then=" action drop")
    onward = far
    # From the end backwards, so that no frame takes a path that is not ready.
    for wire in reversed(passed):
        lines |= _hand_on(wire[1], onward, preference=2 if onward == far else 1)
        onward = wire[0]
    return lines


def shortcut(first: Ends) -> tuple[str, str]:
    """Bypass the second wire again; the line, and before it the line that it reverts."""
    device = first[1]
    return f"{device} filter 1", f"filter del dev {device} ingress pref 1"


def _netem(device: str, what: str, rate_bps: int) -> str:
    parts = ("netem limit", str(_FLYING_FRAMES), what, f"rate {rate_bps}bit")
    return f"qdisc replace dev {device} root handle 1: {' '.join(filter(None, parts))}"


def _hand_on(
    device: str, onward: str, preference: int, how: str = "redirect", then: str = ""
) -> dict[str, str]:
    # matchall cannot change an existing filter, so the long form has one with a higher priority.
    return {
        f"{device} ingress": f"qdisc add dev {device} ingress",
        f"{device} filter {preference}": f"filter add dev {device} ingress pref {preference} "
        f"matchall action mirred egress {how} dev {onward}{then}",
    }


def _us(duration_s: float) -> str:
    return f"{round(duration_s * 1e6)}us"
