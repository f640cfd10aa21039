"""Follows a run of a fleet: the coordinator's writes are replayed, in order, into a copy here.

A copy begins with the run's record as it is, and goes on with the messages after it. Whoever
follows holds the run's place in the copy: readers see it as they see one that is measured here.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from benchctl.errors import FleetError, StoreError
from benchctl.fleet.carrier.carrier import Delivered, Subscription
from benchctl.fleet.person import PersonLink, copy_path, opened
from benchctl.fleet.person_messages import PEOPLE, FetchRun, ListRuns, RunList, RunPart, RunWrites
from benchctl.fleet.trust.membership import Membership, read_membership
from benchctl.fleet.trust.signing import UntrustedError, Verifier
from benchctl.run.status import Status
from benchctl.store.copies.copy import check_tables, copy_run
from benchctl.store.locks import Liveness
from benchctl.store.log.replay import CopyRecorder, GapError
from benchctl.store.log.writes import decode
from benchctl.store.manage import remove_run
from benchctl.store.read import Reader

# A run of 200 hosts over a day; a forged one cannot fill the disk here.
MOST_RECORD_BYTES = 4 << 30
FLUSH_S = 0.1
# A run says something each second while it is measured: its connections, its samples.
CUT_S = 5.0
# What takes longer to replay is copied anew.
REPLAY_S = 10.0


async def fetch_run(link: PersonLink, name: str, copy: Path) -> int:
    """Bring a run as it is now into the copy, which does not have it; returns its id there.

    Raises UsageError if there is none, FleetError and StoreError.
    """
    with tempfile.TemporaryDirectory(dir=copy.parent) as folder:
        path = Path(folder) / "run.sqlite"
        opened, offset, size = zlib.decompressobj(), 0, 0
        with path.open("wb") as file:
            while True:
                part = await link.ask(FetchRun(name, offset), RunPart)
                try:
                    data = opened.decompress(part.data, MOST_RECORD_BYTES - size + 1)
                except zlib.error as error:
                    raise FleetError(f"run {name}: its record is damaged: {error}") from None
                file.write(data)
                size, offset = size + len(data), offset + len(part.data)
                if size > MOST_RECORD_BYTES:
                    raise FleetError(f"run {name}: its record is too large to copy")
                if not part.data or offset >= part.total:
                    break
        if not opened.eof:
            raise FleetError(f"run {name}: its record is cut off")
        check_tables(path)
        with closing(Reader(path)) as reader:
            names = reader.names()
        if [*names] != [name]:
            raise FleetError(f"run {name}: its record has another run")
        return copy_run(path, names[name], copy)


async def copied(link: PersonLink, name: str, copy: Path) -> int:
    """Return the id of a run in the copy, which is brought there if it is missing."""
    known = run_in(copy, name)
    return await fetch_run(link, name, copy) if known is None else known


def run_in(copy: Path, name: str) -> int | None:
    """Return the id of a run in the copy; None if it is not there."""
    if not copy.exists():
        return None
    with closing(Reader(copy)) as reader:
        return reader.names().get(name)


class RunFollower:
    """Replays a run into the copy. ``wall`` is this machine's clock, in Unix time."""

    def __init__(
        self,
        link: PersonLink,
        member: Membership,
        name: str,
        copy: Path,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._link, self._name, self._copy, self._wall = link, name, copy, wall
        keys = member.key_set().find
        # The numbers of a run's messages drop repeats; the last process may have seen them.
        self._verifier = Verifier(member.fleet, PEOPLE, keys, "coordinator", repeats=True)
        self._messages: asyncio.Queue[RunWrites] = asyncio.Queue()
        self._told_cut = False
        self.as_of: float = wall()
        """When the copy was the same as the coordinator's store, as far as is known."""

    async def follow(
        self, run_id: int, stop: asyncio.Event | None = None, least: int | None = None
    ) -> Status:
        """Replay until the run has ended, or until an event; returns its status.

        With ``least``, only until the message of this number is replayed. Raises GapError if the
        log does not go on where the copy ends, and StoreError.
        """
        with closing(CopyRecorder(self._copy, run_id)) as recorder:

            def is_done() -> bool:
                if least is not None:
                    return recorder.number >= least
                return recorder.status.has_ended or (stop is not None and stop.is_set())

            if is_done():
                return recorder.status
            subscription = await self._subscribe(f"bench.log.{self._name}", stop)
            try:
                while not is_done():
                    await self._replay(recorder)
                return recorder.status
            finally:
                if subscription is not None:
                    await subscription.close()

    async def _subscribe(self, subject: str, stop: asyncio.Event | None) -> Subscription | None:
        while stop is None or not stop.is_set():
            try:
                return await self._link.carrier.follow(subject, 0, self._take)
            except ConnectionError:
                await asyncio.sleep(1)
        return None

    async def _take(self, message: Delivered) -> None:
        try:
            entry = self._verifier.open(message.data, None, RunWrites).message
        except UntrustedError:
            return
        if entry.run == self._name:
            self._messages.put_nowait(entry)

    async def _replay(self, recorder: CopyRecorder) -> None:
        """Replay what has come, at most some tenths of a second later."""
        try:
            async with asyncio.timeout(FLUSH_S):
                entry: RunWrites | None = await self._messages.get()
        except TimeoutError:
            entry = None
        self._note_cut(recorder)
        while entry is not None:
            try:
                recorder.replay(entry.number, decode(entry.data))
            except ValueError as error:
                raise StoreError(f"run {self._name}: message {entry.number}: {error}") from None
            entry = None if self._messages.empty() else self._messages.get_nowait()
        while not recorder.flush():
            await asyncio.sleep(FLUSH_S)

    def _note_cut(self, recorder: CopyRecorder) -> None:
        """Say as of when the copy is, once for each time the server cannot be reached."""
        if self._link.carrier.is_connected:
            self.as_of = self._wall()
            if self._told_cut:
                self._told_cut = False
                recorder.add_note("the fleet is reached again", "info", self._wall(), None, None)
        elif not self._told_cut and self._wall() - self.as_of > CUT_S:
            self._told_cut = True
            at = time.strftime("%H:%M:%S", time.localtime(self.as_of))
            text = f"the fleet cannot be reached: what is shown is as of {at}"
            recorder.add_note(text, "warning", self._wall(), None, None)


async def follow_run(
    link: PersonLink,
    member: Membership,
    name: str,
    copy: Path,
    stop: asyncio.Event | None = None,
    began: Callable[[int], object] = lambda _: None,
    wall: Callable[[], float] = time.time,
) -> Status:
    """Bring a run into the copy, hold its place there, and follow it to its end.

    ``began`` is called with its id when its place is held. What the log has lost is copied anew.
    Raises UsageError, FleetError and StoreError.
    """
    while True:
        run_id = await copied(link, name, copy)
        try:
            with Liveness(copy).hold(run_id):
                began(run_id)
                return await RunFollower(link, member, name, copy, wall).follow(run_id, stop)
        except GapError:
            remove_run(copy, run_id)


async def bring_up_to_date(link: PersonLink, member: Membership, copy: Path) -> None:
    """Bring all runs of the coordinator's list into the copy as they are now.

    Those that a process follows are current. Raises UsageError, FleetError and StoreError.
    """
    listed = await link.ask(ListRuns(), RunList)
    for known in reversed(listed.runs):  # so that the newest is stored last
        run_id = run_in(copy, known.run)
        if run_id is None:
            await fetch_run(link, known.run, copy)
        elif not Liveness(copy).is_alive(run_id):
            try:
                async with asyncio.timeout(REPLAY_S):
                    await RunFollower(link, member, known.run, copy).follow(
                        run_id, least=known.logged
                    )
            except (GapError, TimeoutError):
                remove_run(copy, run_id)
                await fetch_run(link, known.run, copy)


def copy_of(file: Path) -> Path:
    """Return the copy on this machine of the fleet of a person's file. Raises FleetError."""
    return copy_path(read_membership(file))


def update_copy(file: Path) -> None:
    """Bring the copy up to date. Raises FleetError if the fleet is not reached, and StoreError."""

    async def update() -> None:
        async with opened(file) as (link, member):
            await bring_up_to_date(link, member, copy_path(member))

    asyncio.run(update())


def bring_run(file: Path, name: str) -> tuple[Path, int]:
    """Bring a run into the copy if it is not there; returns the copy, and its id in it.

    Raises UsageError if there is no such run, FleetError and StoreError.
    """

    async def bring() -> tuple[Path, int]:
        async with opened(file) as (link, member):
            copy = copy_path(member)
            return copy, await copied(link, name, copy)

    return asyncio.run(bring())
