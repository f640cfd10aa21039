"""``benchctl compare``: what differs between runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from benchctl.cli.options import StorePath, open_reader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchctl.analysis.compare import Comparison
    from benchctl.store.read import Run


def compare(
    first: Annotated[str, typer.Argument(metavar="A", help="The run to compare with.")],
    others: Annotated[
        list[str], typer.Argument(metavar="B", help="One run or more to compare with it.")
    ],
    every: Annotated[bool, typer.Option("--all", help="Every metric that was measured.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object a figure, of every metric.")
    ] = False,
    store: StorePath = None,
) -> None:
    """Compare runs: differences, their 95 % intervals, verdicts."""
    from benchctl.report.comparison import compare_runs, comparison_entry, of_interest

    reader = open_reader(store)
    a = reader.find(first)
    for number, name in enumerate(others):
        b = reader.find(name)
        compared = compare_runs(reader, a, b)
        if as_json:
            for one in compared:
                print(json.dumps({"a": a.name, "b": b.name, **comparison_entry(one)}))
        else:
            _print("\n" * (number > 0), a, b, compared if every else of_interest(compared))


def _print(before: str, a: Run, b: Run, compared: Sequence[Comparison]) -> None:
    from benchctl.report.comparison import comparison_table
    from benchctl.report.formats import align

    print(f"{before}A {a.name} {a.profile}\nB {b.name} {b.profile}\n")
    table = comparison_table(compared)
    print(align(table.heads, table.rows, table.numeric), end="")
