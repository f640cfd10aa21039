"""Who is in a fleet: its hosts, its people, and hosts that may join.

Pure. The public keys are written as NATS writes them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Final

from msgspec import Meta, Struct, structs

from benchctl.errors import FleetError, UsageError, nearest
from benchctl.fleet.messages import COORDINATOR, LineText, Serial, ShortText, UnixTime
from benchctl.fleet.trust.keys import key_id, parse_nkey
from benchctl.fleet.trust.membership import Rights
from benchctl.fleet.trust.signing import KnownKey, MemberRole

NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_TAKEN: Final = frozenset({COORDINATOR, "setup", "root", "everyone"})

Nkey = Annotated[str, Meta(max_length=64)]


class JoinedHost(Struct, frozen=True, forbid_unknown_fields=True):
    """A host; ``joined_s`` is when it joined."""

    nkey: Nkey
    joined_s: UnixTime


class Person(Struct, frozen=True, forbid_unknown_fields=True):
    """A person, what they may do, and how much: at once, and within 24 hours."""

    nkey: Nkey
    rights: Rights
    hosts_at_once: Serial = 64
    trials_at_once: Serial = 32
    bytes_a_day: Serial = 10**13


class Invited(Struct, frozen=True, forbid_unknown_fields=True):
    """A host that may join until its token expires; the key is the token's."""

    nkey: Nkey
    expires_s: UnixTime


class Members(Struct, frozen=True, forbid_unknown_fields=True):
    """All of a fleet; ``coordinators`` are keys that the root key signed, the next one last."""

    fleet: ShortText
    address: LineText
    setup: Nkey
    coordinators: tuple[Nkey, ...]
    keys_number: Serial = 1
    hosts: dict[ShortText, JoinedHost] = {}
    people: dict[ShortText, Person] = {}
    invited: dict[ShortText, Invited] = {}

    def check_new(self, name: str, *, again: bool = False) -> None:
        """Raise UsageError unless a host or a person may have this name.

        ``again`` allows that of a host, which then joins once more.
        """
        if not NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} is no name of a fleet", "use a-z, 0-9 and -, at most 63: paris-1"
            )
        if name in _TAKEN or name in self.people or (name in self.hosts and not again):
            hint = f"benchctl fleet remove {name} withdraws it" if name not in _TAKEN else ""
            raise UsageError(f"the name {name} is taken in this fleet", hint)

    def invite_host(self, name: str, nkey: str, expires_s: float) -> Members:
        """Let a host join, or a host join once more with another key."""
        return structs.replace(self, invited=self.invited | {name: Invited(nkey, expires_s)})

    def join(self, name: str, nkey: str, now_s: float) -> Members:
        """Take in a host that was invited. Raises FleetError if its token is used or too old."""
        invited = self.invited.get(name)
        if invited is None or invited.expires_s < now_s:
            raise FleetError(
                f"the token of {name} was used, or is too old",
                f"benchctl fleet add {name} makes another",
            )
        left = {each: token for each, token in self.invited.items() if each != name}
        hosts = self.hosts | {name: JoinedHost(nkey, now_s)}
        return structs.replace(self, invited=left, hosts=hosts)

    def invite_person(self, name: str, person: Person) -> Members:
        """Take in a person."""
        return structs.replace(self, people=self.people | {name: person})

    def with_limits(self, name: str, limits: Mapping[str, int]) -> Members:
        """Change limits of a person, by the names of their fields. Raises UsageError."""
        if name not in self.people:
            hint = nearest(name, self.people) or "see benchctl fleet people"
            raise UsageError(f"this fleet has no person {name}", hint)
        person = structs.replace(self.people[name], **limits)
        return structs.replace(self, people=self.people | {name: person})

    def without(self, name: str) -> Members:
        """Withdraw a host, an invitation or a person. Raises UsageError if there is none."""
        if name not in self.hosts | self.people | self.invited:
            raise UsageError(f"this fleet has no host and no person {name}")
        return structs.replace(
            self,
            hosts={each: it for each, it in self.hosts.items() if each != name},
            people={each: it for each, it in self.people.items() if each != name},
            invited={each: it for each, it in self.invited.items() if each != name},
        )

    def current(self, now_s: float) -> Members:
        """Return this without the invitations that are too old."""
        valid = {name: each for name, each in self.invited.items() if each.expires_s >= now_s}
        return self if len(valid) == len(self.invited) else structs.replace(self, invited=valid)

    def keys(self) -> dict[str, KnownKey]:
        """Return all known keys by `key_id`."""
        each: list[tuple[MemberRole, str, str]] = [
            *(("coordinator", COORDINATOR, nkey) for nkey in self.coordinators),
            *(("host", name, host.nkey) for name, host in self.hosts.items()),
            *(("person", name, person.nkey) for name, person in self.people.items()),
            *(("joining", name, invited.nkey) for name, invited in self.invited.items()),
        ]
        known = [KnownKey(parse_nkey(nkey), role, name) for role, name, nkey in each]
        return {key_id(key.public): key for key in known}
