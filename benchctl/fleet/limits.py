"""What the owner of a host lets a fleet do there: `agent.toml`, and the judge of each end. Pure.

The judge works with what the host itself knows: its own backends, the addresses that a name has
there, the speed of its link. What is not listed is off.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from datetime import datetime
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from benchctl.api import Role
from benchctl.backends import AnyBackend
from benchctl.engine.trial.ends import EndSpec
from benchctl.toml.source import read_toml
from benchctl.units import (
    format_rate,
    format_size,
    parse_rate,
    parse_size,
    quoted,
)

Extra = Literal["options", "files", "root", "open-servers"]
"""What is off unless listed: options of tools, parameters that name files, tools that need root,
and servers whose tool cannot be told which peer to admit."""
_EXTRAS = ("options", "files", "root", "open-servers")
# Of a link whose speed no driver tells.
ASSUMED_LINK_BPS = 10e9
_FILE_ENDS = ("file", "path", "key", "dir")
_MINUTES_A_DAY = 24 * 60
_DEVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,31}")


class Hours(NamedTuple):
    """A time of the day in minutes; ``until`` may be before ``start``: over midnight."""

    start: int
    until: int

    def has(self, minute: int) -> bool:
        """Return whether a minute of the day is within."""
        if self.start <= self.until:
            return self.start <= minute < self.until
        return minute >= self.start or minute < self.until

    def __str__(self) -> str:
        return "-".join(f"{at // 60:02d}:{at % 60:02d}" for at in self)


class Limits(Struct, frozen=True):
    """The limits of one host; None is no limit.

    ``backends`` None are all that are installed there. ``networks`` are targets beside the fleet's
    own hosts.
    """

    backends: frozenset[str] | None = None
    networks: tuple[str, ...] = ()
    rate_bps: float | None = None
    trial_bytes: float | None = None
    day_bytes: float | None = None
    hours: tuple[Hours, ...] = ()
    allow: frozenset[str] = frozenset()
    addresses: tuple[str, ...] = ()
    """At which the other hosts reach this one; empty for the one that leads to the server."""

    @property
    def words(self) -> list[str]:
        """What the limits are, for people who plan."""
        said = []
        if self.backends is not None:
            said.append(f"backends: {', '.join(sorted(self.backends)) or 'none'}")
        said.append(f"targets: {', '.join(['hosts of the fleet', *self.networks])}")
        if self.rate_bps is not None:
            said.append(f"at most {format_rate(self.rate_bps)}")
        if self.trial_bytes is not None:
            said.append(f"at most {format_size(self.trial_bytes)} a trial")
        if self.day_bytes is not None:
            said.append(f"at most {format_size(self.day_bytes)} a day")
        if self.hours:
            said.append(f"from {', '.join(map(str, self.hours))}")
        said += [f"{extra} allowed" for extra in _EXTRAS if extra in self.allow]
        return said


class HostLoad(NamedTuple):
    """What ends that run on a host take already: of all, of this day, and of the same trial."""

    rate_bps: float = 0.0
    day_bytes: float = 0.0
    trial_bytes: float = 0.0


class EndAmount(NamedTuple):
    """What an end sends and receives: a flow without a rate counts as the link's speed."""

    rate_bps: float
    bytes: float


NOTHING = EndAmount(0.0, 0.0)


def read_limits(path: Path) -> Limits:
    """Read `agent.toml`; the defaults if there is none. Raises ProfileError."""
    if not path.exists():
        return Limits()
    source = read_toml(path)
    known = {
        "addresses",
        "backends",
        "networks",
        "rate",
        "trial_bytes",
        "day_bytes",
        "hours",
        "allow",
    }
    data = source.data
    for name in data:
        if name not in known:
            raise source.error((name,), "is not known", f"keys are: {', '.join(sorted(known))}")
    found: dict[str, Any] = {}
    key = ""
    try:
        for key, value in data.items():
            match key:
                case "backends":
                    found[key] = frozenset(_texts(value))
                case "addresses":
                    found[key] = tuple(str(ip_address(text)) for text in _texts(value))
                case "networks":
                    found[key] = tuple(str(ip_network(text)) for text in _texts(value))
                case "rate":
                    found["rate_bps"] = parse_rate(value)
                case "trial_bytes" | "day_bytes":
                    found[key] = parse_size(value)
                case "hours":
                    found[key] = tuple(map(parse_hours, _texts(value)))
                case _:
                    found[key] = frozenset(map(_extra, _texts(value)))
    except ValueError as error:
        raise source.error((key,), str(error)) from None
    return Limits(**found)


def _texts(value: object) -> Sequence[str]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ValueError("write a list of texts")
    return value


def _extra(text: str) -> str:
    if text not in _EXTRAS:
        raise ValueError(f"{quoted(text)} is none of {', '.join(_EXTRAS)}")
    return text


def parse_hours(text: str) -> Hours:
    """Parse hours of the day: ``"22:00-06:00"``. Raises ValueError."""
    ends = []
    for part in text.split("-"):
        hour, _, minute = part.partition(":")
        if not (hour.isdecimal() and minute.isdecimal()) or int(hour) > 24 or int(minute) > 59:
            break
        ends.append(int(hour) * 60 + int(minute))
    if len(ends) != 2 or text.count("-") != 1 or max(ends) > _MINUTES_A_DAY:
        raise ValueError(f"{quoted(text)} are no hours of the day; write them as 22:00-06:00")
    return Hours(*ends)


