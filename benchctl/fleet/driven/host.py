"""What a coordinator knows of one host of its fleet, and how it speaks to it.

All runs share this; each has a link of its own to the host (`benchctl.fleet.driven.link`).
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar

import benchctl
from benchctl.errors import HostError
from benchctl.fleet.carrier.carrier import Carrier
from benchctl.fleet.driven.arrivals import Arrivals
from benchctl.fleet.driven.hold import HostHold
from benchctl.fleet.driven.presence import HostPresence, Standstill
from benchctl.fleet.host_messages import (
    MOST_ENDS,
    CommittedEnd,
    EndOver,
    Go,
    GoingEnd,
    Heartbeat,
    OfEnd,
    OfHost,
    Ping,
    Prepare,
    Prepared,
    PreparedAt,
    PreparedEnd,
    ToHost,
)
from benchctl.fleet.messages import COORDINATOR, EndRef, Refused, answered
from benchctl.fleet.trust.signing import Keys, Signed, Signer, UntrustedError, Verifier
from benchctl.hosts.clocks import HostClock
from benchctl.visible import visible

AWAY_S = 4.0
"""A host that was not heard of for so long is away."""
PING_S = 1.0
"""How often it is looked whether a host is to be asked how it is."""
USED_PING_S, IDLE_PING_S = 2.0, 5.0
"""How often a host is asked that a run uses, and one that none does."""
_LOOK_S = 0.2
ANSWER_S = 10.0
# A server that died is there again by then, and its clients, which try again at growing distances.
RECONNECT_S = 15.0
# An answer that was lost with the server is not waited for any longer.
REPEAT_S = 5.0
# A server has 10 s to become ready, and its program is looked for before.
PREPARED_S = 30.0
# As of a host that SSH reaches: more trips make the least one no shorter.
FIRST_TRIPS = 20
LEAD_ROUND_TRIPS = 4
LEAST_LEAD_S = 0.02
"""Of a go, before its start: the event loops of both ends are a little late, too."""
# Of the last seconds: those of the first moment, when all hosts are timed, are soon forgotten.
_TRIPS_KEPT = 10

T = TypeVar("T")
R = TypeVar("R")


class CoordinatorIdentity(Protocol):
    """Who speaks to hosts, and whom it believes."""

    fleet: str
    signer: Signer
    keys: Keys

    @property
    def epoch(self) -> int:
        """The revision of its lease."""

    @property
    def signed_keys(self) -> Callable[[], bytes]:
        """Returns the newest set of the coordinator's keys, signed by the root key."""


class EndReceiver(Protocol):
    """Who hears the messages of an end, in order."""

    def hear(self, message: OfEnd) -> None:
        """Take the next message."""


class _Batch(Generic[T, R]):
    """Sends what comes within one turn of the event loop as one message."""

    def __init__(self, send: Callable[[list[T]], Any]) -> None:
        self._send = send
        self._waiting: list[T] = []
        self._sending: asyncio.Future[R] | None = None

    async def add(self, item: T) -> R:
        self._waiting.append(item)
        if self._sending is None:
            self._sending = asyncio.ensure_future(self._flush())
        return await asyncio.shield(self._sending)

    async def _flush(self) -> R:
        await asyncio.sleep(0)
        waiting, self._waiting, self._sending = self._waiting, [], None
        result: R = await self._send(waiting)
        return result


class RefusedError(HostError):
    """A host does not do what it was asked: to ask again makes no sense."""


