"""The formats of a document: table, markdown, CSV and JSON; each a pure function to text."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from benchctl.metrics import Aspect, of_aspect
from benchctl.report.document import Document
from benchctl.report.pivot import pivot, with_interval
from benchctl.units import format_duration, format_ratio, format_value
from benchctl.visible import visible


def table(document: Document) -> str:
    """Return the summary as an aligned table for a terminal, with what went wrong below it."""
    shown = pivot(document)
    text = align(shown.heads, shown.rows, shown.numeric) if shown.rows else "nothing was measured\n"
    return "\n".join([text.removesuffix("\n"), *_remarks(document)]) + "\n"


def align(heads: Sequence[str], rows: Iterable[Sequence[str]], numeric: Sequence[bool] = ()) -> str:
    """Return rows as lines of columns as wide as they need; numeric ones go to the right."""
    heads = [*map(visible, heads)]
    rows = [[*map(visible, row)] for row in rows]
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    right = numeric or [False] * len(heads)

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(cells, widths, right, strict=True)
        )
        return "  ".join(padded).rstrip()

    lines = [line(heads), "  ".join("─" * width for width in widths), *map(line, rows)]
    return "\n".join(lines) + "\n"


def markdown(document: Document) -> str:
    """Return the summary as a table in GitHub's markdown."""
    shown = pivot(document)
    rule = ["---:" if right else "---" for right in shown.numeric]

    def line(cells: tuple[str, ...] | list[str]) -> str:
        return f"| {' | '.join(visible(cell).replace('|', '&#124;') for cell in cells)} |"

    run = document["run"]
    head = f"# {visible(run['title'] or run['profile'])}\n\nRun {run['id']}, {run['status']}.\n"
    lines = [head, line(shown.heads), line(rule), *map(line, shown.rows)]
    remarks = [f"- {remark}" if remark else "" for remark in _remarks(document)]
    return "\n".join([*lines, *remarks]) + "\n"


def comma_separated(document: Document) -> str:
    """Return the summary in SI base units, one line for each metric of each point."""
    axes = list(document["run"]["axes"])
    fields = ["n", "mean", "ci95_low", "ci95_high", "median", "min", "max", "unit"]
    rows = [
        [
            *(entry["point"].get(axis, "") for axis in axes),
            *(entry[name] for name in ("flow", "direction", "metric")),
            *(entry[name] for name in fields),
        ]
        for entry in document["summary"]
    ]
    return write_csv([*axes, "flow", "flow_direction", "metric", *fields], rows)


def write_csv(heads: list[str], rows: list[list[object]]) -> str:
    """Write rows as CSV (RFC 4180, but with a bare line feed)."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(csv_cell, heads))
    writer.writerows(map(csv_cell, row) for row in rows)
    return text.getvalue()


def csv_cell(value: object) -> object:
    """Return a value as it stands in CSV: a row of ours is one line, whatever is in its texts."""
    return visible(value) if isinstance(value, str) else value


def as_json(document: Document) -> str:
    """Return the whole document, indented."""
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


FORMATS: Mapping[str, Callable[[Document], str]] = {
    "table": table,
    "md": markdown,
    "csv": comma_separated,
    "json": as_json,
}
"""Every format that is a function of the document; ``jsonl`` is the stream of events."""


def _remarks(document: Document) -> list[str]:
    """Return what a reader of the table must know besides its figures."""
    lines: list[str] = []
    hints: set[str] = set()
    for trial in document["trials"]:
        name = f"trial {trial['index'] + 1}{_where(trial['point'], ' ({})')}"
        if trial["status"] != "ok":
            error = f": {trial['error']}" if trial["error"] else ""
            # Of a hundred failures with one remedy, the first gives it.
            new = dict.fromkeys(flow["hint"] for flow in trial["flows"] if flow["hint"])
            hint = "".join(f"; {hint}" for hint in new if hint not in hints)
            hints.update(new)
            lines.append(f"{name}, repeat {trial['repeat']}: {trial['status']}{error}{hint}")
        broken = dict.fromkeys(link["link"] for link in trial["links"] if not link["kept"])
        if broken:
            text = "not valid for this lab: the emulator did not keep up on"
            lines.append(f"{name}, repeat {trial['repeat']}: {text} {', '.join(broken)}")
    lines += _sharing(document)
    lines += [f"expectation not met: {e['text']}" for e in document["expectations"] if not e["met"]]
    done, planned = len(document["trials"]), document["run"]["trials"]
    if done < planned:
        lines.append(f"{planned - done} of {planned} trials were not measured")
    return ["", *map(visible, lines)] if lines else []


def _sharing(document: Document) -> Iterator[str]:
    """Yield how flows of the same time shared, and how much a single trial says about it."""
    alone = False
    for index in (e for e in document["summary"] if e["metric"] == "fairness_jain"):
        trials = [t for t in document["trials"] if t["point"] == index["point"]]
        reported = next((t["reported"] for t in trials if t["reported"]), {}).get(index["metric"])
        said = f" (reported {format_value(index['metric'], reported)})" if reported else ""
        skew_s = max(t["start_skew_s"] or 0.0 for t in trials)
        line = f"Jain's index {with_interval(index)}{said}, start skew {format_duration(skew_s)}"
        if index["n"] > 1:
            line += f" at most; single trials scatter by {_scatter(document, index['point'])}"
        alone = alone or index["n"] == 1
        yield f"{_where(index['point'], '{}: ')}{line}"
    if alone:
        yield "one trial is not enough to show how flows share a link; use --repeat 5"


def _scatter(document: Document, point: Mapping[str, object]) -> str:
    """Return the standard deviation of a single trial's rate, of the flow that has the largest."""
    entries = [e for e in document["summary"] if e["point"] == point and e["n"] > 1 and e["mean"]]
    rates = next(
        filter(
            None, ([e for e in entries if e["metric"] == name] for name in of_aspect(Aspect.RATE))
        ),
        [],
    )
    return format_ratio(max((e["stdev"] / e["mean"] for e in rates), default=0.0))


def _where(point: Mapping[str, object], form: str) -> str:
    text = ", ".join(f"{axis}={value}" for axis, value in point.items())
    return form.format(text) if text else ""