def amount_of(backend: AnyBackend, parameters: Any, link_bps: float) -> EndAmount:
    """Return what an end of a flow sends or receives, at most."""
    duration_s = backend.duration_s(parameters)
    demand = backend.demand(parameters)
    rate_bps = demand.rate_bps * demand.streams
    if math.isinf(rate_bps):
        rate_bps = link_bps
    known = backend.traffic_bytes(parameters)
    return EndAmount(rate_bps, rate_bps * duration_s / 8 if known is None else known)


def refusal(
    limits: Limits,
    spec: EndSpec,
    backend: AnyBackend,
    parameters: Any,
    targets: Collection[str],
    fleet: Collection[str],
    load: HostLoad,
    link_bps: float,
    now: datetime,
) -> str:
    """Return why an end may not run on a host, empty if it may.

    ``targets`` are the addresses of its other end as this host resolves them, ``fleet`` those of
    the fleet's own hosts, ``now`` the owner's local time.
    """
    if why := _malformed(spec):
        return why
    if limits.backends is not None and spec.backend not in limits.backends:
        return f"its owner does not allow the backend {spec.backend}"
    if limits.hours and not any(hours.has(now.hour * 60 + now.minute) for hours in limits.hours):
        return f"its owner allows measurements from {', '.join(map(str, limits.hours))} only"
    return (
        _refused_extra(limits, spec, backend, parameters)
        or _refused_target(limits, targets, fleet)
        or _refused_amount(limits, amount_of(backend, parameters, link_bps), load)
    )


def _malformed(spec: EndSpec) -> str:
    """Return what of an end's places is none: it must not become a word of a command."""
    own = [] if spec.role is Role.CLIENT else [spec.address]
    for text in filter(None, [*own, spec.source_address]):
        try:
            ip_address(text.partition("%")[0])
        except ValueError:
            return f"{quoted(text)} is no address of this host"
    for text in filter(None, [spec.source_device, *_zones(spec)]):
        if not _DEVICE.fullmatch(text):
            return f"{quoted(text)} is no device of this host"
    return ""


def _zones(spec: EndSpec) -> list[str]:
    places = (spec.address, spec.source_address or "", spec.peer)
    return [place.partition("%")[2] for place in places]


def _refused_extra(limits: Limits, spec: EndSpec, backend: AnyBackend, parameters: Any) -> str:
    can, given = backend.capabilities, vars(parameters)
    if "options" not in limits.allow and given.get("options"):
        return "its owner does not allow options of tools"
    files = [name for name, value in given.items() if names_file(name, value)]
    if "files" not in limits.allow and files:
        return f"its owner does not allow parameters that name files: {', '.join(files)}"
    if "root" not in limits.allow and can.needs_root:
        return f"its owner does not allow {spec.backend}, which needs root"
    is_open = spec.role is Role.SERVER and not can.restricts_clients
    if "open-servers" not in limits.allow and is_open:
        return f"a server of {spec.backend} would admit everybody, which its owner does not allow"
    return ""


def names_file(name: str, value: object) -> bool:
    """Return whether a parameter names a file: by its value, or by its own name."""
    if not isinstance(value, str) or not value:
        return False
    return "/" in value or name.rpartition("_")[2] in _FILE_ENDS


def _refused_target(limits: Limits, targets: Collection[str], fleet: Collection[str]) -> str:
    if not targets:
        return "the address of the other end is not known here"
    networks = [ip_network(text) for text in limits.networks]
    for target in targets:
        address = ip_address(target.partition("%")[0])
        mapped = getattr(address, "ipv4_mapped", None)
        address = mapped or address
        if any(_has(network, address) for network in networks):
            continue
        if address.is_loopback or address.is_link_local or address.is_private:
            return f"{target} is loopback, link-local or private, and its owner does not list it"
        if address.is_multicast or address.is_unspecified or address.is_reserved:
            return f"{target} is no address of one host"
        if target not in fleet:
            return f"{target} is no host of the fleet, and its owner does not list its network"
    return ""


def _has(network: IPv4Network | IPv6Network, address: Any) -> bool:
    return address.version == network.version and address in network


def _refused_amount(limits: Limits, amount: EndAmount, load: HostLoad) -> str:
    if limits.rate_bps is not None and load.rate_bps + amount.rate_bps > limits.rate_bps:
        at_once = f", {format_rate(load.rate_bps)} of them now" if load.rate_bps else ""
        return (
            f"its owner allows {format_rate(limits.rate_bps)}{at_once}; "
            f"the flow takes up to {format_rate(amount.rate_bps)}"
        )
    trial_bytes = load.trial_bytes + amount.bytes
    if limits.trial_bytes is not None and trial_bytes > limits.trial_bytes:
        return (
            f"its owner allows {format_size(limits.trial_bytes)} a trial; "
            f"its flows take up to {format_size(trial_bytes)}"
        )
    if limits.day_bytes is not None and load.day_bytes + amount.bytes > limits.day_bytes:
        left = max(0.0, limits.day_bytes - load.day_bytes)
        return (
            f"of the {format_size(limits.day_bytes)} that its owner allows a day, "
            f"{format_size(left)} are left; the flow takes up to {format_size(amount.bytes)}"
        )
    return ""
