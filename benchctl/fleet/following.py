"""Follows one run in a process of its own: ``python -P -m benchctl.fleet.following FILE RUN``.

Without RUN, it starts such a process for each run that begins, until its standard input closes.

It stands for the runner of a run that is measured elsewhere, and takes the same signals: SIGINT and
SIGTERM ask the coordinator to stop the run, SIGUSR1 to skip what it measures. When its standard
input closes, it ends, and the run goes on. An error is one line on stderr, followed by its hint.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchctl.engine.runner.signals import SIGNALS, STOPPING

_LOOK_S = 3.0


async def _follow(file: Path, name: str) -> None:
    from benchctl.errors import BenchctlError
    from benchctl.fleet.copy import follow_run
    from benchctl.fleet.messages import Done
    from benchctl.fleet.person import copy_path, opened
    from benchctl.fleet.person_messages import SkipTrial, StopRun

    loop, left = asyncio.get_running_loop(), asyncio.Event()
    stdin = sys.stdin.fileno()
    asking: set[asyncio.Task[None]] = set()

    def starter_gone() -> None:
        if not os.read(stdin, 1):
            loop.remove_reader(stdin)
            left.set()

    async with opened(file) as (link, member):

        async def ask(message: Any) -> None:
            try:
                await link.ask(message, Done)
            except BenchctlError as error:
                print(error.message, file=sys.stderr)

        def asks(message: Any) -> Callable[[], None]:
            def do() -> None:
                task = asyncio.create_task(ask(message))
                asking.add(task)
                task.add_done_callback(asking.discard)

            return do

        for number in STOPPING:
            loop.add_signal_handler(number, asks(StopRun(name)))
        loop.add_signal_handler(signal.SIGUSR1, asks(SkipTrial(name)))
        if stat.S_ISFIFO(os.fstat(stdin).st_mode):
            loop.add_reader(stdin, starter_gone)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        try:
            await follow_run(link, member, name, copy_path(member), left)
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


async def _follow_all(file: Path) -> None:
    """Start a follower for each run that is measured, until nobody reads them any more."""
    from benchctl.errors import BenchctlError
    from benchctl.fleet.copy import copied
    from benchctl.fleet.person import copy_path, opened
    from benchctl.fleet.person_messages import ListQueue, Queue
    from benchctl.store.locks import Liveness

    left = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), left.set)
    children: list[asyncio.subprocess.Process] = []
    has_printed = False
    async with opened(file) as (link, member):
        copy = copy_path(member)
        while not left.is_set():
            with suppress(BenchctlError):  # it is cut off: the next time may be better
                for run in (await link.ask(ListQueue(), Queue, _LOOK_S)).runs:
                    run_id = await copied(link, run.run, copy)
                    if not Liveness(copy).is_alive(run_id):
                        children.append(await _child(file, run.run))
                        await _until_held(copy, run_id)
            if not has_printed:
                print(flush=True)  # those that there are by now are followed
                has_printed = True
            with suppress(TimeoutError):
                await asyncio.wait_for(left.wait(), _LOOK_S)
    for child in children:
        if child.stdin is not None:
            child.stdin.close()
    await asyncio.gather(*(child.wait() for child in children))


async def _until_held(copy: Path, run_id: int) -> None:
    from benchctl.store.locks import Liveness

    with suppress(TimeoutError):
        async with asyncio.timeout(_LOOK_S):
            while not Liveness(copy).is_alive(run_id):
                await asyncio.sleep(0.05)


async def _child(file: Path, name: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "benchctl.fleet.following", str(file), name,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip


def main() -> int:
    """Follow a run, or all of them, to the end; returns the exit code."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    from benchctl.errors import BenchctlError

    try:
        file = Path(sys.argv[1])
        asyncio.run(_follow(file, sys.argv[2]) if sys.argv[2:] else _follow_all(file))
    except BenchctlError as error:
        print(error.message, file=sys.stderr)
        if error.hint:
            print(error.hint, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    code = main()
    gc.freeze()  # as the command line does
    sys.exit(code)
