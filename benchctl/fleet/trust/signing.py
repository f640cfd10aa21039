"""Signs messages, and opens those of others: the signature is judged first, the content after.

Pure: the time comes from outside. What was signed is sent as it is, so no canonical form is needed.
A message is accepted once, by the rules of `_Repeats`.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable
from functools import cache
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec
from msgspec import Struct

from benchctl.fleet.messages import Envelope, Head
from benchctl.fleet.trust.keys import SigningKey, is_signed, key_id

MemberRole = Literal["coordinator", "host", "person", "joining"]

MESSAGE_DOMAIN: Final = b"benchctl-fleet-v1\0"
KEYS_DOMAIN: Final = b"benchctl-fleet-keys-v1\0"
"""What comes before the signed bytes, so that a signature of one kind is none of the other."""

PATIENCE_S: Final = 5.0
"""How far ahead of the receiver's clock a message may be issued."""
LONGEST_S: Final = 600.0
"""No message is valid for longer, so that those of people need not be remembered for longer."""
MOST_REMEMBERED: Final = 10_000
"""So many messages of people are remembered until they expire, and no more are accepted."""

M = TypeVar("M")


UNDECODABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What decoding raises: msgspec has no error of its own for text or for what is nested too deep."""


class UntrustedError(Exception):
    """Why a message is refused; nothing of it was acted on."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class WrongTimeError(UntrustedError):
    """The message is a member's, and too old or too new: a clock may be wrong."""

    def __init__(self, why: str, sender: str) -> None:
        super().__init__(why)
        self.sender = sender


class KnownKey(Struct, frozen=True):
    """A public key, whose it is and what they may be."""

    public: bytes
    role: MemberRole
    name: str


Keys = Callable[[str], KnownKey | None]
"""Finds the key that an envelope names by `key_id`."""


class Signed(Struct, Generic[M], frozen=True, forbid_unknown_fields=True):
    """What was signed."""

    head: Head
    message: M


class Signer:
    """Signs messages of one sender; each has the next number."""

    def __init__(self, key: SigningKey, fleet: str, sender: str) -> None:
        self._key = key
        self._fleet = fleet
        self._sender = sender
        # The numbers of two processes of one person must differ.
        self._numbers = itertools.count(secrets.randbits(48))

    def seal(
        self,
        message: Any,
        to: str,
        *,
        epoch: int = 0,
        nonce: str = "",
        now_s: float,
        life_s: float = 60.0,
    ) -> bytes:
        """Return an envelope with a message to a receiver, valid for ``life_s`` from ``now_s``."""
        head = Head(
            fleet=self._fleet,
            sender=self._sender,
            to=to,
            epoch=epoch,
            number=next(self._numbers),
            issued_s=now_s,
            expires_s=now_s + life_s,
            nonce=nonce,
        )
        return seal(self._key, MESSAGE_DOMAIN, msgspec.msgpack.encode(Signed(head, message)))


