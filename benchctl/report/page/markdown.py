"""A page as GitHub's markdown: the same text and tables in the same order, without pictures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from benchctl.report.page.blocks import (
    Block,
    Bullets,
    Code,
    PageContent,
    PageSection,
    Paragraph,
    TableBlock,
)
from benchctl.report.text.markdown import code_lines, escaped, table_lines


def markdown_of(page: PageContent) -> str:
    """Return a page as text."""
    return "\n".join([f"# {escaped(page.title)}", "", *_blocks(page.sections, 2)])


def _blocks(blocks: Iterable[Block], level: int) -> Iterator[str]:
    for block in blocks:
        match block:
            case Paragraph(text, strong):
                yield f"**{escaped(text)}**" if strong else escaped(text)
            case Bullets(items):
                yield from (f"- {escaped(item)}" for item in items)
            case TableBlock(table, note):
                yield from table_lines(table)
                yield from ("", escaped(note)) if note else ()
            case Code(text, name):
                yield from code_lines(text, "toml" if name else "")
            case PageSection(title, inner):
                yield from (f"{'#' * min(level, 6)} {escaped(title)}", "")
                yield from _blocks(inner, level + 1)
                continue
        yield ""
