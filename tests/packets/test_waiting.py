"""What a sender waited for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.packets.sender.seen import Cause
from benchctl.packets.sender.waiting import Waiting

FULL = 1000


def total(waiting, cause):
    share = waiting.shares.get(cause)
    return share.total_s if share else 0.0


def test_a_window_without_room_for_a_segment_is_waited_for():
    waiting = Waiting(0.0, 1, 2001, 0.0, FULL)
    waiting.round_s = 1.0
    waiting.sent(0.0, 1001, FULL)
    waiting.sent(0.0, 2001, FULL)
    waiting.heard(1.0, 2001, 2001)
    waiting.heard(4.0, 2001, 9001)
    waiting.sent(4.0, 3001, FULL)
    waiting.heard(4.5, 3001, 9001)
    waiting.finish()
    assert total(waiting, Cause.WINDOW) == pytest.approx(4.0)
    assert total(waiting, Cause.NETWORK) == pytest.approx(0.5)
    assert (waiting.full_count, waiting.full_s) == (1, 0.0)


def test_a_sender_that_has_all_acknowledged_or_sent_less_than_a_segment_had_nothing_to_send():
    waiting = Waiting(0.0, 1, 90_001, 0.0, FULL)
    waiting.round_s = 1.0
    waiting.sent(0.0, 1001, FULL)
    waiting.sent(0.0, 1301, 300)
    waiting.heard(1.0, 1301, 90_001)
    waiting.sent(5.0, 2301, FULL)
    waiting.heard(6.0, 2301, 90_001)
    waiting.finish()
    assert total(waiting, Cause.APPLICATION) == pytest.approx(5.0)
    assert total(waiting, Cause.NETWORK) == pytest.approx(1.0)


def test_the_silence_before_a_retransmission_by_timeout_is_its_own():
    waiting = Waiting(0.0, 1, 90_001, 0.0, FULL)
    waiting.round_s = 1.0
    waiting.sent(0.0, 1001, FULL)
    waiting.expired(0.4)
    waiting.sent(0.4, 1001, FULL)
    waiting.heard(0.5, 1001, 90_001)
    waiting.finish()
    assert total(waiting, Cause.TIMEOUT) == pytest.approx(0.4)
    assert total(waiting, Cause.NETWORK) == pytest.approx(0.1)


def test_far_from_the_sender_acknowledgements_count_when_they_reach_it():
    """At the receiver, an acknowledgement passes a round trip before the data that answer it."""
    near, far = Waiting(0.0, 1, 2001, 0.0, FULL), Waiting(0.05, 1, 2001, 0.1, FULL)
    for n in range(50):
        at_s = n * 0.1
        near.sent(at_s, 2001 + n * 2000, 2 * FULL)
        near.heard(at_s + 0.1, 2001 + n * 2000, 4001 + n * 2000)
        far.sent(at_s + 0.05, 2001 + n * 2000, 2 * FULL)
        far.heard(at_s + 0.05, 2001 + n * 2000, 4001 + n * 2000)
    near.finish()
    far.finish()
    assert total(near, Cause.WINDOW) == pytest.approx(5.0)
    assert total(far, Cause.WINDOW) == pytest.approx(5.0)
    assert far.flight_bytes == near.flight_bytes == 2000


@given(
    st.lists(
        st.tuples(
            st.floats(0, 2),
            st.booleans(),
            st.integers(0, 5000),
            st.none() | st.integers(0, 5000),
            st.booleans(),
        ),
        max_size=60,
    ),
    st.sampled_from([0.0, 0.3]),
)
def test_the_shares_add_up_to_the_whole_time(events, lag_s):
    waiting, at_s, end, acked = Waiting(0.0, 1, None, lag_s, FULL), 0.0, 1, 1
    for wait_s, is_data, size, room, timeout in events:
        at_s += wait_s
        if is_data:
            end += size
            if timeout:
                waiting.expired(at_s)
            waiting.sent(at_s, end, size)
        else:
            acked = min(end, acked + size)
            waiting.heard(at_s, acked, None if room is None else acked + room)
    waiting.finish()
    shares = waiting.shares.values()
    assert sum(share.total_s for share in shares) == pytest.approx(waiting.lasted_s)
    assert waiting.lasted_s <= at_s + lag_s + 1e-9
    assert all(0 < share.longest_s <= share.total_s + 1e-9 for share in shares)
