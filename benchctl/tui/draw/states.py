"""The status of a run, a trial or a flow: always a glyph and a word, besides the colour."""

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
"""The width of the longest."""


def state(status: str) -> Span:
    """Return a status for display; an unknown one unchanged."""
    glyph, word, role = _STATES.get(status, ("?", status, "warn"))
    return Span(f"{glyph} {word}", role)
