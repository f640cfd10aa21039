"""What a packet carries: the IP packet in PPP, GRE, VXLAN, Geneve, or in another IP packet.

Each function returns the EtherType of what is carried and where that begins, or None for anything
else than IP. Nothing is checked but what says that it is that tunnel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

IPV4, IPV6, PPPOE = 0x0800, 0x86DD, 0x8864
VLANS = {0x8100, 0x88A8, 0x9100}
MOST_NESTED = 4
"""Tunnels within tunnels: clouds use two."""

_IP_IN_IP, _IPV6_IN_IP, _UDP, _GRE = 4, 41, 17, 47
_ETHERNET, _PPP = 0x6558, 0x880B
"""What GRE and Geneve carry besides IP, in place of an EtherType (RFC 1701, RFC 2637)."""
_VXLAN_PORTS, _GENEVE_PORT = (4789, 8472), 6081
"""RFC 7348, and what Linux took before it; RFC 8926."""

Carried: TypeAlias = "tuple[int, int] | None"
Reads: TypeAlias = Callable[[bytes, int, int], Carried]


def in_ip(protocol: int, data: bytes, at: int, stop: int) -> tuple[str, Reads] | None:
    """Return the name of the tunnel that an IP protocol is, and what reads it, else None."""
    if protocol == _UDP:
        port = int.from_bytes(data[at + 2 : at + 4]) if stop - at >= 16 else 0
        if port in _VXLAN_PORTS and data[at + 8] & 8:
            return "VXLAN", _vxlan
        if port == _GENEVE_PORT and data[at + 8] < 0x40:
            return "Geneve", _geneve
        return None
    return _IN_IP.get(protocol)


def _vxlan(data: bytes, at: int, stop: int) -> Carried:
    return ethernet(data, at + 16, stop)


def _geneve(data: bytes, at: int, stop: int) -> Carried:
    kind = int.from_bytes(data[at + 10 : at + 12])
    return _of_kind(kind, data, at + 16 + ((data[at + 8] & 63) << 2), stop)


def _gre(data: bytes, at: int, stop: int) -> Carried:
    """RFC 2784 and RFC 2890; version 1, which PPTP uses, is RFC 2637."""
    if stop - at < 4:
        return None
    flags = int.from_bytes(data[at : at + 2])
    kind = int.from_bytes(data[at + 2 : at + 4])
    if flags & 0x4000 or flags & 7 > 1:  # source routes are obsolete
        return None
    fields = 0xB080 if flags & 7 else 0xB000  # checksum, key, number; an acknowledgement
    return _of_kind(kind, data, at + 4 + 4 * (flags & fields).bit_count(), stop)


def _ipv4(_data: bytes, at: int, _stop: int) -> Carried:
    return IPV4, at


def _ipv6(_data: bytes, at: int, _stop: int) -> Carried:
    return IPV6, at


_IN_IP = {_IP_IN_IP: ("IP in IP", _ipv4), _IPV6_IN_IP: ("IPv6 in IP", _ipv6), _GRE: ("GRE", _gre)}


def _of_kind(kind: int, data: bytes, at: int, stop: int) -> Carried:
    if kind == _ETHERNET:
        return ethernet(data, at, stop)
    if kind == _PPP:
        return ppp(data, at, stop)
    return (kind, at) if kind in (IPV4, IPV6) else None


def ethernet(data: bytes, at: int, stop: int) -> Carried:
    """Return what an Ethernet frame carries, behind its VLANs."""
    at += 12
    while at + 2 <= stop:
        kind = int.from_bytes(data[at : at + 2])
        if kind not in VLANS:
            return (kind, at + 2) if kind in (IPV4, IPV6) else None
        at += 4
    return None


def pppoe(data: bytes, at: int, stop: int) -> Carried:
    """Return what a session of PPPoE carries (RFC 2516)."""
    return ppp(data, at + 6, stop)


def directed_ppp(data: bytes, at: int, stop: int) -> Carried:
    """Return what a frame of PPP carries behind a byte that says whether it was sent."""
    return ppp(data, at + 1, stop)


def ppp(data: bytes, at: int, stop: int) -> Carried:
    """Return what a frame of PPP (RFC 1661, RFC 1662) or of Cisco's HDLC carries."""
    head = data[at : min(at + 4, stop)]
    if head[:2] in (b"\x0f\x00", b"\x8f\x00"):
        kind = int.from_bytes(head[2:])
        return (kind, at + 4) if kind in (IPV4, IPV6) else None
    if head[:2] == b"\xff\x03":
        at, head = at + 2, head[2:]
    if head[:1] == b"\x00":
        at, head = at + 1, head[1:]
    if head[:1] in (b"\x21", b"\x57"):
        return (IPV4 if head[0] == 0x21 else IPV6), at + 1
    return None
