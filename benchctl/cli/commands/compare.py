"""``benchctl compare``: what differs between runs."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from benchctl.cli.shared import completion, options
from benchctl.errors import UsageError
from benchctl.visible import visible

CorrectionName = Literal["holm", "bh"]
OrderName = Literal["metric", "effect"]

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchctl.analysis.runs.compare import Comparison
    from benchctl.report.report import Report


def compare(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...",
            help="Runs: names, unique parts of them, tags, last or baseline; the first is A.",
            autocompletion=completion.runs,
        ),
    ],
    *,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="RUN",
            help="Use this run as A instead of the first one.",
            autocompletion=completion.runs,
        ),
    ] = None,
    order: Annotated[
        OrderName,
        typer.Option(
            "--sort",
            metavar="ORDER",
            help="Order of the rows: metric (main ones first) or effect (largest first).",
        ),
    ] = "metric",
    every: Annotated[bool, typer.Option("--all", help="Show every measured metric.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per figure, for every metric.")
    ] = False,
    correction: Annotated[
        CorrectionName,
        typer.Option(
            metavar="CORRECTION",
            help="Correction for many comparisons: holm (no false verdict) or bh (few false ones).",
        ),
    ] = "holm",
    fail_on: options.FailOn,
    strict: options.StrictLimits = False,
    within: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help='Name figures shown to be the same within this share of A, such as "5%".',
        ),
    ] = None,
    _pager: options.Pager = False,
    _units: options.Units = None,
    _fleet: options.Fleet = None,
    store: options.Store,
) -> None:
    """Compare runs: what differs, differences of figures, verdicts for the whole table."""
    from benchctl.cli.shared.colour import coloured
    from benchctl.report.comparison.comparison import compare_reports, same_within, vocabulary_of
    from benchctl.report.comparison.limits import EXAMPLE, parse_limit
    from benchctl.report.exports.entries import comparison_entry
    from benchctl.report.pivot import figure_name
    from benchctl.report.report import read_report

    if strict and not fail_on:
        raise UsageError("--strict needs --fail-on", EXAMPLE)
    margin = None if within is None else _margin(within)
    names = names if against is None else [against, *names]
    if len(names) < 2:
        raise UsageError(
            "a comparison needs two runs", "for example: benchctl compare baseline last"
        )
    with options.open_reader(store) as reader:
        runs = reader.find_all(names)
        if len({run.id for run in runs}) == 1:
            print(f"benchctl: A and B are one run, {runs[0].name}", file=sys.stderr)
        a, *others = (read_report(reader, run) for run in runs)
        compared = compare_reports(a, *others, correction=correction)
        if margin is not None:
            compared = [same_within(comparisons, margin) for comparisons in compared]
        every_one = [comparison for comparisons in compared for comparison in comparisons]
        limits = [
            parse_limit(text, {comparison.metric for comparison in every_one}) for text in fail_on
        ]
        vocabulary = vocabulary_of(report.run for report in (a, *others))
        possible = [
            f"{limit} cannot be excluded: {figure_name(comparison)}"
            for limit in limits
            for comparison in every_one
            if strict
            and limit.may_be_broken_by(comparison, vocabulary.describe(comparison.metric).better)
        ]
        if as_json:
            for b, comparisons in zip(others, compared, strict=True):
                for comparison in comparisons:
                    print(
                        json.dumps(
                            {"a": a.run.name, "b": b.run.name, **comparison_entry(comparison)}
                        )
                    )
        else:
            with coloured():
                _print([a, *others], compared, correction, every=every, order=order)
                print(*map(visible, possible), sep="\n", end="\n" * bool(possible))
    if possible or any(limit.broken_by(comparison) for limit in limits for comparison in every_one):
        sys.exit(1)


def _margin(written: str) -> float:
    """Read the share of --within. Raises UsageError."""
    from benchctl.units import parse_ratio, quoted

    try:
        share = parse_ratio(written)
    except ValueError as error:
        raise UsageError(
            f"--within {quoted(written)}: {error}", "for example: --within 5%"
        ) from None
    if share <= 0:
        raise UsageError(f"--within {quoted(written)}: expected more than 0")
    return share


def _print(
    reports: Sequence[Report],
    compared: Sequence[Sequence[Comparison]],
    correction: str,
    *,
    every: bool,
    order: OrderName,
) -> None:
    from benchctl.report.comparison.comparison import (
        arranged,
        comparison_table,
        explanation,
        letter,
        side_by_side,
    )
    from benchctl.report.comparison.differences import differences
    from benchctl.report.pivot import align
    from benchctl.report.report import yet
    from benchctl.report.text.routes import route_differences

    runs = [report.run for report in reports]
    for number, run in enumerate(runs):
        tags = f"  [{', '.join(run.tags)}]" if run.tags else ""
        print(visible(f"{letter(number)} {run.name} {run.profile}{tags}"))
    print()
    other = differences(*runs, routes=route_differences(*reports))
    if other.rows:
        print(align(other.heads, other.rows))
    by_effect = order == "effect"
    shown = [
        arranged(comparisons, *runs, every=every, by_effect=by_effect) for comparisons in compared
    ]
    table = comparison_table(shown[0]) if len(shown) == 1 else side_by_side(shown)
    if table.rows:
        print(align(table.heads, table.rows, table.numeric), end="")
    else:
        print(f"nothing was measured{yet(*runs)}")
    if lines := explanation(
        [comparison for comparisons in shown for comparison in comparisons], correction
    ):
        print("", *map(visible, lines), sep="\n")
