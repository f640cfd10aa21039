"""The schedule is the RFC's, to the bit: its sums are those of the appendix."""

from itertools import islice
from math import log
from struct import iter_unpack

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st
from owamp.owamp_conversation import REPEATABLE

from benchctl_owamp.simpleowamp.protocol.aes import Aes128
from benchctl_owamp.simpleowamp.protocol.schedule import (
    EXPONENTIAL,
    FIXED,
    Slot,
    deviates,
    offsets,
    uniforms,
)

SECOND = 1 << 32
SID = bytes.fromhex("2872979303ab47eeac028dab3829dab2")


def library(key):
    return Cipher(algorithms.AES(key), modes.ECB()).encryptor()


def quick_uniforms(sid, count):
    """Return the numbers of `uniforms` by a library's AES, of all blocks at once."""
    counters = b"".join(index.to_bytes(16, "big") for index in range(0, count, 4))
    return (number for (number,) in iter_unpack("!I", library(sid).update(counters)))


def test_the_sum_of_a_million_deviates_is_that_of_the_rfc():
    # RFC 4656, appendix B, which has three more ids: they differ in AES, see below, not in this.
    numbers = quick_uniforms(SID, 2_000_000)
    assert sum(islice(deviates(numbers), 1_000_000)) == 0x000F4479BD317381


def test_the_uniform_numbers_are_aes_of_a_counter():
    assert list(islice(uniforms(SID), 1000)) == list(islice(quick_uniforms(SID, 1000), 1000))


# FIPS 197, appendices B and C.1.
@pytest.mark.parametrize(
    ("key", "text", "sealed"),
    [
        ("2b7e151628aed2a6abf7158809cf4f3c", "3243f6a8885a308d313198a2e0370734",
         "3925841d02dc09fbdc118597196a0b32"),
        ("000102030405060708090a0b0c0d0e0f", "00112233445566778899aabbccddeeff",
         "69c4e0d86a7b0430d8cdb78070b4c55a"),
    ],
)  # fmt: skip
def test_aes_is_that_of_the_standard(key, text, sealed):
    assert Aes128(bytes.fromhex(key)).encrypt(bytes.fromhex(text)).hex() == sealed


@REPEATABLE
@given(st.binary(min_size=16, max_size=16), st.binary(min_size=16, max_size=16))
def test_aes_is_that_of_the_library(key, text):
    assert Aes128(key).encrypt(text) == library(key).update(text)


@REPEATABLE
@given(st.lists(st.integers(0, SECOND - 1), min_size=13, max_size=30))
def test_a_deviate_is_what_real_numbers_would_give(numbers):
    """Algorithm S in floating point, from the same numbers."""
    bits, *others = numbers
    text = f"{bits:032b}"
    ones = len(text) - len(text.lstrip("1"))
    fraction = int(text[ones + 1 :].ljust(32, "0") or "0", 2) / SECOND
    if fraction < log(2):
        expected = ones * log(2) + fraction
    else:
        terms, k = log(2) + log(2) ** 2 / 2, 2
        factorial = 2
        while fraction >= terms and k < 11:
            k += 1
            factorial *= k
            terms += log(2) ** k / factorial
        expected = (ones + min(others[:k]) / SECOND) * log(2)
    assert next(deviates(iter(numbers))) / SECOND == pytest.approx(expected, abs=1e-7)


def test_a_number_without_a_zero_bit_gives_the_largest_deviate_of_that_step():
    assert next(deviates(iter([SECOND - 1]))) == 32 * 0xB17217F8


def test_each_packet_is_due_one_interval_of_the_next_slot_after_the_one_before():
    slots = (Slot(EXPONENTIAL, SECOND // 10), Slot(FIXED, SECOND // 4))
    due = list(offsets(SID, slots, 5))
    first, second, third = islice(deviates(uniforms(SID)), 3)
    tenth, quarter = SECOND // 10, SECOND // 4
    gaps = [new - old for old, new in zip([0, *due], due, strict=False)]
    assert gaps == [
        first * tenth >> 32, quarter, second * tenth >> 32, quarter, third * tenth >> 32
    ]  # fmt: skip


def test_the_mean_gap_of_many_packets_is_that_of_the_slot():
    *_, last = offsets(SID, [Slot(EXPONENTIAL, SECOND // 100)], 5000)
    assert last / SECOND == pytest.approx(50, rel=0.03)
