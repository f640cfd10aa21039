"""Answers what people send: each message is verified, judged by its sender's rights, and done."""

from __future__ import annotations

import asyncio
import tempfile
import zlib
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from benchctl.errors import BenchctlError, UsageError
from benchctl.fleet.admin.members import Person
from benchctl.fleet.carrier.carrier import Delivered
from benchctl.fleet.coordinator.judging import refusals
from benchctl.fleet.coordinator.queue import may_stop, refusal
from benchctl.fleet.coordinator.runs import FleetRuns, LimitsOf
from benchctl.fleet.coordinator.submissions import (
    plan_submission,
    record_submission,
    request_of,
)
from benchctl.fleet.driven.hosts import FleetHosts
from benchctl.fleet.messages import Done, Refused
from benchctl.fleet.person_messages import (
    PART_BYTES,
    CheckPlan,
    FetchRun,
    HostList,
    HostReport,
    KnownRun,
    ListHosts,
    ListQueue,
    ListRuns,
    OfPerson,
    PlanChecked,
    Queue,
    QueuedRun,
    RunList,
    RunPart,
    SkipTrial,
    StopRun,
    Submit,
    Submitted,
    ToPerson,
)
from benchctl.fleet.trust.signing import UntrustedError, Verifier, WrongTimeError
from benchctl.store.copies.copy import copy_run
from benchctl.store.read import Reader

# Whoever fetches a run asks for its parts one after another.
_KEPT_RECORDS = 16


