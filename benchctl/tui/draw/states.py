"""How a run, a trial or a flow stands: always a glyph and a word, coloured besides."""

from __future__ import annotations

from benchctl.tui.draw.spans import Span

_STATES = {
    "planned": ("·", "planned", "dim"),
    "running": ("▶", "running", "running"),
    "ok": ("✓", "ok", "good"),
    "failed": ("✗", "failed", "bad"),
    "timed_out": ("✗", "timed out", "bad"),
    "interrupted": ("■", "stopped", "warn"),
    "skipped": ("»", "skipped", "warn"),
    "died": ("✗", "died", "bad"),
}
WIDTH = 11
"""Room for the longest of them."""


def state(status: str) -> Span:
    """Return a status as it is shown; one that is not known is shown as it is."""
    glyph, word, role = _STATES.get(status, ("?", status, "warn"))
    return Span(f"{glyph} {word}", role)
