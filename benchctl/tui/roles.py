"""The styles of roles, shared by all widgets of a screen."""

from __future__ import annotations

from benchctl.tui.draw.spans import CURVES, HEATS, ROLES

CLASSES = {f"role--{role}" for role in ROLES}
GROUNDED = {"cursor", *(f"heat-{step}" for step in range(HEATS))}
"""The roles with a background of their own; all others use their widget's."""

_CURVES = "".join(f".role--curve-{n} {{ color: $curve-{n}; }}" for n in range(CURVES))
_HEATS = "".join(
    f".role--heat-{n} {{ color: $heat-text; background: $heat-{n}; }}" for n in range(HEATS)
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
        .role--cursor {{
            color: ansi_default;
            background: ansi_default;
            text-style: reverse;
        }}
    }}
"""
