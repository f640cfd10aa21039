"""Capture files: their formats, and what is left of damaged ones."""

import gzip
import os
import struct
import threading
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packets.written import block, enhanced, interface, option, pcap, pcapng, section

from benchctl.errors import UsageError
from benchctl.packets.wire import capture as module
from benchctl.packets.wire.capture import Capture

PACKETS = [(0, b"first packet"), (1_500_000, b"the second"), (2_000_000_000, b"last", 1500)]
FORMATS = {
    "pcap": pcap(PACKETS),
    "pcap, big-endian": pcap(PACKETS, ">"),
    "pcap with nanoseconds": pcap(PACKETS, unit_ns=1),
    "pcapng": pcapng(PACKETS),
    "pcapng, big-endian": pcapng(PACKETS, ">"),
}


def read(path):
    """Return all packets with their bytes, and the capture."""
    capture = Capture(path)
    found = [
        (round(time_s * 1e9), batch.data[start:end], length)
        for batch in capture
        for time_s, start, end, length in batch.packets
    ]
    return found, capture


@pytest.fixture
def read_bytes(tmp_path):
    def read_it(data):
        path = tmp_path / "trace"
        path.write_bytes(data)
        return read(path)

    return read_it


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("form", FORMATS)
def test_every_format_gives_the_same_packets(form, packed, read_bytes):
    data = FORMATS[form]
    found, capture = read_bytes(gzip.compress(data) if packed else data)
    assert found == [(at, data, *(length or [len(data)])) for at, data, *length in PACKETS]
    assert capture.form == form.partition(",")[0] + ", gzip" * packed
    assert (capture.packets, capture.faults) == (3, [])
    assert capture.began_ns == 1_790_000_000 * 10**9


@pytest.mark.parametrize("chunk", [1, 7, 30, 64])
@pytest.mark.parametrize("form", FORMATS)
def test_the_size_of_what_is_read_at_once_changes_nothing(form, chunk, read_bytes, monkeypatch):
    whole, _ = read_bytes(FORMATS[form])
    monkeypatch.setattr(module, "CHUNK", chunk)
    found, capture = read_bytes(FORMATS[form])
    assert (found, capture.faults) == (whole, [])


@pytest.mark.parametrize("form", FORMATS)
def test_a_file_that_is_cut_gives_the_packets_before_and_the_place(form, read_bytes):
    data = FORMATS[form]
    whole, _ = read_bytes(data)
    for size in range(4, len(data)):
        found, capture = read_bytes(data[:size])
        assert found == whole[: len(found)]
        if capture.faults:
            (fault,) = capture.faults
            place = int(fault.split(":")[0].removeprefix("byte "))
            assert place < size
            assert "the file is cut: it was truncated, or is still being written" in fault


