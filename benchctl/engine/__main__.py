"""The runner's process: ``python -m benchctl.engine STORE RUN_ID``.

It ends with the command line's exit codes; an error is one line on stderr. When its standard
input closes, whoever started it is gone, and it stops as on SIGTERM; a detached run has none.
"""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import sys
from pathlib import Path

from benchctl.backends import installed
from benchctl.engine.runner import Runner
from benchctl.errors import BenchctlError


async def _main(store: Path, run_id: int) -> None:
    loop = asyncio.get_running_loop()
    stdin = sys.stdin.fileno()

    def starter_gone() -> None:
        if not os.read(stdin, 1):
            loop.remove_reader(stdin)
            os.kill(os.getpid(), signal.SIGTERM)

    if stat.S_ISFIFO(os.fstat(stdin).st_mode):
        loop.add_reader(stdin, starter_gone)
    await Runner(store, run_id, installed()).run()


def main() -> int:
    """Run one run to its end; returns the exit code."""
    try:
        asyncio.run(_main(Path(sys.argv[1]), int(sys.argv[2])))
    except BenchctlError as error:
        print(error.message, file=sys.stderr)
        if error.hint:
            print(error.hint, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
