"""What a page consists of, whatever it is written as.

All text is as it came: `html` and `markdown` escape it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from benchctl.report.figures.figure import Picture
from benchctl.report.pivot import Pivot


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A text that flows; ``strong`` is what readers should see first."""

    text: str
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list of texts."""

    items: Sequence[str]


@dataclass(frozen=True, slots=True)
class TableBlock:
    """A table; ``note`` says what it left out, or what it is of."""

    table: Pivot
    note: str = ""


@dataclass(frozen=True, slots=True)
class Code:
    """Lines that stay as they are: commands, a file with its ``name``."""

    text: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class PageSection:
    """Blocks under a heading; ``folded`` ones open on a click, and on paper if not ``long``."""

    title: str
    blocks: Sequence[Block]
    folded: bool = False
    long: bool = False


@dataclass(frozen=True, slots=True)
class PictureBlock:
    """A figure."""

    figure: Picture


Block: TypeAlias = "Paragraph | Bullets | TableBlock | Code | PageSection | PictureBlock"


@dataclass(frozen=True, slots=True)
class PageContent:
    """A whole report."""

    title: str
    sections: Sequence[PageSection]
