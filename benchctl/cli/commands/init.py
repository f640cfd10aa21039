"""``benchctl init``: a first profile to start from."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from benchctl.cli.shared import completion

DEFAULTS = ("", "simpleperf", "10s")


def init(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="[FILE]",
            help='The new profile; "-" writes to stdout.',
            autocompletion=completion.files,
        ),
    ] = Path("profile.toml"),
) -> None:
    """Write a commented first profile.

    Asks three questions on a terminal; without one, the profile measures this machine.
    """
    from benchctl.cli.shared.options import check_new, write_new
    from benchctl.profile.first import first_profile

    new = str(file) != "-"
    if new:
        check_new(str(file), file)
    text = first_profile(*(_ask() if sys.stdin.isatty() and sys.stderr.isatty() else DEFAULTS))
    if not new:
        print(text, end="")
        return
    write_new(str(file), file, text)
    print(file)
    print(f"next: benchctl plan {file}, then benchctl run {file}", file=sys.stderr)


def _ask() -> tuple[str, str, str]:
    """Return the answers, each asked for until it is valid."""
    from benchctl.profile.values import check_host
    from benchctl.units import parse_duration

    server = _answer("Server to measure to, name or address (empty: this machine)", "", check_host)
    # Whoever runs a server elsewhere most likely runs the most common one.
    tool = _answer("Tool", "iperf3" if server else DEFAULTS[1], _check_tool)
    return server, tool, _answer("Duration of one measurement", DEFAULTS[2], parse_duration)


def _check_tool(name: str) -> None:
    from benchctl.backends import installed
    from benchctl.errors import BenchctlError

    try:
        backend = installed().load(name)
    except BenchctlError as error:
        raise ValueError(f"{error.message}; {error.hint}") from None
    if not {"duration", "streams"} <= backend.parameters.model_fields.keys():
        raise ValueError(f"{name} does not measure throughput over several streams")


def _answer(question: str, default: str, check: Callable[[str], object]) -> str:
    while True:
        text: str = typer.prompt(question, default, show_default=bool(default), err=True).strip()
        try:
            if text != default:
                check(text)
        except ValueError as error:
            print(f"  {error}", file=sys.stderr)
        else:
            return text
