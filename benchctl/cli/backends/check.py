"""``benchctl backends check``: whether a backend keeps the contract, and what to do if not."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchctl.cli import completion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchctl.testing import Finding


def check(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FILE",
            help="An installed backend, or a Python file that defines BACKEND.",
            autocompletion=completion.files,
        ),
    ],
    transcripts: Annotated[
        Path | None,
        typer.Option(
            "--transcripts",
            metavar="DIRECTORY",
            exists=True,
            file_okay=False,
            help="Where its transcripts are; default: tests/transcripts or transcripts.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
) -> None:
    """Check a backend by every rule of the contract, and say what to do where one is broken.

    Its real tool runs on loopback for a moment, if it is installed. Exit code 1: a rule is broken.
    """
    from benchctl.backends import installed
    from benchctl.errors import UsageError
    from benchctl.plugins import use_files
    from benchctl.testing import check as findings_of
    from benchctl.testing.transcript import default_directory

    if name.endswith(".py") or os.sep in name:
        if not Path(name).is_file():
            raise UsageError(f"{name}: there is no such file")
        use_files([Path(name)])
        name = Path(name).stem
    backend = installed().load(name)
    directory = transcripts or default_directory()
    try:
        findings = findings_of(backend, directory)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if as_json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        _print(findings)
    if any(finding.faults for finding in findings):
        raise typer.Exit(1)


def _print(findings: Sequence[Finding]) -> None:
    from benchctl.cli.colour import coloured
    from benchctl.testing import RULES, Standing

    with coloured():
        for finding in findings:
            print(f"{finding.standing:<11}  {finding.rule:<10}  {RULES[finding.rule].claim}")
            if finding.seen:
                print(f"{'':<25}{finding.seen}")
            for fault in finding.faults:
                print(f"{'':<25}{fault.what}")
                print(f"{'':<27}to do: {fault.remedy}")
    counts = {one: sum(found.standing is one for found in findings) for one in Standing}
    print(", ".join(f"{count} {standing}" for standing, count in counts.items() if count))
