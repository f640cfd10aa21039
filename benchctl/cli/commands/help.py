"""``benchctl help``: the man pages."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import Annotated

import typer

from benchctl.cli.shared.command import command_of


def _topics() -> list[str]:
    from benchctl.cli.main import COMMANDS

    return [*COMMANDS]


def help(  # noqa: A001
    topic: Annotated[
        str | None,
        typer.Argument(
            metavar="[TOPIC]",
            help="A command; without one, the page of benchctl.",
            autocompletion=_topics,
        ),
    ] = None,
) -> None:
    """Show the man page of a command.

    On a terminal, man shows it if the page is installed; otherwise it is printed as text.
    """
    from benchctl.cli.commands.man import installed, page_of, plain
    from benchctl.cli.main import COMMANDS, app, load
    from benchctl.errors import UsageError, nearest

    if topic is not None and topic not in COMMANDS:
        hint = nearest(topic, COMMANDS) or f"topics are: {', '.join(COMMANDS)}"
        raise UsageError(f'no help about "{topic}"', hint)
    name = f"benchctl-{topic}" if topic else "benchctl"
    if sys.stdout.isatty() and shutil.which("man") and (path := installed(name)):
        sys.exit(subprocess.run(["man", path], check=False).returncode)
    found = command_of(load(topic)) if topic else app
    print(plain(page_of(name.replace("-", " "), found, COMMANDS)), end="")
