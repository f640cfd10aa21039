"""A person's side of a fleet: asks the coordinator, and verifies what it says."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from benchctl.errors import FleetError, UsageError
from benchctl.fleet.carrier.carrier import Carrier
from benchctl.fleet.messages import COORDINATOR, Refused
from benchctl.fleet.person_messages import ToPerson
from benchctl.fleet.trust.membership import Membership
from benchctl.fleet.trust.signing import Signer, UntrustedError, Verifier

# A large matrix is planned for some seconds.
ANSWER_S = 30.0

T = TypeVar("T")


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
