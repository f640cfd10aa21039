"""Draws a screen as text or as SVG, from the current screen or without any terminal."""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textual.app import App
    from textual.pilot import Pilot

# Textual refers to a font on a server; a picture must be self-contained.
_FONT_FACE = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
_INDENTED = re.compile(
    r' x="([0-9.]+)"( [^>]*?)textLength="([0-9.]+)"([^>]*)>((?:&#160;)+)([^<]*)<'
)
_FONTS = "'DejaVu Sans Mono', 'Menlo', 'Consolas', monospace"
# Interval between two checks of whether a screen is complete.
LOOK_S = 0.02
# A message leads to another, and a layout to the next one. Textual's pause without a time ends as
# soon as the process has nothing to do, also where a busy machine gives it nothing.
ROUNDS = 30


def text_of(app: App[Any]) -> str:
    """Return the screen's text, line by line, without colours."""
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips) + "\n"


def svg_of(app: App[Any]) -> str:
    """Return a picture of the screen that needs no font from elsewhere."""
    picture = _FONT_FACE.sub("", app.export_screenshot(title=app.title))
    picture = picture.replace("font-family: Fira Code, monospace", f"font-family: {_FONTS}")
    return _INDENTED.sub(_begin_at_text, picture)


def _begin_at_text(match: re.Match[str]) -> str:
    """Start a piece of text at its first character: some renderers drop leading spaces."""
    x, middle, length, rest, spaces, text = match.groups()
    indent = spaces.count(";")
    each = float(length) / (indent + len(unescape(text)))
    x, length = f"{float(x) + indent * each:.1f}", f"{float(length) - indent * each:.1f}"
    return f' x="{x}"{middle}textLength="{length}"{rest}>{text}<'


def take_picture(app: App[Any], size: tuple[int, int], *, plain: bool) -> str:
    """Return an app's first screen, of ``size`` columns and lines, without a terminal.

    As text, or as SVG.
    """
    taken = [""]

    async def shoot(pilot: Pilot[Any]) -> None:
        while not getattr(app.screen, "settled", False):
            await pilot.pause(LOOK_S)
        for _ in range(ROUNDS):
            await pilot.pause(0)
        taken[0] = text_of(app) if plain else svg_of(app)
        app.exit()

    app.run(headless=True, size=size, auto_pilot=shoot)
    return taken[0]
