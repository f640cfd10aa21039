"""What a receiver counts: by RFC 4656, sections 3.8 and 4.2, and no more work than it is worth."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from owamp.owamp_conversation import REQUEST

from benchctl_owamp.simpleowamp.measuring import receiving as receiving_module
from benchctl_owamp.simpleowamp.measuring.kept import Kept
from benchctl_owamp.simpleowamp.measuring.receiving import Receiving
from benchctl_owamp.simpleowamp.protocol.layouts import RECORD
from benchctl_owamp.simpleowamp.protocol.packets import TestPacket as Packet
from benchctl_owamp.simpleowamp.protocol.records import SkipRange
from benchctl_owamp.simpleowamp.protocol.schedule import FIXED, Slot

SECOND = 1 << 32
START = 3_900_000_000 * SECOND
SID = bytes(16)


def receiving(packets=10):
    return Receiving(SID, (Slot(FIXED, SECOND),), packets, START, 2 * SECOND)


def due(seq):
    return START + (seq + 1) * SECOND


def take(session, seq, late=0, took=0, error=1):
    sent = due(seq) + late
    return session.take(Packet(seq, sent, error), sent + took, 1, 250)


def test_a_packet_in_time_has_a_record():
    record = take(receiving(), 3, late=SECOND, took=SECOND)
    assert record == (3, 1, 1, due(3) + SECOND, due(3) + 2 * SECOND, 250)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_packet_that_was_sent_long_before_or_after_it_arrived_is_discarded(sign):
    assert take(receiving(), 3, took=sign * (2 * SECOND + 1)) is None
    assert take(receiving(), 3, took=sign * 2 * SECOND)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_packet_that_was_sent_long_before_or_after_it_was_due_is_discarded(sign):
    assert take(receiving(), 3, late=sign * (2 * SECOND + 1)) is None
    assert take(receiving(), 3, late=sign * 2 * SECOND)


def test_a_number_beyond_the_session_and_an_error_of_nothing_are_discarded():
    session = receiving()
    assert session.take(Packet(10, due(10), 1), due(10), 1, 255) is None
    assert take(session, 3, error=0x8500) is None


def test_a_number_far_beyond_all_that_arrived_is_not_worth_the_work(monkeypatch):
    monkeypatch.setattr(receiving_module, "_AHEAD", 100)
    session = receiving(1000)
    assert take(session, 150) is None
    assert take(session, 150)  # Now it is near.


@given(
    st.sets(st.integers(0, 29)),
    st.lists(st.integers(0, 29), max_size=6, unique=True).map(sorted),
    st.integers(0, 35),
)
def test_what_was_sent_arrived_or_is_lost(arrived, ends, next_seq):
    session = receiving(30)
    for seq in arrived:
        assert take(session, seq)
    skips = [SkipRange(*pair) for pair in zip(ends[::2], ends[1::2], strict=False)]
    skipped = {seq for skip in skips for seq in range(skip.first_seq, skip.last_seq + 1)}
    lost = list(session.lost_seqs(next_seq, skips))
    assert lost == [seq for seq in range(min(next_seq, 30)) if seq not in arrived | skipped]
    assert session.lost_count(next_seq, skips) == len(lost)
    assert [record.send_time for record in session.lost(lost)] == [due(seq) for seq in lost]


def test_what_is_due_is_worked_out_a_little_at_a_time():
    session = receiving(10)
    assert not session.work_out(due(5), 3)
    assert session.seq_due_at(due(5)) == 3
    assert session.work_out(due(5), 10)
    assert session.seq_due_at(due(5)) == 6
    assert session.seq_due_at(START) == 0


def test_a_lost_packet_is_reported_where_its_timeout_was_over():
    """The timeout is a little less than two intervals: 3 is missed after 4, before 5 arrives."""
    session = receiving()
    arrived = b"".join(
        RECORD.pack_row(take(session, seq)) for seq in range(10) if seq not in (3, 9)
    )
    request = REQUEST._replace(packet_count=10, timeout=2 * SECOND - 1)
    kept = Kept(None, request, arrived, session, True, next_seq=10)
    records = [record for group in kept.groups(0, 9) for record in group]
    assert [record.seq for record in records] == [0, 1, 2, 4, 3, 5, 6, 7, 8, 9]
    assert [record.seq for record in records if record.lost] == [3, 9]
    assert kept.record_count(0, 9) == 10
    assert [record.seq for group in kept.groups(2, 4) for record in group] == [2, 4, 3]
    assert kept.record_count(2, 4) == 3
