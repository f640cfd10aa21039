"""The filter of the recorder keeps the packets that it is to keep, as the kernel runs it."""

import struct
from ipaddress import ip_address

import pytest

from benchctl.hosts.sent.filter import packet_filter

ONE, OTHER = "10.0.0.1", "10.0.0.2"
ONE6, OTHER6 = "fd00::1", "fd00::2"
LOAD, LOAD_HALF, LOAD_BYTE, EQUAL, TEST, GO, RETURN = 0x20, 0x28, 0x30, 0x15, 0x45, 0x05, 0x06
HEAD_LENGTH, LOAD_BEHIND = 0xB1, 0x40
KNOWN = 0xFFFFF000
SNAP_BYTES = 96


def ip(source, target):
    """A head with these addresses, and nothing else in it."""
    ends = ip_address(source).packed + ip_address(target).packed
    return bytes(12) + ends if len(ends) == 8 else bytes(8) + ends


def kept(program, packet, protocol=None, kind=0, device=2):
    """Run a classic BPF program: how many bytes of a packet does it keep."""
    if protocol is None:
        protocol = 0x0800 if packet[0] >> 4 == 4 or len(packet) == 20 else 0x86DD
    known = {KNOWN: protocol, KNOWN + 4: kind, KNOWN + 8: device}
    at = value = behind = 0

    def loaded(form, place):
        return struct.unpack_from(form, packet, place)[0]

    while True:
        code, yes, no, operand = program[at]
        at += 1
        if code == RETURN:
            return operand
        if code == LOAD:
            value = known[operand] if operand in known else loaded("!I", operand)
        elif code == LOAD_HALF:
            value = loaded("!H", operand)
        elif code == LOAD_BYTE:
            value = loaded("!B", operand)
        elif code == HEAD_LENGTH:
            behind = 4 * (packet[operand] & 0xF)
        elif code == LOAD_BEHIND:
            value = loaded("!I", behind + operand)
        elif code == GO:
            at += operand
        else:
            assert code in (EQUAL, TEST)
            met = value == operand if code == EQUAL else value & operand
            at += yes if met else no


@pytest.mark.parametrize(
    ("addresses", "packet", "is_kept"),
    [
        ([], ip(ONE, OTHER), True),
        ([], ip(ONE6, OTHER6), True),
        ([OTHER], ip(ONE, OTHER), True),
        ([OTHER], ip(OTHER, ONE), True),
        ([OTHER], ip(ONE, "10.0.0.3"), False),
        ([OTHER], ip(ONE6, OTHER6), False),
        ([OTHER6], ip(ONE6, OTHER6), True),
        ([OTHER6], ip(OTHER6, ONE6), True),
        ([OTHER6], ip(ONE6, "fd00::3"), False),
        ([OTHER6], ip(ONE, OTHER), False),
        ([OTHER6, OTHER], ip(ONE, OTHER), True),
        ([OTHER6, OTHER], ip(OTHER6, ONE6), True),
    ],
)
def test_packets_from_or_to_an_address_are_kept(addresses, packet, is_kept):
    program = packet_filter(addresses, SNAP_BYTES)
    assert kept(program, packet) == (SNAP_BYTES if is_kept else 0)


def test_what_is_no_ip_is_not_kept():
    assert kept(packet_filter([], SNAP_BYTES), bytes(28), protocol=0x0806) == 0


def test_what_a_host_sends_to_itself_is_kept_once():
    program, packet = packet_filter([ONE], SNAP_BYTES), ip(ONE, ONE)
    outgoing, incoming = ({"kind": kind, "device": 1} for kind in (4, 0))
    assert kept(program, packet, **outgoing) == 0
    assert kept(program, packet, **incoming) == SNAP_BYTES
    assert kept(program, packet, kind=4, device=2) == SNAP_BYTES


# --- connections that are not kept --------------------------------------------------------------

SSH = (40000, 22)
UDP = 17


def ports(source, target, pair, *, protocol=6, options=0, offset=0):
    """A packet of these ports, with so many words of options in its IPv4 head."""
    ends = [ip_address(one).packed for one in (source, target)]
    body = struct.pack("!HH", *pair) + bytes(16)
    if len(ends[0]) == 16:
        return struct.pack("!IHBB", 6 << 28, len(body), protocol, 64) + b"".join(ends) + body
    head = struct.pack("!BBHHHBBH", 0x45 + options, 0, 0, 0, offset, 64, protocol, 0)
    return head + b"".join(ends) + bytes(4 * options) + body


OTHERS = [(30000 + n, 22) for n in range(200)]


@pytest.mark.parametrize("addresses", [[], [OTHER, OTHER6]])
@pytest.mark.parametrize(
    ("packet", "is_kept"),
    [
        (ports(ONE, OTHER, SSH), False),
        (ports(OTHER, ONE, SSH[::-1]), False),
        (ports(ONE, OTHER, SSH, options=3), False),
        (ports(ONE6, OTHER6, SSH), False),
        (ports(OTHER6, ONE6, SSH[::-1]), False),
        (ports(ONE, OTHER, OTHERS[-1]), False),
        (ports(ONE, OTHER, (40001, 22)), True),
        (ports(ONE, OTHER, (40000, 8088)), True),
        (ports(ONE6, OTHER6, (40001, 22)), True),
        (ports(ONE, OTHER, SSH, protocol=UDP), True),
        (ports(ONE6, OTHER6, SSH, protocol=UDP), True),
        (ports(ONE, OTHER, SSH, offset=100), True),
    ],
)
def test_the_connections_of_ssh_are_not_kept(packet, is_kept, addresses):
    program = packet_filter(addresses, SNAP_BYTES, [SSH, *OTHERS])
    assert kept(program, packet) == (SNAP_BYTES if is_kept else 0)


def test_no_jump_is_longer_than_the_kernel_allows():
    program = packet_filter([OTHER, OTHER6], SNAP_BYTES, [SSH, *OTHERS])
    assert max(max(yes, no) for _, yes, no, _ in program) <= 255
    assert len(program) <= 4096  # BPF_MAXINSNS
