"""``benchctl compare``: what differs between runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from benchctl.cli import completion, options
from benchctl.visible import visible

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
    _pager: options.Pager = False,
    _units: options.Units = None,
    store: options.Store,
) -> None:
    """Compare runs: differences, their 95 % intervals, verdicts."""
    from benchctl.report.comparison import compare_reports, of_interest
    from benchctl.report.entries import comparison_entry
    from benchctl.report.report import read_report

    with options.open_reader(store) as reader:
        a = read_report(reader, reader.find(first))
        for number, name in enumerate(others):
            b = read_report(reader, reader.find(name))
            compared = compare_reports(a, b)
            if as_json:
                for one in compared:
                    print(json.dumps({"a": a.run.name, "b": b.run.name, **comparison_entry(one)}))
            else:
                shown = compared if every else of_interest(compared, a.run, b.run)
                _print("\n" * (number > 0), a.run, b.run, shown)


def _print(before: str, a: Run, b: Run, compared: Sequence[Comparison]) -> None:
    from benchctl.report.comparison import comparison_table
    from benchctl.report.pivot import align

    profiles = visible(a.profile), visible(b.profile)
    print(f"{before}A {a.name} {profiles[0]}\nB {b.name} {profiles[1]}\n")
    table = comparison_table(compared)
    print(align(table.heads, table.rows, table.numeric), end="")
