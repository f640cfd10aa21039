"""``benchctl compare``: what differs between runs."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from benchctl.cli import completion, options
from benchctl.visible import visible

CorrectionName = Literal["holm", "bh"]

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchctl.analysis.compare import Comparison
    from benchctl.run.record import Run


def compare(
    first: Annotated[
        str,
        typer.Argument(metavar="A", help="The baseline run.", autocompletion=completion.runs),
    ],
    others: Annotated[
        list[str],
        typer.Argument(
            metavar="B...",
            help="One or more runs to compare with A.",
            autocompletion=completion.runs,
        ),
    ],
    *,
    every: Annotated[bool, typer.Option("--all", help="Show every measured metric.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per figure, for every metric.")
    ] = False,
    correction: Annotated[
        CorrectionName,
        typer.Option(
            metavar="CORRECTION",
            help="What verdicts hold for: holm (all together) or bh (a share may err).",
        ),
    ] = "holm",
    fail_on: Annotated[
        list[str],
        typer.Option(
            metavar="LIMIT",
            default_factory=list,
            show_default=False,
            help='Exit with 1 on a change such as "throughput_bps worse by 5%"; repeatable.',
        ),
    ],
    _pager: options.Pager = False,
    _units: options.Units = None,
    store: options.Store,
) -> None:
    """Compare runs: what differs, differences of figures, verdicts for the whole table."""
    from benchctl.report.comparison import compare_reports, of_interest
    from benchctl.report.entries import comparison_entry
    from benchctl.report.limits import parse_limit
    from benchctl.report.report import read_report

    with options.open_reader(store) as reader:
        a = read_report(reader, reader.find(first))
        broken: list[Comparison] = []
        for number, name in enumerate(others):
            b = read_report(reader, reader.find(name))
            compared = compare_reports(a, b, correction=correction)
            limits = [parse_limit(text, compared) for text in fail_on]
            broken += [one for one in compared if any(limit.broken_by(one) for limit in limits)]
            if as_json:
                for one in compared:
                    print(json.dumps({"a": a.run.name, "b": b.run.name, **comparison_entry(one)}))
            else:
                shown = compared if every else of_interest(compared, a.run, b.run)
                _print("\n" * (number > 0), a.run, b.run, shown, correction)
    if broken:
        sys.exit(1)


def _print(before: str, a: Run, b: Run, compared: Sequence[Comparison], correction: str) -> None:
    from benchctl.report.comparison import comparison_table, explanation
    from benchctl.report.differences import differences
    from benchctl.report.pivot import align

    profiles = visible(a.profile), visible(b.profile)
    print(f"{before}A {a.name} {profiles[0]}\nB {b.name} {profiles[1]}\n")
    other = differences(a, b)
    if other.rows:
        print(align(other.heads, other.rows))
    table = comparison_table(compared)
    print(align(table.heads, table.rows, table.numeric), end="")
    if lines := explanation(compared, correction):
        print("", *map(visible, lines), sep="\n")
