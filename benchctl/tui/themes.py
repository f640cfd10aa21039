"""Our themes, the colours of curves and heat in every theme, and the styles of roles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rich.style import Style
from textual.color import Color
from textual.theme import Theme

from benchctl.report.lines.spans import CURVES, HEATS

DARK = Theme(
    name="benchctl-dark",
    primary="#5aa9e6",
    secondary="#8fb8de",
    accent="#ffb454",
    warning="#ffb454",
    error="#ff6b6b",
    success="#7bd88f",
    foreground="#d8dee6",
    background="#10151c",
    surface="#161d26",
    panel="#1e2732",
)
LIGHT = Theme(
    name="benchctl-light",
    primary="#0b6bb5",
    secondary="#3c6e91",
    accent="#9a5b00",
    warning="#9a5b00",
    error="#b3261e",
    success="#1b7a37",
    foreground="#1c2430",
    background="#fbfbf8",
    surface="#f2f2ec",
    panel="#e6e6de",
    dark=False,
)
OURS = (DARK, LIGHT)
PLAIN = "ansi-dark"
"""Textual's theme of the terminal's own 16 colours: for terminals with 16 colours or fewer."""

# Distinguishable with any colour vision (Okabe and Ito, "Color Universal Design", 2008), with
# lightness adapted to a dark and to a light background.
_CURVES_DARK = (
    "#56b4e9", "#e69f00", "#2fc59a", "#f0e442", "#e08bb8", "#f07a3c", "#7f9cff", "#c8c8c8",
)  # fmt: skip
_CURVES_LIGHT = (
    "#0072b2", "#b86e00", "#00805d", "#8a7d00", "#a8467f", "#c04800", "#3a3fbf", "#5a5a5a",
)  # fmt: skip
_CURVES_ANSI = (
    "ansi_bright_cyan", "ansi_yellow", "ansi_green", "ansi_bright_yellow", "ansi_magenta",
    "ansi_red", "ansi_blue", "ansi_default",
)  # fmt: skip
# From lowest to highest, by lightness alone.
_HEATS_DARK = ("#1a2430", "#1d3044", "#1f3d59", "#214a6e", "#235885", "#25669c", "#2775b3")
_HEATS_LIGHT = ("#f2f6fa", "#e0ecf6", "#cee2f2", "#bcd7ed", "#a9cde9", "#96c2e5", "#82b7e0")


def variables(theme: Theme) -> dict[str, str]:
    """Return the colours of our styles that Textual's theme lacks."""
    if theme.ansi:
        curves: tuple[str, ...] = _CURVES_ANSI
        heats: tuple[str, ...] = ("ansi_default",) * len(_HEATS_DARK)
        text = "ansi_default"
    elif theme.dark:
        curves, heats, text = _CURVES_DARK, _HEATS_DARK, "#f0f4f8"
    else:
        curves, heats, text = _CURVES_LIGHT, _HEATS_LIGHT, "#10161e"
    return {
        **{f"curve-{number}": colour for number, colour in enumerate(curves)},
        **{f"heat-{step}": colour for step, colour in enumerate(heats)},
        "heat-text": text,
    }


NONE, BOLD, FAINT, SWAPPED = (Style(), Style(bold=True), Style(dim=True), Style(reverse=True))


class RoleStyle(NamedTuple):
    """How a role looks: a colour of the theme, the share of it, emphasis, and a background."""

    colour: str = "foreground"
    share: float = 1.0
    emphasis: Style = NONE
    ground: str = ""


LOOKS = {
    "axis": RoleStyle(share=0.5),
    "label": RoleStyle(share=0.75),
    "dim": RoleStyle(share=0.6),
    "strong": RoleStyle(emphasis=BOLD),
    "title": RoleStyle("text-accent", emphasis=BOLD),
    "cursor": RoleStyle("block-cursor-foreground", emphasis=BOLD, ground="block-cursor-background"),
    "chosen": RoleStyle(emphasis=BOLD, ground="panel"),
    "good": RoleStyle("text-success"),
    "bad": RoleStyle("text-error", emphasis=BOLD),
    "warn": RoleStyle("text-warning"),
    "running": RoleStyle("text-primary", emphasis=BOLD),
    "keys": RoleStyle("footer-key-foreground", emphasis=BOLD),
    **{f"curve-{n}": RoleStyle(f"curve-{n}") for n in range(CURVES)},
    **{f"faint-curve-{n}": RoleStyle(f"curve-{n}", 0.55) for n in range(CURVES)},
    **{f"heat-{n}": RoleStyle("heat-text", ground=f"heat-{n}") for n in range(HEATS)},
}
"""The look of every role."""
# The terminal's own colours have no shares.
LOOKS_ANSI = {
    **LOOKS,
    **dict.fromkeys(("axis", "label", "dim"), RoleStyle("ansi_default", emphasis=FAINT)),
    "strong": RoleStyle("ansi_default", emphasis=BOLD),
    "cursor": RoleStyle("ansi_default", emphasis=SWAPPED, ground="ansi_default"),
    "chosen": RoleStyle("ansi_default", emphasis=BOLD),
    **{f"faint-curve-{n}": RoleStyle(f"curve-{n}", emphasis=FAINT) for n in range(CURVES)},
}


def style_of(role: str, colours: Mapping[str, str], ground: Color, *, ansi: bool) -> Style:
    """Return the style of a role in a theme's colours; ``ground`` is the screen's background.

    Textual's component classes do the same with a node for each role whenever the style of a screen
    changes: 3.9 ms instead of 2.2 ms (``python bench widgets``), and the nodes become garbage.
    """
    look = (LOOKS_ANSI if ansi else LOOKS)[role]
    behind = Color.parse(colours.get(look.ground, look.ground)) if look.ground else ground
    name, _, percent = colours.get(look.colour, look.colour).partition(" ")
    share = float(percent.rstrip("%")) / 100 if percent else look.share
    colour = behind.get_contrast_text() if name == "auto" else Color.parse(name)
    text = behind + colour.with_alpha(share) if share < 1 else colour
    own = behind.rich_color if look.ground else None
    return look.emphasis + Style.from_color(text.rich_color, own)
