"""The recorder keeps the packets that it is to keep, and writes them as others read them."""

import io
import struct
from ipaddress import ip_address

import pytest

from benchctl.hosts.recorder import (
    _IN,
    _OUT,
    _ROOM,
    _SPARED_BYTES,
    in_place,
    packet_filter,
    packets,
    record,
)
from benchctl.packets.capture import Capture

ONE, OTHER = "10.0.0.1", "10.0.0.2"
ONE6, OTHER6 = "fd00::1", "fd00::2"
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
KNOWN = 0xFFFFF000
SNAP_BYTES = 96


def ip(source, target):
    """A head with these addresses, and nothing else in it."""
    ends = ip_address(source).packed + ip_address(target).packed
    return bytes(12) + ends if len(ends) == 8 else bytes(8) + ends


def kept(program, packet, protocol=None, kind=0, device=2):
    """Run a classic BPF program: how many bytes of a packet does it keep."""
    if protocol is None:
        protocol = 0x0800 if len(packet) == 20 else 0x86DD
    known = {KNOWN: protocol, KNOWN + 4: kind, KNOWN + 8: device}
    at = value = 0
    while True:
        code, yes, no, operand = program[at]
        if code == RETURN:
            return operand
        if code == LOAD:
            (value,) = (
                (known[operand],) if operand in known else struct.unpack_from("!I", packet, operand)
            )
            at += 1
        else:
            assert code == EQUAL
            at += 1 + (yes if value == operand else no)


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


# --- from blocks to a file ------------------------------------------------------------------


def block(*recorded):
    """A block of the ring as the kernel fills it: struct tpacket_block_desc, tpacket3_hdr."""
    body = b""
    for time_ns, outgoing, size, data in recorded:
        room = 80 + -(-len(data) // 16) * 16
        head = struct.pack("=IIIIIIHH", room, *divmod(time_ns, 10**9), len(data), size, 0, 80, 80)
        address = struct.pack("=HHiHBB8s", 17, 8, 2, 1, 4 if outgoing else 0, 6, bytes(8))
        body += (head.ljust(48, b"\0") + address).ljust(80, b"\0") + data.ljust(room - 80, b"\0")
    head = struct.pack("=IIIIII", 1, 0, 1, len(recorded), 48, 48 + len(body))
    return head.ljust(48, b"\0") + body


def datagram(number):
    """An IPv4 datagram of UDP that carries nothing."""
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28, number, 0, 64, 17, 0,
                       ip_address(ONE).packed, ip_address(OTHER).packed)  # fmt: skip
    return head + struct.pack("!HHHH", 1000, 2000, 8, 0)


PACKETS = [
    (1_700_000_000_000_000_001, True, 28, datagram(1)),
    (1_700_000_000_000_000_999, False, 1500, datagram(2) + bytes(3)),
    (1_700_000_005_000_000_000, True, 28, datagram(3)),
]


def test_blocks_have_their_packets_in_order():
    found = list(packets(io.BytesIO(block(*PACKETS[:2]) + block() + block(PACKETS[2]))))
    assert found == [
        (time_ns, _OUT if outgoing else _IN, size, data)
        for time_ns, outgoing, size, data in PACKETS
    ]


class Blocks:
    """A ring that has some blocks, and is always ready to be looked at once more."""

    def __init__(self, *blocks):
        self._blocks = list(blocks)

    def fileno(self):
        raise AssertionError("nobody waits for it")

    def take(self):
        while self._blocks:
            one = self._blocks.pop(0)
            yield struct.unpack_from("=12xI", one)[0], memoryview(one)


def test_what_exceeds_the_size_is_counted_and_left_out(monkeypatch):
    first, second = block(*PACKETS[:2]), block(PACKETS[2])
    waits = iter([([], [], []), ([3], [], []), ([], [], [])])
    monkeypatch.setattr("select.select", lambda *_: next(waits))
    file = io.BytesIO()
    assert record(Blocks(first, second), file, len(first) + 10, 3, lambda: 1 << 40) == (1, None)
    assert file.getvalue() == first


def test_a_disk_that_is_full_keeps_what_was_written_and_counts_the_rest(monkeypatch):
    blocks = [block(*PACKETS[:2]), block(PACKETS[2]), block(PACKETS[2], PACKETS[2])]
    waits = iter([([], [], []), ([3], [], []), ([], [], [])])
    monkeypatch.setattr("select.select", lambda *_: next(waits))

    class Full(io.BytesIO):
        def write(self, data):
            return super().write(data[: len(blocks[0]) + 5 - self.tell()])

    file = Full()
    left_out, error = record(Blocks(*blocks), file, 1 << 20, 3, lambda: 1 << 40)
    assert (left_out, error.strerror) == (3, "No space left on device")
    assert len(list(packets(io.BytesIO(file.getvalue())))) == 2


def test_a_part_of_the_disk_is_left_to_the_store(monkeypatch):
    waits = iter([([], [], []), ([3], [], []), ([], [], [])])
    monkeypatch.setattr("select.select", lambda *_: next(waits))
    free = iter([_SPARED_BYTES, _SPARED_BYTES - 1])
    file = io.BytesIO()
    left_out, error = record(Blocks(*[block(*PACKETS)] * 3), file, 1 << 20, 3, lambda: next(free))
    assert (left_out, error.strerror) == (6, "No space left on device")
    assert file.getvalue() == block(*PACKETS)


def test_the_file_is_read_by_others(tmp_path):
    file = tmp_path / "a.pcapng"
    # The packets of the last block did not all come to the disk.
    file.write_bytes(bytes(_ROOM) + block(*PACKETS) + block(*PACKETS)[:150])
    assert in_place(file, "sender", SNAP_BYTES, 5, 2) == 3
    capture = Capture(file)
    read = [
        (batch.link, round(time_s * 1e9), batch.data[begins:ends], size)
        for batch in capture
        for time_s, begins, ends, size in batch.packets
    ]
    began_ns = PACKETS[0][0]
    assert read == [(101, ns - began_ns, data, size) for ns, _, size, data in PACKETS]
    assert (capture.began_ns, capture.dropped, capture.faults) == (began_ns, 2, [])
