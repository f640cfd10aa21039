"""``benchctl plot``: figures of a run, as files or in the terminal."""

from __future__ import annotations

import math
import os
import shutil
import sys
from collections.abc import Collection, Iterable, Mapping
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from benchctl.cli.shared import completion, options
from benchctl.errors import UsageError
from benchctl.visible import visible

if TYPE_CHECKING:
    from benchctl.report.figures.figure import Picture
    from benchctl.store.read import Reader

KindName = Literal[
    "time",
    "all",
    "sweep",
    "bars",
    "heat",
    "matrix",
    "cdf",
    "histogram",
    "box",
    "search",
    "plane",
    "forest",
    "time-sequence",
]
FormName = Literal["svg", "png", "pdf"]
# A terminal that does not say how large it is, or a pipe.
_SIZE = (100, 30)
Axes = Annotated[
    list[str],
    typer.Option(
        metavar="AXIS",
        default_factory=list,
        show_default=False,
        help="A figure for each value of this axis, or of repeat; repeatable.",
        autocompletion=completion.axes_of_run,
    ),
]


def plot(
    name: options.RunOrFile = "last",
    other: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN",
            help="A second run: the figure shows by what it differs from the first.",
            autocompletion=completion.runs,
        ),
    ] = None,
    *,
    kind: Annotated[
        KindName | None,
        typer.Option(
            metavar="KIND",
            help=(
                "time, all, sweep, bars, heat, matrix, cdf, histogram, box, search, plane,"
                " forest or time-sequence; default: what suits the run."
            ),
        ),
    ] = None,
    x: Annotated[
        str,
        typer.Option(
            "--x",
            metavar="AXIS",
            show_default=False,
            help="The axis of the profile that goes to the right, or time.",
            autocompletion=completion.x_of_run,
        ),
    ] = "",
    y: Annotated[
        list[str],
        typer.Option(
            "--y",
            metavar="METRIC",
            default_factory=list,
            show_default=False,
            help="Metric, or a statistic such as rtt_s.p95; repeatable: a panel for each.",
            autocompletion=completion.metrics_of_run,
        ),
    ],
    series: Annotated[
        str,
        typer.Option(
            metavar="AXIS",
            show_default=False,
            help="The axis that has a line for each value.",
            autocompletion=completion.axes_of_run,
        ),
    ] = "",
    by: Axes,
    every: Annotated[
        bool,
        typer.Option("--all", help="A figure for each value of every axis that one does not show."),
    ] = False,
    only: Annotated[
        list[str],
        typer.Option(
            "--only",
            metavar="AXIS=VALUE",
            default_factory=list,
            show_default=False,
            help="Show only points with this value; commas separate several; repeatable.",
        ),
    ],
    begin: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="TIME",
            show_default=False,
            help="Show a figure over time from this second on, such as 39.4s.",
        ),
    ] = "",
    end: Annotated[
        str,
        typer.Option("--to", metavar="TIME", show_default=False, help="Show it up to this one."),
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write to this file, .svg, .png or .pdf, or into this directory.",
            autocompletion=completion.files,
        ),
    ] = None,
    form: Annotated[
        FormName | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="svg, png or pdf; default: by the extension of the output file, else svg.",
        ),
    ] = None,
    style: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="A style file of Matplotlib, or the name of one of its styles.",
            autocompletion=completion.files,
        ),
    ] = None,
    terminal: Annotated[
        bool, typer.Option("--terminal", help="Draw in the terminal, without Matplotlib.")
    ] = False,
    _units: options.Units = None,
    _fleet: options.Fleet = None,
    store: options.Store,
) -> None:
    """Draw a run: over time, by an axis, as a distribution. On a terminal, if no file is named."""
    from benchctl.report.figures.figure import PictureKind
    from benchctl.report.figures.making import Wanted, figures_of
    from benchctl.report.report import read_report

    in_terminal = terminal or (output is None and form is None and sys.stdout.isatty())
    if terminal:
        options.reject_beside("--terminal", {"-o": output, "--format": form, "--style": style})
    many = every or bool(by)
    form = form or _form_of(output, many=many)
    chosen = Wanted(
        PictureKind(kind) if kind else None, x, y, series, by, _only(only), every,
        begin_s=_time_s("--from", begin, 0.0), end_s=_time_s("--to", end, math.inf),
    )  # fmt: skip
    if chosen.begin_s >= chosen.end_s:
        raise UsageError(f"--from {begin} --to {end}: the end is not after the beginning")
    if other is None and chosen.kind is PictureKind.FOREST:
        raise UsageError("--kind forest shows two runs", "for example: benchctl plot baseline last")
    name, store = options.run_and_store(name, store)
    with options.open_reader(store) as reader:
        if other is not None:
            unused = {"--x": x, "--series": series, "--by": by, "--all": every}
            options.reject_beside("a second run", unused)
            if chosen.kind not in (None, PictureKind.FOREST, PictureKind.MATRIX):
                raise UsageError(f"--kind {kind} shows one run", "name one, or use --kind forest")
            of_mesh = chosen.kind is PictureKind.MATRIX
            figure = _difference(reader, (name, other), y, chosen.only, of_mesh=of_mesh)
            if in_terminal:
                _print([figure])
            else:
                _write([figure], output, form, style, many=False)
            return
        report = read_report(reader, reader.find(name))
        with closing(figures_of(reader, report, chosen)) as figures:
            if in_terminal:
                _print(figures)
            else:
                _write(figures, output, form, style, many=many)


