"""The coordinator's keys, which members learn while they are connected."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from benchctl.fleet.carrier.carrier import Delivered
from benchctl.fleet.trust.membership import Membership, write_membership
from benchctl.fleet.trust.signing import KnownKey, UntrustedError


class LearnedKeys:
    """The coordinator's keys as a member knows them, and learns new ones while it listens.

    Args:
        path: the member's file, which is written anew.
        member: what it has.
    """

    def __init__(self, path: Path, member: Membership) -> None:
        self._path = path
        self._member = member
        self._set = member.key_set()

    def find(self, key: str) -> KnownKey | None:
        """Return the coordinator's key that an envelope names."""
        return self._set.find(key)

    def learn(self, keys: bytes) -> None:
        """Take a newer set. Raises UntrustedError for an older one, or if it is not signed."""
        if keys != self._member.keys:
            member = self._member.taking(keys)
            write_membership(self._path, member, replace=True)
            self._member, self._set = member, member.key_set()

    async def take(self, message: Delivered) -> None:
        """Take a message of the subject of keys; others than newer sets change nothing."""
        with suppress(UntrustedError):
            self.learn(message.data)
