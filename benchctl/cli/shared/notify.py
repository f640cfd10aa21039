"""Tells a person that a long run has ended: by the terminal's bell, or by their own command."""

from __future__ import annotations

import os
import subprocess
import sys

from benchctl.cli.shared import streams
from benchctl.run.record import Run

BELL = "bell"
# Nobody leaves the terminal for less. This holds for the setting only; an option always applies.
LONG_S = 60.0


def announce(asked: str | None, run: Run, lasted_s: float) -> None:
    """Announce the end of a run as the option asks, or for a long one as the settings do.

    A command gets the run's name and status in its environment. That it fails is reported, and
    changes nothing else.
    """
    from benchctl.settings import settings

    how = asked or (settings()["notify"] if lasted_s >= LONG_S else None)
    if how == BELL:
        if sys.stderr.isatty():
            terminal = streams.terminal()
            terminal.write("\a")
            terminal.flush()
    elif how:
        variables = {"BENCHCTL_RUN": run.name, "BENCHCTL_STATUS": str(run.status)}
        done = subprocess.run(
            how, shell=True, check=False, env={**os.environ, **variables},
            stdin=subprocess.DEVNULL, stdout=sys.stderr.fileno(),
        )  # fmt: skip
        if done.returncode:
            print(f"benchctl: {how}: exit code {done.returncode}", file=sys.stderr)
