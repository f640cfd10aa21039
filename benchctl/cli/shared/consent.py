"""Asks at the terminal whether commands of a file may run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import typer

from benchctl.errors import UsageError
from benchctl.visible import visible


def ask(name: object, commands: Sequence[str], agree: Callable[[Sequence[str]], None]) -> bool:
    """Show commands of a file and ask whether they may run; ``agree`` remembers a yes.

    Returns whether somebody said so: False if there is no terminal, or no command. Raises
    UsageError for a no.
    """
    if not commands or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print(f"{visible(str(name))} runs these commands with your rights:", file=sys.stderr)
    for command in commands:
        print(f"  {visible(command)}", file=sys.stderr)
    if not typer.confirm("Run them, now and from now on?", err=True):
        raise UsageError("nothing was run: the commands were not agreed to")
    try:
        agree(commands)
    except OSError as error:
        print(f"benchctl: this cannot be remembered: {error.strerror}", file=sys.stderr)
    return True
