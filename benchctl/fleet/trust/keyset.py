"""The coordinator's keys, as the root key signs them.

Hosts and people pin the root key once. Then keys change without them: while a set has two keys,
messages of either are accepted. A set with a lower number is refused.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from benchctl.fleet.messages import COORDINATOR, Serial, ShortText
from benchctl.fleet.trust.keys import PUBLIC_BYTES, SigningKey, key_id
from benchctl.fleet.trust.signing import (
    KEYS_DOMAIN,
    UNDECODABLE,
    KnownKey,
    UntrustedError,
    seal,
    unseal,
)

Public = Annotated[bytes, Meta(min_length=PUBLIC_BYTES, max_length=PUBLIC_BYTES)]


class KeySet(Struct, frozen=True, forbid_unknown_fields=True):
    """The public keys of a fleet's coordinator; ``number`` grows with each set."""

    fleet: ShortText
    number: Serial
    coordinators: Annotated[tuple[Public, ...], Meta(min_length=1, max_length=4)]

    def find(self, key: str) -> KnownKey | None:
        """Return the coordinator's key that an envelope names."""
        for public in self.coordinators:
            if key_id(public) == key:
                return KnownKey(public, "coordinator", COORDINATOR)
        return None


def sign_keys(root: SigningKey, keys: KeySet) -> bytes:
    """Return a signed set."""
    return seal(root, KEYS_DOMAIN, msgspec.msgpack.encode(keys))


def open_keys(data: bytes, root: bytes, fleet: str, least: int = 0) -> KeySet:
    """Return a set that the root key signed. Raises UntrustedError.

    ``root`` is the pinned public key, ``least`` the number of the set that is known already.
    """
    pinned = KnownKey(root, "coordinator", "the root key")
    _, body = unseal(data, KEYS_DOMAIN, lambda key: pinned if key == key_id(root) else None)
    try:
        keys = msgspec.msgpack.decode(body, type=KeySet)
    except UNDECODABLE as error:
        raise UntrustedError(f"the root key signed no set of keys: {error}") from None
    if keys.fleet != fleet:
        raise UntrustedError(f"the set of keys is of the fleet {keys.fleet}")
    if keys.number < least:
        raise UntrustedError(f"the set of keys {keys.number} is older than {least}")
    return keys
