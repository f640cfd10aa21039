"""Headers: every link layer and network layer gives the same segment; all else is counted."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packets.written import ethernet, ipv4, ipv6, tcp, udp

from benchctl.packets.wire.capture import Batch
from benchctl.packets.wire.frames import Frames, names_of, reverse
from benchctl.packets.wire.tunnels import MOST_NESTED

SEGMENT = tcp(seq=7, ack=9, flags=24, window=512, data=b"hello")
FOUR, SIX = ipv4(SEGMENT, ident=77), ipv6(SEGMENT)


def batch(*packets, link=1):
    data, places = b"", []
    for packet in packets:
        places.append((0.0, len(data), len(data) + len(packet), len(packet)))
        data += packet
    return Batch(link, data, places)


def read(*packets, link=1):
    frames = Frames()
    return list(frames.segments([batch(*packets, link=link)])), frames


VLAN = struct.pack(">HH", 0x8100, 5)
LINKS = {
    "Ethernet": (1, ethernet),
    "VLAN": (1, lambda body: ethernet(body, tags=VLAN)),
    "VLAN in VLAN": (1, lambda body: ethernet(body, tags=struct.pack(">HH", 0x88A8, 9) + VLAN)),
    "Linux cooked": (113, lambda body: bytes(14) + ethernet(body)[12:]),
    "Linux cooked v2": (276, lambda body: ethernet(body)[12:14] + bytes(18) + body),
    "raw IP": (101, lambda body: body),
    "NULL": (0, lambda body: struct.pack("<I", 2) + body),
    "LOOP": (108, lambda body: struct.pack(">I", 24) + body),
}


@pytest.mark.parametrize("body", [FOUR, SIX], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize("name", LINKS)
def test_every_link_layer_gives_the_same_segment(name, body):
    link, wrap = LINKS[name]
    packet = wrap(body) + bytes(6)  # the padding of a short Ethernet frame is no data
    segments, _ = read(packet, link=link)
    (_, ends, wire, seq, ack, flags, window, length, ident, data, _, start, _) = segments[0]
    assert (seq, ack, flags, window, length, wire) == (7, 9, 24, 512, 5, len(packet))
    assert data[start : start + length] == b"hello"
    assert ident == (77 if body is FOUR else 0)
    names = names_of(ends)
    assert names == (
        ("10.0.0.1:40000", "10.0.0.2:5201")
        if body is FOUR
        else ("[2001:db8::1]:40000", "[2001:db8::2]:5201")
    )
    assert names_of(reverse(ends)) == names[::-1]


OUTER = ("192.0.2.1", "192.0.2.2")


def in_udp(port, head):
    return lambda body: ethernet(
        ipv4(udp(data=head + ethernet(body), ports=(50000, port)), protocol=17, ends=OUTER)
    )


def in_gre(head, wrap=lambda body: body):
    return lambda body: ethernet(ipv4(head + wrap(body), protocol=47, ends=OUTER))


def of_ip(body):
    return struct.pack(">H", 0x86DD if body[:1] >= b"\x60" else 0x0800)


def in_ppp(body):
    return b"\x00\x57" + body if body[:1] >= b"\x60" else b"\x21" + body


TUNNELS = {
    "VXLAN": (1, in_udp(4789, b"\x08" + bytes(7))),
    "VXLAN of Linux": (1, in_udp(8472, b"\x08" + bytes(7))),
    "Geneve": (1, in_udp(6081, b"\x02\x00\x65\x58" + bytes(12))),
    "IP in IP": (
        1, lambda body: ethernet(
            ipv4(body, protocol=41 if body[:1] >= b"\x60" else 4, ends=OUTER)
        ),
    ),
    "IP in IPv6": (
        1, lambda body: ethernet(ipv6(body, protocol=41 if body[:1] >= b"\x60" else 4)),
    ),
    "GRE": (1, lambda body: in_gre(bytes(2) + of_ip(body))(body)),
    "GRE with a key and numbers": (
        1, lambda body: in_gre(b"\xb0\x00" + of_ip(body) + bytes(12))(body),
    ),
    "GRE of Ethernet": (1, in_gre(b"\x00\x00\x65\x58", ethernet)),
    "PPTP": (1, in_gre(b"\x30\x81\x88\x0b" + bytes(12), in_ppp)),
    "PPPoE": (1, lambda body: ethernet(bytes(6) + in_ppp(body), kind=0x8864)),
    "PPP": (9, lambda body: b"\xff\x03" + in_ppp(body)),
    "PPP as in HDLC": (50, in_ppp),
    "PPPoE without Ethernet": (51, lambda body: bytes(6) + in_ppp(body)),
    "HDLC of Cisco": (104, lambda body: b"\x0f\x00" + of_ip(body) + body),
    "PPP of pppd": (166, lambda body: b"\x01\xff\x03" + in_ppp(body)),
    "VXLAN in GRE": (
        1, lambda body: in_gre(bytes(2) + b"\x08\x00")(in_udp(4789, b"\x08" + bytes(7))(body)[14:]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("body", [FOUR, SIX], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize("name", TUNNELS)
def test_what_a_tunnel_carries_is_the_segment_that_it_was_before(name, body):
    link, wrap = TUNNELS[name]
    segments, frames = read(wrap(body), link=link)
    (_, ends, wire, *rest) = segments[0]
    assert (rest[:5], wire) == ([7, 9, 24, 512, 5], len(wrap(body)))
    assert names_of(ends)[0] in ("10.0.0.1:40000", "[2001:db8::1]:40000")
    assert not frames.exchanges
    assert frames.tunnels.total() == (link == 1) + (name == "VXLAN in GRE")


def test_what_is_no_ip_or_lies_too_deep_counts_as_traffic_of_its_tunnel():
    arp = in_udp(4789, b"\x08" + bytes(7))(bytes(28))
    deep = FOUR
    for _ in range(MOST_NESTED + 1):
        deep = ipv4(deep, protocol=4, ends=OUTER)
    cut = ethernet(ipv4(FOUR, protocol=4))[:60]
    lcp = ethernet(bytes(6) + b"\xc0\x21" + bytes(20), kind=0x8864)
    segments, frames = read(arp[:62] + b"\x08\x06" + arp[64:], ethernet(deep), cut, lcp)
    counted = [one.protocol for one in frames.exchanges.values()]
    assert (segments, counted) == ([], ["UDP", "IP in IP"])
    assert frames.unread == {"cut too short": 1, "EtherType 0x8864": 1}


EXTENSIONS = {
    "hop-by-hop": (0, bytes([6, 1]) + bytes(14)),
    "routing": (43, bytes([6, 0]) + bytes(6)),
    "destination": (60, bytes([6, 2]) + bytes(22)),
    "atomic fragment": (44, bytes([6, 0, 0, 0]) + bytes(4)),
    "authentication": (51, bytes([6, 1]) + bytes(10)),
    "two": (0, bytes([60, 0]) + bytes(6) + bytes([6, 0]) + bytes(6)),
}


@pytest.mark.parametrize("name", EXTENSIONS)
def test_ipv6_extension_headers_are_passed_over(name):
    protocol, extensions = EXTENSIONS[name]
    (segment,), _ = read(ethernet(ipv6(SEGMENT, protocol=protocol, extensions=extensions)))
    assert segment[3:8] == (7, 9, 24, 512, 5)


def test_ipv4_options_and_tcp_options_are_passed_over():
    body = tcp(seq=7, data=b"hello", options=b"\x02\x04\x05\xb4")
    (segment,), _ = read(ethernet(ipv4(body, options=bytes(8))))
    data, options_at, start = segment[9], segment[10], segment[11]
    assert (segment[7], data[options_at:start]) == (5, b"\x02\x04\x05\xb4")


def test_a_packet_that_offloading_made_longer_than_ip_can_say_has_its_length_on_the_wire():
    (segment,), _ = read(ethernet(ipv4(tcp(size=70_000), total=0)))
    assert segment[7] == 70_000


def test_headers_alone_are_enough():
    packet = ethernet(ipv4(tcp(size=1400)))
    frames = Frames()
    (segment,) = frames.segments([Batch(1, packet[:54], [(0.0, 0, 54, len(packet))])])
    assert (segment[7], segment[2]) == (1400, 1454)


def test_an_ip_length_beyond_the_frame_is_no_data():
    """Damage; tshark takes the length of the frame, too."""
    (segment,), _ = read(ethernet(ipv4(SEGMENT, total=60_000)))
    assert segment[7] == 5


def test_fragments_are_counted_and_are_no_segments():
    first, later = ipv4(SEGMENT, fragment=0x2000), ipv4(SEGMENT, fragment=185)
    of_six = ipv6(udp(), protocol=44, extensions=bytes([17, 0, 0, 1]) + bytes(4))
    segments, frames = read(*map(ethernet, (first, later, of_six)))
    counted = {one.protocol: one.packets for one in frames.exchanges.values()}
    assert (segments, counted) == ([], {"TCP fragments": 2, "UDP fragments": 1})


def test_other_protocols_have_their_counts_each_way():
    pings = [ethernet(ipv4(bytes(64), way, protocol=1)) for way in (0, 1, 0)]
    datagrams = [ethernet(ipv4(udp(way, b"x" * 100), way, protocol=17)) for way in (0, 0, 1)]
    tunnel = ethernet(ipv4(bytes(40), protocol=47))
    _, frames = read(*pings, *datagrams, tunnel)
    counted = [(one.protocol, names_of(one.ends)[0], one.packets, one.bytes_count)
               for one in frames.exchanges.values()]  # fmt: skip
    assert counted == [
        ("ICMP", "10.0.0.1", 2, 196),
        ("ICMP", "10.0.0.2", 1, 98),
        ("UDP", "10.0.0.1:40000", 2, 284),
        ("UDP", "10.0.0.2:5201", 1, 142),
        ("GRE", "10.0.0.1", 1, 74),
    ]


def test_quic_is_known_by_its_long_header_both_ways():
    hello = udp(data=b"\xc3\x00\x00\x00\x01" + bytes(20))
    short = [udp(way, b"\x43" + bytes(20)) for way in (0, 1)]
    ways = [(hello, 0), (short[0], 0), (short[1], 1)]
    _, frames = read(*(ethernet(ipv4(body, way, protocol=17)) for body, way in ways))
    assert [(one.protocol, one.packets) for one in frames.exchanges.values()] == [
        ("QUIC", 2), ("QUIC", 1),
    ]  # fmt: skip


def test_what_cannot_be_read_is_counted_by_what_it_is():
    arp = ethernet(bytes(28), kind=0x0806)
    cut = ethernet(FOUR)[:40]
    wrong = ethernet(b"\x44" + FOUR[1:])
    segments, frames = read(arp, cut, wrong)
    _, unknown = read(bytes(60), link=105)
    assert (segments, frames.unread) == (
        [], {"EtherType 0x0806": 1, "cut too short": 1, "malformed": 1},
    )  # fmt: skip
    assert unknown.unread == {"link type 105": 1}


@st.composite
def changed(draw):
    """Return a packet with one byte changed, maybe cut."""
    packets = [ethernet(FOUR), ethernet(SIX), *(wrap(FOUR) for _, wrap in TUNNELS.values())]
    packet = bytearray(draw(st.sampled_from(packets)))
    packet[draw(st.integers(0, len(packet) - 1))] = draw(st.integers(0, 255))
    return bytes(packet[: draw(st.integers(0, len(packet)))])


@given(
    st.sampled_from([0, 1, 9, 12, 51, 101, 104, 108, 113, 204, 276, 105]),
    st.lists(st.binary(max_size=120) | changed(), max_size=5),
)
def test_every_packet_is_counted_once_whatever_it_holds(link, packets):
    segments, frames = read(*packets, link=link)
    exchanged = sum(one.packets for one in frames.exchanges.values())
    assert len(segments) + exchanged + frames.unread.total() == len(packets) == frames.packets
