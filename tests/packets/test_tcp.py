"""Connections: how they opened and ended, zero windows, and whose segment is whose."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packets.test_sending import HANDSHAKE, fed
from packets.written import MSS, SACK_PERMITTED, SCALE, ethernet, ipv4, tcp

from benchctl.packets.connections import MOST_REQUESTS, connections_of
from benchctl.packets.tcp import Connection, Ending
from benchctl.packets.wire.capture import Batch
from benchctl.packets.wire.frames import Frames

SYN, SYN_ACK, FIN_ACK, RST = 2, 18, 17, 4


def found_in(*packets):
    """Return the connections of packets: time, way, and what `tcp` takes."""
    data, places = b"", []
    for time_s, way, segment in packets:
        packet = ethernet(ipv4(tcp(way, **segment), way))
        places.append((time_s, len(data), len(data) + len(packet), len(packet)))
        data += packet
    return connections_of(Frames().segments([Batch(1, data, places)]))


@pytest.mark.parametrize(
    ("segments", "ending"),
    [
        ([(0, 0, 1, 0, SYN, 0), (1, 0, 1, 0, SYN, 0)], Ending.UNANSWERED),
        ([(0, 0, 1, 0, SYN, 0), (1, 1, 0, 2, RST | 16, 0)], Ending.REFUSED),
        ([*HANDSHAKE], Ending.OPEN),
        ([*HANDSHAKE, (1, 0, 100, 500, FIN_ACK, 0)], Ending.HALF_CLOSED),
        (
            [*HANDSHAKE, (1, 0, 100, 500, FIN_ACK, 0), (1, 1, 500, 101, FIN_ACK, 0)],
            Ending.CLOSED,
        ),
        ([*HANDSHAKE, (1, 1, 500, 100, RST, 0)], Ending.RESET),
        ([(0, 0, 1, 2, 16, 0), (1, 1, 2, 1, RST, 0)], Ending.RESET),
    ],
)
def test_how_a_connection_ended_is_what_its_segments_say(segments, ending):
    assert fed(*segments).ending is ending


def test_what_both_ends_announce_is_known():
    one, other = fed(
        (0.0, 0, 99, 0, SYN, 0, 65535, MSS + SCALE + SACK_PERMITTED),
        (0.1, 1, 499, 100, SYN_ACK, 0, 65535, b"\x02\x04\x05\xb4" + SCALE),
    ).halves
    assert (one.mss_bytes, one.scale, one.sack_permitted, one.timestamps) == (1000, 7, True, False)
    assert (other.mss_bytes, other.scale, other.sack_permitted) == (1460, 7, False)
    assert one.segment_bytes == other.segment_bytes == 1000


def test_the_handshake_has_both_halves_of_the_round_trip():
    connection = fed(
        (0.00, 0, 99, 0, SYN, 0), (0.04, 1, 499, 100, SYN_ACK, 0), (0.05, 0, 100, 500, 16, 0)
    )
    assert connection.opener == 0
    assert [half.handshake_s for half in connection.halves] == pytest.approx([0.04, 0.01])


def test_a_syn_that_was_repeated_times_nothing():
    connection = fed(
        (0.0, 0, 99, 0, SYN, 0), (1.0, 0, 99, 0, SYN, 0), (1.05, 1, 499, 100, SYN_ACK, 0)
    )
    half = connection.halves[0]
    assert (half.handshake_s, half.retransmissions.count()) == (None, 1)


def test_windows_are_scaled_but_not_that_of_a_syn():
    half = fed(*HANDSHAKE, (0.1, 1, 500, 100, 16, 0, 100)).halves[0]
    assert (half.window_least_bytes, half.window_most_bytes) == (12800, 65535)


def test_without_the_handshake_only_a_zero_window_is_known():
    half = fed(
        (0.0, 0, 5, 9, 16, 10), (0.1, 1, 9, 15, 16, 0, 50), (0.2, 1, 9, 15, 16, 0, 0)
    ).halves[0]
    assert (half.window_least_bytes, half.window_most_bytes) == (0, 0)


def test_a_zero_window_has_its_length_its_acknowledgements_and_its_probes():
    connection = fed(
        *HANDSHAKE,
        (0.10, 1, 500, 100, 16, 0, 8),
        (0.20, 0, 100, 500, 16, 1024),
        (0.25, 1, 500, 1124, 16, 0, 0),
        (0.50, 0, 1123, 500, 16, 0),
        (0.55, 1, 500, 1124, 16, 0, 0),
        (0.90, 0, 1123, 500, 16, 0),
        (0.95, 1, 500, 1124, 16, 0, 0),
        (1.50, 1, 500, 1124, 16, 0, 100),
        (1.50, 0, 1124, 500, 16, 1000),
        (1.55, 1, 500, 2124, 16, 0, 100),
    )
    (shut,) = connection.shuts
    assert (shut.direction, shut.acks, shut.probes) == (0, 3, 2)
    assert (shut.begin_s, shut.end_s, shut.full_s) == (0.25, 1.5, 0.2)
    # From the data that filled the window to the acknowledgement that opened it.
    waiting = connection.halves[0].waiting
    assert waiting.shares[next(iter(waiting.shares))].total_s == pytest.approx(1.3)
    assert connection.halves[0].keep_alives == 0


def test_a_window_probe_of_a_byte_is_a_probe():
    connection = fed(
        *HANDSHAKE,
        (0.20, 0, 100, 500, 16, 1000),
        (0.25, 1, 500, 1100, 16, 0, 0),
        (0.50, 0, 1100, 500, 16, 1),
        (0.55, 1, 500, 1100, 16, 0, 0),
    )
    assert (connection.shuts[0].probes, connection.shuts[0].end_s) == (1, None)


def test_a_keep_alive_is_neither_data_nor_a_retransmission():
    half = fed(
        *HANDSHAKE,
        (0.2, 0, 100, 500, 16, 1000),
        (0.25, 1, 500, 1100, 16, 0),
        (9.0, 0, 1099, 500, 16, 1),
        (19.0, 0, 1099, 500, 16, 0),
    ).halves[0]
    assert (half.keep_alives, half.retransmissions, half.data_bytes) == (2, None, 1000)


def test_a_syn_of_another_number_is_another_connection_between_the_same_ends():
    found = found_in(
        (0, 0, {"seq": 1, "flags": SYN}),
        (1, 0, {"seq": 1, "flags": SYN}),
        (2, 0, {"seq": 900, "flags": SYN}),
        (3, 1, {"seq": 5, "ack": 901, "flags": SYN_ACK}),
    )
    assert [one.began_s for one in found] == [0, 2]
    assert found[1].halves[0].handshake_s == 1


def test_request_lines_are_kept_as_far_as_they_were_captured():
    (one,) = found_in(
        (0, 0, {"data": b"GET /file?x=1 HTTP/1.1\r\nHost: a\r\n\r\n"}),
        (1, 0, {"seq": 37, "data": b"GET /cut"}),
        (2, 0, {"seq": 45, "data": b"GET out of my way\r\n"}),
        (3, 0, {"seq": 64, "data": b"POST /\x1b[2J\xff HTTP/1.0\r\n"}),
    )
    assert one.requests == [
        "GET /file?x=1 HTTP/1.1", "GET /cut…", "POST /\x1b[2J\\xff HTTP/1.0",
    ]  # fmt: skip
    many = [(n, 0, {"seq": n, "data": b"GET / HTTP/1.0\r\n"}) for n in range(MOST_REQUESTS + 5)]
    assert len(found_in(*many)[0].requests) == MOST_REQUESTS


def test_a_connection_takes_at_most_five_kilobytes():
    """A trace may have a hundred thousand of them."""
    each = [
        *HANDSHAKE,
        (0.1, 0, 100, 500, 24, 100), (0.2, 1, 500, 200, 24, 700, 512, b"", 9),
        (0.3, 0, 200, 1200, FIN_ACK, 0), (0.4, 1, 1200, 201, FIN_ACK, 0),
        (0.5, 0, 201, 1201, 16, 0),
    ]  # fmt: skip
    fed(*each)  # what is made only once
    tracemalloc.start()
    kept = [fed(*each) for _ in range(200)]
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size / len(kept) < 5000


@given(
    st.lists(
        st.tuples(
            st.floats(-1, 3), st.integers(0, 1), st.integers(0, 2**32 - 1),
            st.integers(0, 2**32 - 1), st.integers(0, 255),
            st.sampled_from([0, 0, 1, 2, 1000, 70_000]), st.sampled_from([0, 1, 65535]),
            st.binary(max_size=40), st.integers(0, 3),
        ),
        max_size=40,
    )
)  # fmt: skip
def test_any_segments_make_a_connection(segments):
    connection, at_s = Connection(bytes(12), 0.0), 0.0
    for wait_s, way, seq, ack, flags, length, window, options, ident in segments:
        at_s += wait_s
        connection.feed(at_s, way, 40, seq, ack, flags, window, length, ident, options)
    connection.finish()
    assert isinstance(connection.ending, Ending)
    for half in connection.halves:
        assert 0 <= half.unique_bytes <= half.data_bytes
        assert half.unseen_bytes >= 0
        assert half.absent_bytes >= 0
        assert half.lag_s >= 0
        assert all(rtt_s >= 0 for rtt_s in half.rtt_s)
