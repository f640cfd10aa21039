"""The limits of a server, and their use."""

import math

import pytest

from benchctl_owamp.simpleowamp.measuring.quota import Claim, Limits, Quota, duration_s, rate_bps
from benchctl_owamp.simpleowamp.protocol.messages import AUTHENTICATED, OPEN, Accept, SessionRequest
from benchctl_owamp.simpleowamp.protocol.schedule import EXPONENTIAL, FIXED, Slot

SECOND = 1 << 32
HERE, THERE = b"here", b"there"


def request(packets=100, interval_s=0.1, padding_bytes=0, slots=None):
    slots = slots or (Slot(EXPONENTIAL, round(interval_s * SECOND)),)
    return SessionRequest(
        False, True, packets, slots, "192.0.2.1", 5000, "192.0.2.2", 0, 0, SECOND, padding_bytes
    )


def take(quota, origin=HERE, **asked):
    asked = request(**asked)
    claim = Claim(origin, rate_bps(asked, OPEN), asked.packet_count)
    return quota.take(claim, asked), claim


def test_a_session_takes_as_long_as_its_packets_on_average():
    assert duration_s(request(100, 0.1)) == pytest.approx(10)
    slots = (Slot(FIXED, SECOND), Slot(FIXED, 3 * SECOND))
    assert duration_s(request(10, slots=slots)) == pytest.approx(20)


def test_the_rate_counts_headers_and_the_shortest_interval():
    assert rate_bps(request(interval_s=0.5), OPEN) == pytest.approx((48 + 14) * 8 * 2)
    secured = rate_bps(request(interval_s=0.5, padding_bytes=100), AUTHENTICATED)
    assert secured == pytest.approx((48 + 48 + 100) * 8 * 2)
    burst = (Slot(FIXED, 10 * SECOND), Slot(FIXED, 0))
    assert rate_bps(request(slots=burst), OPEN) == math.inf


@pytest.mark.parametrize(
    ("limits", "asked"),
    [
        (Limits(duration_s=9), {}),
        (Limits(client_rate_bps=1000), {}),
        (Limits(rate_bps=1000), {}),
        (Limits(client_packets=99), {}),
        (Limits(packets=99), {}),
        (Limits(), {"slots": (Slot(FIXED, 0), Slot(FIXED, SECOND))}),
    ],
)
def test_what_the_server_never_allows_is_refused_for_good(limits, asked):
    assert take(Quota(limits), **asked)[0] == Accept.PERMANENT_LIMIT


@pytest.mark.parametrize(
    ("limits", "others"),
    [
        (Limits(client_sessions=1), HERE),
        (Limits(sessions=1), THERE),
        (Limits(client_rate_bps=8000), HERE),
        (Limits(rate_bps=8000), THERE),
        (Limits(client_packets=150), HERE),
        (Limits(packets=150), THERE),
    ],
)
def test_what_others_hold_is_refused_until_they_are_done(limits, others):
    quota = Quota(limits)
    accept, held = take(quota, others)
    assert accept == Accept.OK
    assert take(quota)[0] == Accept.TEMPORARY_LIMIT
    quota.end(held)
    quota.forget(held)
    assert take(quota)[0] == Accept.OK


def test_the_packets_of_a_session_count_as_long_as_it_is_kept():
    quota = Quota(Limits(client_packets=150))
    _, held = take(quota)
    quota.end(held)
    assert quota.sessions == 0
    assert take(quota)[0] == Accept.TEMPORARY_LIMIT
    quota.forget(held)
    assert take(quota)[0] == Accept.OK


def test_a_client_that_is_done_leaves_nothing():
    quota = Quota(Limits())
    claims = [take(quota, interval_s=0.1 + number / 97)[1] for number in range(20)]
    for claim in claims:
        quota.end(claim)
        quota.forget(claim)
    assert quota._shares == {}
    assert quota._all.rate_bps == 0
