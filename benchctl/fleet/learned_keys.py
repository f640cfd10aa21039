"""The coordinator's keys, which members learn while they are connected."""

from __future__ import annotations

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

    def learn(self, keys: bytes) -> bool:
        """Take a newer set; returns whether it was one. Others change nothing."""
        try:
            member = self._member.taking(keys)
        except UntrustedError:
            return False
        if member.key_set().number == self._set.number:
            return False
        write_membership(self._path, member, replace=True)
        self._member, self._set = member, member.key_set()
        return True

    async def take(self, message: Delivered) -> None:
        """Take a message of the subject of keys."""
        self.learn(message.data)
