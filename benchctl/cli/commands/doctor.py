"""``benchctl doctor``: whether this machine, or the hosts of a profile, can measure well."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from benchctl.cli.shared import completion, options
from benchctl.errors import UsageError
from benchctl.visible import visible

if TYPE_CHECKING:
    from benchctl.engine.checks.machine import HealthFinding


def doctor(
    profile: Annotated[
        str | None,
        typer.Option(
            "--hosts",
            metavar="PROFILE",
            help="Check the hosts of a profile that SSH reaches instead.",
            autocompletion=completion.profiles,
        ),
    ] = None,
    *,
    assignments: options.Assignments,
    lab: options.Lab = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
) -> None:
    """Check this machine for problems that affect measurements.

    Looks at the kernel, congestion controls, buffers, namespaces, the clock and the tools. With
    --hosts, logs in to each host of a profile and looks at the same there.
    """
    if profile is not None:
        sys.exit(_of_hosts(profile, assignments, lab, as_json=as_json))
    if assignments or lab:
        raise UsageError("--set and --lab are for the hosts of a profile", "add --hosts PROFILE")
    from benchctl.backends import installed
    from benchctl.cli.shared.colour import coloured
    from benchctl.engine.checks.machine import HealthFinding, examine
    from benchctl.imports.kinds import importers
    from benchctl.report.output.formats import plugged

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
        _print(findings)
        _print_first(findings)


# What spoils most measurements, and how many are mended in one sitting.
_URGENT = ("load", "iperf3", "ping", "lab", "clock", "receive buffer", "send buffer")
_FIRST = 3


def _print_first(findings: Sequence[HealthFinding]) -> None:
    """Print the remedies that matter most."""
    notes = [finding for finding in findings if finding.level != "ok" and finding.remedy]
    notes.sort(key=lambda note: (*_URGENT, note.subject).index(note.subject))
    print()
    print("mend first:" if notes else "nothing has to be mended")
    for number, finding in enumerate(notes[:_FIRST], 1):
        print(f"{number}. {visible(f'{finding.subject}: {finding.remedy}')}")


def _of_hosts(profile: str, assignments: list[str], lab: str | None, *, as_json: bool) -> int:
    """Print what was found on the hosts of a profile; returns the exit code."""
    from benchctl.cli.shared.colour import coloured
    from benchctl.engine.doctor.hosts import REACH, examine_hosts
    from benchctl.engine.prepare.planning import planned
    from benchctl.errors import HostError

    found = examine_hosts(planned(profile, assignments, None, None, True, lab))
    if as_json:
        entries = [
            {"host": name, **asdict(finding)} for name, all_ in found.items() for finding in all_
        ]
        print(json.dumps(entries, indent=2))
    else:
        with coloured():
            for number, (name, findings) in enumerate(found.items()):
                print("\n" * bool(number) + name)
                _print(findings)
    lost = [
        finding for findings in found.values() for finding in findings if finding.subject == REACH
    ]
    return 0 if all(finding.level == "ok" for finding in lost) else HostError.exit_code


def _print(findings: Sequence[HealthFinding]) -> None:
    for finding in findings:
        print(f"{finding.level:<4} {finding.subject:<20} {visible(finding.text)}")
        if finding.remedy:
            print(f"{'':<26} {visible(finding.remedy)}")
