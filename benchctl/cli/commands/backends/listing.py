"""``benchctl backends`` without a command: each backend, and whether it can be used here."""

from __future__ import annotations

import json
from enum import StrEnum
from shutil import get_terminal_size
from textwrap import wrap
from typing import Annotated, Any

import typer

from benchctl.cli.shared.command import no_options_before
from benchctl.errors import IncompatibleError, MissingError, PluginError
from benchctl.visible import visible


class Usability(StrEnum):
    """Whether a backend can be used on this machine."""

    OK = "ok"
    TOOL_MISSING = "tool missing"
    INCOMPATIBLE = "incompatible"
    """Written for a version of the API that is not supported."""
    BROKEN = "broken"


def list_backends(
    context: typer.Context,
    *,
    names: Annotated[
        bool, typer.Option("--names", help="Print the names only, without loading any backend.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per backend.")
    ] = False,
) -> None:
    """List the backends, unless a command of the group is given."""
    if context.invoked_subcommand is not None:
        no_options_before(context)
    elif names:
        _print_names(as_json)
    elif as_json:
        for entry in _entries():
            print(json.dumps(entry))
    else:
        for entry in _entries():
            _print(entry)


def _print_names(as_json: bool) -> None:
    from benchctl.backends import installed

    found = sorted(installed().candidates)
    print(json.dumps(found) if as_json else "\n".join(map(visible, found)))


def _print(entry: dict[str, Any]) -> None:
    usable = entry["usable"]
    head = entry["version"] or "yes" if usable else entry["status"]
    source = entry["origin"]
    if entry["api_version"] is not None:
        source += f", API {entry['api_version']}"
    lines = [
        entry["reason"],
        entry["remedy"],
        ", ".join([*entry["directions"], *entry["protocols"]]),
        *wrap(", ".join(entry["metrics"]), max(get_terminal_size().columns - 13, 40)),
        f"from {source}",
    ]
    print(visible(f"{entry['name']:<12} {head:<12} {entry['summary']}".rstrip()))
    for line in filter(None, lines):
        print(visible(f"{'':<12} {line}"))


def _entries() -> list[dict[str, Any]]:
    from benchctl.api import Role
    from benchctl.backends import installed
    from benchctl.engine.checks.tools import look

    registry = installed()
    tools = look(registry, {(name, Role.CLIENT) for name in registry.candidates})
    entries = []
    for name in sorted(registry.candidates):
        tool = tools[name, Role.CLIENT]
        missing = tool if isinstance(tool, MissingError) else None
        status = _usability(missing)
        entry = {
            "name": name,
            "origin": registry.candidates[name].origin,
            "usable": missing is None,
            "status": status,
            "version": "" if isinstance(tool, MissingError) else tool.version,
            "reason": missing.message if missing else "",
            "remedy": missing.hint if missing else "",
            "api_version": missing.api_version if isinstance(missing, IncompatibleError) else None,
            "summary": "", "directions": [], "protocols": [], "metrics": [],
        }  # fmt: skip
        try:
            backend = registry.load(name)
        except MissingError:
            entries.append(entry)
            continue
        can = backend.capabilities
        own = [metric.name for metric in can.metrics]
        entry |= {
            "api_version": backend.api_version,
            "summary": backend.summary,
            "directions": list(map(str, can.directions)),
            "protocols": list(can.protocols),
            "metrics": list(dict.fromkeys([can.headline, *own])),
        }
        entries.append(entry)
    return entries


def _usability(problem: MissingError | None) -> Usability:
    match problem:
        case None:
            return Usability.OK
        case IncompatibleError():
            return Usability.INCOMPATIBLE
        case PluginError():
            return Usability.BROKEN
        case _:
            return Usability.TOOL_MISSING
