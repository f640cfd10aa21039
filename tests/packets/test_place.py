"""One transfer, recorded at both of its ends: both traces say what the sender waited for."""

import math
import random
from collections import deque

import pytest

from benchctl.packets.tcp import Connection

SIZE, MSS = 1448, b"\x02\x04\x05\xb4"
ACK, SYN = 16, 2
BACK_S = 0.025


def stamps(value_s, echo_s):
    """Return timestamps in milliseconds."""
    value, echo = (int(at_s * 1000) & 0xFFFFFFFF for at_s in (value_s, echo_s))
    return b"\x01\x01\x08\x0a" + value.to_bytes(4) + echo.to_bytes(4)


def transfer(window, *, segment_s=0.0006, every_s=0.0, count=3000, stamped=True,
    allowed=lambda _heard: math.inf,
):  # fmt: skip
    """Return the packets that pass the sender, and those that pass the receiver.

    A link sends a segment in a time, ``window`` segments may be in flight, and the application
    writes one at a time, if not all at once. The sender has no more in flight than is ``allowed``
    when so many were acknowledged. The way back takes up to 2 ms more.
    """
    rng = random.Random(1)
    syn = MSS + b"\x04\x02" + (b"\x08\x0a" + bytes(8) if stamped else b"") + b"\x01\x03\x03\x00"
    near = [
        (0.0, 0, 0, 0, SYN, 0, 65535, syn),
        (2 * BACK_S, 1, 0, 1, SYN | ACK, 0, 65535, syn),
        (2 * BACK_S, 0, 1, 1, ACK, 0, 65535, b""),
    ]
    far = [(at_s + (-BACK_S if way else BACK_S), way, *rest) for at_s, way, *rest in near]
    now, free, sent, heard, echo_s, last_s = 2 * BACK_S, 0.0, 0, 0, 0.0, 0.0
    coming = deque()
    while heard < count:
        ready_s = 2 * BACK_S + sent * every_s
        if sent < min(heard + min(window, allowed(heard)), count) and (
            not coming or max(now, ready_s) < coming[0][0]
        ):
            now = max(now, ready_s)
            options = stamps(now, echo_s) if stamped else b""
            free = max(now + BACK_S, free + segment_s)
            segment = (0, 1 + sent * SIZE, 1, ACK, SIZE, 65535, options)
            near.append((now, *segment))
            far.append((free, *segment))
            sent += 1
            if sent % 2 == 0 or sent == count:
                stamp = stamps(free, now) if stamped else b""
                answer = (1, 1, 1 + sent * SIZE, ACK, 0, window * SIZE, stamp)
                far.append((free, *answer))
                arrives_s = max(free + BACK_S + rng.uniform(0, 0.002), last_s)
                last_s = arrives_s
                coming.append((arrives_s, answer, sent, free))
        else:
            now, answer, heard, echo_s = coming.popleft()
            near.append((now, *answer))
    return near, far


def waits(packets):
    """Return the shares of the sender's time, and the most in flight."""
    connection = Connection(bytes(12), 0.0)
    for at_s, way, seq, ack, flags, length, window, options in sorted(packets, key=lambda p: p[0]):
        connection.feed(at_s, way, 40 + length, seq, ack, flags, window, length, 0, options)
    connection.finish()
    waiting = connection.halves[0].waiting
    shares = {cause.value: share.total_s for cause, share in waiting.shares.items()}
    return shares, waiting.lasted_s, waiting.flight_bytes


CASES = {
    "a window": {"window": 28},
    "a window, no timestamps": {"window": 28, "stamped": False},
    "a window that fills a queue": {"window": 44, "segment_s": 0.002},
    "one segment at a time": {"window": 40, "every_s": 0.003, "count": 1000},
    "one segment at a time, no timestamps": {
        "window": 40, "every_s": 0.003, "count": 1000, "stamped": False,
    },
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_receivers_trace_has_the_sums_of_the_senders(case):
    near, far = (waits(packets) for packets in transfer(**CASES[case]))
    assert far[1] == pytest.approx(near[1], rel=0.05)
    for cause in near[0].keys() | far[0].keys():
        apart_s = near[0].get(cause, 0.0) - far[0].get(cause, 0.0)
        assert abs(apart_s) <= 0.05 * near[1], cause
    assert far[2] == pytest.approx(near[2], abs=2 * SIZE)


NOT_THE_NETWORK = {
    "one segment at a time": {"window": 40, "every_s": 0.003, "count": 1000},
    "a full send buffer": {"window": 40, "allowed": lambda _: 20},
}
THE_NETWORK = {
    "a congestion window that grows": {
        "window": 4000, "allowed": lambda heard: (100 + 2 * heard) ** 0.5, "segment_s": 1e-5,
    },
    "a queue": {"window": 400, "allowed": lambda _: 200, "segment_s": 0.002},
}  # fmt: skip


@pytest.mark.parametrize("case", NOT_THE_NETWORK)
def test_what_shows_neither_loss_nor_a_queue_nor_growth_is_not_seen_to_be_the_network(case):
    for packets in transfer(**NOT_THE_NETWORK[case]):
        shares, lasted_s, _ = waits(packets)
        assert shares["unexplained"] > 0.9 * lasted_s


@pytest.mark.parametrize("case", THE_NETWORK)
def test_growth_without_a_bound_and_longer_round_trips_are_the_network(case):
    for packets in transfer(**THE_NETWORK[case]):
        shares, lasted_s, _ = waits(packets)
        assert shares["network"] > 0.9 * lasted_s
