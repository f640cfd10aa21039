"""The profile of ``benchctl quick``: which server answers at a host, and what its tool measures."""

from __future__ import annotations

from collections.abc import Callable, Collection

from benchctl.backends import Registry, installed
from benchctl.engine.checks.network import check_name, listening, may_ping
from benchctl.errors import MissingError, UsageError
from benchctl.metrics import PROBES, Direction
from benchctl.profile.quick import HERE, Quick
from benchctl.profile.values import check_host

# In the order in which they are looked for, each at its own port.
OURS, OTHER = "simpleperf", "iperf3"
# Enough for TCP to fill most paths; and for loss and jitter a rate that every path has.
DURATION_S, UDP_RATE = 6.0, "1Mbit"


def look_at(
    host: str,
    *,
    backend: str | None = None,
    port: int | None = None,
    duration_s: float = DURATION_S,
    udp_rate: str | None = UDP_RATE,
    pings: bool = True,
    ssh: bool = False,
    note: Callable[[str], None] = lambda _: None,
) -> Quick:
    """Return what to look at: connects to the host to see whose server answers, if not known.

    ``note`` takes a word on that. Raises UsageError, HostError, or MissingError if none answers.
    """
    try:
        check_host(host)
    except ValueError as error:
        raise UsageError(str(error), "see benchctl quick --help") from None
    is_here = host in HERE and port is None
    if not (ssh or is_here):
        check_name(host)
    tool = backend or (OURS if ssh or is_here else _answering(host, port, note))
    directions, accepts = _abilities(tool, installed())
    pings = pings and _may_ping(note)
    return Quick(host, tool, directions, duration_s, port, udp_rate, pings, ssh, accepts)


def _answering(host: str, port: int | None, note: Callable[[str], None]) -> str:
    """Return the tool whose server answers at a host. Raises MissingError if none does."""
    registry = installed()
    ports = {
        number: name
        for name in (OURS, OTHER)
        if (number := registry.load(name).capabilities.default_port) is not None
    }
    if port is not None:  # a port that is nobody's own does not say whose it is
        return ports.get(port, OTHER)
    found = listening(host, [*ports])
    for number, name in ports.items():
        if not found[number]:
            note(f"{name} answers at {host} port {number}")
            return name
    said = ", ".join(f"{name} port {number} {found[number]}" for number, name in ports.items())
    raise MissingError(
        f"no server answers at {host}: {said}",
        f"start one there: benchctl serve; or let benchctl log in: benchctl quick --ssh {host}",
    )


def _may_ping(note: Callable[[str], None]) -> bool:
    """Return whether this user may send pings, and note it if not."""
    if may_ping():
        return True
    note("there are no pings, because this user may not send any: see net.ipv4.ping_group_range")
    note("in a container, --cap-add NET_RAW lets ping send")
    return False


def _abilities(name: str, registry: Registry) -> tuple[tuple[Direction, ...], Collection[str]]:
    """Return in which directions a tool is measured, and the names of its parameters."""
    backend = registry.load(name)
    can = backend.capabilities
    # One direction of delays alone says nothing of the clocks.
    probes = can.headline in PROBES and Direction.BOTH in can.directions
    wish = (Direction.BOTH,) if probes else (Direction.SEND, Direction.RECEIVE)
    directions = tuple(direction for direction in wish if direction in can.directions)
    if not directions:
        raise UsageError(
            f"--backend {name}: it does not measure throughput",
            "choose another: see benchctl backends",
        )
    return directions, backend.parameters.model_fields.keys()
