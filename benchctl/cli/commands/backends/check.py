"""``benchctl backends check``: whether a plugin keeps its contract, and what to do if not."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from benchctl.cli.shared import completion

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchctl.plugins import PluginKind
    from benchctl.testing.rules.rule import Finding, Rule


def check(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FILE",
            help="An installed plugin, or a Python file that defines one.",
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
    samples: Annotated[
        Path | None,
        typer.Option(
            "--samples",
            metavar="DIRECTORY",
            exists=True,
            file_okay=False,
            help="Where files of an importer's kind are.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
) -> None:
    """Check a plugin by every rule of its contract, and say what to do where one is broken.

    A backend's real tool runs on loopback for a moment, if it is installed. Exit code 1: a rule is
    broken.
    """
    from benchctl.errors import UsageError
    from benchctl.plugins import use_files

    if name.endswith(".py") or os.sep in name:
        if not Path(name).is_file():
            raise UsageError(f"{name}: there is no such file")
        use_files([Path(name)])
        name = Path(name).stem
    try:
        judged = _judged(name, transcripts, samples)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if as_json:
        found = [{"kind": kind, **asdict(finding)} for kind, _, ones in judged for finding in ones]
        print(json.dumps(found, indent=2))
    else:
        for kind, rules, findings in judged:
            if len(judged) > 1:
                print(f"{kind} {name}")
            _print(rules, findings)
    if any(finding.faults for _, _, findings in judged for finding in findings):
        raise typer.Exit(1)


def _judged(
    name: str, transcripts: Path | None, samples: Path | None
) -> list[tuple[PluginKind, Mapping[str, Rule[Any]], Sequence[Finding]]]:
    """Judge every plugin of a name by the rules of its kind. Raises MissingError without one."""
    from benchctl.backends import installed
    from benchctl.imports.kinds import importers
    from benchctl.report.output.formats import plugged
    from benchctl.testing.contract import RULES
    from benchctl.testing.contract import check as check_backend
    from benchctl.testing.exporting import EXPORTER_RULES, check_exporter
    from benchctl.testing.importing import IMPORTER_RULES, check_importer
    from benchctl.testing.transcript import default_directory

    judged: list[tuple[PluginKind, Mapping[str, Rule[Any]], Sequence[Finding]]] = []
    if name in plugged().candidates:
        found = check_exporter(plugged().load(name))
        judged.append((plugged().kind, EXPORTER_RULES, found))
    if name in importers().candidates:
        found = check_importer(importers().load(name), samples or {})
        judged.append((importers().kind, IMPORTER_RULES, found))
    if name in installed().candidates or not judged:
        found = check_backend(installed().load(name), transcripts or default_directory())
        judged.insert(0, (installed().kind, RULES, found))
    return judged


def _print(rules: Mapping[str, Rule[Any]], findings: Sequence[Finding]) -> None:
    from benchctl.cli.shared.colour import coloured
    from benchctl.testing import Standing

    with coloured():
        for finding in findings:
            print(f"{finding.standing:<11}  {finding.rule:<10}  {rules[finding.rule].claim}")
            if finding.seen:
                print(f"{'':<25}{finding.seen}")
            for fault in finding.faults:
                print(f"{'':<25}{fault.what}")
                print(f"{'':<27}to do: {fault.remedy}")
    counts = {
        standing: sum(found.standing is standing for found in findings) for standing in Standing
    }
    print(", ".join(f"{count} {standing}" for standing, count in counts.items() if count))