class Verifier:
    """Opens messages to one receiver from senders of one role.

    Args:
        fleet: the name of the fleet that messages must be of.
        me: the receiver's name, which messages must be to.
        keys: the known keys.
        role: what the sender must be.
        nonce: what the receiver made at its start, if messages to it must have it.
        repeats: whether repeated messages are accepted, because something else drops them.
    """

    def __init__(
        self,
        fleet: str,
        me: str,
        keys: Keys,
        role: MemberRole,
        *,
        nonce: str = "",
        repeats: bool = False,
    ) -> None:
        self._fleet = fleet
        self._me = me
        self._keys = keys
        self._role = role
        self._nonce = nonce
        self._repeats = None if repeats else _Repeats(growing=role != "person")

    def open(self, data: bytes, now_s: float | None, kind: Any) -> Signed[Any]:
        """Return a message of a kind (a type, or a union). Raises UntrustedError.

        ``now_s`` is the sender's time as far as it is known here. Without it, the message may have
        expired: then only its number says that it is new.
        """
        key, body = unseal(data, MESSAGE_DOMAIN, self._keys)
        if key.role != self._role:
            raise UntrustedError(f"{key.name} is a {key.role}, not a {self._role}")
        try:
            signed: Signed[Any] = _decoder(kind).decode(body)
        except UNDECODABLE as error:
            raise UntrustedError(f"{key.name} sent no message of this kind: {error}") from None
        head = signed.head
        if head.sender != key.name:
            raise UntrustedError(f"{key.name} signed as {head.sender}")
        if head.fleet != self._fleet:
            raise UntrustedError(f"the message is of the fleet {head.fleet}")
        if head.to != self._me:
            raise UntrustedError(f"the message is to {head.to}, not to {self._me}")
        if head.nonce != self._nonce:
            raise UntrustedError(f"the message is to another start of {self._me}")
        if now_s is not None:
            _judge_time(head, now_s)
        if self._repeats is not None:
            self._repeats.judge(head, now_s)
        return signed


class _Repeats:
    """Refuses what came before.

    The coordinator's and a host's messages come in order: their (epoch, number) must grow. A person
    has several terminals and perhaps machines, so their numbers are remembered until they expire.
    """

    def __init__(self, *, growing: bool) -> None:
        self._growing = growing
        self._last: dict[str, tuple[int, int]] = {}
        self._seen: dict[tuple[str, int, int], float] = {}

    def judge(self, head: Head, now_s: float | None) -> None:
        """Accept a message once. Raises UntrustedError."""
        number = (head.epoch, head.number)
        if self._growing:
            last = self._last.get(head.sender)
            if last is not None and number <= last:
                raise UntrustedError(f"{head.sender} sent this, or a later message, before")
            self._last[head.sender] = number
            return
        if (head.sender, *number) in self._seen:
            raise UntrustedError(f"{head.sender} sent this before")
        while now_s is not None and self._seen:
            first = next(iter(self._seen))
            if self._seen[first] >= now_s:
                break
            del self._seen[first]
        if len(self._seen) >= MOST_REMEMBERED:
            raise UntrustedError("too many messages of people at once; try again in a minute")
        self._seen[head.sender, *number] = head.expires_s


def _judge_time(head: Head, now_s: float) -> None:
    if head.expires_s - head.issued_s > LONGEST_S:
        raise UntrustedError(f"the message is valid for more than {LONGEST_S:g} s")
    why = ""
    if now_s > head.expires_s:
        late_s = now_s - head.expires_s
        why = f"the message expired {late_s:.0f} s ago; or a clock is wrong"
    if head.issued_s > now_s + PATIENCE_S:
        early_s = head.issued_s - now_s
        why = f"the message is {early_s:.0f} s ahead; a clock is wrong"
    if why:
        raise WrongTimeError(why, head.sender)


def seal(key: SigningKey, domain: bytes, body: bytes) -> bytes:
    """Return an envelope with signed bytes."""
    return msgspec.msgpack.encode(Envelope(key_id(key.public), key.sign(domain + body), body))


def unseal(data: bytes, domain: bytes, keys: Keys) -> tuple[KnownKey, bytes]:
    """Return whose envelope it is, and the bytes that they signed. Raises UntrustedError."""
    try:
        envelope = _ENVELOPES.decode(data)
    except UNDECODABLE:
        raise UntrustedError("this is no message of a fleet") from None
    key = keys(envelope.key)
    if key is None:
        raise UntrustedError(f"the key {envelope.key} is not known")
    if not is_signed(key.public, envelope.signature, domain + envelope.body):
        raise UntrustedError(f"the signature is not that of {key.name}")
    return key, envelope.body


_ENVELOPES = msgspec.msgpack.Decoder(Envelope)


@cache
def _decoder(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    return msgspec.msgpack.Decoder(Signed[kind])
