"""Which packets of a host are recorded: a program for the kernel, in classic BPF.

It sees a packet from its IP head on, whatever the device. The connections of SSH that benchctl
itself uses are none of what is measured.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from ipaddress import ip_address

# linux/if_packet.h, linux/if_ether.h
_ETH_P_IP, _ETH_P_IPV6 = 0x0800, 0x86DD
_OUTGOING = 4
_LOOPBACK = 1
"""The index of the loopback device in every network namespace."""
# Classic BPF: load a word, a half or a byte, compare, test bits, go on elsewhere, return
# (linux/bpf_common.h). What the kernel knows of a packet is at offsets from _KNOWN (linux/filter.h,
# SKF_AD_OFF).
_LOAD, _LOAD_HALF, _LOAD_BYTE, _EQUAL, _TEST, _GO, _RETURN = (
    0x20, 0x28, 0x30, 0x15, 0x45, 0x05, 0x06
)  # fmt: skip
# Take the length of an IPv4 head; load what follows it.
_HEAD_LENGTH, _LOAD_BEHIND = 0xB1, 0x40
_KNOWN = 0xFFFFF000
_PROTOCOL, _KIND, _DEVICE = _KNOWN + 0, _KNOWN + 4, _KNOWN + 8
# Where the addresses of both ends are in a packet of each version.
_ADDRESSES_AT = {4: (12, 16), 6: (8, 24)}
_IPPROTO_TCP = 6
_FRAGMENT = 0x1FFF
"""The bits of IPv4's fragment offset: there are no ports behind one."""


PortPair = tuple[int, int]
"""Those of both ends of a connection."""


def packet_filter(
    addresses: Sequence[str], snap_bytes: int, without: Iterable[PortPair] = ()
) -> list[tuple[int, int, int, int]]:
    """Return a program that keeps so much of packets from or to an address; of all without any.

    ``without`` are TCP connections that are not kept. Its instructions are code, where to go if
    equal and if not (relative), and value.
    """
    program: list[tuple[int, str, str, int]] = [
        (_LOAD, "", "", _KIND),
        (_EQUAL, "", "kind", _OUTGOING),
        (_LOAD, "", "", _DEVICE),
        (_EQUAL, "drop", "", _LOOPBACK),
    ]
    labels = {"kind": len(program)}
    program.append((_LOAD, "", "", _PROTOCOL))
    for version, number in ((4, _ETH_P_IP), (6, _ETH_P_IPV6)):
        found = [each for each in map(ip_address, addresses) if each.version == version]
        after, keep = f"not {version}", f"keep {version}"
        program.append((_EQUAL, "" if addresses else keep, after, number))
        for place, (address, at) in enumerate(
            (address, at) for address in found for at in _ADDRESSES_AT[version]
        ):
            words = struct.unpack(f"!{len(address.packed) // 4}I", address.packed)
            for number_of, word in enumerate(words):
                last = number_of == len(words) - 1
                program.append((_LOAD, "", "", at + 4 * number_of))
                program.append((_EQUAL, keep if last else "", f"{after} {place}", word))
            labels[f"{after} {place}"] = len(program)
        if addresses:
            program.append((_RETURN, "", "", 0))
        labels[after] = len(program)
    labels["drop"] = len(program)
    program.append((_RETURN, "", "", 0))
    pairs = {(local << 16) | far for pair in without for local, far in (pair, pair[::-1])}
    labels["keep 4"] = labels["keep 6"] = len(program)
    if pairs:
        program += [
            (_LOAD_BYTE, "", "", 9),
            (_EQUAL, "", "keep", _IPPROTO_TCP),
            (_LOAD_HALF, "", "", 6),
            (_TEST, "keep", "", _FRAGMENT),
            (_HEAD_LENGTH, "", "", 0),
            (_LOAD_BEHIND, "", "", 0),
            (_GO, "", "", 5),  # to the pairs
        ]
        labels["keep 6"] = len(program)
        program += [
            (_LOAD_BYTE, "", "", 6),
            (_EQUAL, "", "keep", _IPPROTO_TCP),
            (_LOAD, "", "", 40),
            (_GO, "", "", 1),  # to the pairs
        ]
        labels["keep"] = len(program)
        program.append((_RETURN, "", "", snap_bytes))
        # Each beside its own end: a comparison reaches no more than 255 instructions.
        for pair in sorted(pairs):
            labels[f"not {pair:08x}"] = len(program) + 2
            program += [(_EQUAL, "", f"not {pair:08x}", pair), (_RETURN, "", "", 0)]
    program.append((_RETURN, "", "", snap_bytes))

    def ahead(at: int, label: str) -> int:
        return labels[label] - at - 1 if label else 0

    return [
        (code, ahead(at, yes), ahead(at, no), value)
        for at, (code, yes, no, value) in enumerate(program)
    ]
