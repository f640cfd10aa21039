"""Opens the carrier of a member of a fleet; nats-py is imported by nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchctl.errors import MissingError
from benchctl.fleet.trust.keys import SigningKey, need_cryptography
from benchctl.fleet.trust.membership import Server

if TYPE_CHECKING:
    from benchctl.fleet.carrier.nats import NatsCarrier


def open_carrier(server: Server, key: SigningKey, name: str) -> NatsCarrier:
    """Return the carrier of a member, not connected yet. Raises MissingError without nats-py."""
    need_cryptography()
    try:
        from benchctl.fleet.carrier.nats import NatsCarrier
    except ImportError as error:
        raise MissingError(
            "a fleet needs nats-py, which is not installed", 'pip install "benchctl[fleet]"'
        ) from error
    return NatsCarrier(server.address, server.ca, key, name, server.proxy)
