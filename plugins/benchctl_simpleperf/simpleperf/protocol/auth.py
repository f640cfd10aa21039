"""Authenticates clients by a shared key, which is never sent."""

from __future__ import annotations

import os

from benchctl_standalone.errors import Problem, describe_os_error

KEY_VARIABLE = "SIMPLEPERF_KEY"
_KEY_LIMIT = 4096


def read_key(path: str | None) -> bytes | None:
    """Return the key of a file, or of the environment; None if there is none.

    Surrounding white space is ignored. Raises Problem.
    """
    if path is None:
        key = os.environb.get(KEY_VARIABLE.encode(), b"").strip()
        return key or None
    try:
        with open(path, "rb") as file:
            key = file.read(_KEY_LIMIT + 1).strip()
    except OSError as error:
        raise Problem("parameter", f"key file {path}: {describe_os_error(error)}") from error
    if not key or len(key) > _KEY_LIMIT:
        raise Problem("parameter", f"key file {path}: a key has 1 to {_KEY_LIMIT} bytes")
    return key


def new_secret(size: int) -> str:
    """Return so many random bytes, in hexadecimal."""
    return os.urandom(size).hex()


def prove(key: bytes, challenge: str, nonce: str) -> str:
    """Return the answer to a challenge: an HMAC-SHA256 (RFC 2104) of both ends' random numbers."""
    import hashlib  # Imported only if there is a key.
    import hmac

    message = f"simpleperf 1 client {challenge} {nonce}".encode()
    return hmac.new(key, message, hashlib.sha256).hexdigest()


def proves(key: bytes, challenge: str, nonce: str, mac: str) -> bool:
    """Return whether an answer was made with the key, in constant time."""
    import hmac

    return hmac.compare_digest(prove(key, challenge, nonce), mac)
