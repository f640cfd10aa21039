"""``benchctl settings``: what this user prefers, and where each value comes from."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from benchctl.visible import visible


def settings(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per setting.")
    ] = False,
) -> None:
    """Show each setting and where it comes from.

    Settings are read from settings.toml in your configuration directory.
    """
    from benchctl.settings import NAMES, without_password
    from benchctl.settings import settings as read
    from benchctl.tui.preferences import preferences_of

    found = read()
    preferences_of(found)  # which checks what only the screens know
    entries = [(name, found.find(name)) for name in NAMES]
    # That of the environment may have one.
    entries = [
        (
            name,
            setting._replace(value=without_password(setting.value))
            if name == "archive" and setting.value
            else setting,
        )
        for name, setting in entries
    ]
    if not as_json:
        print(f"file {found.path}{'' if found.path.exists() else ' (not there)'}")
    for name, setting in entries:
        if as_json:
            value = (
                setting.value
                if isinstance(setting.value, dict | tuple | None)
                else str(setting.value)
            )
            print(json.dumps({"name": name, "value": value, "origin": setting.origin}))
        else:
            print(visible(f"{name:<9} {_shown(setting.value):<40}  {setting.origin}".rstrip()))


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} = {text}" for name, text in value.items()) or "-"
    return ", ".join(value) or "-" if isinstance(value, tuple) else str(value or "-")
