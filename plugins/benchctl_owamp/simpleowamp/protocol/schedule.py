"""When each packet of a session is due, the same at both ends (RFC 4656, sections 3.6 and 5).

The session id is the key of a random sequence, so a receiver knows when a lost packet was due.
Everything is fixed-point: 32 bits of seconds, or of a number, and 32 bits of its fraction.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import cycle, islice
from struct import unpack
from typing import NamedTuple

from .aes import Aes128

EXPONENTIAL, FIXED = 0, 1

_ONE = 1 << 32
# Q[k] is the sum of ln(2)^i / i! for i from 1 to k; Q[0] isn't used (RFC 4656, section 5.2).
_Q = (
    0, 0xB17217F8, 0xEEF193F7, 0xFD271862, 0xFF9D6DD0, 0xFFF4CFD0, 0xFFFEE819, 0xFFFFE7FF,
    0xFFFFFE2B, 0xFFFFFFE0, 0xFFFFFFFE, 0xFFFFFFFF,
)  # fmt: skip
_LN2 = _Q[1]


class Slot(NamedTuple):
    """One step of a schedule that repeats (RFC 4656, section 3.6).

    ``parameter`` is the mean, or the fixed, interval before the packet, in units of 2^-32 s.
    """

    slot_type: int
    parameter: int


def offsets(sid: bytes, slots: Iterable[Slot], packets: int) -> Iterator[int]:
    """Yield for each packet when it is due, in units of 2^-32 s after the session's start time."""
    numbers = deviates(uniforms(sid))
    offset = 0
    for slot_type, parameter in islice(cycle(slots), packets):
        offset += parameter if slot_type == FIXED else next(numbers) * parameter >> 32
        yield offset


def uniforms(sid: bytes) -> Iterator[int]:
    """Yield 32-bit uniform random numbers: AES of a counter, keyed by the session id (5.3)."""
    cipher = Aes128(sid)
    count = 0
    while True:
        # The counter steps with each number; a block is made for every fourth.
        yield from unpack("!4I", cipher.encrypt(count.to_bytes(16, "big")))
        count += 4


def deviates(numbers: Iterator[int]) -> Iterator[int]:
    """Yield exponential deviates of mean 1 from 32-bit uniform numbers (RFC 4656, section 5.1).

    It is algorithm S of Knuth, The Art of Computer Programming, volume 2, section 3.4.1.
    """
    for bits in numbers:
        ones = 32 - (bits ^ 0xFFFFFFFF).bit_length()  # before the first zero
        fraction = (bits << ones + 1) & 0xFFFFFFFF
        if fraction < _LN2:
            yield ones * _LN2 + fraction
        else:
            least = min(islice(numbers, bisect_right(_Q, fraction)))
            yield (ones * _ONE + least) * _LN2 >> 32
