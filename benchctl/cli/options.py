"""What several commands share: arguments, options, and how they are listed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchctl.cli import completion
from benchctl.errors import UsageError

if TYPE_CHECKING:
    from benchctl.errors import StoreError
    from benchctl.store.read import Reader

FORMATS = ("table", "md", "csv", "json", "jsonl")
_ENDINGS = {"txt": "table", "markdown": "md", "ndjson": "jsonl"}
_OPENED = "benchctl.store"
FILE = click.Path(path_type=Path)


class InOrder(click.Group):
    """Commands in the order in which a newcomer meets them, not by the alphabet."""

    def list_commands(self, _: click.Context) -> list[str]:
        return list(self.commands)


profile = click.argument(
    "profile",
    metavar="PROFILE",
    help="A profile file, or the name of an included profile.",
    shell_complete=completion.profiles,
)
run = click.argument(
    "name",
    metavar="[RUN]",
    default="last",
    help='A run: its name, a unique part of it, or "last"; default: last.',
    shell_complete=completion.runs,
)
store = click.option(
    "--store",
    type=FILE,
    metavar="FILE",
    help="The store file; default: BENCHCTL_STORE, or a file in your data directory.",
)
assignments = click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set any value of the profile; repeatable.",
)
only = click.option(
    "--only",
    multiple=True,
    metavar="AXIS=VALUE",
    help="Run only points with this value of an axis; repeatable.",
)
repeats = click.option(
    "--repeat",
    "repeats",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many times to measure each point.",
)
lab = click.option(
    "--lab",
    metavar="TOPOLOGY",
    help="Run in this lab instead of the real network.",
    shell_complete=completion.topologies,
)
trust = click.option(
    "--trust",
    is_flag=True,
    help="Run the services of a topology that others can write.",
)
yes = click.option("--yes", is_flag=True, help="Allow a matrix of more than 100,000 trials.")
form = click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    metavar="FORMAT",
    help=f"One of {', '.join(FORMATS)}; default: by the extension of the output file, else table.",
)
output = click.option(
    "-o", "--output", type=FILE, metavar="FILE", help="Write to this file instead of stdout."
)
events = click.option("--events", is_flag=True, help="Write events as they happen, as JSON lines.")
quiet = click.option("-q", "--quiet", is_flag=True, help="Show no progress on stderr.")


def open_reader(store: Path | None) -> Reader:
    """Open the store that the options name, until the command ends. Raises StoreError."""
    from benchctl.store.database import default_path
    from benchctl.store.read import Reader

    path = store or default_path()
    context = click.get_current_context()
    context.meta[_OPENED] = path
    reader = Reader(path)
    context.call_on_close(reader.close)
    return reader


def diagnosis(context: click.Context) -> StoreError | None:
    """Return the error of the store that a command opened, if it is damaged."""
    from benchctl.store.salvage import diagnose

    path = context.meta.get(_OPENED)
    return None if path is None else diagnose(path)


def format_for(given: str | None, output: Path | None, *, live_events: bool = False) -> str:
    """Return the format asked for: by name, by the output file's ending, or a table.

    Events have one format, whatever the ending. Raises UsageError for an ending that no format
    has, and for events in another format.
    """
    if live_events:
        if given not in (None, "jsonl"):
            raise UsageError(
                f"--events writes JSON lines, and not --format {given}",
                "remove one of the two; benchctl export writes the result afterwards",
            )
        given = "jsonl"
    if given is None and output is not None and output.suffix:
        ending = output.suffix[1:].lower()
        given = _ENDINGS.get(ending, ending)
        if given not in FORMATS:
            known = ", ".join(f".{name}" for name in (*FORMATS[1:], *_ENDINGS))
            raise UsageError(
                f"-o {output}: no format has the extension .{ending}",
                f"extensions are {known}; or choose a format with --format",
            )
    return given or "table"
