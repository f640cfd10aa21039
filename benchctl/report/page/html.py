"""A page as one HTML file that needs nothing else: no server, no script, no font, no colour scheme.

All text is escaped by the template. The policy in its head allows the two scripts and the style
sheet that stand in it, by their hashes, and no request at all.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchctl.errors import MissingError
from benchctl.report.figures.figure import LineRole, Picture, PictureKind
from benchctl.report.page.blocks import Block, PageContent, PageSection, PictureBlock
from benchctl.report.page.charts import chart_of
from benchctl.report.page.drawing import COLOURS, svg_of
from benchctl.units import magnitude

_HERE = Path(__file__).parent
UPLOT = _HERE / "uplot"
"""uPlot, unchanged."""
# 48 figures take less than 2 MB: 2.7 bytes for each value of charts, about 6 of drawings.
_CHART_VALUES, _DRAWN_VALUES = 360_000, 70_000
# More points than a screen or a sheet of paper has dots are not seen.
_MOST_IN_CHART, _MOST_DRAWN, _LEAST = 1500, 180, 30


def html_of(page: PageContent) -> str:
    """Return a page as text. Raises MissingError without Jinja2."""
    styles = [_text(UPLOT / "uPlot.min.css"), _text(_HERE / "page.css")]
    scripts = [_text(UPLOT / "uPlot.iife.min.js"), _text(_HERE / "page.js")]
    template = _environment(_room_for(page)).get_template("page.html")
    html: str = template.render(
        page=page, styles=styles, scripts=scripts, policy=_policy(styles, scripts)
    )
    return html


class _Room(NamedTuple):
    """How many points each line has, in a chart and in a drawing."""

    chart: int
    drawing: int


def _room_for(page: PageContent) -> _Room:
    lists = sum(
        3 if len(line.xs) > _LEAST else 1
        for figure in _figures(page.sections)
        for panel in figure.panels
        for line in panel.lines
    )
    return _Room(
        min(_MOST_IN_CHART, max(_LEAST, _CHART_VALUES // (lists or 1))),
        min(_MOST_DRAWN, max(_LEAST, _DRAWN_VALUES // (lists or 1))),
    )


def _figures(blocks: Iterable[Block]) -> Iterator[Picture]:
    for block in blocks:
        if isinstance(block, PictureBlock):
            yield block.figure
        elif isinstance(block, PageSection):
            yield from _figures(block.blocks)


def require_jinja() -> Any:
    """Return Jinja2. Raises MissingError if it is not installed."""
    try:
        import jinja2
    except ImportError:
        raise MissingError(
            "a report as HTML needs Jinja2, which is not installed",
            'pip install "benchctl[report]", or use --format md',
        ) from None
    return jinja2


def _environment(room: _Room) -> Any:
    jinja2 = require_jinja()
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "kind": _kind,
        "number": _number,
        "caption": caption_of,
        "legend": _legend,
        "drawing": lambda figure: svg_of(figure, room.drawing),
        "chart": lambda figure: chart_of(figure, room.chart),
        "in_chart": lambda figure: _thinned(figure, room.chart),
        "in_drawing": lambda figure: _thinned(figure, room.drawing),
    }
    return environment


def caption_of(figure: Picture) -> str:
    """Return what a figure shows, and of which part of the run."""
    panels, x = figure.panels, figure.x.title
    what = ", ".join(panel.heat.label if panel.heat else panel.y.title for panel in panels)
    match figure.kind:
        case PictureKind.TIME | PictureKind.SEQUENCE:
            what += " over time"
        case PictureKind.CDF | PictureKind.HISTOGRAM:
            what = f"distribution of {x}"
        case PictureKind.FOREST:
            what = "differences of two runs"
        case PictureKind.MATRIX:
            what += " of each pair of hosts"
        case PictureKind.HEAT:
            what += f" by {x} and {panels[0].y.title}"
        case _:
            what += f" by {x}" if x else ""
    return f"{what}: {figure.about}" if figure.about else what


def _legend(figure: Picture) -> list[tuple[str, str]]:
    """Return the entries of a figure's legend: the classes of a sample, and its text."""
    lines = [line for panel in figure.panels for line in panel.lines]
    marked = {line.number for line in lines if line.role in (LineRole.MARKS, LineRole.SPANS)}
    dotted = figure.kind is not PictureKind.SEQUENCE
    entries = [
        (
            f"{'mark' if number in marked else 'line'} s{number % COLOURS}"
            f"{' dots' * (dotted and number >= COLOURS)}",
            name,
        )
        for number, name in figure.named
        if name
    ]
    samples = {
        LineRole.EXPECTED: "theory dash",
        LineRole.REPORTED: "open",
        LineRole.INVALID: "cross",
    }
    return entries + [(samples[role], name) for role, name in figure.beside.items()]


def _thinned(figure: Picture, points: int) -> str:
    """Return what it means that a figure has fewer points than values; empty if it has not."""
    longest = max((len(line.xs) for panel in figure.panels for line in panel.lines), default=0)
    if longest <= points or figure.kind is PictureKind.SEQUENCE:
        return ""
    most = -(-longest // points)
    return f"Points stand for up to {most} values: their mean, and a band that spans them all."


def _kind(block: Block) -> str:
    return type(block).__name__


def _number(text: str) -> str:
    """Return the number that a cell is sorted by, as a script reads it; empty if it is none."""
    value = magnitude(text)
    return "" if value is None else f"{value:.12g}".replace("inf", "Infinity")


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _policy(styles: Sequence[str], scripts: Sequence[str]) -> str:
    """Return the content security policy (W3C, CSP level 3)."""
    return (
        f"default-src 'none'; script-src {_hashes(scripts)}; style-src {_hashes(styles)};"
        " base-uri 'none'; form-action 'none'"
    )


def _hashes(texts: Sequence[str]) -> str:
    digests = (hashlib.sha256(text.encode()).digest() for text in texts)
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
