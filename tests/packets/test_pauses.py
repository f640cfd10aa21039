"""A receiver that stops reading: its window says when, and for how long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packets.test_sending import HANDSHAKE, fed
from packets.written import SACK_PERMITTED

from benchctl.packets.tcp import Connection

SIZE = 1000
STEP_S = 0.004
"""Between two segments at the receiver's end."""
KEPT_BACK_S = 0.4
"""How long a sender keeps back what is less than a segment, and asks again."""


def downloaded(pauses, buffer_bytes, scale, every):
    """Return the connection of a download, seen at the receiver, which pauses at segments.

    ``pauses`` maps the number of a segment to how long nothing is read from then on. Each
    ``every``-th segment is acknowledged, with a window as Linux rounds it.
    """
    announced = b"\x02\x04" + SIZE.to_bytes(2) + b"\x03\x03" + bytes([scale]) + SACK_PERMITTED
    connection = Connection(bytes(12), 0.0)

    def segment(time_s, way, seq, ack, flags, length, window, options=b""):
        connection.feed(time_s, way, 40 + length, seq, ack, flags, window, length, 0, options)

    segment(0.0, 0, 0, 0, 2, 0, 65535, announced)
    segment(0.0001, 1, 0, 1, 18, 0, 65535, announced)
    time_s, sent, read, edge = 0.05, 1, 1, 1 + buffer_bytes
    segment(time_s, 0, 1, 1, 16, 0, 100)

    def answer(at_s):
        nonlocal edge
        free = -(-max(0, buffer_bytes - (sent - read)) // (1 << scale))
        room = max(free << scale, edge - sent)  # an edge never goes back (RFC 9293, 3.8.6)
        edge = max(edge, sent + (room >> scale << scale))
        segment(at_s, 1, 1, sent, 16, 0, room >> scale)

    answer(time_s)
    for number in range(200):
        length = min(SIZE, edge - sent)
        time_s += STEP_S
        segment(time_s, 0, sent, 1, 16, length, 100)
        sent += length
        if number not in pauses:
            read = sent
            if number % every == 0:
                answer(time_s)
            continue
        began_s, sent_at = time_s, time_s
        answer(time_s)
        while edge - sent >= SIZE:
            sent_at += STEP_S
            segment(sent_at, 0, sent, 1, 16, SIZE, 100)
            sent += SIZE
            answer(sent_at)
        if edge > sent:
            sent_at += KEPT_BACK_S
            segment(sent_at, 0, sent, 1, 16, edge - sent, 100)
            sent = edge
            answer(sent_at)
        time_s = began_s + pauses[number]
        assert time_s > sent_at
        read = sent
        answer(time_s)
    connection.finish()
    return connection


@given(
    st.dictionaries(st.integers(20, 199), st.floats(1.0, 9.0), max_size=3),
    st.integers(8 * SIZE, 100 * SIZE),
    st.integers(0, 10),
    st.integers(1, 3),
)
def test_a_pause_of_the_receiver_is_found_whatever_its_buffer_still_took(
    pauses, buffer_bytes, scale, every
):
    connection = downloaded(pauses, buffer_bytes, scale, every)
    ordered = [pauses[number] for number in sorted(pauses)]
    assert len(connection.shuts) == len(ordered)
    for shut, pause_s in zip(connection.shuts, ordered, strict=True):
        # An edge moves with an acknowledgement; a rounded one may need one more.
        assert shut.pause_s == pytest.approx(pause_s, abs=2 * (every + 1) * STEP_S)
        assert shut.end_s - shut.begin_s < shut.pause_s


def test_a_gap_before_it_is_no_pause_for_what_is_behind_one_cannot_be_read():
    connection = fed(
        *HANDSHAKE,
        (0.1, 1, 500, 100, 16, 0, 24),
        (0.2, 0, 1100, 500, 16, 1000),  # one before it was lost
        (0.2, 1, 500, 100, 16, 0, 24),
        (0.7, 0, 100, 500, 16, 1000),
        (0.7, 0, 2100, 500, 16, 1000),
        (0.8, 1, 500, 3100, 16, 0, 0),
        (1.7, 1, 500, 3100, 16, 0, 24),
    )
    (shut,) = connection.shuts
    assert shut.pause_s == pytest.approx(1.0)


def test_without_the_scale_of_its_windows_a_pause_is_unknown():
    connection = fed(
        (0.0, 0, 5, 9, 16, 10),
        (0.1, 1, 9, 15, 16, 0, 50),
        (0.2, 1, 9, 15, 16, 0, 0),
        (0.3, 1, 9, 15, 16, 0, 50),
    )
    (shut,) = connection.shuts
    assert (shut.end_s, shut.unread_s, shut.pause_s) == (0.3, None, None)
