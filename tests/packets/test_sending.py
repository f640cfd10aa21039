"""What was sent again and why, against transfers whose truth is known."""

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from packets.simulated import SIZE, Plan, Transfer
from packets.written import MSS, SACK_PERMITTED, SCALE, sack

from benchctl.packets.sender.retransmissions import Why
from benchctl.packets.tcp import Connection, Ending

COPIES = st.tuples(st.integers(0, 39), st.integers(0, 2))
PLANS = st.builds(
    Plan,
    window=st.integers(1, 20),
    rtt_us=st.sampled_from([400, 2_000, 50_000]),
    here=st.sampled_from([0.0, 0.3, 0.5, 1.0]),
    lost_before=st.frozensets(COPIES, max_size=4),
    lost_after=st.frozensets(COPIES, max_size=4),
    doubled=st.frozensets(COPIES, max_size=3),
    late=st.frozensets(COPIES, max_size=3),
    isn=st.sampled_from([0, 1, 0x7FFFFFF0, 0xFFFFFF00, 0xFFFFFFFF - 20 * SIZE]),
    sack=st.booleans(),
    handshake=st.booleans(),
    pause_after=st.frozensets(st.integers(1, 39), max_size=2),
)


def folded(transfer, begin=0, seen=None, watch=None):
    """Return the connection that a trace of this transfer has, from its n-th packet on."""
    passed = transfer.passed[begin:]
    first_us, first_way = passed[0][:2]
    connection = Connection(bytes(12), 0.0)
    connection.halves[first_way].seen = seen
    if watch is not None:
        watch(connection)
    for at_us, way, seq, ack, flags, length, ident, sacked in passed:
        options = MSS + SCALE + SACK_PERMITTED if flags & 2 else sack(*sacked) if sacked else b""
        connection.feed(
            (at_us - first_us) / 1e6, way ^ first_way, 40 + length, seq, ack, flags, 65535, length,
            ident, options,
        )  # fmt: skip
    connection.finish()
    return connection, connection.halves[first_way]


def counts(half):
    retransmissions = half.retransmissions
    return {
        "fast": retransmissions.count(Why.FAST) if retransmissions else 0,
        "timeout": retransmissions.count(Why.TIMEOUT) if retransmissions else 0,
        "out_of_order": half.out_of_order,
        "doubled": half.doubled,
    }


def truth_of(transfer):
    truth = transfer.truth
    return {name: getattr(truth, name) for name in ("fast", "timeout", "out_of_order", "doubled")}


@given(PLANS)
@example(
    Plan(
        segments=40, window=13, rtt_us=400, here=0.0, lost_after=frozenset({(5, 0)}),
        late=frozenset({(17, 0)}), sack=False,
    )
)  # fmt: skip
@example(
    Plan(
        segments=40, window=3, rtt_us=400, here=0.3, doubled=frozenset({(0, 0), (1, 0), (2, 0)}),
        sack=False,
    )
)  # fmt: skip
def test_what_was_sent_again_late_or_twice_is_found_with_its_cause(plan):
    # A retransmission that comes at once after others looks like the original, overtaken.
    plan = replace(plan, handshake=True, lost_before=frozenset() if plan.late else plan.lost_before)
    transfer = Transfer(plan)
    connection, half = folded(transfer)
    found = counts(half)
    if (plan.late or plan.doubled) and half.retransmissions:
        # What is overtaken before the place of the trace may pass there after the loss whose
        # recovery it belongs to, and answers to doubled packets may pass when nothing is in flight
        # there: the trace does not show these causes.
        found["fast"] += half.retransmissions.count(Why.OTHER)
    assert found == truth_of(transfer)
    assert half.unique_bytes == plan.segments * SIZE
    assert (half.unseen_bytes, half.absent_bytes) == (0, 0)
    assert connection.ending is Ending.OPEN


@given(PLANS, st.integers(0, 60))
def test_a_trace_that_begins_in_the_middle_counts_no_byte_twice(plan, begin):
    transfer = Transfer(plan)
    begin = min(begin, len(transfer.passed) - 1)
    half = folded(transfer, begin)[1]
    seen = {one[2] for one in transfer.passed[begin:] if one[5]}
    sent = [one for one in transfer.passed[begin:] if one[5]]
    assert half.unique_bytes == len(seen) * SIZE
    assert half.data_bytes == len(sent) * SIZE
    again = half.retransmissions.count() if half.retransmissions else 0
    assert again + half.out_of_order + half.doubled >= len(sent) - len(seen)


