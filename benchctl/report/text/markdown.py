"""Text and tables in GitHub's markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from benchctl.report.pivot import Pivot
from benchctl.visible import visible

# A link, code, emphasis or an element of HTML begins with one of these.
_SPECIAL = re.compile(r"[\\`*\[\]]|<(?=[a-zA-Z/!?])|&(?=#?\w+;)")


def escaped(text: str) -> str:
    """Return foreign text as one line that markdown shows as it is."""
    return _SPECIAL.sub(lambda match: f"\\{match[0]}", visible(text))


def table_lines(shown: Pivot) -> Iterator[str]:
    """Yield the lines of a table."""
    rule = ["---:" if right else "---" for right in shown.numeric]
    yield from map(_line, (shown.heads, rule, *shown.rows))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(escaped(cell).replace('|', '&#124;') for cell in cells)} |"


def code_lines(text: str, language: str = "") -> Iterator[str]:
    """Yield a text as a fenced block; its fence is longer than any within."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from (f"{fence}{language}", text.rstrip("\n"), fence)