def test_gzip_that_ends_early_gives_the_packets_before(read_bytes):
    packed = gzip.compress(pcap([(n, bytes([n % 251]) * 900) for n in range(2000)]))
    found, capture = read_bytes(packed[: len(packed) // 2])
    whole = len(zlib.decompressobj(31).decompress(packed[: len(packed) // 2]))
    assert len(found) == (whole - 24) // 916
    assert capture.faults == [
        f"byte {len(packed) // 2:,} of the file, {whole:,} unpacked: the gzip data end here:"
        " the file is cut: it was truncated, or is still being written"
    ]


def test_gzip_of_several_members_is_one_file(read_bytes):
    """As pigz and log rotation write it; padding may follow."""
    data = pcap(PACKETS)
    packed = gzip.compress(data[:50]) + gzip.compress(data[50:]) + bytes(99)
    found, capture = read_bytes(packed)
    assert (len(found), capture.faults) == (3, [])


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "the file is empty"),
        (b"hello, world", "neither pcap nor pcapng: it begins with 68 65 6c 6c"),
        (b"\x1f\x8bnot really", "the gzip data end here"),
        (gzip.compress(b"hello", mtime=0), "neither pcap nor pcapng"),
    ],
)
def test_what_is_no_capture_is_said_in_one_line(data, said, read_bytes):
    with pytest.raises(UsageError, match=said):
        read_bytes(data)


def test_a_file_that_is_not_there_is_said_in_one_line(tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        read(tmp_path / "nothing.pcap")


def test_zero_packets_are_no_fault(read_bytes):
    for data in (pcap([]), pcapng([])):
        found, capture = read_bytes(data)
        assert (found, capture.faults, capture.began_ns) == ([], [], None)


def test_a_length_that_no_packet_has_is_damage_with_its_place(read_bytes):
    data = pcap(PACKETS)
    damaged = data + struct.pack("<IIII", 1, 2, 0x7FFFFFFF, 9) + bytes(100)
    found, capture = read_bytes(damaged)
    assert len(found) == 3
    assert capture.faults == [
        f"byte {len(data)}: no packet has 2,147,483,647 bytes: the file is damaged here"
    ]


def test_a_file_that_grows_is_read_as_far_as_it_went_at_first(tmp_path):
    path = tmp_path / "growing.pcap"
    path.write_bytes(FORMATS["pcap"])
    capture = Capture(path)
    batches = iter(capture)
    count = len(next(batches).packets)
    with path.open("ab") as file:
        file.write(FORMATS["pcap"][24:] * 100_000)
    assert count + sum(len(batch.packets) for batch in batches) == 3


def test_interfaces_of_one_file_have_their_own_clocks_and_links(read_bytes):
    tsresol = option(9, b"\x09")
    binary = option(9, bytes([0x80 | 10]))
    offset = option(14, struct.pack("<q", 1_790_000_000))
    data = (
        section()
        + interface(options=tsresol)
        + interface(link=101, options=binary + offset)
        + enhanced(1_790_000_000_000_000_000, b"nanoseconds")
        + enhanced(512, b"half a second later", number=1)
        + enhanced(1_790_000_001_000_000_000, b"one second later")
    )
    found, capture = read_bytes(data)
    assert [at for at, *_ in found] == [0, 500_000_000, 1_000_000_000]
    assert [batch.link for batch in Capture(capture.path)] == [1, 101, 1]


def test_blocks_of_other_kinds_are_passed_over_and_drops_are_counted(read_bytes):
    drops = option(5, struct.pack("<Q", 17)) + option(7, struct.pack("<Q", 3))
    data = (
        section()
        + interface()
        + block(4, bytes(40))
        + enhanced(1, b"packet")
        + block(0x0BAD, bytes(1000))
        + block(5, struct.pack("<III", 0, 0, 0) + drops)
    )
    found, capture = read_bytes(data)
    assert (len(found), capture.dropped, capture.faults) == (1, 20, [])


def test_drops_of_all_sections_are_added_and_an_interface_counts_on(read_bytes):
    """As mergecap -a and dumpcap's ring of files leave them."""

    def counted(drops):
        return block(5, struct.pack("<III", 0, 0, 0) + option(5, struct.pack("<Q", drops)))

    one = section() + interface() + enhanced(1, b"packet") + counted(5) + counted(17)
    other = section() + interface() + enhanced(2, b"packet") + counted(3)
    assert read_bytes(one + other)[1].dropped == 20


@pytest.mark.parametrize("order", "<>")
def test_packet_blocks_as_they_were_before_are_read_with_their_drops(order, read_bytes):
    def obsolete(ticks, data, lost):
        head = struct.pack(
            f"{order}HHIIII", 0, lost, ticks >> 32, ticks & 0xFFFFFFFF, len(data), 1500
        )
        return block(2, head + data, order)

    data = section(order) + interface(order) + obsolete(1 << 33, b"first packet", 3)
    data += obsolete((1 << 33) + 1_500_000, b"the second", 0xFFFF)
    data += enhanced((1 << 33) + 2_000_000, b"last", order) + obsolete((1 << 33) + 3, b"late", 4)
    found, capture = read_bytes(data)
    assert found == [
        (0, b"first packet", 1500),
        (1_500_000_000, b"the second", 1500),
        (2_000_000_000, b"last", 4),
        (3000, b"late", 1500),
    ]
    assert (capture.dropped, capture.faults) == (7, [])


def test_packets_without_a_time_get_that_of_the_packet_before(read_bytes):
    def simple(data, length):
        return block(3, struct.pack("<I", length) + data)

    data = section() + block(1, struct.pack("<HHI", 1, 0, 8)) + simple(b"packet", 6)
    data += (
        enhanced(1_000_000, b"a second")
        + enhanced(3_000_000, b"the next")
        + simple(b"cut at 8", 99)
    )
    found, capture = read_bytes(data)
    assert found == [
        (0, b"packet", 6),
        (0, b"a second", 8),
        (2_000_000_000, b"the next", 8),
        (2_000_000_000, b"cut at 8", 99),
    ]
    assert capture.faults == [
        "2 packets have no time in the file, and get that of the packet before"
    ]


def test_zeros_behind_the_last_packet_are_damage_with_its_place(read_bytes):
    """As a power failure leaves a file whose space was there before its data."""
    data = FORMATS["pcap"]
    found, capture = read_bytes(data + bytes(200_000))
    assert len(found) == capture.packets == 3
    assert capture.faults == [f"byte {len(data)}: no packet has 0 bytes: the file is damaged here"]


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_a_pipe_is_read_as_a_file_is(packed, tmp_path):
    data = FORMATS["pcap"]
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(
        target=path.write_bytes, args=[gzip.compress(data) if packed else data]
    )
    writer.start()
    found, capture = read(path)
    writer.join()
    assert (len(found), capture.faults) == (3, [])


@pytest.mark.parametrize(("path", "said"), [(".", "Is a directory"), ("/dev/zero", "neither pcap")])
def test_what_is_no_file_is_said_in_one_line(path, said):
    with pytest.raises(UsageError, match=said):
        read(Path(path))


@pytest.mark.parametrize(
    "damaged",
    [
        section() + interface() + struct.pack("<III", 6, 7, 0),
        section() + interface() + struct.pack("<III", 6, 0xFFFFFFF0, 0),
        section() + enhanced(1, b"of no interface"),
        section() + block(3, struct.pack("<I", 6) + b"packet"),
        section() + interface() + block(6, struct.pack("<IIIII", 0, 0, 0, 99, 99)),
    ],
)
def test_a_damaged_block_ends_the_file_with_its_place(damaged, read_bytes):
    found, capture = read_bytes(damaged)
    (fault,) = capture.faults
    assert (found, "damage" in fault, fault.startswith("byte ")) == ([], True, True)


@given(st.sampled_from(list(FORMATS.values())), st.data())
def test_garbage_raises_nothing_of_its_own(tmp_path_factory, data, draw):
    """Any bytes behind a true beginning, or with some of them changed."""
    kept = draw.draw(st.integers(5, len(data)))
    changed = bytearray(data[:kept] + draw.draw(st.binary(max_size=300)))
    for place in draw.draw(st.lists(st.integers(4, len(changed) - 1), max_size=4)):
        changed[place] = draw.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "garbage.pcap"
    path.write_bytes(changed)
    found, capture = read(path)
    assert len(found) == capture.packets
    assert len(capture.faults) <= 1
