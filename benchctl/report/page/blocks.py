"""What a page consists of, whatever it is written as.

All text is as it came: `html` and `markdown` escape it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Struct

from benchctl.report.figures.figure import Picture
from benchctl.report.pivot import Pivot


class Paragraph(Struct, frozen=True):
    """A text that flows; ``strong`` is what readers should see first."""

    text: str
    strong: bool = False


class Bullets(Struct, frozen=True):
    """A list of texts."""

    items: Sequence[str]


class TableBlock(Struct, frozen=True):
    """A table; ``note`` says what it left out, or what it is of."""

    table: Pivot
    note: str = ""


class Code(Struct, frozen=True):
    """Lines that stay as they are: commands, a file with its ``name``."""

    text: str
    name: str = ""


class PageSection(Struct, frozen=True):
    """Blocks under a heading; ``folded`` ones open on a click, and on paper if not ``long``."""

    title: str
    blocks: Sequence[Block]
    folded: bool = False
    long: bool = False


class PictureBlock(Struct, frozen=True):
    """A figure."""

    figure: Picture


Block: TypeAlias = "Paragraph | Bullets | TableBlock | Code | PageSection | PictureBlock"


class PageContent(Struct, frozen=True):
    """A whole report."""

    title: str
    sections: Sequence[PageSection]
