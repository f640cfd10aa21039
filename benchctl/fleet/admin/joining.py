"""A host joins: it makes its own key, and the coordinator takes in the public half."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import structs

from benchctl import __version__
from benchctl.errors import FleetError
from benchctl.fleet.admin.directory import FleetDirectory
from benchctl.fleet.carrier.carrier import Carrier, Delivered, OnMessage
from benchctl.fleet.carrier.opening import open_carrier
from benchctl.fleet.carrier.streams import KEYS
from benchctl.fleet.messages import COORDINATOR, Done, Join, Refused
from benchctl.fleet.trust.keys import SigningKey, nkey
from benchctl.fleet.trust.membership import (
    Membership,
    Token,
    read_membership,
    write_membership,
)
from benchctl.fleet.trust.signing import Signer, UntrustedError, Verifier

JOINS: Final = "bench.join.*"
HOST_FILE: Final = "host.fleet"
KEYS_EVERY_S: Final = 5.0
CONNECT_S: Final = 10.0
ANSWER_S: Final = 10.0


def admitting(directory: FleetDirectory) -> OnMessage:
    """Return what the coordinator does with each message of `JOINS`."""
    fleet = directory.members().fleet
    # A token works once, so a repeat does nothing.
    verifier = Verifier(fleet, COORDINATOR, directory.find, "joining", repeats=True)
    signer = Signer(directory.coordinator_key(), fleet, COORDINATOR)

    async def admit(message: Delivered) -> None:
        now_s = time.time()
        try:
            # The token limits the time; the host's clock may be wrong.
            signed = verifier.open(message.data, None, Join)
        except UntrustedError:
            return
        name, join = signed.head.sender, signed.message
        answer: Done | Refused = Done()
        try:
            directory.change(
                lambda members: members.join(name, nkey(join.public), now_s), at_once=False
            )
        except FleetError as error:
            answer = Refused(error.message, error.hint)
        if message.reply is not None:
            await message.reply(signer.seal(answer, name, now_s=now_s))
        directory.reload_server()

    return admit


async def serve_members(carrier: Carrier, directory: FleetDirectory) -> None:
    """Take in hosts that join, and say the coordinator's keys every few seconds, for ever."""
    await carrier.listen(JOINS, admitting(directory))
    while True:
        with suppress(ConnectionError):
            await carrier.send(KEYS, directory.keys())
        await asyncio.sleep(KEYS_EVERY_S)


async def join(token: Token, directory: Path, proxy: str = "") -> Membership:
    """Join a fleet and write this host's file in a directory. Raises FleetError.

    A host that has joined before joins again, with another key.
    """
    server = structs.replace(token.server, proxy=proxy)
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise FleetError(f"{directory}: {error.strerror}") from None
    key = SigningKey.make()
    member = Membership(server, token.name, key.text, token.keys)
    # The key is on the disk before anybody knows of it.
    pending = directory / f"{HOST_FILE}.joining"
    write_membership(pending, member, replace=True)
    try:
        await _ask(token, member)
        async with open_carrier(server, key, token.name) as carrier:
            await carrier.wait_connected(CONNECT_S)
        (directory / "starts").unlink(missing_ok=True)
        pending.replace(directory / HOST_FILE)
    except ConnectionError as error:
        raise FleetError(
            f"cannot join the fleet {token.server.fleet}: {error}",
            "the token may be used or too old; benchctl fleet add makes another",
        ) from None
    finally:
        pending.unlink(missing_ok=True)
    return read_membership(directory / HOST_FILE)


async def _ask(token: Token, member: Membership) -> None:
    signs = SigningKey.parse(token.seed)
    fleet = token.server.fleet
    data = Signer(signs, fleet, token.name).seal(
        Join(member.key.public, __version__), COORDINATOR, now_s=time.time()
    )
    async with open_carrier(member.server, signs, token.name) as carrier:
        await carrier.wait_connected(CONNECT_S)
        try:
            answered = await carrier.request(f"bench.join.{token.name}", data, ANSWER_S)
        except TimeoutError as error:
            if "nobody listens" in str(error):
                raise FleetError(
                    f"the coordinator of the fleet {fleet} does not run",
                    "start it where the fleet was made: benchctl fleet up DIR, or its unit",
                ) from None
            return  # the token's key may be withdrawn before its answer comes: the login will tell
        except ConnectionError:
            return
    opener = Verifier(fleet, token.name, member.key_set().find, "coordinator")
    try:
        answer = opener.open(answered, None, Done | Refused).message
    except UntrustedError as error:
        raise FleetError(f"the answer of the coordinator is refused: {error.why}") from None
    if isinstance(answer, Refused):
        raise FleetError(answer.why, answer.hint)
