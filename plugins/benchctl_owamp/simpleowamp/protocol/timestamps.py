"""Times and error estimates as packets carry them, to and from nanoseconds and seconds.

A timestamp has 32 bits of seconds since 1900 and 32 bits of a second's fraction (RFC 4656, section
4.1.2); an interval has the same form. Their unit, 2^-32 s, is less than a quarter of a nanosecond,
so whole nanoseconds come back unchanged.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

NS_PER_S = 1_000_000_000
UNITS_PER_S = 1 << 32

_UNIX_EPOCH_S = 2_208_988_800  # from 1900 to 1970
_ERA_S = 1 << 32  # seconds since 1900 run over in 2036
_TAI_AHEAD_S = 37  # of UTC, since the leap second of 2016
_SYNCHRONIZED, _PTP = 1 << 15, 1 << 14
_SCALE_MAX, _MULTIPLIER_MAX = 63, 255


def to_interval(ns: int) -> int:
    """Return an interval in units of 2^-32 s, rounded to the nearest."""
    return (ns * UNITS_PER_S + NS_PER_S // 2) // NS_PER_S


def from_interval(units: int) -> int:
    """Return nanoseconds, rounded to the nearest, of an interval in units of 2^-32 s."""
    return (units * NS_PER_S + UNITS_PER_S // 2) // UNITS_PER_S


def to_timestamp(unix_ns: int) -> int:
    """Return the timestamp of a time in nanoseconds since the Unix epoch."""
    return (to_interval(unix_ns) + _UNIX_EPOCH_S * UNITS_PER_S) % (_ERA_S * UNITS_PER_S)


def from_timestamp(timestamp: int, ptp: bool = False) -> int:
    """Return nanoseconds since the Unix epoch.

    Timestamps whose first bit is 0 are of 2036 to 2104 (RFC 4330, section 3). Those of PTP have
    seconds of TAI since 1970, then nanoseconds (RFC 8877, section 4.3).
    """
    if ptp:
        seconds, ns = divmod(timestamp, UNITS_PER_S)
        return (seconds - _TAI_AHEAD_S) * NS_PER_S + ns
    if timestamp < _ERA_S * UNITS_PER_S // 2:
        timestamp += _ERA_S * UNITS_PER_S
    return from_interval(timestamp - _UNIX_EPOCH_S * UNITS_PER_S)


class ErrorEstimate(NamedTuple):
    """How far a timestamp may be off, as its sender estimates it (RFC 4656, section 4.1.2)."""

    synchronized: bool
    """S: the clock is synchronized to UTC by an outside source."""
    error_s: float
    """0 in a packet is not valid: its receiver should discard it."""
    ptp: bool = False
    """Z: the timestamp has PTP's format instead of NTP's (RFC 8762, section 4.2.1)."""

    def pack(self) -> int:
        """Return the 16 bits: S, Z, scale and multiplier, of the least error that is not less."""
        scale, multiplier = 0, max(1, ceil(self.error_s * UNITS_PER_S))
        while multiplier > _MULTIPLIER_MAX:
            scale, multiplier = scale + 1, (multiplier + 1) // 2
        if scale > _SCALE_MAX:
            scale, multiplier = _SCALE_MAX, _MULTIPLIER_MAX
        flags = _SYNCHRONIZED * self.synchronized | _PTP * self.ptp
        return flags | scale << 8 | multiplier

    @classmethod
    def unpack(cls, bits: int) -> ErrorEstimate:
        """Return the estimate that 16 bits hold."""
        scale, multiplier = bits >> 8 & _SCALE_MAX, bits & _MULTIPLIER_MAX
        error_s = multiplier * 2.0**scale / UNITS_PER_S
        return cls(bool(bits & _SYNCHRONIZED), error_s, bool(bits & _PTP))
