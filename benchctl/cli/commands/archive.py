"""``benchctl archive``: runs in PostgreSQL, for many readers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchctl.cli.shared import completion, options
from benchctl.cli.shared.command import PlainCommand, group
from benchctl.errors import StoreError, UsageError
from benchctl.units import format_count
from benchctl.visible import visible

if TYPE_CHECKING:
    from benchctl.run.record import Run
    from benchctl.store.read import Reader

archive = group(
    "Keep runs in a PostgreSQL database, which many people can read.\n\n"
    "The store stays what it is: runs are measured into it, and pushed to the archive."
)


@archive.command(cls=PlainCommand)
def init(
    url: Annotated[
        str,
        typer.Argument(
            metavar="[URL]",
            default_factory=str,
            show_default=False,
            help="A database, such as postgresql://user@host/name; default: as in the settings.",
        ),
    ],
    *,
    yes: Annotated[
        bool, typer.Option("--yes", help="Upgrade the tables of an older benchctl without asking.")
    ] = False,
) -> None:
    """Make the tables and roles of an archive, or upgrade them.

    The roles benchctl_writer and benchctl_reader are for an administrator to grant to users.
    """
    from benchctl.archive.connection import open_archive
    from benchctl.archive.init import init
    from benchctl.archive.schema import READER, VERSION, WRITER

    def agree(version: int) -> bool:
        text = f"The tables are of format {version}, and become format {VERSION}."
        dump = "pg_dump -n benchctl -n benchctl_data saves them"
        if yes:
            return True
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise UsageError(text, f"{dump}; --yes upgrades them without a question")
        print(f"{text} {dump}.", file=sys.stderr)
        return typer.confirm("Upgrade?", err=True)

    with open_archive(options.archive_url(url), any_version=True) as opened:
        before = init(opened, agree)
        now = opened.version()
    if before == VERSION:
        print(f"{opened.name}: is there already")
    elif now == VERSION:
        print(f"{opened.name}: {'made' if before is None else 'upgraded'}")
        print(f"let others in: GRANT {WRITER} TO user; GRANT {READER} TO user", file=sys.stderr)
    else:
        print(f"{opened.name}: left as it is", file=sys.stderr)


@archive.command(cls=PlainCommand)
def push(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="[RUN]...",
            default_factory=list,
            show_default=False,
            help="Runs: names, unique parts of them, tags, last or baseline.",
            autocompletion=completion.runs,
        ),
    ],
    *,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace runs also by an older revision.")
    ] = False,
    url: options.ArchiveUrl,
    store: options.Store,
) -> None:
    """Bring runs into the archive; without RUN, all that it lacks.

    A run that was resumed or tagged since replaces the one that is there.
    """
    from benchctl.archive.connection import open_archive
    from benchctl.archive.push import missing, packets_left, push

    failed: list[StoreError] = []
    pushed = 0
    with (
        options.open_reader(store) as reader,
        open_archive(options.archive_url(url)) as opened,
    ):
        chosen = {run.id: run for run in map(reader.find, names)}
        runs = chosen.values() if names else missing(opened, reader, _all(reader, failed))
        for run in [*runs]:
            try:
                outcome = push(opened, reader, run, replace=replace)
            except StoreError as error:  # of this run; the others are brought
                failed.append(error)
                continue
            print(f"{run.name}  {outcome}", flush=True)
            pushed += 1
            if left := packets_left(store, run):
                print(visible(f"{run.name}: {left}"), file=sys.stderr)
        if not pushed and not failed:
            print(f"{opened.name} has every run that has ended", file=sys.stderr)
    if failed:
        for failure in failed[:-1]:
            print(visible(f"benchctl: {failure.message}"), file=sys.stderr)
        raise failed[-1]


def _all(reader: Reader, failed: list[StoreError]) -> Iterator[Run]:
    """Yield the runs of a store that can be read, the oldest first."""
    for run_id in reversed(reader.run_ids()):
        try:
            yield reader.run(run_id)
        except StoreError as error:
            failed.append(error)


@archive.command(cls=PlainCommand)
def pull(
    names: Annotated[
        list[str],
        typer.Argument(metavar="RUN...", help="Runs: names, unique parts of them, tags or last."),
    ],
    *,
    parquet: Annotated[
        Path | None,
        typer.Option(
            "--parquet",
            metavar="DIR",
            help="The folder of Parquet files with the samples of old months.",
            autocompletion=completion.files,
        ),
    ] = None,
    url: options.ArchiveUrl,
    store: options.Store,
) -> None:
    """Copy runs of the archive into the store, as they were there."""
    from benchctl.archive.connection import open_archive
    from benchctl.archive.pull import archived_runs, find, pull

    with open_archive(options.archive_url(url)) as opened:
        runs = archived_runs(opened)
        for run in {run.id: run for run in (find(runs, name) for name in names)}.values():
            print(run.name if pull(opened, run, store, parquet) else f"{run.name}  there already")


@archive.command(cls=PlainCommand, name="list")
def list_(*, url: options.ArchiveUrl, store: options.Store) -> None:
    """List the months of the archive, with their runs, samples and sizes.

    "benchctl runs --archive" lists the runs.
    """
    from benchctl.archive.connection import open_archive
    from benchctl.archive.months import months
    from benchctl.archive.push import missing
    from benchctl.report.pivot import align
    from benchctl.units import format_size

    heads = ("month", "runs", "samples", "size", "samples are in")
    with open_archive(options.archive_url(url)) as opened:
        rows = [
            (f"{month.month:%Y-%m}", f"{month.runs:,}", f"{month.samples:,}",
             format_size(month.size_bytes), ", ".join(month.files) or "the archive")
            for month in months(opened)
        ]  # fmt: skip
        print(align(heads, rows, (False, True, True, True, False)), end="")
        if store.exists():
            with options.open_reader(store) as reader:
                lacks = len([*missing(opened, reader, _all(reader, []))])
            if lacks:
                left = format_count(lacks, "run")
                print(f"{left} of this store to push: benchctl archive push", file=sys.stderr)


@archive.command(cls=PlainCommand)
def offload(
    before: Annotated[
        str, typer.Option("--before", metavar="YYYY-MM", help="The first month that stays.")
    ],
    folder: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="The folder for the files.",
            autocompletion=completion.files,
        ),
    ],
    *,
    url: options.ArchiveUrl,
) -> None:
    """Move the samples of old months to Parquet files; their figures stay.

    Each run is read back from the file before its samples leave the archive. Only the owner of the
    archive may do so.
    """
    from datetime import date

    from benchctl.archive.connection import open_archive
    from benchctl.archive.parquet import months_before, offload

    try:
        first = date.fromisoformat(f"{before}-01")
    except ValueError:
        raise UsageError(
            f'--before "{before}": no month', "for example: --before 2026-01"
        ) from None
    if not folder.is_dir():
        raise UsageError(f"-o {folder}: there is no such folder")
    with open_archive(options.archive_url(url)) as opened:
        for month in months_before(opened, first):
            print(offload(opened, month, folder), flush=True)


@archive.command(cls=PlainCommand)
def dashboard() -> None:
    """Print a dashboard for Grafana, as JSON to be imported there."""
    from benchctl.archive.dashboard import dashboard

    print(dashboard(), end="")
