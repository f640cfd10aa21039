"""What the screens take from the settings: theme, keys and characters, checked by name."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from benchctl.errors import ProfileError, UsageError, nearest
from benchctl.settings import UserSettings
from benchctl.toml.source import Key
from benchctl.tui.draw.glyphs import BRAILLE, SETS, Glyphs


class Preferences(Struct, frozen=True):
    """Theme (None: chosen by the terminal), characters of the plots, keys by their id."""

    theme: str | None = None
    glyphs: Glyphs = BRAILLE
    keys: Mapping[str, str] = {}


def preferences_of(settings: UserSettings) -> Preferences:
    """Return the preferences in the settings.

    Raises ProfileError with file and line if a theme, a key or a set of characters is unknown.
    """
    before = settings.path.with_name("tui.toml")
    if before.exists() and not settings.path.exists():
        raise ProfileError(f"{before}: the settings are in {settings.path.name} now", "rename it")
    theme, glyphs, keys = settings["theme"], settings["glyphs"], settings["keys"]
    if theme is not None:
        _check(settings, ("theme",), theme, themes())
    _check(settings, ("glyphs",), glyphs, list(SETS))
    known = _binding_ids() if keys else []
    for name, key in keys.items():
        _check(settings, ("keys", name), name, known)
        if not isinstance(key, str) or not key:
            raise settings.error(("keys", name), 'is not a key, such as "f1" or "ctrl+x,x"')
    return Preferences(theme, SETS[glyphs], keys)


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
