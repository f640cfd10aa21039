"""Our themes, the colours of curves and heat in every theme, and the styles of roles."""

from __future__ import annotations

from textual.theme import Theme

from benchctl.tui.draw.spans import CURVES, HEATS, ROLES

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


CLASSES = {f"role--{role}" for role in ROLES}
GROUNDED = {"cursor", *(f"heat-{step}" for step in range(HEATS))}
"""The roles with a background of their own; all others use their widget's."""

_CURVES = "".join(
    f".role--curve-{n} {{ color: $curve-{n}; }} .role--faint-curve-{n} {{ color: $curve-{n} 55%; }}"
    for n in range(CURVES)
)
_HEATS = "".join(
    f".role--heat-{n} {{ color: $heat-text; background: $heat-{n}; }}" for n in range(HEATS)
)
_FAINT = "".join(
    f".role--faint-curve-{n} {{ color: $curve-{n}; text-style: dim; }}" for n in range(CURVES)
)
CSS = f"""
    .role--axis {{ color: $foreground 50%; }}
    .role--label {{ color: $foreground 75%; }}
    .role--dim {{ color: $foreground 60%; }}
    .role--strong {{ text-style: bold; }}
    .role--title {{ color: $text-accent; text-style: bold; }}
    .role--cursor {{
        color: $block-cursor-foreground;
        background: $block-cursor-background;
        text-style: bold;
    }}
    .role--good {{ color: $text-success; }}
    .role--bad {{ color: $text-error; text-style: bold; }}
    .role--warn {{ color: $text-warning; }}
    .role--running {{ color: $text-primary; text-style: bold; }}
    .role--keys {{ color: $footer-key-foreground; text-style: bold; }}
    {_CURVES}
    {_HEATS}
    &:ansi {{
        .role--axis, .role--label, .role--dim {{ color: ansi_default; text-style: dim; }}
        {_FAINT}
        .role--cursor {{
            color: ansi_default;
            background: ansi_default;
            text-style: reverse;
        }}
    }}
"""
