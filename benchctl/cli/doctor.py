"""``benchctl doctor``: whether this machine can measure well."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
) -> None:
    """Check this machine for problems that affect measurements.

    Looks at the kernel, congestion controls, buffers, namespaces, the clock and the tools.
    """
    from benchctl.backends import installed
    from benchctl.cli.colour import coloured
    from benchctl.engine.health import HealthFinding, examine
    from benchctl.imports.kinds import importers
    from benchctl.report.formats import plugged

    findings = examine(installed())
    findings += [
        HealthFinding(name, "note", error.message, error.hint)
        for registry in (plugged(), importers())
        for name, error in registry.broken().items()
    ]
    if as_json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
        return
    with coloured():
        for finding in findings:
            print(f"{finding.level:<4} {finding.subject:<20} {finding.text}")
            if finding.remedy:
                print(f"{'':<26} {finding.remedy}")
