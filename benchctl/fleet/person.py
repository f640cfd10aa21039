"""A person's side of a fleet: asks the coordinator, and verifies what it says."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import platformdirs

from benchctl.errors import FleetError, UsageError
from benchctl.fleet.carrier.carrier import Carrier
from benchctl.fleet.learned_keys import LearnedKeys
from benchctl.fleet.messages import COORDINATOR, Refused
from benchctl.fleet.person_messages import ToPerson
from benchctl.fleet.trust.keys import key_id
from benchctl.fleet.trust.membership import Membership, read_membership
from benchctl.fleet.trust.signing import Signer, UntrustedError, Verifier

CONNECT_S = 5.0
# A large matrix is planned for some seconds.
ANSWER_S = 30.0

T = TypeVar("T")


def copy_path(member: Membership) -> Path:
    """Return the copy of a fleet's runs on this machine, a store of its own. Raises FleetError."""
    path = (
        platformdirs.user_data_path("benchctl")
        / "fleets"
        / f"{member.fleet}-{key_id(member.server.root)}.sqlite"
    )
    if not path.is_absolute():
        raise FleetError("this user has no home directory for the copy of a fleet's runs")
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return path


@asynccontextmanager
async def opened(
    file: Path, timeout_s: float = CONNECT_S
) -> AsyncIterator[tuple[PersonLink, Membership]]:
    """Connect as the person of a file. Raises FleetError, also if the server is not reached."""
    from benchctl.fleet.carrier.opening import open_carrier
    from benchctl.fleet.carrier.streams import KEYS

    member = read_membership(file)
    async with open_carrier(member.server, member.key, member.name) as carrier:
        try:
            await carrier.wait_connected(timeout_s)
        except ConnectionError as error:
            what = f"fleet {member.fleet}: {member.server.address} cannot be reached: {error}"
            raise FleetError(what, "try again later") from None
        await carrier.listen(KEYS, LearnedKeys(file, member).take)
        yield PersonLink(carrier, member), member


class PersonLink:
    """What one person says to the coordinator of a fleet, over a carrier that is connected."""

    def __init__(
        self, carrier: Carrier, member: Membership, wall: Callable[[], float] = time.time
    ) -> None:
        self.carrier, self._member, self._wall = carrier, member, wall
        self._signer = Signer(member.key, member.fleet, member.name)
        keys = member.key_set().find
        self._answers = Verifier(member.fleet, member.name, keys, "coordinator", repeats=True)

    async def ask(self, message: Any, kind: type[T], timeout_s: float = ANSWER_S) -> T:
        """Return the answer to a message.

        Raises UsageError if it is refused, and FleetError if the coordinator does not answer.
        """
        subject = f"bench.submit.{self._member.name}"
        data = self._signer.seal(message, COORDINATOR, now_s=self._wall())
        try:
            answer = await self.carrier.request(subject, data, timeout_s)
            said = self._answers.open(answer, None, ToPerson).message
        except ConnectionError:
            address = self._member.server.address
            raise FleetError(
                f"fleet {self._member.fleet}: {address} cannot be reached", "try again later"
            ) from None
        except TimeoutError:
            raise FleetError(
                f"fleet {self._member.fleet}: its coordinator does not answer",
                "what was asked may still be done: see benchctl fleet queue",
            ) from None
        except UntrustedError as error:
            raise FleetError(f"fleet {self._member.fleet}: {error.why}") from None
        if isinstance(said, Refused):
            raise UsageError(said.why, said.hint)
        if not isinstance(said, kind):
            raise FleetError(f"fleet {self._member.fleet}: its coordinator gave another answer")
        return said


def ask_fleet(file: Path, message: Any, kind: type[T]) -> T:
    """Return the coordinator's answer to one message of the person of a file.

    Raises UsageError if it refuses, and FleetError.
    """

    async def ask() -> T:
        async with opened(file) as (link, _):
            return await link.ask(message, kind)

    return asyncio.run(ask())
