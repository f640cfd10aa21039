"""``benchctl import``: old measurements, from the files of other tools."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchctl.cli.shared import completion, options
from benchctl.errors import UsageError
from benchctl.units import format_count
from benchctl.visible import visible

if TYPE_CHECKING:
    from benchctl.imports.result import ImportedRun

# Of files in a folder that are nothing known, so many are named.
_MOST_NAMED = 5


def import_(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="Files, and folders: each folder is one run.",
            autocompletion=completion.files,
        ),
    ],
    *,
    kind: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="KIND",
            help="What wrote the files; default: as they look.",
            autocompletion=completion.kinds,
        ),
    ] = None,
    profile: Annotated[
        str,
        typer.Option(
            "--profile",
            metavar="NAME",
            show_default=False,
            help="The profile of the runs; default: the name of the folder or the file.",
        ),
    ] = "",
    flow: Annotated[
        str,
        typer.Option(
            "--flow",
            metavar="NAME",
            show_default=False,
            help="The name of their flow, as another run has it; default: that of the tool.",
        ),
    ] = "",
    tags: options.Tags,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read the files, and leave the store as it is.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("-q", "--quiet", help="Print the names of the runs only.")
    ] = False,
    store: options.Store,
) -> None:
    """Import measurements that were made without benchctl, or that are in another store.

    Prints the names of the runs. What differs between the files of a run becomes its axes. Exits
    with code 1 if a file could not be imported.
    """
    from benchctl.imports.kinds import find_kinds
    from benchctl.imports.result import ImportedRun
    from benchctl.imports.session import ImportRequest, import_paths
    from benchctl.imports.stores import STORE
    from benchctl.plugins import PluginKind, named_files
    from benchctl.store.manage import read_tags

    kinds = find_kinds()
    known = [*kinds.known, STORE]
    is_ours = kind in known and kind not in named_files(PluginKind.IMPORTER)
    if kind is not None and not is_ours and kind in kinds.broken:
        raise kinds.broken[kind]
    if kind is not None and kind not in known:
        raise UsageError(f'--as "{kind}" is no kind of file', f"kinds are: {', '.join(known)}")
    request = ImportRequest(store, kinds.known, kind, profile, flow, read_tags(tags), dry_run)
    faults, foreign = 0, []
    for path in import_paths(paths, request):
        if isinstance(path, ImportedRun):
            if not quiet:
                sys.stdout.flush()
                print(visible(_described(path, dry=dry_run)), file=sys.stderr)
            if not dry_run:
                print(path.name)
        elif path.is_fault:
            faults += 1
            print(visible(f"{path.file}: {path.why}"), file=sys.stderr)
        else:
            foreign.append(path)
    for why in dict.fromkeys(left.why for left in foreign) if not quiet else ():
        names = [left.file for left in foreign if left.why == why]
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        print(visible(f"skipped {', '.join(names[:_MOST_NAMED])}{more}: {why}"), file=sys.stderr)
    if faults or foreign:  # one of these might have read them
        for error in kinds.broken.values():
            print(visible(error.message), file=sys.stderr)
    if faults:
        sys.exit(1)


def _described(run: ImportedRun, *, dry: bool) -> str:
    """Return what became of the files of a run, in one line."""
    axes = ", ".join(f"{axis} {'|'.join(map(str, values))}" for axis, values in run.axes.items())
    failed = f", {run.failed} of them failed" if run.failed else ""
    what = f"{run.profile}: {format_count(run.trials, 'trial')} of {run.kind}{failed}"
    return f"{'not stored: ' if dry else ''}{what}{f'; {axes}' if axes else ''}"
