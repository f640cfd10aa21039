"""Writes packets and capture files byte by byte, as the formats' descriptions have them."""

import struct
from ipaddress import ip_address

A, B = "10.0.0.1", "10.0.0.2"
PORTS = (40000, 5201)


def tcp(way=0, seq=0, ack=0, flags=16, window=65535, data=b"", options=b"", ports=PORTS, size=None):
    """Return a TCP segment; ``size`` bytes of data if they are not given."""
    source, target = ports if way == 0 else ports[::-1]
    options += b"\x01" * (-len(options) % 4)
    offset = (20 + len(options)) // 4 << 4
    head = struct.pack(
        ">HHIIBBHHH",
        source,
        target,
        seq & 0xFFFFFFFF,
        ack & 0xFFFFFFFF,
        offset,
        flags,
        window,
        0,
        0,
    )
    return head + options + (bytes(size) if size is not None else data)


def udp(way=0, data=b"", ports=PORTS):
    source, target = ports if way == 0 else ports[::-1]
    return struct.pack(">HHHH", source, target, 8 + len(data), 0) + data


def ipv4(body, way=0, protocol=6, ident=0, fragment=0, options=b"", total=None, ends=(A, B)):
    source, target = ends if way == 0 else ends[::-1]
    size = 20 + len(options)
    total = size + len(body) if total is None else total
    head = struct.pack(
        ">BBHHHBBH4s4s", 0x40 | size // 4, 0, total, ident, fragment, 64, protocol, 0,
        ip_address(source).packed, ip_address(target).packed,
    )  # fmt: skip
    return head + options + body


def ipv6(body, way=0, protocol=6, extensions=b"", ends=("2001:db8::1", "2001:db8::2")):
    source, target = ends if way == 0 else ends[::-1]
    head = struct.pack(
        ">IHBB16s16s", 6 << 28, len(extensions) + len(body), protocol, 64,
        ip_address(source).packed, ip_address(target).packed,
    )  # fmt: skip
    return head + extensions + body


def ethernet(body, kind=None, tags=b""):
    kind = (0x86DD if body[:1] >= b"\x60" else 0x0800) if kind is None else kind
    return bytes(12) + tags + struct.pack(">H", kind) + body


def pcap(packets, order="<", unit_ns=1000, link=1, snaplen=262144, began_s=1_790_000_000):
    """Return a pcap file; a packet is its time in nanoseconds, its bytes, and maybe its length."""
    magic = 0xA1B2C3D4 if unit_ns == 1000 else 0xA1B23C4D
    parts = [struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, snaplen, link)]
    for time_ns, data, *length in packets:
        seconds, rest = divmod(time_ns, 1_000_000_000)
        kept = data[:snaplen]
        head = (began_s + seconds, rest // unit_ns, len(kept), *(length or [len(data)]))
        parts.append(struct.pack(f"{order}IIII", *head) + kept)
    return b"".join(parts)


def block(kind, body, order="<"):
    body += bytes(-len(body) % 4)
    size = struct.pack(f"{order}I", 12 + len(body))
    return struct.pack(f"{order}I", kind) + size + body + size


def option(code, value, order="<"):
    return struct.pack(f"{order}HH", code, len(value)) + value + bytes(-len(value) % 4)


def section(order="<"):
    return block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(order="<", link=1, options=b""):
    return block(1, struct.pack(f"{order}HHI", link, 0, 0) + options, order)


def enhanced(ticks, data, order="<", number=0, length=None):
    length = len(data) if length is None else length
    head = struct.pack(f"{order}IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, len(data), length)
    return block(6, head + data, order)


def pcapng(packets, order="<", link=1, began_s=1_790_000_000):
    """Return a pcapng file in microseconds, its default."""
    parts = [section(order), interface(order, link)]
    for time_ns, data, *length in packets:
        ticks = began_s * 1_000_000 + time_ns // 1000
        parts.append(enhanced(ticks, data, order, length=length[0] if length else None))
    return b"".join(parts)


MSS, SCALE, SACK_PERMITTED = b"\x02\x04\x03\xe8", b"\x03\x03\x07", b"\x04\x02"


def sack(*blocks):
    body = b"".join(
        struct.pack(">II", start & 0xFFFFFFFF, end & 0xFFFFFFFF) for start, end in blocks
    )
    return b"\x01\x01\x05" + bytes([2 + len(body)]) + body


def trace_of(transfer, link=1, wrap=ethernet, **how):
    """Return a `simulated.Transfer` as a pcap file."""
    packets = []
    for at_us, way, seq, ack, flags, length, ident, sacked in transfer.passed:
        options = MSS + SCALE + SACK_PERMITTED if flags & 2 else sack(*sacked) if sacked else b""
        body = tcp(way, seq, ack, flags, 65535, options=options, size=length)
        packets.append((at_us * 1000, wrap(ipv4(body, way, ident=ident))))
    return pcap(packets, link=link, **how)
