"""``benchctl backends``: what can be used here."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer


def backends(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per backend.")
    ] = False,
) -> None:
    """List the backends; for those that cannot be used here, say why."""
    for entry in _entries():
        if as_json:
            print(json.dumps(entry))
            continue
        state = entry["version"] or "yes" if entry["usable"] else "not usable"
        print(f"{entry['name']:<12} {state:<12} {entry['summary']}")
        if entry["directions"]:
            print(f"{'':<12} {', '.join([*entry['directions'], *entry['protocols']])}")
        if not entry["usable"]:
            print(f"{'':<12} {entry['reason']}")
            print(f"{'':<12} {entry['remedy']}")


def _entries() -> list[dict[str, Any]]:
    from benchctl.api import Role
    from benchctl.backends import installed
    from benchctl.engine.preflight import look
    from benchctl.errors import MissingError

    registry = installed()
    tools = look(registry, {(name, Role.CLIENT) for name in registry.candidates})
    entries = []
    for name in sorted(registry.candidates):
        tool = tools[name, Role.CLIENT]
        missing = tool if isinstance(tool, MissingError) else None
        entry = {
            "name": name,
            "origin": registry.candidates[name].origin,
            "usable": missing is None,
            "version": "" if isinstance(tool, MissingError) else tool.version,
            "reason": missing.message if missing else "",
            "remedy": missing.hint if missing else "",
        }
        try:
            backend = registry.load(name)
        except MissingError:
            entries.append({**entry, "summary": "", "directions": [], "protocols": []})
            continue
        can = backend.capabilities
        entries.append(
            {
                **entry,
                "summary": backend.summary,
                "directions": list(map(str, can.directions)),
                "protocols": list(can.protocols),
            }
        )
    return entries
