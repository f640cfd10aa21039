"""The pure parts that make figures: intervals, arrivals, pacing, TCP_INFO, results."""

import itertools
import math
import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory import at_most
from simpleperf.simpleperf_harness import FEWER, REPEATABLE

from benchctl_simpleperf.simpleperf.measuring.datagrams import (
    SECOND_0,
    Arrivals,
    Reception,
    Train,
    row_of,
)
from benchctl_simpleperf.simpleperf.measuring.pacing import Pacer
from benchctl_simpleperf.simpleperf.measuring.tcp_info import read_tcp_info, read_waiting
from benchctl_simpleperf.simpleperf.protocol.intervals import (
    SECOND_NS,
    Schedule,
)

# --- intervals -------------------------------------------------------------------------------


@REPEATABLE
@given(st.integers(0, 50), st.integers(1, 200), st.integers(0, 60))
def test_intervals_cover_the_time_without_gap_and_none_lies_across_the_omitted_part(
    omit, duration, interval
):
    boundaries = list(Schedule(omit, duration, interval).boundaries())
    ends = [boundary.at_ns for boundary in boundaries]
    assert ends == sorted(set(ends))
    assert ends[-1] == omit + duration
    assert [boundary.last for boundary in boundaries] == [False] * (len(ends) - 1) + [True]
    assert [boundary.number for boundary in boundaries] == list(range(len(ends)))
    assert omit == 0 or omit in ends
    if interval:
        assert all(end - start <= interval for start, end in itertools.pairwise([0, *ends]))
        assert len(ends) == math.ceil(omit / interval) + math.ceil(duration / interval)
    else:
        assert len(ends) == 1 + (omit > 0)


def test_intervals_go_on_for_as_long_as_bytes_are_left():
    boundaries = Schedule(0, None, SECOND_NS).boundaries()
    assert [b.at_ns for b in itertools.islice(boundaries, 3)] == [
        SECOND_NS, 2 * SECOND_NS, 3 * SECOND_NS,
    ]  # fmt: skip


# --- arrivals --------------------------------------------------------------------------------


def seen(numbers, sent=None):
    """Return what a receiver should have counted, worked out from all numbers at once."""
    highest, known, reordered, duplicates = -1, set(), 0, 0
    for number in numbers:
        if number in known:
            duplicates += 1
        elif number < highest:
            reordered += 1
        known.add(number)
        highest = max(highest, number)
    total = max(highest + 1, sent or 0)
    return len(known), total - len(known), reordered, duplicates


def counted(arrivals):
    return arrivals.received, arrivals.lost, arrivals.reordered, arrivals.duplicates


@REPEATABLE
@given(st.lists(st.integers(0, 40), min_size=1, max_size=80), st.integers(0, 60))
def test_loss_order_and_duplicates_are_counted_as_if_all_numbers_were_known(numbers, sent):
    arrivals = Arrivals()
    for number in numbers:
        arrivals.train(number, 1, 0, 0)
    assert counted(arrivals) == seen(numbers)
    arrivals.end(0, sent)
    assert counted(arrivals) == seen(numbers, sent)


@REPEATABLE
@given(
    st.lists(st.integers(0, 40), max_size=80), st.integers(0, 20), st.integers(0, 40),
    st.integers(0, 81),
)  # fmt: skip
def test_the_measured_part_counts_the_same_datagrams_at_both_ends(numbers, omitted, more, over):
    """Lost, late, doubled or out of order, and wherever the receiver's omitted part is over."""
    reception = Reception(omits=True)
    sent = max([omitted, *numbers], default=0) + 1 + more
    before = dict.fromkeys(reception.counts, 0)
    for at, number in enumerate([*numbers, None]):
        if at == min(over, len(numbers)):
            before = reception.counts
            reception.omit()
            assert before["packets_received"] <= omitted
        if number is not None:
            reception.train(number, 1, SECOND_0 + number - omitted, 0)
    assert reception.received == len(set(numbers))
    reception.end(sent, omitted)
    after = reception.counts
    received, lost, reordered, duplicates = (after[name] - before[name] for name in after)
    measured = [number - omitted for number in numbers if number >= omitted]
    assert (received, lost, reordered, duplicates) == seen(measured, sent - omitted)
    assert received + lost == sent - omitted


@REPEATABLE
@given(st.lists(st.integers(0, 40), max_size=80), st.integers(0, 20))
def test_an_older_sender_has_one_part_and_its_stamps_say_nothing(numbers, over):
    reception = Reception(omits=False)
    for at, number in enumerate(numbers):
        if at == over:
            reception.omit()
        reception.train(number, 1, number, 0)
    reception.end(41, 0)
    assert tuple(reception.counts.values()) == seen(numbers, 41)


