"""Opens the carrier of a member of a fleet; nats-py is imported by nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from benchctl.errors import MissingError
from benchctl.fleet.trust.keys import SigningKey, need_cryptography
from benchctl.fleet.trust.membership import Server

if TYPE_CHECKING:
    from benchctl.fleet.carrier.nats import NatsCarrier


T = TypeVar("T")


def wait_for(what: Coroutine[Any, Any, T]) -> T:
    """Run what uses carriers, and return its result: for commands, which have no event loop."""
    return asyncio.run(what)


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
