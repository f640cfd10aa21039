"""Traces that begin inside a recovery: no cause without a round trip to know it by."""

from hypothesis import given
from hypothesis import strategies as st
from packets.simulated import Plan, Transfer
from packets.test_sending import COPIES, folded

from benchctl.packets.sender.retransmissions import Why


@given(
    st.frozensets(COPIES, min_size=1, max_size=6),
    st.integers(0, 100),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.sampled_from([400, 2_000, 50_000]),
    st.booleans(),
)
def test_a_trace_that_begins_in_the_middle_names_no_more_timeouts_than_there_were(
    lost, begin, here, rtt_us, sack
):
    plan = Plan(
        lost_before=lost if here else frozenset(), lost_after=lost, here=here, rtt_us=rtt_us,
        window=10, sack=sack,
    )  # fmt: skip
    transfer = Transfer(plan)
    begin = min(begin, len(transfer.passed) - 1)
    whole, rest = (folded(transfer, n)[1].retransmissions for n in (0, begin))
    if rest is not None:
        assert whole is not None
        assert rest.count(Why.TIMEOUT) <= whole.count(Why.TIMEOUT)
        assert rest.count(needless=True) <= whole.count(needless=True)


def test_what_is_sent_again_before_any_round_trip_has_no_cause():
    """36 losses of one window; the trace begins when they are sent again."""
    lost = frozenset((n, 0) for n in range(200, 236))
    transfer = Transfer(Plan(segments=400, window=40, lost_after=lost))
    first = next(at for at, one in enumerate(transfer.passed) if one[5] and _again(transfer, at))
    whole, rest = (folded(transfer, n)[1].retransmissions for n in (0, first))
    assert (whole.count(), whole.count(needless=True)) == (36, 0)
    assert rest.count(needless=True) == 0
    assert rest.count(Why.TIMEOUT) == 0
    assert rest.count() >= 34  # one fills what was passed over before the trace began


def _again(transfer, at):
    seq = transfer.passed[at][2]
    return any(one[5] and one[2] == seq for one in transfer.passed[:at])