@given(PLANS)
def test_no_round_trip_is_shorter_than_the_way_or_of_bytes_that_were_sent_twice(plan):
    transfer = Transfer(plan)
    half = folded(transfer)[1]
    beyond_us = 2 * (plan.rtt_us // 2 - int(plan.rtt_us // 2 * plan.here))
    assert all(rtt_s >= beyond_us / 1e6 - 1e-9 for rtt_s in half.rtt_s)
    calm = not (plan.lost_before or plan.lost_after or plan.doubled or plan.late)
    if calm:
        # One for each acknowledgement of new data, and the SYN's.
        assert len(half.rtt_s) == plan.segments + plan.handshake
        assert half.rtt_s == pytest.approx([beyond_us / 1e6] * len(half.rtt_s))


def test_sequence_numbers_that_wrap_change_nothing():
    plan = Plan(segments=40, lost_after=frozenset({(9, 0)}), isn=0)
    before, after = (folded(Transfer(replace(plan, isn=isn)))[1] for isn in (0, 0xFFFFFFFF - 9500))
    assert counts(before) == counts(after)
    assert before.rtt_s == after.rtt_s


def fed(*segments):
    """Return the connection of segments: time, way, seq, ack, flags, length and more."""
    connection = Connection(bytes(12), 0.0)
    for time_s, way, seq, ack, flags, length, *more in segments:
        window, options, ident = (*more, *(65535, b"", 0)[len(more) :])
        connection.feed(time_s, way, 40 + length, seq, ack, flags, window, length, ident, options)
    connection.finish()
    return connection


HANDSHAKE = (
    (0.00, 0, 99, 0, 2, 0, 65535, MSS + SCALE + SACK_PERMITTED),
    (0.05, 1, 499, 100, 18, 0, 65535, MSS + SCALE + SACK_PERMITTED),
    (0.05, 0, 100, 500, 16, 0, 512),
)


def test_a_duplicate_sack_marks_the_retransmission_that_was_needless():
    half = fed(
        *HANDSHAKE,
        (0.1, 0, 100, 500, 16, 1000),
        (0.5, 0, 100, 500, 16, 1000),
        (0.51, 1, 500, 1100, 16, 0, 512),
        (0.55, 1, 500, 1100, 16, 0, 512, sack((100, 1100))),
    ).halves[0]
    assert (half.dsacks, half.retransmissions.count(needless=True)) == (1, 1)
    assert half.retransmissions.count(Why.TIMEOUT) == 1


def test_a_duplicate_sack_of_a_doubled_packet_blames_no_retransmission():
    half = fed(
        *HANDSHAKE,
        (0.1, 0, 100, 500, 16, 1000, 512, b"", 77),
        (0.1, 0, 100, 500, 16, 1000, 512, b"", 77),
        (0.15, 1, 500, 1100, 16, 0, 512),
        (0.15, 1, 500, 1100, 16, 0, 512, sack((100, 1100))),
    ).halves[0]
    assert (half.doubled, half.dsacks, half.retransmissions) == (1, 1, None)


def test_the_newest_segment_alone_after_silence_is_a_probe():
    half = fed(
        *HANDSHAKE,
        (0.1, 0, 100, 500, 16, 1000),
        (0.1, 0, 1100, 500, 16, 1000),
        (0.2, 0, 1100, 500, 16, 1000),
    ).halves[0]
    assert half.retransmissions.count(Why.PROBE) == 1


def test_bytes_that_were_acknowledged_and_never_seen_are_missing_in_the_trace():
    half = fed(
        *HANDSHAKE,
        (0.1, 0, 100, 500, 16, 1000),
        (0.15, 1, 500, 3100, 16, 0, 512),
        (0.2, 0, 3100, 500, 16, 1000),
        (0.2, 0, 5100, 500, 16, 1000),
    ).halves[0]
    assert (half.unseen_bytes, half.absent_bytes, half.unique_bytes) == (2000, 1000, 3000)


def test_duplicate_acknowledgements_change_neither_number_nor_window():
    acks = [(0.15, 1, 500, 100, 16, 0, 512)] * 5 + [(0.16, 1, 500, 100, 16, 0, 600)]
    half = fed(*HANDSHAKE, (0.1, 0, 100, 500, 16, 1000), *acks).halves[0]
    # The first of these changes the window from the handshake's.
    assert (half.duplicate_acks, half.triple_acks) == (4, 1)


def test_each_part_of_a_large_segment_has_its_round_trip():
    """Offloads split segments after the trace has seen them."""
    half = fed(
        *HANDSHAKE,
        (0.1, 0, 100, 500, 16, 3000),
        (0.15, 1, 500, 1100, 16, 0, 512),
        (0.16, 1, 500, 3100, 16, 0, 512),
    ).halves[0]
    assert list(half.rtt_s)[1:] == pytest.approx([0.05, 0.06])
