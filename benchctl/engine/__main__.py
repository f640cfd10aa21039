"""The runner's process: ``python -P -m benchctl.engine STORE RUN_ID [--no-wait]``.

It uses the exit codes of the command line. An error is one line on stderr, followed by its hint.
SIGINT and SIGTERM stop the run, SIGUSR1 skips the trial. The runner also stops when its standard
input closes, because its parent has ended. A detached run has no parent to watch.
"""

import asyncio
import gc
import os
import signal
import stat
import sys
import traceback
from pathlib import Path

from benchctl.engine.runner.signals import SIGNALS, STOPPING


async def _run(store: Path, run_id: int, *, no_wait: bool) -> None:
    from benchctl.backends import installed
    from benchctl.engine.runner.runner import Runner, RunnerParts

    runner = Runner(store, run_id, installed(), RunnerParts(waits=not no_wait))
    loop = asyncio.get_running_loop()
    stdin = sys.stdin.fileno()

    def starter_gone() -> None:
        if not os.read(stdin, 1):
            loop.remove_reader(stdin)
            runner.signals.stop.set()

    for name in STOPPING:
        loop.add_signal_handler(name, runner.signals.stop.set)
    loop.add_signal_handler(signal.SIGUSR1, runner.signals.skip.set)
    if stat.S_ISFIFO(os.fstat(stdin).st_mode):
        loop.add_reader(stdin, starter_gone)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    try:
        await runner.run()
    finally:
        # A late signal does no harm.
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


def main() -> int:
    """Run one run to its end; returns the exit code."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    from benchctl.errors import BenchctlError, surroundings

    try:
        no_wait = "--no-wait" in sys.argv[3:]
        asyncio.run(_run(Path(sys.argv[1]), int(sys.argv[2]), no_wait=no_wait))
    except BenchctlError as error:
        print(error.message, file=sys.stderr)
        if error.hint:
            print(error.hint, file=sys.stderr)
        return error.exit_code
    except Exception as error:
        if what := surroundings(error):
            print(what, file=sys.stderr)
        else:
            traceback.print_exc()
        return BenchctlError.exit_code
    return 0


if __name__ == "__main__":
    code = main()
    gc.freeze()  # as the command line does
    sys.exit(code)
