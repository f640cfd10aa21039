"""A screen as text or as an SVG picture."""

from __future__ import annotations

import re
from typing import Any

from textual.app import App

# Textual names a font on a server; a picture should need nothing but itself.
_FONT_FACE = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
_FONTS = "'DejaVu Sans Mono', 'Menlo', 'Consolas', monospace"


def text_of(app: App[Any]) -> str:
    """Return what the terminal shows, line by line, without colours."""
    update = app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in update) + "\n"


def svg_of(app: App[Any]) -> str:
    """Return a picture of the screen that needs no font from elsewhere."""
    picture = _FONT_FACE.sub("", app.export_screenshot(title=app.title))
    return re.sub(r"font-family: Fira Code, monospace", f"font-family: {_FONTS}", picture)
