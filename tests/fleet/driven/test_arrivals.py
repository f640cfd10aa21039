"""Messages of an end are taken once and in order, however they come."""

from hypothesis import given
from hypothesis import strategies as st

from benchctl.fleet.driven.arrivals import Arrivals
from benchctl.fleet.host_messages import EndOver, Events
from benchctl.fleet.messages import EndRef

REF = EndRef("run", 0, 1, "bulk", "client")


def messages(count):
    return [
        *(Events(REF, number, []) for number in range(1, count)), EndOver(REF, count, 0.0, 0),
    ]  # fmt: skip


@given(st.integers(1, 12), st.integers(0, 12), st.randoms(use_true_random=False))
def test_any_order_with_any_repeats_gives_each_once(count, last, random):
    sent = messages(count) * 2
    random.shuffle(sent)
    arrivals = Arrivals(last)
    taken = [one.number for message in sent for one in arrivals.take(message)]
    assert taken == [*range(last + 1, count + 1)]
    assert arrivals.is_over == (count > last)


def test_what_waits_for_a_message_that_never_comes_has_a_bound(monkeypatch):
    monkeypatch.setattr("benchctl.fleet.driven.arrivals._MOST_EARLY", 3)
    arrivals = Arrivals()
    sent = messages(8)
    assert [one for message in sent[1:] for one in arrivals.take(message)] == []
    # The others come again: they are not committed.
    taken = [one.number for message in (*sent, *sent) for one in arrivals.take(message)]
    assert taken == [*range(1, 9)]


def test_the_end_of_a_killed_agent_is_believed_whatever_its_number():
    arrivals = Arrivals(last=5)
    lost = EndOver(REF, 2, 0.0, None, lost="it was ended")
    assert [*arrivals.take(lost), *arrivals.take(lost)] == [lost]
    assert [*arrivals.take(Events(REF, 6, []))] == []


def test_what_the_spool_of_a_killed_agent_had_is_taken_before_its_end():
    arrivals = Arrivals(last=5)
    lost = EndOver(REF, 8, 0.0, None, lost="it was ended")
    left = [Events(REF, number, []) for number in (6, 7)]
    assert [one for message in (lost, *left) for one in arrivals.take(message)] == [*left, lost]
