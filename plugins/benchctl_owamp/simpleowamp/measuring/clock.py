"""The clock of an end: its time, whether it is synchronized, and how far it may be off.

Linux keeps what its time daemon says of the clock (adjtimex(2), linux/timex.h). Elsewhere nothing
says it, so such a clock is unsynchronized. For experiments a clock may be wrong on purpose, by an
offset and a drift: then everything of this end, kernel timestamps included, is in its time.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from typing import Any, Callable, NamedTuple

SECOND_NS = 1_000_000_000
# timex.status: the clock is not synchronized.
_STA_UNSYNC = 0x40
# The kernel's own limit of its estimate (NTP_PHASE_LIMIT, linux/timex.h), for clocks of which
# nothing is known.
UNKNOWN_ERROR_S = 16.0
# The kernel adds 500 us to its estimate each second (MAXFREQ), so an older one is hardly smaller.
_STATE_AGE_NS = SECOND_NS


class ClockState(NamedTuple):
    """What the system says of its clock. ``max_error_s`` bounds the error of a synchronized one.

    ``reason`` says why the clock counts as unsynchronized, and is empty if it is synchronized.
    """

    synchronized: bool
    max_error_s: float
    estimated_error_s: float
    reason: str = ""


class _Timex(ctypes.Structure):
    """struct timex, with the two longs of its struct timeval."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        *((name, ctypes.c_long) for name in ("offset", "freq", "maxerror", "esterror")),
        ("status", ctypes.c_int),
        *((name, ctypes.c_long) for name in ("constant", "precision", "tolerance")),
        ("time", ctypes.c_long * 2),
        *((name, ctypes.c_long) for name in ("tick", "ppsfreq", "jitter")),
        ("shift", ctypes.c_int),
        *((name, ctypes.c_long) for name in ("stabil", "jitcnt", "calcnt", "errcnt", "stbcnt")),
        ("tai", ctypes.c_int),
        ("reserved", ctypes.c_int * 11),
    )


def _adjtimex() -> Any:
    """Return the state of the kernel's clock, read only. Raises OSError."""
    found = _Timex()
    if ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(found)) < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return found


def read_clock_state(read: Callable[[], Any] = _adjtimex) -> ClockState:
    """Ask the system about its clock; ``read`` returns a struct timex, or raises OSError."""
    if not sys.platform.startswith("linux"):
        reason = "this system does not say whether its clock is synchronized"
        return ClockState(False, UNKNOWN_ERROR_S, UNKNOWN_ERROR_S, reason)
    try:
        found = read()
    except (OSError, AttributeError) as error:  # A sandbox, or a C library without it.
        reason = f"the kernel does not say whether its clock is synchronized ({error})"
        return ClockState(False, UNKNOWN_ERROR_S, UNKNOWN_ERROR_S, reason)
    synchronized = not found.status & _STA_UNSYNC
    reason = "" if synchronized else "no time daemon synchronizes the kernel's clock"
    return ClockState(synchronized, found.maxerror / 1e6, found.esterror / 1e6, reason)


class Clock:
    """The clock of one end, in nanoseconds since the Unix epoch.

    ``offset_s`` and ``drift_ratio`` (seconds per second) make it wrong: a reading is ahead of the
    system's clock, ``time_ns``, by the offset, plus the drift times the time since ``zero_ns`` on
    that clock, which is now if it is None.
    """

    def __init__(
        self,
        offset_s: float = 0.0,
        drift_ratio: float = 0.0,
        zero_ns: int | None = None,
        time_ns: Callable[[], int] = time.time_ns,
        state: Callable[[], ClockState] = read_clock_state,
    ) -> None:
        self._time_ns = time_ns
        self._offset_ns = round(offset_s * SECOND_NS)
        self._drift = drift_ratio
        self._zero_ns = time_ns() if zero_ns is None else zero_ns
        self._read_state = state
        self._state = state()
        self._state_ns = time_ns()

    def now_ns(self) -> int:
        """Return its time now."""
        return self.of_system(self._time_ns())

    def of_system(self, system_ns: int) -> int:
        """Return its time at a time of the system's clock, such as a kernel timestamp."""
        if self._drift:
            system_ns += round((system_ns - self._zero_ns) * self._drift)
        return system_ns + self._offset_ns

    def system_time(self, own_ns: int) -> int:
        """Return the time of the system's clock when this one shows a time."""
        since_ns = own_ns - self._offset_ns - self._zero_ns
        return self._zero_ns + round(since_ns / (1 + self._drift))

    def state(self) -> ClockState:
        """Return what the system says of its clock, at most a second old."""
        now_ns = self._time_ns()
        if not 0 <= now_ns - self._state_ns < _STATE_AGE_NS:
            self._state_ns, self._state = now_ns, self._read_state()
        return self._state
