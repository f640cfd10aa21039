"""Ed25519 keys, which sign messages and log in to NATS, and their text in NATS' own form (nkeys).

A key's text is base32 of a prefix, 32 bytes and their CRC-16 (XMODEM, little-endian); see
https://github.com/nats-io/nkeys. All keys have the prefix of a user, U; their seeds begin with SU.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchctl.errors import FleetError, MissingError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

_USER: Final = bytes([20 << 3])
# The first 5 bits say "seed", the next 8 what of, the other 3 nothing.
_SEED_OF_USER: Final = bytes([18 << 3 | 20 >> 2, (20 << 3 & 31) << 3])
PUBLIC_BYTES: Final = 32


def need_cryptography() -> None:
    """Raise MissingError unless the package is installed that signs."""
    try:
        import cryptography.hazmat.primitives.asymmetric.ed25519  # noqa: F401
    except ImportError as error:
        raise MissingError(
            "a fleet needs cryptography, which is not installed", 'pip install "benchctl[fleet]"'
        ) from error


class SigningKey:
    """A private key."""

    def __init__(self, seed: bytes) -> None:
        """Take its 32 bytes."""
        self._seed = seed

    @classmethod
    def make(cls) -> SigningKey:
        """Make a new one of the kernel's random bytes."""
        return cls(os.urandom(PUBLIC_BYTES))

    @classmethod
    def parse(cls, text: str) -> SigningKey:
        """Read a seed's text. Raises ValueError."""
        return cls(_unpack(text, _SEED_OF_USER))

    @classmethod
    def read(cls, path: Path) -> SigningKey:
        """Read a seed's file. Raises FleetError, also if others can read it."""
        try:
            with path.open(encoding="ascii") as file:
                if os.fstat(file.fileno()).st_mode & 0o077:
                    raise FleetError(f"{path}: others can read this key", f"chmod 600 {path}")
                return cls.parse(file.read(256).strip())
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "this is no key of a fleet"
            raise FleetError(f"{path}: {why}") from None

    def write(self, path: Path) -> None:
        """Write the seed's file for this user alone. Raises FleetError if it is there."""
        write_secret(path, f"{self.text}\n".encode())

    @property
    def text(self) -> str:
        """The seed's text: a secret."""
        return _pack(_SEED_OF_USER, self._seed)

    @property
    def nkey(self) -> str:
        """The public half's text, by which nats.conf knows a user."""
        return nkey(self.public)

    @cached_property
    def private(self) -> Ed25519PrivateKey:
        """What `cryptography` signs with."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import (
            Ed25519PrivateKey,
        )

        return Ed25519PrivateKey.from_private_bytes(self._seed)

    @cached_property
    def public(self) -> bytes:
        """The public half, 32 bytes."""
        return self.private.public_key().public_bytes_raw()

    def sign(self, data: bytes) -> bytes:
        """Return the signature, 64 bytes."""
        return self.private.sign(data)


def is_signed(public: bytes, signature: bytes, data: bytes) -> bool:
    """Return whether a signature is that of a public key for these very bytes."""
    from cryptography.exceptions import InvalidSignature

    try:
        _verifying(public).verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    return True


@lru_cache(maxsize=4096)
def _verifying(public: bytes) -> Ed25519PublicKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    return Ed25519PublicKey.from_public_bytes(public)


def key_id(public: bytes) -> str:
    """Return what names a public key in an envelope: its first 8 bytes in hex."""
    return public[:8].hex()


def fingerprint(public: bytes) -> str:
    """Return what people compare of a public key, as `ssh-keygen -l` writes it."""
    digest = base64.b64encode(hashlib.sha256(public).digest()).decode()
    return f"SHA256:{digest.rstrip('=')}"


def nkey(public: bytes) -> str:
    """Return a public key's text."""
    return _pack(_USER, public)


def parse_nkey(text: str) -> bytes:
    """Read a public key's text. Raises ValueError."""
    return _unpack(text, _USER)


def write_secret(path: Path, data: bytes, *, replace: bool = False) -> None:
    """Write a file that this user alone can read, whole or not at all. Raises FleetError."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if path.exists() and not replace:
            raise FleetError(f"{path} is there already", "move it away first")
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(file, "wb") as out:
            os.fchmod(out.fileno(), 0o600)
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise FleetError(f"cannot write {path}: {error.strerror}") from None


def _pack(prefix: bytes, data: bytes) -> str:
    raw = prefix + data
    crc = binascii.crc_hqx(raw, 0).to_bytes(2, "little")
    return base64.b32encode(raw + crc).decode().rstrip("=")


def _unpack(text: str, prefix: bytes) -> bytes:
    raw = base64.b32decode(text + "=" * (-len(text) % 8))
    data = raw[len(prefix) : -2]
    if len(data) != PUBLIC_BYTES or _pack(prefix, data) != text:
        raise ValueError("not a key's text, or mistyped")
    return data