class DrivenHost:
    """One host of the fleet."""

    def __init__(
        self,
        name: str,
        carrier: Carrier,
        identity: CoordinatorIdentity,
        standstill: Standstill,
        heard: Callable[[Heartbeat], None],
    ) -> None:
        """``heard`` gets what it answers of itself."""
        self.name = name
        self._carrier, self._identity = carrier, identity
        self.clock = HostClock()
        self._presence = HostPresence()
        self._standstill, self._heartbeat = standstill, heard
        self._rtts: deque[float] = deque(maxlen=_TRIPS_KEPT)
        self.is_timed = asyncio.Event()
        self._trips = 0
        self._tripped_s = self._pinged_s = -math.inf
        """When the last round trip was over, and the last ping's."""
        self.is_other = False
        """Whether it has another version, which says things that are not understood here."""
        self.links = 0
        """How many runs use it."""
        self.prepares: _Batch[PreparedEnd, dict[EndRef, PreparedAt]] = _Batch(self._prepare)
        self.goes: _Batch[GoingEnd, None] = _Batch(self._go)
        self.ends: dict[EndRef, tuple[Arrivals, EndReceiver]] = {}
        """The ends that are heard here."""
        self._heard: dict[EndRef, int] = {}
        """The numbers of the last messages that were heard, and may not be in the store yet."""
        self._committing: dict[EndRef, int] = {}
        """What is in the store, and the host does not know it."""
        self.hold = HostHold(self)

    # --- whether it is there ----------------------------------------------------------------

    def hear(self, beat: Heartbeat, now_s: float) -> None:
        """Take a heartbeat, at a time of our monotonic clock."""
        if self.last is not None and beat.nonce != self.last.nonce:  # another process
            self.forget_clock()
        self._presence.hear(beat, now_s)

    @property
    def last(self) -> Heartbeat | None:
        """What it last said of itself."""
        return self._presence.heartbeat

    @property
    def silent_s(self) -> float:
        """How long it was not heard of; by the time in what it said, which may come late."""
        return time.monotonic() - self._presence.seen_s

    @property
    def away(self) -> str:
        """Why nothing new starts there now; empty if it is there."""
        if self.last is None:
            return f"host {self.name} was not heard of yet"
        if self.is_other:
            return (
                f"host {self.name} has benchctl {visible(self.last.version)}, which the"
                f" coordinator's {benchctl.__version__} does not understand: upgrade the older one"
            )
        if self.silent_s > AWAY_S and not self._standstill.is_reading(time.monotonic()):
            return f"host {self.name} was not heard of for {self.silent_s:.0f} s"
        return ""

    async def back(self) -> None:
        """Wait until it is heard of."""
        while self.away:
            await asyncio.sleep(_LOOK_S)

    # --- messages ---------------------------------------------------------------------------

    async def request(
        self, message: ToHost, timeout_s: float = ANSWER_S, again_s: float = RECONNECT_S
    ) -> OfHost:
        """Send a message and return its answer. Raises HostError.

        It is sent again if nothing comes, and for ``again_s`` if the server dies meanwhile: a host
        that gets a message twice answers both and does it once.
        """
        begun_s = time.monotonic()
        while True:
            left_s = time.time()
            data = self._sealed(message, left_s, max(timeout_s, ANSWER_S))
            try:
                answer = await self._carrier.request(
                    f"bench.run.{self.name}", data, min(timeout_s, REPEAT_S)
                )
                back_s = time.time()
                signed = self._opened(answer, data)
                if isinstance(message, Ping | Go):
                    is_ping = isinstance(message, Ping)
                    self._take_trip(left_s, signed.head.issued_s, back_s, is_ping=is_ping)
                return signed.message
            except TimeoutError:
                if time.monotonic() - begun_s >= timeout_s:
                    raise HostError(
                        f"host {self.name} did not answer within {timeout_s:.0f} s", HINT
                    ) from None
            except ConnectionError as error:
                if time.monotonic() - begun_s >= again_s:
                    raise HostError(f"host {self.name}: {error}") from None
            await asyncio.sleep(_LOOK_S)  # that nobody listens is said at once

    def _sealed(self, message: ToHost, now_s: float, life_s: float = ANSWER_S) -> bytes:
        """Return a message as it is sent. Raises HostError if the host was never heard of."""
        if self.last is None:
            raise HostError(self.away, HINT)
        return self._identity.signer.seal(
            message, self.name, epoch=self._identity.epoch, nonce=self.last.nonce,
            now_s=now_s, life_s=life_s,
        )  # fmt: skip

    def _opened(self, answer: bytes, asked: bytes) -> Signed[OfHost]:
        identity = self._identity
        verifier = Verifier(
            identity.fleet, COORDINATOR, identity.keys, "host", nonce=answered(asked), repeats=True
        )  # fmt: skip
        try:
            signed = verifier.open(answer, None, OfHost)
        except UntrustedError as error:
            raise HostError(f"host {self.name}: {visible(error.why)}") from None
        if signed.head.sender != self.name:
            raise HostError(f"host {self.name}: {signed.head.sender} answered")
        return signed

    async def ask(self, message: ToHost, timeout_s: float = ANSWER_S) -> OfHost:
        """Send a message and return its answer. Raises HostError, RefusedError for a refusal."""
        answer = await self.request(message, timeout_s)
        if isinstance(answer, Refused):
            why = visible(answer.why)
            about = "" if why.startswith(f"host {self.name}") else f"host {self.name}: "
            raise RefusedError(f"{about}{why}", visible(answer.hint))
        return answer

    async def _prepare(self, ends: list[PreparedEnd]) -> dict[EndRef, PreparedAt]:
        answer = await self.ask(Prepare(ends), PREPARED_S)
        if not isinstance(answer, Prepared):
            raise HostError(f"host {self.name} did not answer what it was asked")
        return {end.ref: end for end in answer.ends}

    async def _go(self, ends: list[GoingEnd]) -> None:
        numbers = self._to_acknowledge()
        self._take_answer(await self.ask(Go(ends, _committed(numbers))), numbers)

    # --- its clock --------------------------------------------------------------------------

    @property
    def _is_trip_due(self) -> bool:
        soon_s = time.monotonic() + PING_S / 2
        is_old = self.links and soon_s > self._tripped_s + USED_PING_S
        return is_old or soon_s > self._pinged_s + IDLE_PING_S or not self.is_timed.is_set()

    def _take_trip(
        self, left_s: float, theirs_s: float, back_s: float, *, is_ping: bool = True
    ) -> None:
        """Take a round trip: when it left and was back by our clock, and what the host's showed.

        A go's is longer, since many leave at once: a lead is not four times that.
        """
        self.clock.add(left_s, theirs_s, back_s)
        self._tripped_s = time.monotonic()
        if is_ping:
            self._rtts.append(back_s - left_s)
            self._pinged_s = self._tripped_s
        self._trips += 1
        if len(self.clock) >= FIRST_TRIPS or self._trips >= 2 * FIRST_TRIPS:
            self.is_timed.set()

    async def watch(self) -> None:
        """Ping it now and then, and at first one ping after the other.

        In two seconds, its clock may go wrong by a millisecond.
        """
        while True:
            try:
                await self.back()
                if self._is_trip_due:
                    await self._ping()
            except HostError:
                await asyncio.sleep(PING_S)
            if self.is_timed.is_set():
                await asyncio.sleep(PING_S)

    async def _ping(self) -> None:
        numbers = self._to_acknowledge()
        self._take_answer(await self.request(Ping(_committed(numbers)), AWAY_S, 0.0), numbers)

    def _to_acknowledge(self) -> dict[EndRef, int]:
        """Return what the next message tells of what is in the store."""
        return dict(islice(self._committing.items(), MOST_ENDS))

    def _take_answer(self, answer: OfHost, numbers: Mapping[EndRef, int]) -> None:
        for ref, number in numbers.items():
            if self._committing.get(ref) == number:  # no other message has told it meanwhile
                del self._committing[ref]
        if isinstance(answer, Heartbeat):
            self._heartbeat(answer)

    def forget_clock(self) -> None:
        """Time its clock anew."""
        self.clock.forget()
        self._trips = 0
        self.is_timed.clear()

    @property
    def lead_s(self) -> float:
        """How long before its start a client there must be told."""
        return LEAST_LEAD_S + LEAD_ROUND_TRIPS * max(self._rtts, default=0.0)

    # --- events -----------------------------------------------------------------------------

    def take(self, message: OfEnd) -> bool:
        """Take a message of an end that is heard here; returns whether it is, or was."""
        ref = message.ref
        found = self.ends.get(ref)
        if found is None:
            return message.number <= self._heard.get(ref, 0)
        arrivals, receiver = found
        for next_message in arrivals.take(message):
            self._heard[ref] = arrivals.last
            receiver.hear(next_message)
            if isinstance(next_message, EndOver):
                self.ends.pop(ref, None)
        return True

    def run_ended(self, run: str) -> None:
        """Let what comes again of a run be stored, if its store did not take it."""
        self._heard = {ref: number for ref, number in self._heard.items() if ref.run != run}

    def commit(self, ref: EndRef, number: int) -> None:
        """Tell it soon that all messages of an end up to a number are in the store."""
        if number >= self._heard.get(ref, 0):
            self._heard.pop(ref, None)
        self._committing[ref] = max(number, self._committing.get(ref, 0))


def _committed(numbers: Mapping[EndRef, int]) -> tuple[CommittedEnd, ...]:
    return tuple(CommittedEnd(ref, number) for ref, number in numbers.items())


HINT = "benchctl fleet hosts shows which hosts are there"
