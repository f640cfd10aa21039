"""Timestamps and error estimates keep their value on the way to the wire and back."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl_owamp.simpleowamp.protocol.timestamps import (
    ErrorEstimate,
    from_interval,
    from_timestamp,
    to_interval,
    to_timestamp,
)

NS = 1_000_000_000
# From the timestamps' first time after 1968, for which their first bit is 1, to the next of them.
FIRST_NS, LAST_NS = -61_505_152 * NS, 4_233_462_143 * NS


@given(st.integers(FIRST_NS, LAST_NS))
def test_a_whole_nanosecond_comes_back_from_the_wire(unix_ns):
    assert from_timestamp(to_timestamp(unix_ns)) == unix_ns


@given(st.integers(0, (1 << 64) - 1))
def test_every_timestamp_is_within_half_a_nanosecond_of_its_time(timestamp):
    again = to_timestamp(from_timestamp(timestamp))
    assert min((again - timestamp) % (1 << 64), (timestamp - again) % (1 << 64)) <= 3


def test_timestamps_count_from_1900_and_run_over_in_2036():
    assert to_timestamp(0) == 2_208_988_800 << 32
    after = datetime(2036, 2, 7, 6, 28, 16, tzinfo=UTC)
    assert to_timestamp(int(after.timestamp()) * NS) == 0
    assert from_timestamp(0) == int(after.timestamp()) * NS


def test_the_timeout_that_owping_prints_in_units_is_2_seconds_and_its_guess_of_the_round_trip():
    assert from_interval(8590338319) == 2_000_094_000


@given(st.integers(0, 10**15))
def test_an_interval_comes_back(ns):
    assert from_interval(to_interval(ns)) == ns


@pytest.mark.parametrize(
    ("bits", "estimate"),
    [
        (0x0001, ErrorEstimate(False, 2**-32)),
        (0x8001, ErrorEstimate(True, 2**-32)),
        (0x4001, ErrorEstimate(False, 2**-32, ptp=True)),
        (0x0901, ErrorEstimate(False, 2**-23)),
        (0xBFFF, ErrorEstimate(True, 255 * 2.0**31)),
        (0x0000, ErrorEstimate(False, 0.0)),
    ],
)
def test_an_error_estimate_is_multiplier_times_two_to_the_scale(bits, estimate):
    assert ErrorEstimate.unpack(bits) == estimate


@given(st.booleans(), st.floats(0, 255 * 2.0**31), st.booleans())
def test_an_error_on_the_wire_is_never_too_small_and_at_most_a_128th_too_large(sync, error_s, ptp):
    bits = ErrorEstimate(sync, error_s, ptp).pack()
    assert 0 < bits < 1 << 16
    found = ErrorEstimate.unpack(bits)
    assert (found.synchronized, found.ptp) == (sync, ptp)
    assert error_s <= found.error_s <= max(error_s * (1 + 1 / 128) + 2**-32, 2**-32)


def test_an_error_beyond_the_largest_is_the_largest():
    assert ErrorEstimate(False, 1e30).pack() == 0x3FFF
