"""The base of our widgets: lines of text with roles, painted at the widget's size.

A widget is asked for its lines only when it is visible and something changed; `repaint` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from textual.strip import Strip
from textual.widget import Widget

from benchctl.tui.spans import CURVES, HEATS, ROLES, Line, crop


class Painted(Widget):
    """A widget whose subclass paints lines of spans."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"role--{role}" for role in ROLES}
    DEFAULT_CSS = f"""
    Painted {{
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
        {"".join(f".role--curve-{n} {{ color: $curve-{n}; }}" for n in range(CURVES))}
        {
        "".join(
            f".role--heat-{n} {{ color: $heat-text; background: $heat-{n}; }}" for n in range(HEATS)
        )
    }
        &:ansi {{
            .role--axis, .role--label, .role--dim {{ color: ansi_default; text-style: dim; }}
            .role--cursor {{
                color: ansi_default;
                background: ansi_default;
                text-style: reverse;
            }}
        }}
    }}
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self._lines: Sequence[Line] | None = None
        self._strips: dict[int, Strip] = {}
        self._painted_for = (0, 0)

    def paint(self, width: int, height: int) -> Sequence[Line]:
        """Return the widget's lines, for its present size."""
        raise NotImplementedError

    def repaint(self) -> None:
        """Paint anew when the widget is next shown."""
        self._lines = None
        self.refresh()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips = {}

    def render_line(self, y: int) -> Strip:
        """Return one line as Textual wants it (its Line API)."""
        size = (self.size.width, self.size.height)
        if self._lines is None or self._painted_for != size:
            self._lines, self._painted_for = self.paint(*size), size
            self._strips = {}
        if y not in self._strips:
            self._strips[y] = self._strip(self._lines[y] if y < len(self._lines) else ())
        return self._strips[y]

    def _strip(self, line: Line) -> Strip:
        width = self.size.width
        ground = self.rich_style
        segments = [
            Segment(
                text, ground + self.get_component_rich_style(f"role--{role}") if role else ground
            )
            for text, role in crop(line, width)
        ]
        return Strip(segments, width)
