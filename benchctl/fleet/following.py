"""Follows one run in a process of its own: ``python -P -m benchctl.fleet.following FILE RUN``.

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
from pathlib import Path
from typing import Any

from benchctl.engine.runner.signals import SIGNALS, STOPPING


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


def main() -> int:
    """Follow a run to its end; returns the exit code."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    from benchctl.errors import BenchctlError

    try:
        asyncio.run(_follow(Path(sys.argv[1]), sys.argv[2]))
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
