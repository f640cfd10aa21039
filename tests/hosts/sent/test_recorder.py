"""The recorder keeps the packets that it is to keep, and writes them as others read them."""

import io
import struct
import zlib
from collections import deque
from ipaddress import ip_address

from benchctl.hosts.sent.recorder import (
    _IN,
    _OUT,
    _SPARED_BYTES,
    ROOM,
    blocks_in,
    in_memory,
    in_place,
    on_disk,
    packets,
    record,
    send,
    why_not,
)
from benchctl.packets.wire.capture import Capture

ONE, OTHER = "10.0.0.1", "10.0.0.2"
SNAP_BYTES = 96


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
    found = list(packets([block(*PACKETS[:2]), block(), block(PACKETS[2])]))
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
    keep = on_disk(file, lambda: 1 << 40)
    assert record(Blocks(first, second), keep, len(first) + 10, 3) == (1, None)
    assert file.getvalue() == first


def test_a_disk_that_is_full_keeps_what_was_written_and_counts_the_rest(monkeypatch):
    blocks = [block(*PACKETS[:2]), block(PACKETS[2]), block(PACKETS[2], PACKETS[2])]
    waits = iter([([], [], []), ([3], [], []), ([], [], [])])
    monkeypatch.setattr("select.select", lambda *_: next(waits))

    class Full(io.BytesIO):
        def write(self, data):
            return super().write(data[: len(blocks[0]) + 5 - self.tell()])

    file = Full()
    left_out, error = record(Blocks(*blocks), on_disk(file, lambda: 1 << 40), 1 << 20, 3)
    assert (left_out, error.strerror) == (3, "No space left on device")
    assert len(list(packets(blocks_in(io.BytesIO(file.getvalue()))))) == 2


def test_a_part_of_the_disk_is_left_to_the_store(monkeypatch):
    waits = iter([([], [], []), ([3], [], []), ([], [], [])])
    monkeypatch.setattr("select.select", lambda *_: next(waits))
    free = iter([_SPARED_BYTES, _SPARED_BYTES - 1])
    file = io.BytesIO()
    left_out, error = record(
        Blocks(*[block(*PACKETS)] * 3), on_disk(file, lambda: next(free)), 1 << 20, 3
    )
    assert (left_out, error.strerror) == (6, "No space left on device")
    assert file.getvalue() == block(*PACKETS)


def test_the_file_is_read_by_others(tmp_path):
    file = tmp_path / "a.pcapng"
    # The packets of the last block did not all come to the disk.
    file.write_bytes(bytes(ROOM) + block(*PACKETS) + block(*PACKETS)[:150])
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


def test_a_host_that_writes_nothing_keeps_blocks_in_memory_and_sends_the_same_file(
    tmp_path, monkeypatch
):
    waits = iter([([], [], []), ([3], [], []), ([], [], [])])
    monkeypatch.setattr("select.select", lambda *_: next(waits))
    held = deque()
    keep = in_memory(held, lambda: 1 << 40)
    assert record(Blocks(block(*PACKETS[:2]), block(PACKETS[2])), keep, 1 << 20, 3) == (0, None)
    target = io.BytesIO()
    assert send(held, target, "sender", SNAP_BYTES, 5, 2) == 3
    assert not held
    file = tmp_path / "a.pcapng"
    file.write_bytes(bytes(ROOM) + block(*PACKETS))
    in_place(file, "sender", SNAP_BYTES, 5, 2)
    assert zlib.decompress(target.getvalue()) == file.read_bytes()


def test_a_part_of_the_memory_is_left_to_others(monkeypatch):
    waits = iter([([], [], []), ([3], [], []), ([], [], [])])
    monkeypatch.setattr("select.select", lambda *_: next(waits))
    free = iter([_SPARED_BYTES, _SPARED_BYTES - 1])
    held = deque()
    keep = in_memory(held, lambda: next(free))
    left_out, error = record(Blocks(*[block(*PACKETS)] * 3), keep, 1 << 20, 3)
    assert (left_out, error.strerror) == (6, "Cannot allocate memory")
    assert list(held) == [block(*PACKETS)]


def test_a_system_without_packet_sockets_is_named(monkeypatch):
    monkeypatch.delattr("socket.AF_PACKET", raising=False)
    monkeypatch.setattr("sys.platform", "darwin")
    assert why_not() == "there are no packet sockets on darwin"


def test_a_user_who_may_not_record_is_told_so(monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("socket.AF_PACKET", 17, raising=False)
    monkeypatch.setattr("socket.socket", refuse)
    assert why_not() == "packet socket: Operation not permitted"
