"""Which run of this coordinator has a host.

A run keeps a host from one of its trials to the next, since to give it back and take it again costs
round trips. Whoever else wants it gets it between two trials: another run of this coordinator, or
another program, of which the host tells.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Protocol

from benchctl.errors import HostError
from benchctl.fleet.host_messages import Heartbeat, Lock, OfHost, ToHost, Unlock
from benchctl.fleet.messages import Done
from benchctl.visible import visible

KEPT_S = 0.5
"""So long a run keeps a host that it has left: most often its next trial follows at once."""
TURN_S = 2.0
"""So long a host that was left is for the run that wanted it: longer than that takes to look."""
_OTHERS_TURN = "another run, whose turn it is"


class HeldHost(Protocol):
    """The host that runs have."""

    name: str

    @property
    def last(self) -> Heartbeat | None:
        """What it last said of itself."""

    async def ask(self, message: ToHost) -> OfHost:
        """Send a message and return its answer. Raises HostError."""


class HostHold:
    """Takes and leaves one host for runs."""

    def __init__(self, host: HeldHost) -> None:
        self._host = host
        self._asking = asyncio.Lock()
        self._run = self._who = ""
        """The run that has it, and who that is to others."""
        self._start = ""
        """The start of its agent that knows it."""
        self._next = ""
        """The run that has asked for it meanwhile."""
        self._next_until = 0.0
        self._leaving: asyncio.TimerHandle | None = None
        self._unlocking: asyncio.Task[None] | None = None

    async def take(self, run: str, who: str) -> str:
        """Take it for a run; returns who has it instead, empty if it is taken. Raises HostError."""
        async with self._asking:
            if self._run not in ("", run):
                if self._leaving is None:
                    self._next = run
                    return self._who
                self._stay()
                await self._unlock()
            if self._next not in ("", run) and self._now < self._next_until:
                return _OTHERS_TURN
            self._next = ""
            self._stay()
            start = self._host.last.nonce if self._host.last else ""
            if (self._run, self._start) != (run, start):
                self._run, self._who, self._start = run, who, ""
                answer = await self._host.ask(Lock(run, who))
                if not isinstance(answer, Done):
                    raise HostError(f"host {self._host.name} did not answer what it was asked")
                if answer.value:
                    self._run = ""
                    return visible(str(answer.value))
                self._start = start
            return ""

    def leave(self, run: str) -> None:
        """Leave it to other runs: at once if one wants it, else soon."""
        if run and run == self._run:
            self._stay()
            self._next_until = self._now + TURN_S
            is_wanted = self._next or (self._host.last and self._host.last.is_wanted)
            loop = asyncio.get_running_loop()
            self._leaving = loop.call_later(0.0 if is_wanted else KEPT_S, self._leave, run)

    async def give_back(self, run: str, *, is_left: bool = False) -> None:
        """Leave it to other runs now; with ``is_left`` not if the run has taken it again."""
        async with self._asking:
            if run and run == self._run and (self._leaving is not None or not is_left):
                self._stay()
                await self._unlock()

    @property
    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _leave(self, run: str) -> None:
        self._unlocking = asyncio.ensure_future(self.give_back(run, is_left=True))

    def _stay(self) -> None:
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None

    async def _unlock(self) -> None:
        run, self._run = self._run, ""
        with suppress(HostError):  # it leaves by itself what nobody asks for
            await self._host.ask(Unlock(run))
