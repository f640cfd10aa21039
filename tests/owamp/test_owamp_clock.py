"""The clock of an end: what the system says of it, and how it is made wrong on purpose."""

import ctypes
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl_owamp.simpleowamp.measuring import clock as clock_module
from benchctl_owamp.simpleowamp.measuring.clock import (
    SECOND_NS,
    Clock,
    ClockState,
    read_clock_state,
)

NOON_NS = 1_800_000_000 * SECOND_NS


def timex(status, maxerror=250_000, esterror=25):
    return lambda: SimpleNamespace(status=status, maxerror=maxerror, esterror=esterror)


def test_a_synchronized_clock_has_the_errors_of_the_kernel(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    assert read_clock_state(timex(0x2001)) == ClockState(True, 0.25, 25e-6)


def test_an_unsynchronized_clock_says_why(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    state = read_clock_state(timex(0x40, 16_000_000, 16_000_000))
    assert not state.synchronized
    assert state.max_error_s == 16.0
    assert "no time daemon" in state.reason


def test_a_kernel_that_refuses_is_a_clock_of_which_nothing_is_known(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")

    def refuse():
        raise PermissionError(1, "Operation not permitted")

    state = read_clock_state(refuse)
    assert not state.synchronized
    assert "Operation not permitted" in state.reason


def test_on_macos_a_clock_counts_as_unsynchronized(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    state = read_clock_state(timex(0))
    assert not state.synchronized
    assert "does not say" in state.reason


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")
def test_the_struct_is_as_long_as_the_kernels():
    assert ctypes.sizeof(clock_module._Timex) == (208 if ctypes.sizeof(ctypes.c_long) == 8 else 128)
    state = read_clock_state()
    assert state.max_error_s > 0


def wrong_clock(system, offset_s=0.0, drift=0.0, zero_ns=None):
    state = ClockState(True, 0.0, 0.0)
    return Clock(offset_s, drift, zero_ns, lambda: system[0], lambda: state)


def test_a_clock_is_ahead_by_its_offset_and_gains_by_its_drift():
    system = [NOON_NS]
    clock = wrong_clock(system, 0.055, 1e-3 / 60)
    assert clock.now_ns() == NOON_NS + 55_000_000
    system[0] += 60 * SECOND_NS
    assert clock.now_ns() == system[0] + 56_000_000


def test_the_drift_goes_on_from_the_moment_it_is_given():
    system = [NOON_NS]
    clock = wrong_clock(system, drift=1e-3 / 60, zero_ns=NOON_NS - 120 * SECOND_NS)
    assert clock.now_ns() == NOON_NS + 2_000_000


@given(
    st.floats(-100, 100),
    st.floats(-0.01, 0.01),
    st.integers(NOON_NS, NOON_NS + 3600 * SECOND_NS),
)
def test_a_time_of_a_wrong_clock_is_one_of_the_systems(offset_s, drift, system_ns):
    clock = wrong_clock([NOON_NS], offset_s, drift)
    assert abs(clock.system_time(clock.of_system(system_ns)) - system_ns) < 1000


def test_the_state_is_read_again_after_a_second_and_not_before():
    system, read = [NOON_NS], []

    def state():
        read.append(system[0])
        return ClockState(True, float(len(read)), 0.0)

    clock = Clock(time_ns=lambda: system[0], state=state)
    assert clock.state().max_error_s == 1.0
    system[0] += SECOND_NS // 2
    assert clock.state().max_error_s == 1.0
    system[0] += SECOND_NS
    assert clock.state().max_error_s == 2.0
    system[0] -= 10 * SECOND_NS  # The clock was set.
    assert clock.state().max_error_s == 3.0
