"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from benchctl.store.read import Reader

FORMATS = ("table", "md", "csv", "json", "jsonl")


def _complete_profile(incomplete: str) -> list[str]:
    from benchctl.profile.load import shipped_profiles

    return [name for name in shipped_profiles() if name.startswith(incomplete)]


def _complete_run(incomplete: str) -> list[str]:
    from benchctl.store.database import default_path
    from benchctl.store.read import Reader

    path = default_path()
    runs = Reader(path).runs() if path.exists() else []
    return [run.name for run in runs if run.name.startswith(incomplete)]


def _check_format(value: str | None) -> str | None:
    if value is not None and value not in FORMATS:
        raise typer.BadParameter(f"choose from {', '.join(FORMATS)}")
    return value


ProfileName = Annotated[
    str,
    typer.Argument(
        metavar="PROFILE",
        help="A profile's file, or the name of one that comes with benchctl.",
        autocompletion=_complete_profile,
    ),
]
RunName = Annotated[
    str,
    typer.Argument(
        metavar="RUN", help='A run, a part of its name, or "last".', autocompletion=_complete_run
    ),
]
StorePath = Annotated[
    Path | None,
    typer.Option(
        "--store",
        metavar="FILE",
        help="The store's file; default BENCHCTL_STORE or your data directory.",
    ),
]
Assignments = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Set any value of the profile."),
]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="AXIS=VALUE", help="Only points with this value of an axis."),
]
Repeats = Annotated[
    int | None,
    typer.Option("--repeat", metavar="N", min=1, help="How often every point is measured."),
]
LabFile = Annotated[
    str | None,
    typer.Option("--lab", metavar="TOPOLOGY", help="Run in this lab, not on the real network."),
]
Yes = Annotated[bool, typer.Option("--yes", help="Accept a matrix of any size.")]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        callback=_check_format,
        help=f"One of {', '.join(FORMATS)}; default by the output file's ending, else table.",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="FILE", help="Write to this file, not to stdout."),
]


def open_reader(store: Path | None) -> Reader:
    """Open the store that the options name. Raises StoreError."""
    from benchctl.store.database import default_path
    from benchctl.store.read import Reader

    return Reader(store or default_path())


def format_for(given: str | None, output: Path | None) -> str:
    """Return the format asked for: by name, by the output file's ending, or a table."""
    if given is None and output is not None:
        given = {"markdown": "md", "ndjson": "jsonl"}.get(output.suffix[1:], output.suffix[1:])
    return given if given in FORMATS else "table"
