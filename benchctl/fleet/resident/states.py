"""What an agent that stays does about each message: messages in, effects out. Pure.

=========  =============================  ==========================================
state      an end in it                   leaves it by
=========  =============================  ==========================================
STARTING   is brought to where it waits   `up`: a client WAITS, a server RUNS
WAITS      is at its gate                 `Go`: RUNS; without one after a while: OVER
RUNS       measures, or serves            its end, `StopEnds`, its deadline: OVER
OVER       has ended                      --
=========  =============================  ==========================================

`AbortEnds` ends an end in any state. A message that its state does not know is refused.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum, auto

from msgspec import Struct

from benchctl.api import Role
from benchctl.fleet.host_messages import (
    AbortEnds,
    CommittedEnd,
    Go,
    Lock,
    OfHost,
    Ping,
    Prepare,
    Prepared,
    PreparedAt,
    PreparedEnd,
    StopEnds,
    ToHost,
    Unlock,
)
from benchctl.fleet.messages import Done, EndRef, Refused

# A client waits at its gate for the others of its trial: for servers that start, and for a lead.
GATE_S = 120.0
# Whoever holds the host and says nothing has ended without a word.
LOCK_S = 60.0
# Repeated plans are known by these.
_RECENT = 256


class EndState(Enum):
    """Where an end is, see the table above."""

    STARTING = auto()
    WAITS = auto()
    RUNS = auto()


class Reply(Struct, frozen=True):
    """Answer a message."""

    to: int
    answer: OfHost


class StartEnd(Struct, frozen=True):
    """Bring an end to where it waits, and say so by `States.up`."""

    end: PreparedEnd


class LetGo(Struct, frozen=True):
    """Let a client begin at a time of this host; at once if it is 0."""

    ref: EndRef
    at_s: float


class EndEnd(Struct, frozen=True):
    """End an end, in order or by a kill, and say so by `States.over`."""

    ref: EndRef
    kill: bool


class Forget(Struct, frozen=True):
    """Drop from the spool what is committed."""

    end: CommittedEnd


class Tell(Struct, frozen=True):
    """Answer a message with how the host is."""

    to: int


Effect = Reply | StartEnd | LetGo | EndEnd | Forget | Tell


class _Held:
    """An end that has not ended."""

    def __init__(self, prepared: PreparedEnd, now_s: float) -> None:
        self.spec = prepared.spec
        self.state = EndState.STARTING
        self.at: PreparedAt | None = None
        """How it is where it waits."""
        self.was_let_go = False
        self.due_s = now_s + GATE_S
        """When it is ended, if nothing comes before."""


class States:
    """The ends of one host, and who holds it.

    ``refusal`` says why an end may not run here, empty if it may. ``take`` takes the host's lock
    for somebody and returns who has it, ``give_back`` leaves it. ``number`` of a message is its
    caller's: replies have it.
    """

    def __init__(
        self,
        refusal: Callable[[PreparedEnd], str],
        take: Callable[[str], str],
        give_back: Callable[[], None],
    ) -> None:
        self._refusal, self._take, self._give_back = refusal, take, give_back
        self._ends: dict[EndRef, _Held] = {}
        self.recent: deque[EndRef] = deque(maxlen=_RECENT)
        self._asked: dict[int, dict[EndRef, PreparedAt | None]] = {}
        """The prepares that are not answered yet."""
        self._holders: dict[str, str] = {}
        """The runs that hold the host, and who they are to others."""
        self._heard_s = 0.0

    @property
    def running(self) -> list[EndRef]:
        """Its ends that have not ended."""
        return [*self._ends]

    def state(self, ref: EndRef) -> EndState | None:
        """Return the state of an end; None if it has ended, or is not known."""
        held = self._ends.get(ref)
        return None if held is None else held.state

    def message(self, number: int, message: ToHost, now_s: float) -> list[Effect]:
        """Take a message of the coordinator, at a time of this host."""
        self._heard_s = now_s
        match message:
            case Prepare():
                return self._prepare(number, message, now_s)
            case Go():
                return self._go(number, message, now_s)
            case StopEnds():
                return [*self._end(message.ends, kill=False), Reply(number, Done())]
            case AbortEnds():
                # Its plan may still be on the way.
                self.recent.extend(ref for ref in message.ends if ref not in self._ends)
                return [*self._end(message.ends, kill=True), Reply(number, Done())]
            case Lock():
                return [Reply(number, Done(self._lock(message.run, message.who)))]
            case Unlock():
                self._holders.pop(message.run, None)
                self._leave()
                return [Reply(number, Done())]
            case Ping():
                return self._tell(number, message)
        return [Reply(number, Refused("this agent does not know that message"))]

    def _prepare(self, number: int, message: Prepare, now_s: float) -> list[Effect]:
        if all(
            end.ref in self._ends and end.spec == self._ends[end.ref].spec for end in message.ends
        ):
            return self._answer_again(number, message)
        for end in message.ends:
            if end.ref in self._ends or end.ref in self.recent:
                return [Reply(number, Refused(f"{_of(end.ref)} was prepared before"))]
            if why := self._refusal(end):
                return [Reply(number, Refused(why))]
        for run in {end.ref.run for end in message.ends}:
            if other := self._lock(run, f"run {run} of a fleet"):
                return [Reply(number, Refused(f"{other} measures there now"))]
        self._asked[number] = dict.fromkeys((end.ref for end in message.ends), None)
        for end in message.ends:
            self._ends[end.ref] = _Held(end, now_s)
        return [StartEnd(end) for end in message.ends]

    def _answer_again(self, number: int, message: Prepare) -> list[Effect]:
        """Answer a plan whose first answer was lost."""
        known = {end.ref: self._ends[end.ref].at for end in message.ends}
        answers = [at for at in known.values() if at is not None]
        if len(answers) == len(known):
            return [Reply(number, Prepared(answers))]
        self._asked[number] = known
        return []

    def up(self, at: PreparedAt, now_s: float) -> list[Effect]:
        """Note that an end waits, or that it does not."""
        held = self._ends.get(at.ref)
        if held is not None:
            held.at = at
        effects: list[Effect] = []
        if held is not None and at.is_up:
            is_server = held.spec.role is Role.SERVER
            held.state = EndState.RUNS if is_server else EndState.WAITS
            held.due_s = now_s + GATE_S + (held.spec.deadline_s if is_server else 0.0)
        elif held is not None:
            effects.append(EndEnd(at.ref, kill=True))
        for number, ends in [*self._asked.items()]:
            if at.ref in ends:
                ends[at.ref] = at
                answers = [answer for answer in ends.values() if answer is not None]
                if len(answers) == len(ends):
                    del self._asked[number]
                    effects.append(Reply(number, Prepared(answers)))
        return effects

    def _go(self, number: int, message: Go, now_s: float) -> list[Effect]:
        # Those that have ended say how, and that they were let go before if the answer was lost.
        ends = [end for end in message.ends if end.ref not in self.recent]
        for end in ends:
            held = self._ends.get(end.ref)
            if held is not None and held.was_let_go:
                return self._tell(number, message)  # the first answer was lost
            if held is None or held.state is not EndState.WAITS:
                return [Reply(number, Refused(f"{_of(end.ref)} does not wait at its gate"))]
            if now_s > end.latest_s:
                late_s = now_s - end.latest_s
                why = f"the go for {_of(end.ref)} came {late_s:.3f} s late"
                return [Reply(number, Refused(why, "the clock, or the way to this host, is slow"))]
        for end in ends:
            held = self._ends[end.ref]
            held.state, held.was_let_go = EndState.RUNS, True
            held.due_s = max(end.at_s, now_s, held.spec.start_at_s or 0.0) + held.spec.deadline_s
        return [*(LetGo(end.ref, end.at_s) for end in ends), *self._tell(number, message)]

    def _tell(self, number: int, message: Go | Ping) -> list[Effect]:
        return [*map(Forget, message.committed), Tell(number)]

    def _end(self, refs: Iterable[EndRef], *, kill: bool) -> list[Effect]:
        known = [ref for ref in refs if ref in self._ends]
        return [EndEnd(ref, kill or self._ends[ref].state is not EndState.RUNS) for ref in known]

    def over(self, ref: EndRef) -> None:
        """Note that an end has ended."""
        self._ends.pop(ref, None)
        self.recent.append(ref)

    def due(self, now_s: float) -> list[Effect]:
        """Return what is to be done at a time: ends that are late are ended."""
        effects: list[Effect] = []
        for ref, held in self._ends.items():
            if now_s > held.due_s:
                held.due_s = now_s + GATE_S
                effects.append(EndEnd(ref, kill=held.state is not EndState.RUNS))
        if not self._ends and now_s - self._heard_s > LOCK_S:
            self._holders.clear()
        self._leave()
        return effects

    # --- the host's lock ------------------------------------------------------------------

    def _lock(self, run: str, who: str) -> str:
        """Hold the host for a run; returns who has it instead."""
        others = [name for name in self._holders if name != run]
        if others:
            return self._holders[others[0]]
        if run not in self._holders:
            # Another agent of this machine may have taken it for the same run.
            other = self._take(who)
            if other not in ("", who):
                return other
            self._holders[run] = who
        return ""

    def _leave(self) -> None:
        if not self._holders and not self._ends:
            self._give_back()


def _of(ref: EndRef) -> str:
    return f"the {ref.role} of trial {ref.trial + 1}, flow {ref.flow}"
