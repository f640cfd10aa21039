"""``benchctl check``: whether profiles and topologies are right, for editors and commit hooks."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from benchctl.cli.shared import completion
from benchctl.visible import visible

if TYPE_CHECKING:
    from benchctl.errors import BenchctlError


def check(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help='Profiles and topologies; "-" reads one from stdin.',
            autocompletion=completion.profiles,
        ),
    ],
) -> None:
    """Check profiles and topologies; prints FILE:LINE:COLUMN: MESSAGE for each that is wrong.

    Checks what "plan" checks, except tools, devices and addresses of this machine.
    """
    from benchctl.engine.prepare.planning import check_file
    from benchctl.errors import BenchctlError

    code = 0
    for name in files:
        try:
            check_file(name)
        except BenchctlError as error:
            print(visible(_line(name, error)))
            code = code or error.exit_code
    sys.exit(code)


def _line(name: str, error: BenchctlError) -> str:
    """Return an error as one line, as editors read it; the file's first place if it has none."""
    if error.place is None:
        return f"{name}:1:1: {error.message.removeprefix(f'{name}: ')}"
    file, line, column = error.place
    what = error.message.removeprefix(f"{file}:{line}: ")
    return f"{file}:{line}:{column}: {what}{f'; {error.hint}' if error.hint else ''}"
