"""Packets are followed from one place to another, against paths whose truth is known."""

import math
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from packets.written import MSS

from benchctl.packets.pairing import Passages, follow

A, B = b"\x0a\0\0\1", b"\x0a\0\0\2"
ENDS = A + B + b"\x9c\x40\x14\x51"
OTHERS = B + A + b"\x14\x51\x9c\x40"
WAY_S = 0.025
"""The least delay of the path."""


class Sent(NamedTuple):
    """A packet: how long after the one before it was sent, and what the path does to it."""

    after_ms: int
    size: int
    lost: bool
    waits_ms: int
    doubled: bool
    again: bool
    """Whether it repeats the one before it."""


PACKETS = st.builds(
    Sent,
    after_ms=st.integers(0, 30),
    size=st.sampled_from([0, 1, 1000]),
    lost=st.booleans(),
    waits_ms=st.integers(0, 60),
    doubled=st.booleans(),
    again=st.booleans(),
)


def segment(time_s, seq, size=0, ident=0, ack=1, flags=16, options=b"", ends=ENDS, window=100):
    return (
        time_s, ends, 40 + size, seq & 0xFFFFFFFF, ack, flags, window, size, ident, options, 0,
        len(options), len(options),
    )  # fmt: skip


def passed(*segments, ends=ENDS):
    passages = Passages()
    assert list(passages.noting(segments)) == list(segments)
    return passages.of[ends]


def crossed(packets, first=0, ident=1):
    """Return what left and what came, each as time, sequence number, size and identification.

    Beside them is the truth: which that left is each that came, and which of those are doubles.
    """
    left, came, now_ms, seq, size = [], [], 0, first, 0
    for number, packet in enumerate(packets):
        now_ms += packet.after_ms
        if not (packet.again and left):
            seq, size = seq + size, packet.size
        left.append((now_ms / 1e3, seq, size, ident and ident + number))
        if not packet.lost:
            arrives_s = now_ms / 1e3 + WAY_S + packet.waits_ms / 1e3
            came += [(arrives_s + copy * 1e-5, number, copy) for copy in range(1 + packet.doubled)]
    came.sort()
    return left, [(at_s, *left[n][1:]) for at_s, n, _ in came], [(n, twin) for _, n, twin in came]


@given(
    st.lists(PACKETS, min_size=1, max_size=60),
    st.sampled_from([0, 1, 0xFFFFFF00, 0xFFFFFFFF - 5000]),
    st.floats(-1e6, 1e6),
)
def test_every_packet_is_found_again_or_known_to_be_lost(packets, first, clock_s):
    left, came, truth = crossed(packets, first)
    way = follow(
        passed(*(segment(*one) for one in left)),
        passed(*(segment(at_s - clock_s, *rest) for at_s, *rest in came)) if came else
        passed(segment(0.0, 0, ends=OTHERS), segment(0.0, 0), ends=OTHERS),
        clock_s,
    )  # fmt: skip
    if not came:
        assert len(way.lost) == len(left)
        return
    whole = {number for number, _ in truth}
    assert way.lost == [number for number in range(len(left)) if number not in whole]
    assert [way.arrival[n] >= 0 for n in range(len(left))] == [n in whole for n in range(len(left))]
    assert [n for n in way.departure if n >= 0] == [n for n, twin in truth if not twin]
    assert (way.doubled, way.unseen, way.unknown) == (sum(twin for _, twin in truth), 0, 0)
    first_come = {}
    for (at_s, *_), (number, _) in zip(came, truth, strict=True):
        first_come.setdefault(number, at_s)
    delays_s = [first_come[n] - left[n][0] for n in sorted(first_come)]
    assert list(way.delays_s) == pytest.approx(delays_s, abs=1e-6)
    order = [n for n, twin in truth if not twin]
    late = sum(any(m > n for m in order[:place]) for place, n in enumerate(order))
    assert way.overtaken == late


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9)), min_size=1, max_size=40))
@example([(True, 0), (False, 0)])
def test_copies_that_are_alike_are_told_apart_by_their_times(fates):
    """Without an identification, as in IPv6; a sender waits for longer than delays vary."""
    left = [(n * 0.2, 1000, 500, 0) for n in range(len(fates))]
    came = [
        (at_s + WAY_S + waits_ms / 1e3, *rest)
        for (at_s, *rest), (lost, waits_ms) in zip(left, fates, strict=True)
        if not lost
    ]
    # Something else has shown before how fast the path is.
    left.insert(0, (-1.0, 1, 500, 0))
    came.insert(0, (-1.0 + WAY_S, 1, 500, 0))
    way = follow(
        passed(*(segment(*one) for one in left)), passed(*(segment(*one) for one in came)), 0.0
    )
    assert way.lost == [n for n, (lost, _) in enumerate(fates, 1) if lost]
    assert max(way.delays_s) <= WAY_S + 0.01


def test_a_large_segment_is_the_packets_that_its_device_makes_of_it():
    syns = (
        segment(0.0, 0, flags=2, options=MSS),
        segment(0.0, 0, flags=18, options=b"\x02\x04" + (1000).to_bytes(2), ends=OTHERS),
    )
    large = passed(*syns, segment(1.0, 1, 2500, 65535, flags=24))
    small = passed(
        *syns,
        *(segment(1.1 + n, 1 + 1000 * n, (1000, 1000, 500)[n], (65535, 0, 1)[n]) for n in range(3)),
    )
    there, back = follow(large, small, 0.0), follow(small, large, 0.0)
    assert (there.lost, there.unseen, there.doubled) == ([], 0, 0)
    assert list(there.delays_s) == pytest.approx([0.0, 0.1, 1.1, 2.1])
    assert (back.lost, back.unseen, back.doubled) == ([], 0, 0)


def test_what_left_when_the_other_place_was_not_recorded_is_not_lost():
    left = passed(*(segment(n * 1.0, 1000 * n, 1000, n + 1) for n in range(10)))
    came = passed(*(segment(n + WAY_S, 1000 * n, 1000, n + 1) for n in (3, 4, 6)))
    way = follow(left, came, 0.0, (3.0, 7.5))
    assert (way.lost, way.unknown) == ([5, 7], 5)
    assert follow(left, came, 0.0, (-math.inf, math.inf)).lost == [0, 1, 2, 5, 7, 8, 9]


def test_what_came_and_was_not_seen_leaving_is_no_delay():
    left = passed(*(segment(n * 1.0, 1000 * n, 1000, n + 1) for n in (0, 2)))
    came = passed(*(segment(n + WAY_S, 1000 * n, 1000, n + 1) for n in (0, 1, 2)))
    way = follow(left, came, 0.0)
    assert (way.unseen, way.lost, len(way.delays_s)) == (1, [], 2)


def test_a_path_that_is_faster_than_its_first_packets_showed_is_followed_as_well():
    """The first ones waited in a queue: a later arrival seems to come before it left."""
    left = [(n / 100, 1000 * n, 1000, n + 1) for n in range(1500)]
    came = [
        (at_s + WAY_S + (0.305 if n < 1200 else 0), *rest) for n, (at_s, *rest) in enumerate(left)
    ]
    there = passed(*(segment(*one) for one in sorted(came)))
    way = follow(passed(*(segment(*one) for one in left)), there, 0.0)
    assert (way.lost, way.unseen) == ([], 0)
    # Each of the late ones is overtaken by one of the others, for 0.3 s.
    assert way.overtaken == 30
    assert min(way.delays_s) == pytest.approx(WAY_S)
