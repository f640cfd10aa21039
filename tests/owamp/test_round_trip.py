import pytest
from hypothesis import given
from hypothesis import strategies as st
from owamp.two_way_parts import FORMATS, NOON_NS, SECOND_NS, SOURCE, HandClock, TwoWay, reflector_of

from benchctl_owamp.simpleowamp.measuring.round_trip import LostWays
from benchctl_owamp.simpleowamp.protocol.two_way import stamp_format


@pytest.fixture(params=FORMATS.values(), ids=FORMATS)
def form(request):
    return request.param


@pytest.mark.parametrize("ahead_ns", [0, 55_000_000, -3600 * SECOND_NS])
def test_the_round_trip_holds_however_wrong_the_reflectors_clock_is(form, ahead_ns):
    [back] = TwoWay(form, ahead_ns=ahead_ns).exchange([0])
    assert back.rtt_ns == 5_000_000
    assert back.reflector_ns == 1_000_000
    assert back.send_ns == 3_000_000 + ahead_ns
    assert back.receive_ns == 2_000_000 - ahead_ns


def test_ttls_numbers_times_and_errors_of_both_ends_are_reported(form):
    first, second = TwoWay(form).exchange([0, 2])
    assert first.sent_ns == NOON_NS + SECOND_NS // 10
    assert (first.ttl, first.reflector_ttl) == (252, 253)
    assert (second.seq, second.reflector_seq) == (2, 1)
    for error in (first.sent_error, first.reflector_error):
        assert error.synchronized
        assert error.error_s == pytest.approx(0.001, rel=0.01)


def test_a_duplicate_is_counted_apart_from_what_was_received(form):
    session = TwoWay(form)
    back = session.exchange(range(3), twice={1})
    assert [(one.seq, one.duplicate) for one in back] == [
        (0, False),
        (1, False),
        (1, True),
        (2, False),
    ]
    assert (session.trip.received, session.trip.duplicates, session.lost) == (3, 1, [])


def test_a_reflector_that_counts_tells_the_way_of_each_loss(form):
    session = TwoWay(form)
    session.exchange(range(10), drop_send={2, 3, 5}, drop_receive={4, 7})
    assert session.lost == [2, 3, 4, 5, 7]
    assert session.lost_ways == LostWays(3, 2)


def test_a_loss_after_the_last_answer_has_no_known_way(form):
    session = TwoWay(form)
    session.exchange(range(10), drop_send={2, 9}, drop_receive={8})
    assert session.lost == [2, 8, 9]
    assert session.lost_ways == LostWays(1, 0)


def test_equal_numbers_on_both_sides_leave_the_way_of_losses_open(form):
    session = TwoWay(form)
    session.exchange(range(5), drop_receive={1, 2})
    assert session.lost_ways is None


def test_of_a_reflector_that_must_count_equal_numbers_are_proof(form):
    session = TwoWay(form, counts=True)
    session.exchange(range(5), drop_receive={1, 2})
    assert session.lost_ways == LostWays(0, 2)


def test_a_reflector_that_goes_on_counting_from_an_earlier_session_still_tells_the_ways(form):
    earlier = TwoWay(form)
    earlier.exchange(range(100))
    session = TwoWay(form, reflector=earlier.reflector)
    session.exchange(range(10), drop_send={2, 3}, drop_receive={5})
    assert session.lost_ways == LostWays(2, 1)


def test_duplicates_do_not_hide_losses(form):
    session = TwoWay(form)
    session.exchange(range(6), twice={0, 3}, drop_send={2}, drop_receive={4})
    assert session.lost_ways == LostWays(1, 1)


def test_without_any_answer_no_way_is_known(form):
    session = TwoWay(form)
    session.exchange(range(3), drop_send=range(3))
    assert (session.trip.received, session.lost) == (0, [0, 1, 2])
    assert session.lost_ways == LostWays(0, 0)


def test_an_answer_to_what_was_not_sent_is_not_believed(form):
    session = TwoWay(form, packets=3)
    reflector = reflector_of(form, HandClock())
    for seq, sent_ns in ((3, NOON_NS), (0, NOON_NS + 3 * SECOND_NS), (0, NOON_NS - 3 * SECOND_NS)):
        probe = session.writer.write(seq, sent_ns, 1)
        answer = reflector.answer(probe, SOURCE, sent_ns, 255)
        assert session.trip.receive(answer, sent_ns, 255) is None
    assert session.trip.received == 0


def test_an_answer_after_the_timeout_is_lost(form):
    session = TwoWay(form)
    probe, sent_ns = session.probe(0)
    answer = session.reflector.answer(probe, SOURCE, sent_ns, 255)
    assert session.trip.receive(answer, sent_ns + 2 * SECOND_NS + 1, 255) is None
    assert session.trip.receive(answer, sent_ns + 2 * SECOND_NS, 255)


@given(packet=st.binary(max_size=200), head=st.booleans())
def test_random_octets_are_no_answers(packet, head):
    for form in FORMATS.values():
        session = TwoWay(form)
        probe, sent_ns = session.probe(0)
        octets = probe[:16] + packet if head else packet
        assert session.trip.receive(octets, sent_ns, 255) is None


def test_a_reflector_with_ptp_timestamps_is_understood():
    # A router's answer: PTP's seconds are of TAI, 37 s ahead of UTC since 2017, then nanoseconds.
    session = TwoWay(stamp_format())
    probe, sent_ns = session.probe(0)
    seconds, sent_fraction_ns = divmod(sent_ns, SECOND_NS)

    def ptp(later_ns):
        return (seconds + 37).to_bytes(4, "big") + (sent_fraction_ns + later_ns).to_bytes(4, "big")

    answer = bytearray(44)
    answer[4:12], answer[16:24] = ptp(4_000_000), ptp(3_000_000)
    answer[12:14] = bytes([0xC0, 1])  # S and Z
    answer[24:38] = probe[:14]
    answer[40] = 254
    back = session.trip.receive(bytes(answer), sent_ns + 6_000_000, 254)
    assert (back.send_ns, back.reflector_ns, back.receive_ns) == (3_000_000, 1_000_000, 2_000_000)
    assert back.reflector_error.ptp
