"""Draws figures for paper with Matplotlib: SVG, PNG and PDF, the same bytes for the same figure.

Colour is never the only distinction: lines have marks, bars have hatches. Theory is dashed, marks
of what others reported are open, and crosses are over what is not valid.
"""

from __future__ import annotations

import io
import math
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from benchctl.report.figures.figure import (
    MAPS,
    OVER_TIME,
    Axis,
    LineRole,
    Panel,
    Picture,
    PictureKind,
    PictureLine,
)
from benchctl.report.figures.paper import labels
from benchctl.report.figures.paper.events import draw_events
from benchctl.report.figures.paper.legend import GREY, handles_of, hatch_of, mark_of
from benchctl.report.figures.paper.library import missing_characters, styled
from benchctl.report.figures.paper.slots import BAR, Slots, slots_of
from benchctl.report.figures.paper.strokes import draw_packets
from benchctl.visible import visible_lines, width_of

FORMATS = ("svg", "png", "pdf")
_BACKENDS = {"svg": ("svg", "print_svg"), "png": ("agg", "print_png"), "pdf": ("pdf", "print_pdf")}
_METADATA: Mapping[str, Mapping[str, None]] = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
# Marks of a line over time, so that lines are told apart in black and white.
_MARKS_OVER_TIME = 7
_PANEL_MORE = 0.62
"""The height of each panel after the first, in shares of a figure with one."""
# Of a row of a forest plot, and of what is above and below its rows.
_ROW_INCHES, _AROUND_INCHES = 0.24, 1.4
_MOST_EDGED = 100
# The height of an entry of a legend, and of each further line of its name, in sizes of its font.
_ENTRY_SHARE, _LINE_SHARE = 1.5, 1.35
# Of a logarithmic axis.
_FEW_POWERS = 1e3


@contextmanager
def printer(style: str | None = None) -> Iterator[Callable[[Picture, str], bytes]]:
    """Give a function that draws a figure in a format.

    Raises MissingError without Matplotlib, and UsageError for a style that is none.
    """
    with styled(style) as matplotlib:
        yield lambda figure, form: _Sheet(matplotlib, figure, form).save()


