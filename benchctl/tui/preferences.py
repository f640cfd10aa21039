"""What a person likes: theme, keys and characters, from ``tui.toml`` in their settings' directory.

::

    theme = "nord"
    glyphs = "blocks"          # braille, blocks or ascii

    [keys]                     # docs/tui.md lists the names
    "live.freeze" = "f1"
    "app.quit" = "q,ctrl+c"
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import platformdirs

from benchctl.errors import UsageError, nearest
from benchctl.toml.source import Key, TomlSource, read_toml
from benchctl.tui.draw.plot import BRAILLE, SETS, Glyphs

KNOWN = ("theme", "glyphs", "keys")


@dataclass(frozen=True, slots=True)
class Preferences:
    """Theme (None: chosen by the terminal), characters of the plots, keys by their id."""

    theme: str | None = None
    glyphs: Glyphs = BRAILLE
    keys: Mapping[str, str] = field(default_factory=dict)


def default_path() -> Path:
    """Return the path of the settings file."""
    return platformdirs.user_config_path("benchctl") / "tui.toml"


def read_preferences(path: Path) -> Preferences:
    """Read the settings; missing ones have their defaults.

    Raises ProfileError with file and line if one is invalid.
    """
    if not path.exists():
        return Preferences()
    source = read_toml(path)
    for name in source.data:
        if name not in KNOWN:
            raise source.error((name,), "unknown key", nearest(name, KNOWN))
    theme = source.data.get("theme")
    glyphs = source.data.get("glyphs", BRAILLE.name)
    keys = source.data.get("keys", {})
    if theme is not None:
        _check(source, ("theme",), theme, _themes())
    _check(source, ("glyphs",), glyphs, list(SETS))
    if not isinstance(keys, dict):
        raise source.error(("keys",), "is not a table")
    known = _binding_ids() if keys else []
    for name, key in keys.items():
        _check(source, ("keys", name), name, known)
        if not isinstance(key, str) or not key:
            raise source.error(("keys", name), 'is not a key, such as "f1" or "ctrl+x,x"')
    return Preferences(theme, SETS[glyphs], keys)


def theme_of(name: str) -> str:
    """Return a theme's name. Raises UsageError with the nearest known name."""
    known = _themes()
    if name not in known:
        raise UsageError(
            f'no theme "{name}"', nearest(name, known) or f"available: {', '.join(known)}"
        )
    return name


def _check(source: TomlSource, key: Key, value: Any, known: list[str]) -> None:
    if value not in known:
        hint = nearest(str(value), known) or f"available: {', '.join(known)}"
        raise source.error(key, f'there is no "{value}"', hint)


def _themes() -> list[str]:
    from textual.theme import BUILTIN_THEMES

    from benchctl.tui.themes import OURS

    return [*(theme.name for theme in OURS), *BUILTIN_THEMES]


def _binding_ids() -> list[str]:
    from benchctl.tui.keys import all_bindings

    return list(all_bindings())