@FEWER
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 8)), min_size=1, max_size=20),
    st.lists(st.integers(0, 5000), min_size=20, max_size=20),
)
def test_a_train_is_the_same_as_its_datagrams_one_by_one(trains, delays):
    whole, single = Arrivals(), Arrivals()
    now_ns = 0
    for (first, count), delay in zip(trains, delays, strict=False):
        now_ns += delay
        whole.train(first, count, now_ns - delay // 2, now_ns)
        for number in range(first, first + count):
            single.train(number, 1, now_ns - delay // 2, now_ns)
    assert counted(whole) == counted(single)
    assert whole.jitter_ns == pytest.approx(single.jitter_ns)
    assert whole.transits.summary_s() == single.transits.summary_s()
    assert whole.gaps.summary_s() == single.gaps.summary_s()


def packed(*heads):
    return bytearray(b"".join(struct.pack(">QQ", *head) + bytes(4) for head in heads))


@REPEATABLE
@given(st.integers(0, 1 << 40), st.integers(1, 64), st.integers(0, 1 << 63))
def test_a_train_in_order_is_known_as_one(first, count, sent_ns):
    train = packed(*((number, sent_ns) for number in range(first, first + count)))
    assert row_of(train, 20, count) == (first, sent_ns)


@FEWER
@given(
    st.sampled_from([0, 200, 250, 65500, (1 << 16) - 3, (1 << 24) - 5]),
    st.lists(st.integers(0, 63), min_size=2, max_size=64),
    st.lists(st.sampled_from([0, 256, 65536]), min_size=64, max_size=64),
)
def test_a_train_mixed_up_by_the_network_is_not(first, offsets, jumps):
    numbers = [first + offset + jump for offset, jump in zip(offsets, jumps, strict=False)]
    in_a_row = numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    row = row_of(packed(*((number, 7) for number in numbers)), 20, len(numbers))
    assert (row is not None) == in_a_row


def test_datagrams_that_the_kernel_joined_keep_their_times():
    assert row_of(packed((0, 5), (1, 6)), 20, 2) is None


def test_jitter_is_that_of_rfc_3550():
    sent = [0, 20, 40, 60, 80]
    arrived = [100, 125, 138, 170, 181]
    jitter = 0.0
    for (s0, r0), (s1, r1) in itertools.pairwise(zip(sent, arrived, strict=True)):
        jitter += (abs((r1 - r0) - (s1 - s0)) - jitter) / 16
    arrivals = Arrivals()
    for number, (sent_ns, arrived_ns) in enumerate(zip(sent, arrived, strict=True)):
        arrivals.train(number, 1, sent_ns, arrived_ns)
    assert arrivals.jitter_ns == pytest.approx(jitter)


def test_a_clock_that_is_off_changes_no_figure():
    plain, shifted = Arrivals(), Arrivals()
    for number in range(50):
        plain.train(number, 1, number * 1000, number * 1000 + 70 + number % 3)
        shifted.train(number, 1, number * 1000, number * 1000 + number % 3 - 5 * SECOND_NS)
    assert plain.jitter_ns == shifted.jitter_ns
    assert plain.transits.summary_s() == shifted.transits.summary_s()


def test_memory_stays_bounded_whatever_numbers_come():
    arrivals = Arrivals()
    numbers = list(range(0, 40_000, 2))
    random.Random(1).shuffle(numbers)
    with at_most(200_000):
        for number in [1 << 47, *numbers]:
            arrivals.train(number, 1, 0, 0)


def test_a_number_that_no_sender_counts_to_is_ignored():
    arrivals = Arrivals()
    arrivals.train(1 << 60, 1, 0, 0)
    assert counted(arrivals) == (0, 0, 0, 0)
    assert len(arrivals.gaps) == 0


@FEWER
@given(
    st.integers(16, 40),
    st.integers(1, 64),
    st.lists(
        st.tuples(
            st.sampled_from([0, 200, 255, 65_500, (1 << 16) - 3, (1 << 24) - 5, (1 << 40) - 7]),
            st.integers(0, 300),
            st.integers(0, (1 << 63) - 1),
        ),
        min_size=1,
        max_size=8,
    ),
)
def test_a_train_on_the_wire_is_its_datagrams_behind_each_other(length, count, writes):
    train = Train(length, count)
    for base, offset, stamp in writes:
        first = base + offset
        train.write(first, stamp)
        assert train.payload == b"".join(
            struct.pack(">QQ", number, stamp) + bytes(length - 16)
            for number in range(first, first + count)
        )


# --- pacing ----------------------------------------------------------------------------------


@REPEATABLE
@given(st.floats(1e3, 1e11), st.integers(16, 65507))
def test_the_schedule_keeps_the_rate_exactly_and_its_bursts_small(rate_bps, length):
    pacer = Pacer(rate_bps, length, 44)
    pacer.start(1000)
    last_ns = -SECOND_NS * 10**6
    for packets in range(0, 20 * pacer.burst, pacer.burst):
        due_ns = pacer.due_ns(packets, last_ns)
        assert due_ns == pytest.approx(1000 + packets * length * 8e9 / rate_bps, abs=1)
        last_ns = due_ns
    assert pacer.burst == 1 or pacer.burst * length * 8 / rate_bps <= 200e-6
    assert 1 <= pacer.burst <= 44


def test_a_sender_that_fell_behind_catches_up_at_twice_the_rate_and_no_faster():
    pacer = Pacer(8e6, 1000, 44)  # A packet each millisecond.
    pacer.start(0)
    now_ns, packets, gaps = 50_000_000, 0, []
    while len(gaps) < 120:
        due_ns = max(pacer.due_ns(packets, now_ns if packets else -SECOND_NS), now_ns)
        gaps.append(due_ns - now_ns)
        now_ns, packets = due_ns, packets + 1
    assert gaps[0] == 0
    assert min(gaps[1:]) == 500_000
    assert gaps[-1] == 1_000_000
    assert now_ns == (packets - 1) * 1_000_000


def test_a_sender_that_stood_still_for_long_makes_up_for_a_second_of_it():
    pacer = Pacer(8e6, 1000, 44)  # A packet each millisecond.
    pacer.start(0)
    now_ns, left_ns = 60 * SECOND_NS, []
    while len(left_ns) < 4000:
        due_ns = pacer.due_ns(1 + len(left_ns), now_ns)
        now_ns = max(due_ns, now_ns)
        left_ns.append(now_ns)
    gaps = [after - before for before, after in itertools.pairwise(left_ns)]
    assert gaps == sorted(gaps)
    assert (gaps[0], gaps[-1]) == (500_000, 1_000_000)
    assert gaps.count(500_000) == pytest.approx(2000, abs=2)


# --- TCP_INFO --------------------------------------------------------------------------------


def tcp_info_bytes():
    data = bytearray(256)
    for form, offset, value in [
        ("=I", 16, 1448), ("=I", 32, 3), ("=I", 60, 1500), ("=I", 68, 20_500), ("=I", 72, 1_250),
        ("=I", 80, 10), ("=I", 88, 3), ("=I", 100, 17), ("=I", 148, 20_000), ("=Q", 160, 125_000),
        ("=Q", 168, 2_000_000), ("=Q", 176, 250_000), ("=Q", 184, 125_000), ("=I", 228, 65_535),
        ("=I", 24, 4), ("=I", 144, 2896), ("=Q", 200, 50_000), ("=Q", 208, 17 * 1448),
    ]:  # fmt: skip
        struct.pack_into(form, data, offset, value)
    return bytes(data)


def test_tcp_info_is_read_in_base_units():
    counts, values = read_tcp_info(tcp_info_bytes())
    assert counts == {
        "retransmits": 17, "busy_s": 2.0, "rwnd_limited_s": 0.25, "sndbuf_limited_s": 0.125,
        "bytes_sent": 50_000 - 17 * 1448,
    }  # fmt: skip
    assert values == {
        "segments_lost": 3, "path_mtu_bytes": 1500, "tcp_rtt_s": 0.0205, "tcp_rttvar_s": 0.00125,
        "reordering": 3, "tcp_min_rtt_s": 0.02, "delivery_rate_bps": 1e6,
        "peer_window_bytes": 65_535, "cwnd_bytes": 14_480,
    }  # fmt: skip


def test_what_waits_in_the_kernel_is_read():
    assert read_waiting(tcp_info_bytes()) == (2896, 4)
    assert read_waiting(tcp_info_bytes()[:104]) == (0, 4)


def test_bytes_sent_need_a_kernel_that_counts_those_sent_again():
    assert "bytes_sent" not in read_tcp_info(tcp_info_bytes()[:208])[0]


def test_members_that_an_older_kernel_does_not_have_are_left_out():
    counts, values = read_tcp_info(tcp_info_bytes()[:104])
    assert counts == {"retransmits": 17}
    assert "tcp_min_rtt_s" not in values
    assert values["cwnd_bytes"] == 14_480


def test_a_least_round_trip_time_that_is_not_known_yet_is_left_out():
    data = bytearray(tcp_info_bytes())
    struct.pack_into("=I", data, 148, 0xFFFFFFFF)
    assert "tcp_min_rtt_s" not in read_tcp_info(bytes(data))[1]