class _Sheet:
    """A figure on paper."""

    def __init__(self, matplotlib: Any, figure: Picture, form: str) -> None:
        self._matplotlib = matplotlib
        self._figure = figure
        self._form = form
        rc = matplotlib.rcParams
        self._colours = rc["axes.prop_cycle"].by_key().get("color", ["black"])
        width, height = rc["figure.figsize"]
        panels = len(figure.panels)
        rows = max(len(panel.differences) for panel in figure.panels)
        height = max(height, _ROW_INCHES * rows + _AROUND_INCHES * bool(rows))
        if rows:
            named = [self._names(panel.y, labels.ROW_WIDTH) for panel in figure.panels]
            longest = max(width_of(name) for names in named for name in names)
            width += labels.ROW_LETTER_INCHES * max(0, longest - labels.NAME_WIDTH)
        if figure.x.even:
            columns = len(figure.x.ticks)
            width += labels.grown_inches(columns, labels.MOST_NAMES)
            height += labels.STEEP_INCHES * (labels.slant(columns) == labels.STEEP_SLANT)
        if figure.kind in MAPS:
            rows = max(len(panel.y.ticks) for panel in figure.panels)
            height += labels.grown_inches(rows, labels.MOST_ROWS)
        height *= 1 + _PANEL_MORE * (panels - 1)
        self._legend = [
            (handle, "\n".join(self._wrapped(name, labels.NAME_WIDTH, 3)))
            for handle, name in handles_of(figure, self._colour)
        ]
        self._sheet = matplotlib.figure.Figure(
            figsize=(width, max(height, self._legend_inches)),
            layout="constrained",
            dpi=rc["savefig.dpi"],
        )
        grid = self._sheet.subplots(panels, 1, sharex=True, squeeze=False)
        for axes, panel in zip(grid[:, 0], figure.panels, strict=True):
            self._draw(axes, panel)
            if not figure.x.ticks:  # names would take the room of the panels
                axes.tick_params(labelbottom=True)
        self._set_x(grid[-1, 0])
        self._write_titles()
        self._add_legend()

    def save(self) -> bytes:
        """Return the figure in its format."""
        file = io.BytesIO()
        backend, method = _BACKENDS[self._form]
        # Not savefig(), which draws everything twice.
        canvas = import_module(f"matplotlib.backends.backend_{backend}").FigureCanvas(self._sheet)
        getattr(canvas, method)(file, metadata=_METADATA[self._form])
        if self._form == "svg":
            return visible_lines(file.getvalue().decode()).encode()
        return file.getvalue()

    def _text(self, text: str) -> str:
        """Return a text as it can be drawn: what the font or its layout cannot is escaped.

        Viewers of an SVG have fonts for every script, and order text by its direction.
        """
        if self._form == "svg" or text.isascii():
            return text
        missing = set(missing_characters(self._matplotlib, text))
        return "".join(
            character.encode("unicode_escape").decode()
            if character in missing or unicodedata.bidirectional(character) in ("R", "AL")
            else character
            for character in text
        )

    def _colour(self, number: int | None) -> str:
        if number is None:
            return GREY
        colour: str = self._colours[number % len(self._colours)]
        return colour

    # What is in a panel.

    def _draw(self, axes: Any, panel: Panel) -> None:
        kind = self._figure.kind
        if panel.heat is not None:
            self._draw_cells(axes, panel, panel.heat)
            return
        if panel.differences:
            self._draw_differences(axes, panel)
            return
        factor = panel.y.scale[0]
        slots = slots_of(panel)
        for line in panel.lines:
            if kind is PictureKind.BARS:
                self._draw_bars(axes, line, factor, slots)
            else:
                self._draw_line(axes, line, factor)
        self._draw_boxes(axes, panel, factor, slots)
        axes.set_ylabel(self._text(panel.y.label))
        if panel.y.log:
            axes.set_yscale("log")
            self._name_powers(axes.yaxis, panel.y)
        elif panel.y.from_zero:
            over_time = kind in OVER_TIME  # what is far beyond the others is cut off
            axes.set_ylim(0.0, panel.y.high / factor * 1.05 if over_time else None)
        if panel.y.metric == "share_ratio":
            axes.set_ylim(top=100.0)
        draw_events(axes, panel.events, self._figure.x, self._colour)

    def _draw_line(self, axes: Any, line: PictureLine, factor: float) -> None:
        x_factor = self._figure.x.scale[0]
        xs = [x / x_factor for x in line.xs]
        ys = [y / factor for y in line.ys]
        colour, mark = self._colour(line.number), mark_of(line.number)
        kind = self._figure.kind
        if line.role.is_of_packets:
            draw_packets(axes, line, xs, factor, colour, mark)
            return
        if line.role is not LineRole.MEASURED:
            self._draw_beside(axes, line, xs, ys)
        elif kind is PictureKind.CDF:
            axes.step(
                [xs[0], *xs], [0.0, *ys], where="post", color=colour, marker=mark,
                markevery=self._every(line, len(xs) + 1),
            )  # fmt: skip
        elif kind in OVER_TIME:
            if line.lows:
                axes.fill_between(
                    xs, [low / factor for low in line.lows], [high / factor for high in line.highs],
                    color=colour, alpha=0.22, linewidth=0,
                )  # fmt: skip
            alone = len(self._figure.names) < 2 and len(xs) > 60
            axes.plot(
                xs, ys, color=colour, linewidth=1.0, marker="" if alone else mark,
                markevery=self._every(line, len(xs)),
            )  # fmt: skip
        elif kind is PictureKind.HISTOGRAM:
            axes.plot(xs, ys, color=colour, marker=mark, markevery=self._every(line, len(xs)))
        elif kind is PictureKind.PLANE:
            axes.plot(xs, ys, color=colour, marker=mark, linestyle="none")
        else:
            axes.errorbar(
                xs, ys, yerr=_errors(line, factor), color=colour, marker=mark, capsize=3,
                elinewidth=1.0,
            )  # fmt: skip

    def _every(self, line: PictureLine, count: int) -> Any:
        """Return which of a line's points have a mark: few, and not those of other lines."""
        step = max(1, count // _MARKS_OVER_TIME)
        lines = max(1, len(self._figure.names))
        return ((line.number or 0) * step // lines, step)

    def _draw_beside(
        self, axes: Any, line: PictureLine, xs: Sequence[float], ys: Sequence[float]
    ) -> None:
        """Draw what is beside the measured values: dashes, open marks or crosses."""
        colour = self._colour(line.number)
        match line.role:
            case LineRole.EXPECTED:
                axes.plot(xs, ys, color=colour, linestyle="--", linewidth=1.1, zorder=1.8)
            case LineRole.REPORTED:
                axes.plot(
                    xs, ys, color=colour, linestyle="none", marker=mark_of(line.number),
                    markerfacecolor="white", markersize=6, zorder=2.5,
                )  # fmt: skip
            case _:
                axes.plot(xs, ys, color="black", linestyle="none", marker="x", markersize=7,
                          zorder=3)  # fmt: skip

    def _draw_bars(self, axes: Any, line: PictureLine, factor: float, slots: Slots) -> None:
        number, width = line.number, slots.width
        xs = [slots.middle(x, number) for x in line.xs]
        ys = [y / factor for y in line.ys]
        # Of very many bars one would see nothing but their edges.
        edge = 0.6 if len(slots.numbers) / width <= _MOST_EDGED else 0.0
        if line.role is LineRole.MEASURED:
            axes.bar(
                xs, ys, width, yerr=_errors(line, factor), capsize=2.5, color=self._colour(number),
                edgecolor="black", linewidth=edge, hatch=hatch_of(number or 0) if edge else "",
                error_kw={"elinewidth": 1.0},
            )  # fmt: skip
        elif line.role is LineRole.EXPECTED:
            half = (BAR if number is None else width) / 2
            lefts, rights = [x - half for x in xs], [x + half for x in xs]
            # White below, for bars that are as black as the dashes.
            axes.hlines(ys, lefts, rights, color="white", linewidth=1.8)
            axes.hlines(ys, lefts, rights, color="black", linestyle="--", linewidth=1.2)
        elif line.role is LineRole.REPORTED:
            axes.plot(xs, ys, linestyle="none", marker="o", markerfacecolor="white",
                      markeredgecolor="black", markersize=6, zorder=4)  # fmt: skip
        else:
            axes.plot(xs, ys, color="black", linestyle="none", marker="x", markersize=8, zorder=4)

    def _draw_boxes(self, axes: Any, panel: Panel, factor: float, slots: Slots) -> None:
        for box in panel.boxes:
            described = {
                "whislo": box.p5, "q1": box.q1, "med": box.median, "q3": box.q3, "whishi": box.p95,
            }  # fmt: skip
            stats: dict[str, Any] = {key: value / factor for key, value in described.items()}
            stats["fliers"] = [box.least / factor, box.greatest / factor]
            drawn = axes.bxp(
                [stats], positions=[slots.middle(box.x, box.number)],
                widths=slots.width * 0.8, patch_artist=True, manage_ticks=False,
                flierprops={"marker": ".", "markersize": 3, "markerfacecolor": "black"},
                medianprops={"color": "black", "linewidth": 1.6},
            )  # fmt: skip
            for patch in drawn["boxes"]:
                patch.set_facecolor(self._colour(box.number))
                patch.set_hatch(hatch_of(box.number))

    def _draw_differences(self, axes: Any, panel: Panel) -> None:
        """Draw a row for each difference: an open mark, filled where the verdict is certain."""
        x = self._figure.x
        factor = x.scale[0]
        low, high = x.low / factor, x.high / factor
        axes.axvline(0.0, color="black", linewidth=0.8)
        for difference in panel.differences:
            at = min(max(difference.value / factor, low), high)
            colour = self._colour(0) if difference.certain else GREY
            if math.isfinite(difference.low):
                axes.plot([max(difference.low / factor, low), min(difference.high / factor, high)],
                          [difference.row] * 2, color=colour, linewidth=1.4)  # fmt: skip
            axes.plot([at], [difference.row], color=colour, marker="o", markersize=5,
                      markerfacecolor=colour if difference.certain else "white")  # fmt: skip
            axes.annotate(
                self._text(difference.word), (1.02, difference.row),
                xycoords=("axes fraction", "data"), va="center", fontsize="x-small",
            )  # fmt: skip
        texts = self._names(panel.y, labels.ROW_WIDTH)
        axes.set_yticks([tick.value for tick in panel.y.ticks], texts, fontsize="x-small")
        axes.set_ylim(len(texts) - 0.5, -0.5)
        room = (high - low) * 0.03
        axes.set_xlim(low - room, high + room)
        axes.grid(visible=False, axis="y")

    def _draw_cells(self, axes: Any, panel: Panel, heat: Axis) -> None:
        columns, rows = len(self._figure.x.ticks), len(panel.y.ticks)
        crowded = columns > labels.MOST_NAMES or rows > labels.MOST_GROWN
        factor = heat.scale[0]
        values = [[math.nan] * columns for _ in range(rows)]
        for cell in panel.cells:
            if cell.value is not None:
                values[cell.row][cell.column] = cell.value / factor
        both_sides = heat.low < 0 < heat.high
        colors = self._matplotlib.colors
        scaled = colors.LogNorm if heat.log else colors.Normalize
        drawn = axes.pcolormesh(
            [column - 0.5 for column in range(columns + 1)],
            [row - 0.5 for row in range(rows + 1)], values,
            edgecolors="white", linewidth=0.0 if crowded else 0.5,
            cmap="PuOr" if both_sides else "cividis",
            norm=scaled(heat.low / factor, heat.high / factor),
        )  # fmt: skip
        axes.grid(visible=False)
        small = columns > 12
        for cell in panel.cells:
            if crowded and cell.value is not None and cell.valid:
                continue  # its colour says it
            missing = cell.value is None
            share = 0.0 if cell.value is None else heat.share(cell.value)
            # The middle is light where there are two sides, the upper end where there is one.
            light = abs(share - 0.5) < 0.35 if both_sides else share > 0.55
            value = "" if crowded else f"{cell.text} "
            text = "-" if missing else cell.text if cell.valid else f"{value}!"
            axes.text(
                cell.column, cell.row, text, ha="center", va="center",
                fontsize="xx-small" if small else "small",
                color="black" if missing or light else "white",
            )  # fmt: skip
        step = labels.step_of(rows)
        axes.set_yticks([tick.value for tick in panel.y.ticks[::step]],
                        self._names(panel.y)[::step])  # fmt: skip
        axes.set_ylabel(self._text(panel.y.label))
        if self._figure.kind is PictureKind.MATRIX:
            axes.invert_yaxis()  # as a table is read
        for spine in axes.spines.values():
            spine.set_visible(False)
        bar = self._sheet.colorbar(drawn, ax=axes)
        if heat.log:
            self._name_powers(bar.ax.yaxis, heat)
        bar.set_label(self._text(heat.label))
        bar.outline.set_visible(False)

    # What is around the panels.

    def _set_x(self, axes: Any) -> None:
        x = self._figure.x
        axes.set_xlabel(self._text(x.label))
        if x.log:
            axes.set_xscale("log")
            self._name_powers(axes.xaxis, x)
        if x.ticks:
            self._set_ticks(axes)
        if x.even and self._figure.kind not in MAPS:
            axes.set_xlim(-0.6, len(x.ticks) - 0.4)
        elif self._figure.kind in OVER_TIME:
            axes.set_xlim(x.low / x.scale[0], x.high / x.scale[0])
        elif x.from_zero and not x.log:
            axes.set_xlim(left=0.0)

    def _name_powers(self, axis: Any, of: Axis) -> None:
        """Name the values of a logarithmic axis, those between powers of ten too if it has few."""
        few = of.high / of.low < _FEW_POWERS
        ticker = self._matplotlib.ticker
        axis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,)))
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_minor_formatter(lambda *_: "")

    def _set_ticks(self, axes: Any) -> None:
        """Name the ticks; of those that would touch only the first, and slanted if all are long."""
        x = self._figure.x
        texts = self._names(x)
        longest = max(map(width_of, texts))
        if x.even and longest * len(texts) * labels.LABEL_SHARE > 1:
            step = labels.step_of(len(texts))
            axes.set_xticks([tick.value for tick in x.ticks[::step]], texts[::step],
                            rotation=labels.slant(len(texts)), ha="right",
                            rotation_mode="anchor")  # fmt: skip
            return
        low, high = (math.log(v) if x.log else v for v in (x.low, x.high))
        end = -math.inf
        shown = []
        for tick, text in zip(x.ticks, texts, strict=True):
            value = math.log(tick.value) if x.log else tick.value
            place = (value - low) / (high - low) if high > low else 0.5
            half = width_of(text) * labels.LABEL_SHARE / 2
            if (free := place - half > end) or len(texts) <= labels.MOST_NAMES:
                shown.append((tick.value, text if free else ""))
            end = place + half + labels.LABEL_SHARE / 2 if free else end
        axes.set_xticks(*zip(*shown, strict=True))
        axes.minorticks_off()

    def _names(self, axis: Axis, width: int = labels.NAME_WIDTH) -> list[str]:
        return labels.short([self._text(tick.text) for tick in axis.ticks], width)

    def _write_titles(self) -> None:
        figure = self._figure
        width = labels.TITLE_BESIDE if any(figure.names) else labels.TITLE_WIDTH
        lines = self._wrapped(figure.title, width, labels.TITLE_LINES)
        lines += self._wrapped(figure.about, width, labels.TITLE_LINES)
        self._sheet.suptitle("\n".join(lines))
        counts = [len(axis.ticks) for axis in (figure.x, *(panel.y for panel in figure.panels))
                  if axis.even]  # fmt: skip
        step = labels.step_of(max(counts, default=0))
        unnamed = [f"of {max(counts)} names, 1 in {step} is written"] if step > 1 else []
        notes = [
            line
            for note in (*figure.notes, *unnamed)
            for line in self._wrapped(note, labels.NOTE_WIDTH, 3)
        ]
        if notes:
            self._sheet.supxlabel(
                "\n".join(notes), x=0.01, ha="left", fontsize="x-small", color=GREY
            )

    def _wrapped(self, text: str, width: int, most: int) -> list[str]:
        """Return a text in lines, as it can be drawn; an ellipsis ends the last if it has more."""
        text = self._text(text)
        return labels.wrapped(text, width, most)

    @property
    def _legend_inches(self) -> float:
        """The height that the legend needs."""
        size = self._matplotlib.rcParams["legend.fontsize"]
        font = self._matplotlib.font_manager.FontProperties(size=size)
        points: float = font.get_size_in_points()
        more = sum(name.count("\n") for _, name in self._legend)
        return points * (_ENTRY_SHARE * (len(self._legend) + 2) + _LINE_SHARE * more) / 72

    def _add_legend(self) -> None:
        if not self._legend:
            return
        title = "\n".join(self._wrapped(self._figure.series, labels.NAME_WIDTH, 2))
        self._sheet.legend(
            *zip(*self._legend, strict=True), title=title or None,
            loc="outside right upper", alignment="left",
        )  # fmt: skip


def _errors(line: PictureLine, factor: float) -> list[list[float]] | None:
    """Return the lengths of the intervals' halves, below and above; None without any."""
    if not line.lows:
        return None
    below = [(y - low) / factor for y, low in zip(line.ys, line.lows, strict=True)]
    above = [(high - y) / factor for y, high in zip(line.ys, line.highs, strict=True)]
    return [below, above]
