"""The authenticated and encrypted modes: keys, the control connection's two streams, test packets.

In both modes each direction of a control connection is one stream of AES-128-CBC, with a truncated
HMAC-SHA1 after each message (RFC 4656, sections 3.1 and 3.2). `cryptography` does the encryption;
it is imported when one of these modes is asked for.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Any, NamedTuple

from benchctl_standalone.errors import Problem

from .messages import AUTHENTICATED

BLOCK_BYTES = 16
_ZERO_BLOCK = bytes(BLOCK_BYTES)


class Keys(NamedTuple):
    """The two session keys: of a control connection, or of a test session."""

    aes: bytes
    hmac: bytes


def cbc(key: bytes, iv: bytes = _ZERO_BLOCK) -> Any:
    """Return AES in CBC mode, of `cryptography`.

    Raises Problem if that is not installed.
    """
    try:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    except ImportError:
        raise Problem(
            "tool",
            "the authenticated and encrypted modes need the Python package cryptography",
            "pip install 'benchctl[owamp]', or apt install python3-cryptography; "
            "the open mode needs nothing",
        ) from None
    return Cipher(algorithms.AES(key), modes.CBC(iv))


def _encrypted(key: bytes, data: bytes) -> bytes:
    return bytes(cbc(key).encryptor().update(data))


def derive_key(passphrase: bytes, salt: bytes, count: int) -> bytes:
    """Return the key of the token: PBKDF2 with HMAC-SHA1 (RFC 4656, section 3.1)."""
    return hashlib.pbkdf2_hmac("sha1", passphrase, salt, count, BLOCK_BYTES)


def seal_token(key: bytes, challenge: bytes, keys: Keys) -> bytes:
    """Return the client's proof that it knows the passphrase, which carries the session keys."""
    return _encrypted(key, challenge + keys.aes + keys.hmac)


def open_token(key: bytes, challenge: bytes, token: bytes) -> Keys | None:
    """Return the session keys of a token; None if it was made with another passphrase."""
    text = bytes(cbc(key).decryptor().update(token))
    same = hmac.compare_digest(text[:BLOCK_BYTES], challenge)
    return Keys(text[BLOCK_BYTES : 2 * BLOCK_BYTES], text[2 * BLOCK_BYTES :]) if same else None


def test_keys(keys: Keys, sid: bytes) -> Keys:
    """Return the keys of a test session: the connection's, encrypted by its id (section 4.1)."""
    return Keys(_encrypted(sid, keys.aes), _encrypted(sid, keys.hmac))


class Digest:
    """The HMAC of a direction's octets since the one before; zeros in the open mode."""

    def __init__(self, keys: Keys | None) -> None:
        self._key = keys and keys.hmac
        self._pending: list[bytes] = []

    def add(self, text: bytes) -> None:
        """Take text, as it is before encryption."""
        if self._key is not None:
            self._pending.append(text)

    def take(self) -> bytes:
        """Return the HMAC of the text so far; the next one begins after it."""
        if self._key is None:
            return _ZERO_BLOCK
        text = b"".join(self._pending)
        self._pending.clear()
        return hmac.digest(self._key, text, "sha1")[:BLOCK_BYTES]

    def check(self, digest: bytes) -> None:
        """Raise Problem unless an HMAC is that of the text so far. The open mode has none."""
        if not hmac.compare_digest(self.take(), digest) and self._key is not None:
            raise Problem("peer", "a message that was altered on its way: its HMAC is wrong")


class TestCipher:
    """Seals and opens a session's test packets (RFC 4656, section 4.1.2).

    The head of a packet ends with its HMAC. The authenticated mode protects the first block, the
    encrypted mode everything before the HMAC; padding is never protected.
    """

    __test__ = False  # a test of this tool imports it, and it isn't one

    def __init__(self, mode: int, keys: Keys, sid: bytes, head_bytes: int = 48) -> None:
        aes, self._hmac_key = test_keys(keys, sid)
        self._cipher = cbc(aes)
        self._end = head_bytes - BLOCK_BYTES
        self._covered = BLOCK_BYTES if mode == AUTHENTICATED else self._end

    def seal(self, head: bytes) -> bytes:
        """Return a head as it is sent."""
        text = head[: self._covered]
        sealed = bytes(self._cipher.encryptor().update(text))
        return sealed + head[self._covered : self._end] + self._digest(text)

    def open(self, packet: bytes) -> bytes | None:
        """Return the head of a packet; None if it isn't whole, or not from this session."""
        if len(packet) < self._end + BLOCK_BYTES:
            return None
        text = bytes(self._cipher.decryptor().update(packet[: self._covered]))
        digest = packet[self._end : self._end + BLOCK_BYTES]
        if not hmac.compare_digest(self._digest(text), digest):
            return None
        return text + packet[self._covered : self._end] + digest

    def _digest(self, text: bytes) -> bytes:
        return hmac.digest(self._hmac_key, text, "sha1")[:BLOCK_BYTES]
