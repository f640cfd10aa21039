"""All that a fleet's coordinator, hosts and people say to each other; each message is signed.

Every message is checked when it is decoded: unknown fields are refused, and each field has a range
or a size. Times are Unix times in seconds of the sender's clock, unless said otherwise.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

COORDINATOR: Final = "coordinator"
"""The name of whoever holds the lease; no host and no person has it."""

ShortText = Annotated[str, Meta(max_length=64)]
LineText = Annotated[str, Meta(max_length=1024)]
ReasonText = Annotated[str, Meta(max_length=4096)]
Serial = Annotated[int, Meta(ge=0, lt=2**53)]
UnixTime = Annotated[float, Meta(ge=0, le=2.0**33)]


class Envelope(Struct, frozen=True, forbid_unknown_fields=True):
    """What is sent: the very bytes that were signed, by which key (its first 8 bytes, hex)."""

    key: Annotated[str, Meta(max_length=16)]
    signature: Annotated[bytes, Meta(min_length=64, max_length=64)]
    body: Annotated[bytes, Meta(max_length=1 << 20)]


class Head(Struct, frozen=True, forbid_unknown_fields=True):
    """Who says something to whom, and which of their messages it is.

    ``epoch`` is the revision of the coordinator's lease (0 for people), ``number`` grows within it.
    ``nonce`` is what the receiver made at its start, empty if it made none.
    """

    fleet: ShortText
    sender: ShortText
    to: ShortText
    epoch: Serial
    number: Serial
    issued_s: UnixTime
    expires_s: UnixTime
    nonce: ShortText = ""


class EndRef(Struct, frozen=True, forbid_unknown_fields=True):
    """One end of a flow of an attempt: the run's UUID, the trial's position, the flow's name."""

    run: ShortText
    trial: Serial
    attempt: Serial
    flow: ShortText
    role: ShortText


class FleetMessage(Struct, frozen=True, forbid_unknown_fields=True, tag_field="is"):
    """A message of any kind; its class name is its tag."""


class Refused(FleetMessage, frozen=True, tag="refused"):
    """Why something was not done, and what to do."""

    why: ReasonText
    hint: ReasonText = ""


class Done(FleetMessage, frozen=True, tag="done"):
    """What was asked was done; ``value`` is the answer to a question."""

    value: Any = None


class AskHost(FleetMessage, frozen=True, tag="ask"):
    """A question to a host: a function of the fixed table."""

    function: ShortText
    arguments: Annotated[list[Any], Meta(max_length=64)]


class Join(FleetMessage, frozen=True, tag="join"):
    """A host that has a token asks to be taken in: its own public key, and its version."""

    public: Annotated[bytes, Meta(min_length=32, max_length=32)]
    version: ShortText


def answered(question: bytes) -> str:
    """Return the nonce of the answer to a message, which binds it to that one."""
    return hashlib.sha256(question).hexdigest()[:32]
