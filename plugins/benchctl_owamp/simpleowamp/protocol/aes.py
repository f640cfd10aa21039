"""AES-128 of single blocks, encryption only (FIPS 197): the schedule's source of random numbers.

The schedule follows from a session's public id, so this protects nothing. `ciphers` protects, with
a library that is made for it.
"""

from __future__ import annotations

from struct import Struct

_WORDS = Struct("!4I")


def _substitution() -> list[int]:
    """Return the S-box (FIPS 197, section 5.1.1): the inverse in GF(2^8), then the affine map."""
    powers, value = [], 1
    for _ in range(255):
        powers.append(value)
        value ^= value << 1 ^ (0x11B if value & 0x80 else 0)  # times 3, which generates the field
    box = [0x63] * 256
    for index, value in enumerate(powers):
        inverse = powers[-index % 255] * 0x0101
        box[value] = (
            0x63 ^ (inverse ^ inverse >> 4 ^ inverse >> 5 ^ inverse >> 6 ^ inverse >> 7) & 255
        )
    return box


def _rounds() -> tuple[list[int], ...]:
    """Return what a round makes of each octet, for each of its places in a column."""
    tables: tuple[list[int], ...] = ([], [], [], [])
    for value in _SUBSTITUTION:
        twice = value << 1 ^ (0x11B if value & 0x80 else 0)
        word = twice << 24 | value << 16 | value << 8 | value ^ twice
        for place, table in enumerate(tables):
            table.append((word >> 8 * place | word << 32 - 8 * place) & 0xFFFFFFFF)
    return tables


_SUBSTITUTION = _substitution()
_T0, _T1, _T2, _T3 = _rounds()


class Aes128:
    """Encrypts blocks of 16 octets with a key of 16 octets."""

    def __init__(self, key: bytes) -> None:
        words, constant = list(_WORDS.unpack(key)), 1
        for index in range(4, 44):
            word = words[-1]
            if index % 4 == 0:
                word = self._substituted(word << 8 | word >> 24) ^ constant << 24
                constant = constant << 1 ^ (0x11B if constant & 0x80 else 0)
            words.append(words[-4] ^ word)
        self._keys = [tuple(words[at : at + 4]) for at in range(0, 44, 4)]

    def encrypt(self, block: bytes) -> bytes:
        """Return the block, encrypted."""
        first, *middle, last = self._keys
        a, b, c, d = (word ^ key for word, key in zip(_WORDS.unpack(block), first))
        for e, f, g, h in middle:
            a, b, c, d = (
                _T0[a >> 24] ^ _T1[b >> 16 & 255] ^ _T2[c >> 8 & 255] ^ _T3[d & 255] ^ e,
                _T0[b >> 24] ^ _T1[c >> 16 & 255] ^ _T2[d >> 8 & 255] ^ _T3[a & 255] ^ f,
                _T0[c >> 24] ^ _T1[d >> 16 & 255] ^ _T2[a >> 8 & 255] ^ _T3[b & 255] ^ g,
                _T0[d >> 24] ^ _T1[a >> 16 & 255] ^ _T2[b >> 8 & 255] ^ _T3[c & 255] ^ h,
            )
        shifted = (
            (w & 0xFF000000) | (x & 0xFF0000) | (y & 0xFF00) | (z & 0xFF)
            for w, x, y, z in ((a, b, c, d), (b, c, d, a), (c, d, a, b), (d, a, b, c))
        )
        return _WORDS.pack(*(self._substituted(word) ^ key for word, key in zip(shifted, last)))

    @staticmethod
    def _substituted(word: int) -> int:
        return int.from_bytes(
            (_SUBSTITUTION[octet] for octet in (word & 0xFFFFFFFF).to_bytes(4, "big")), "big"
        )
