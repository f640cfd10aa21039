"""What a member of a fleet has: a host's directory, a person's file, and the token to join with.

A host's and a person's key log in to the server and sign their messages. All these files are their
owner's alone (0600).
"""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

from benchctl.errors import FleetError
from benchctl.fleet.messages import LineText, ShortText, UnixTime
from benchctl.fleet.trust.keys import SigningKey, write_secret
from benchctl.fleet.trust.keyset import KeySet, Public, open_keys
from benchctl.fleet.trust.signing import UNDECODABLE, UntrustedError

Rights = Literal["view", "run", "admin"]
"""What a person may do: look, submit runs too, or stop those of others too."""

TOKEN_LIFE_S: Final = 24 * 3600.0
_TOKEN_WORD: Final = "benchctl-join-1-"
_MOST_BYTES: Final = 1 << 16
_AT_LEAST: Final = "view", "run", "admin"


class Server(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a fleet's server is, and what it is known by.

    ``address`` is a host and a port, ``ca`` the certificate of the fleet's authority in PEM,
    ``root`` the public root key. ``proxy`` is the address of an HTTP proxy, empty for none.
    """

    fleet: ShortText
    address: LineText
    ca: Annotated[str, Meta(max_length=8192)]
    root: Public
    proxy: LineText = ""


class Membership(Struct, frozen=True, forbid_unknown_fields=True):
    """A host or a person of a fleet. ``keys`` is the newest signed set of coordinator's keys.

    ``rights`` are a person's, empty for a host.
    """

    server: Server
    name: ShortText
    seed: Annotated[str, Meta(max_length=64)]
    keys: Annotated[bytes, Meta(max_length=4096)]
    rights: Rights | Literal[""] = ""

    @property
    def key(self) -> SigningKey:
        """The member's private key."""
        return SigningKey.parse(self.seed)

    @property
    def fleet(self) -> str:
        """The fleet's name."""
        return self.server.fleet

    def key_set(self) -> KeySet:
        """Return the coordinator's keys. Raises UntrustedError if the root key has not signed."""
        return open_keys(self.keys, self.server.root, self.server.fleet)

    def taking(self, keys: bytes) -> Membership:
        """Return this member with a newer set of keys. Raises UntrustedError."""
        open_keys(keys, self.server.root, self.server.fleet, self.key_set().number)
        return msgspec.structs.replace(self, keys=keys)


class Token(Struct, frozen=True, forbid_unknown_fields=True):
    """Lets one host join once, until it expires: its key logs in and signs the host's own."""

    server: Server
    name: ShortText
    seed: Annotated[str, Meta(max_length=64)]
    keys: Annotated[bytes, Meta(max_length=4096)]
    expires_s: UnixTime

    @property
    def text(self) -> str:
        """The token in one line: a secret."""
        return _TOKEN_WORD + base64.urlsafe_b64encode(msgspec.msgpack.encode(self)).decode()

    @classmethod
    def parse(cls, text: str) -> Token:
        """Read a token. Raises FleetError."""
        try:
            if not text.startswith(_TOKEN_WORD) or len(text) > _MOST_BYTES:
                raise ValueError
            raw = base64.b64decode(text.removeprefix(_TOKEN_WORD), b"-_", validate=True)
            token = msgspec.msgpack.decode(raw, type=cls)
            SigningKey.parse(token.seed)
            open_keys(token.keys, token.server.root, token.server.fleet)
        except (ValueError, UntrustedError, *UNDECODABLE):
            raise FleetError(
                "this is no token, or a part of one",
                "copy the whole line that benchctl fleet add printed",
            ) from None
        return token


def read_membership(path: Path) -> Membership:
    """Read a person's file or a host's `host.fleet`. Raises FleetError, also if others read it."""
    hint = "it comes from benchctl fleet invite, or of a host from benchctl agent join"
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                raise FleetError(f"{path}: others can read this secret", f"chmod 600 {path}")
            member = msgspec.json.decode(file.read(_MOST_BYTES), type=Membership)
        SigningKey.parse(member.seed)
        member.key_set()
    except OSError as error:
        raise FleetError(f"{path}: {error.strerror}", hint) from None
    except (ValueError, *UNDECODABLE) as error:
        raise FleetError(f"{path} is no file of a fleet: {error}", hint) from None
    except UntrustedError as error:
        raise FleetError(f"{path}: {error.why}", hint) from None
    return member


def write_membership(path: Path, member: Membership, *, replace: bool = False) -> None:
    """Write a member's file for this user alone. Raises FleetError."""
    data = msgspec.json.format(msgspec.json.encode(member), indent=2)
    write_secret(path, data + b"\n", replace=replace)


def next_start(directory: Path) -> int:
    """Count the starts of a host's agent: the epoch of its messages. Raises FleetError."""
    path = directory / "starts"
    try:
        count = int(path.read_text("ascii")) if path.exists() else 0
    except (OSError, ValueError):
        raise FleetError(
            f"{path}: this is no count of starts", "join the fleet again: benchctl agent join"
        ) from None
    write_secret(path, f"{count + 1}\n".encode(), replace=True)
    return count + 1


def may(rights: str, needed: Rights) -> bool:
    """Return whether a person's rights are at least those needed."""
    return rights in _AT_LEAST and _AT_LEAST.index(rights) >= _AT_LEAST.index(needed)