class Desk:
    """Answers people. ``seal`` signs an answer to a person."""

    def __init__(
        self,
        runs: FleetRuns,
        fleet: FleetHosts,
        verifier: Verifier,
        seal: Callable[[ToPerson, str], bytes],
        limits: LimitsOf,
        hosts: Callable[[], Sequence[str]],
        wall: Callable[[], float],
        on_new_run: Callable[[int, str], object],
    ) -> None:
        self._runs, self._fleet, self._verifier = runs, fleet, verifier
        self._seal, self._limits, self._hosts = seal, limits, hosts
        self._wall, self._on_new_run = wall, on_new_run
        self._records: dict[tuple[str, str], bytes] = {}
        """The compressed records that people fetch, by person and run."""
        self._submitting = asyncio.Lock()
        self._answering: set[asyncio.Task[None]] = set()

    async def take(self, message: Delivered) -> None:
        """Take a message; its answer follows when it is there."""
        try:
            signed = self._verifier.open(message.data, self._wall(), OfPerson)
        except WrongTimeError as error:
            if message.subject == f"bench.submit.{error.sender}" and message.reply is not None:
                refused = Refused(error.why, "compare this machine's clock with the coordinator's")
                await message.reply(self._seal(refused, error.sender))
            return
        except UntrustedError:
            return  # whoever cannot sign gets no answer, which could be sent anywhere
        if message.subject != f"bench.submit.{signed.head.sender}":
            return
        task = asyncio.create_task(self._answer(message, signed.head.sender, signed.message))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _answer(self, message: Delivered, person: str, asked: Any) -> None:
        answer: ToPerson
        limits = self._limits(person)
        if limits is None:
            answer = Refused(f"{person} is not of this fleet")
        else:
            try:
                answer = await self._done(person, limits, asked)
            except BenchctlError as error:
                answer = Refused(error.message, error.hint)
        if message.reply is not None:
            await message.reply(self._seal(answer, person))

    async def _done(self, person: str, limits: Person, asked: Any) -> ToPerson:
        match asked:
            case Submit():
                async with self._submitting:  # two at once could pass a limit together
                    return await self._submit(person, limits, asked)
            case CheckPlan(submit):
                return await self._check(person, limits, submit)
            case StopRun() | SkipTrial():
                return self._steer(person, limits, asked)
            case ListQueue():
                return self._queue()
            case ListHosts():
                return self._host_list()
            case ListRuns():
                return self._run_list(asked.most)
            case FetchRun():
                return await self._fetch(person, asked)
        return Refused("this coordinator does not know what was asked", "is it older?")

    # --- runs -----------------------------------------------------------------------------------

    async def _submit(self, person: str, limits: Person, asked: Submit) -> ToPerson:
        if name := self._runs.of_token(f"{person} {asked.token}"):
            return self._submitted(name)
        hosts = self._hosts()
        # A large matrix takes seconds, and all runs wait for this process.
        prepared = await asyncio.to_thread(plan_submission, asked, hosts)
        request = request_of(prepared, person, self._wall())
        if why := refusal(request, limits, self._runs.asked_by(person)):
            return Refused(why)
        if whys := await refusals(prepared, self._fleet):
            more = f"; and {len(whys) - 1} more" if len(whys) > 1 else ""
            hint = "benchctl plan --fleet FILE shows all of them"
            return Refused(f"{whys[0]}{more}", hint if more else "")
        store = self._runs.store
        recorded = await asyncio.to_thread(record_submission, asked, prepared, request, store)
        self._on_new_run(recorded.run_id, recorded.name)
        self._runs.add(recorded)
        return self._submitted(recorded.name)

    async def _check(self, person: str, limits: Person, asked: Submit) -> ToPerson:
        prepared = await asyncio.to_thread(plan_submission, asked, self._hosts())
        request = request_of(prepared, person, self._wall())
        why = refusal(request, limits, self._runs.asked_by(person))
        whys = [*filter(None, [why]), *await refusals(prepared, self._fleet)]
        known = self._fleet.hosts
        away = [
            known[name].away if name in known else f"host {name} was not heard of yet"
            for name in sorted(request.hosts)
        ]
        return PlanChecked(len(prepared.plan), tuple(whys), tuple(filter(None, away)))

    def _submitted(self, name: str) -> Submitted:
        with closing(Reader(self._runs.store)) as reader:
            run = reader.find(name)
        waits = (waits for request, waits in self._runs.queue() if request.name == name)
        notes = [f"it waits: {why}" for why in waits if why]
        return Submitted(name, run.trials, tuple(notes))

    def _steer(self, person: str, limits: Person, asked: StopRun | SkipTrial) -> ToPerson:
        owner = self._runs.owner(asked.run)
        if owner is None:
            return Refused(f"the fleet has no run {asked.run}", "see benchctl fleet queue")
        if not may_stop(person, limits, owner):
            return Refused(f"run {asked.run} is {owner}'s", "only they and admins stop it")
        stops = isinstance(asked, StopRun)
        why = self._runs.stop(asked.run) if stops else self._runs.skip(asked.run)
        return Refused(why) if why else Done()

    def _queue(self) -> Queue:
        rows = []
        with closing(Reader(self._runs.store)) as reader:
            for request, waits in self._runs.queue():
                run = reader.run(request.run_id)
                ended = sum(trial.status.has_ended for trial in reader.trials(run.id))
                rows.append(
                    QueuedRun(
                        run.name, request.person, run.profile, len(request.hosts), run.trials,
                        ended, request.submitted_s, waits,
                    )
                )  # fmt: skip
        return Queue(tuple(rows))

    def _host_list(self) -> HostList:
        found = []
        for name in self._hosts():
            known = self._fleet.hosts.get(name)
            if known is None or known.last is None:
                found.append(HostReport(name, is_away=True))
                continue
            heard_s = self._wall() - known.silent_s
            clock = known.clock.reading(self._wall())
            report = HostReport(name, bool(known.away), heard_s, heartbeat=known.last)
            if clock is not None:
                report = replace(report, offset_s=clock.offset_s, offset_error_s=clock.error_s)
            found.append(report)
        return HostList(tuple(found))

    def _run_list(self, most: int) -> RunList:
        with closing(Reader(self._runs.store)) as reader:
            return RunList(
                tuple(
                    KnownRun(run.name, run.person, run.status, run.logged)
                    for run in reader.runs()[:most]
                )
            )

    async def _fetch(self, person: str, asked: FetchRun) -> ToPerson:
        key = person, asked.run
        if asked.offset == 0 or key not in self._records:
            self._records.pop(key, None)
            if len(self._records) >= _KEPT_RECORDS:
                del self._records[next(iter(self._records))]
            self._records[key] = await asyncio.to_thread(_record, self._runs.store, asked.run)
        record = self._records[key]
        part = record[asked.offset : asked.offset + PART_BYTES]
        if asked.offset + PART_BYTES >= len(record):
            del self._records[key]
        return RunPart(part, len(record))


def _record(store: Path, name: str) -> bytes:
    """Return a run as a compressed store. Raises UsageError if there is none, StoreError."""
    with closing(Reader(store)) as reader:
        run_id = reader.names().get(name)
    if run_id is None:
        raise UsageError(f"the fleet has no run {name}", "see benchctl runs --fleet FILE")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.sqlite"
        copy_run(store, run_id, path)
        return zlib.compress(path.read_bytes(), 1)