def _difference(
    reader: Reader,
    runs: tuple[str, str],
    metrics: Collection[str],
    only: Mapping[str, Collection[str]],
    *,
    of_mesh: bool,
) -> Picture:
    """Return the forest plot of two runs, or the matrix. Raises UsageError and StoreError.

    Its verdicts are those of the whole comparison.
    """
    from benchctl.errors import nearest
    from benchctl.report.comparison.changes import change_matrix
    from benchctl.report.comparison.comparison import arranged, compare_reports
    from benchctl.report.comparison.forest import forest
    from benchctl.report.figures.making import holding
    from benchctl.report.report import read_report

    first, second = (read_report(reader, reader.find(name)) for name in runs)
    holds = holding(first.run, only)
    (comparisons,) = compare_reports(first, second)
    known = {comparison.metric for comparison in comparisons}
    for metric in metrics:
        if metric not in known:
            hint = nearest(metric, known) or f"measured are: {', '.join(sorted(known))}"
            raise UsageError(f"--y: no metric {metric} was measured in both runs", hint)
    shown = arranged(comparisons, first.run, second.run, every=bool(metrics))
    wanted = [
        comparison
        for comparison in shown
        if (not metrics or comparison.metric in metrics) and holds(comparison.point)
    ]
    return (
        change_matrix(first, second, wanted) if of_mesh else forest(first.run, second.run, wanted)
    )


def _time_s(option: str, text: str, default_s: float) -> float:
    from benchctl.units import parse_duration

    try:
        return parse_duration(text) if text else default_s
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from None


def _only(texts: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for text in texts:
        axis, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--only {text}: write AXIS=VALUE", "for example: --only streams=4")
        found.setdefault(axis, []).append(value)
    return found


def _form_of(output: Path | None, *, many: bool) -> FormName:
    """Return the format by the file's extension. Raises UsageError."""
    suffix = "" if output is None or output.is_dir() else output.suffix[1:].lower()
    match suffix:
        case "":
            return "svg"
        case "svg" | "png" | "pdf" if not many:
            return suffix
        case _ if many:
            raise UsageError(
                f"-o {output}: --all and --by write several files", "name a directory: -o figs/"
            )
    raise UsageError(
        f"-o {output}: no figure has the extension .{suffix}",
        "extensions are .svg, .png, .pdf; or choose a format with --format",
    )


def _print(figures: Iterable[Picture]) -> None:
    from benchctl.cli.shared.colour import painted
    from benchctl.settings import settings
    from benchctl.tui.draw.plot.figure import figure_lines
    from benchctl.tui.preferences import glyphs_of

    glyphs = glyphs_of(settings(), sys.stdout.encoding, os.environ.get("TERM", ""))
    width, height = shutil.get_terminal_size(_SIZE)
    for number, figure in enumerate(figures):
        if number:
            print()
        lines = figure_lines(figure, width, height - 1, glyphs)
        painted([(glyphs.plain(text), role) for text, role in line] for line in lines)


def _write(
    figures: Iterable[Picture],
    output: Path | None,
    form: FormName,
    style: str | None,
    *,
    many: bool,
) -> None:
    """Write one figure to a file, or each into a directory; raises as `figures_of` does."""
    from benchctl.report.figures.paper.printed import printer
    from benchctl.report.output.output import Output

    figures = iter(figures)
    with printer(style) as printed:
        first = next(figures)
        if not many and (output is None or not output.is_dir()):
            with Output(output) as out:
                out.write(printed(first, form))
                out.publish()
            return
        if output is None:
            raise UsageError("--all and --by write several files", "name a directory: -o figs/")
        try:
            output.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"-o {output}: {error.strerror}") from None
        for figure in chain([first], figures):
            path = output / f"{figure.name}.{form}"
            with Output(path) as out:
                out.write(printed(figure, form))
                out.publish()
            print(visible(str(path)))
