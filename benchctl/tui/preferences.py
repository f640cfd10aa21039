"""What the screens take from the settings: theme, keys and characters, checked by name."""

from __future__ import annotations

import os
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from benchctl.errors import ProfileError, UsageError, nearest
from benchctl.settings import UserSettings
from benchctl.toml.source import Key
from benchctl.tui.draw.text.glyphs import ASCII, BRAILLE, CONSOLE, SETS, Glyphs

# Letters so many columns apart are seen along a line, and leave its form.
MARKS_APART = 16


class Preferences(Struct, frozen=True):
    """Theme (None: chosen by the terminal), characters to draw with, keys by their id."""

    theme: str | None = None
    glyphs: Glyphs = BRAILLE
    keys: Mapping[str, str] = {}


def preferences_of(
    settings: UserSettings, encoding: str | None = "utf-8", term: str = ""
) -> Preferences:
    """Return the preferences in the settings; for the rest of the arguments see `glyphs_of`.

    Raises ProfileError with file and line if a theme, a key or a set of characters is unknown.
    """
    before = settings.path.with_name("tui.toml")
    if before.exists() and not settings.path.exists():
        raise ProfileError(f"{before}: the settings are in {settings.path.name} now", "rename it")
    theme, keys = settings["theme"], settings["keys"]
    if theme is not None:
        _check(settings, ("theme",), theme, themes())
    glyphs = glyphs_of(settings, encoding, term)
    known = _binding_ids() if keys else []
    for name, key in keys.items():
        _check(settings, ("keys", name), name, known)
        if not isinstance(key, str) or not key:
            raise settings.error(("keys", name), 'is not a key, such as "f1" or "ctrl+x,x"')
    return Preferences(theme, glyphs, keys)


def glyphs_of(settings: UserSettings, encoding: str | None = "utf-8", term: str = "") -> Glyphs:
    """Return the characters to draw with on a terminal of an encoding and of a kind (``TERM``).

    An encoding without them leaves ASCII; else the settings choose, else the kind of terminal.
    Raises ProfileError with file and line if the settings name an unknown set.
    """
    chosen: str | None = settings["glyphs"]
    if chosen is not None:
        _check(settings, ("glyphs",), chosen, list(SETS))
    if not (encoding or "").lower().startswith("utf"):
        return ASCII
    if chosen is not None:
        return SETS[chosen]
    return CONSOLE if term == "linux" else BRAILLE


def without_colours(glyphs: Glyphs) -> Glyphs:
    """Return how to draw: if this terminal shall have no colours, lines have marks."""
    return replace(glyphs, marks=MARKS_APART) if "NO_COLOR" in os.environ else glyphs


def theme_of(name: str) -> str:
    """Return a theme's name. Raises UsageError with the nearest known name."""
    known = themes()
    if name not in known:
        raise UsageError(
            f'no theme "{name}"', nearest(name, known) or f"available: {', '.join(known)}"
        )
    return name


def _check(settings: UserSettings, key: Key, value: str, known: list[str]) -> None:
    if value not in known:
        hint = nearest(value, known) or f"available: {', '.join(known)}"
        raise settings.error(key, f'there is no "{value}"', hint)


def themes() -> list[str]:
    """Return the names of all themes."""
    from textual.theme import BUILTIN_THEMES

    from benchctl.tui.themes import OURS

    return [*(theme.name for theme in OURS), *BUILTIN_THEMES]


def _binding_ids() -> list[str]:
    from benchctl.tui.keys import all_bindings

    return list(all_bindings())
