"""``benchctl report``: runs as one page for people who have nothing else."""

from __future__ import annotations

import math
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from benchctl.cli.shared import completion, options
from benchctl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchctl.report.report import StoredRun
    from benchctl.run.record import RunOutline
    from benchctl.store.read import Reader

ReportFormat = Literal["html", "md"]
_ENDINGS = {"html": "html", "htm": "html", "md": "md", "markdown": "md"}


def report(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="[RUN]...",
            default_factory=lambda: ["last"],
            show_default=False,
            help="Runs: names, unique parts of them, tags, last or baseline; or .sqlite files.",
            autocompletion=completion.runs,
        ),
    ],
    *,
    form: Annotated[
        ReportFormat | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="One of html, md; default: by the extension of the output file, else html.",
        ),
    ] = None,
    mesh: Annotated[
        bool,
        typer.Option(
            "--mesh",
            help="Write the site of all runs instead: who measures whom, how it is, how it was.",
        ),
    ] = False,
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            metavar="PROFILE",
            help="With --mesh, only runs of this profile, or a unique part.",
            autocompletion=completion.measured_profiles,
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="WHEN",
            help="With --mesh, only runs since a date, or not older than a duration.",
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="WHEN", help="With --mesh, only runs until then."),
    ] = None,
    output: options.OutputFile = None,
    _units: options.Units = None,
    _fleet: options.Fleet = None,
    store: options.Store,
) -> None:
    """Write runs as one page: what was asked, what came out, and why.

    The page has tables, figures, hosts, exact commands and the profile, and needs no other file.

    With --mesh, -o names the directory of a site that any web server serves. Writing it again
    updates it.
    """
    if mesh:
        if names != ["last"]:
            raise UsageError("--mesh takes no names of runs", "use --since, --until and --profile")
        options.reject_beside("--mesh", {"--format": form})
        _write_mesh(output, profile, since, until, store)
        return
    chosen = {"--profile": profile, "--since": since, "--until": until}
    if given := [name for name, value in chosen.items() if value is not None]:
        raise UsageError(f"{given[0]} needs --mesh", "name runs; see benchctl runs")
    from benchctl.report.output.output import Output
    from benchctl.report.page.content import page_of
    from benchctl.report.page.html import html_of, require_jinja
    from benchctl.report.page.markdown import markdown_of

    shown = form or options.by_ending(output, _ENDINGS) or "html"
    if shown == "html":
        require_jinja()
        if output is None and sys.stdout.isatty():
            raise UsageError("--format html is not for a terminal", "name a file with -o")
    with ExitStack() as readers, Output(output) as out:
        page = page_of(_stored(readers, names, store), pictures=shown == "html")
        out.write(html_of(page) if shown == "html" else markdown_of(page))
        out.publish()


def _write_mesh(
    output: Path | None, profile: str | None, since: str | None, until: str | None, store: Path
) -> None:
    """Write the site of the runs that were chosen. Raises UsageError."""
    import gc
    import time

    from benchctl.report.mesh.changes import SCHEDULED
    from benchctl.report.mesh.site import MeshSite, write_site
    from benchctl.schedule.book import Book
    from benchctl.schedule.pages import log_of

    if output is None:
        raise UsageError("--mesh needs a directory", "for example: -o site/")
    with options.open_reader(store) as reader:
        found = _chosen(reader, profile, since, until)
        names = {tag.removeprefix(SCHEDULED) for outline in found for tag in outline.tags}
        log = [*log_of(Book(store).entries(), names)]
        # What is read stays to the end, and little else is garbage.
        gc.disable()
        site = MeshSite(output)
        write_site(reader, found, site, entries=log, now=time.time())
    changed = sum(site.written.values())
    print(f"{output / 'index.html'}: {changed:,} of {len(site.written):,} files are new")


def _chosen(
    reader: Reader, profile: str | None, since: str | None, until: str | None
) -> list[RunOutline]:
    """Return runs by their profile and time. Raises UsageError if there are none."""
    from benchctl.cli.commands.runs import read_time
    from benchctl.store.read import unique

    found = reader.outlines()
    if profile is not None:
        known = dict.fromkeys(outline.profile for outline in found)
        hint = f"profiles are: {', '.join(known) or 'none'}"
        name = unique(profile, known, "profile", hint)
        found = [outline for outline in found if outline.profile == name]
    earliest = 0.0 if since is None else read_time(since)
    latest = math.inf if until is None else read_time(until, "--until")
    found = [outline for outline in found if earliest <= outline.created_time <= latest]
    if not found:
        raise UsageError("no run is from then", "see benchctl runs")
    return found


def _stored(readers: ExitStack, names: Sequence[str], store: Path) -> list[StoredRun]:
    """Return the runs of some names; those of files are each in a store of their own."""
    from benchctl.report.report import StoredRun

    files = {
        name: readers.enter_context(options.open_reader(options.run_and_store(name, store)[1]))
        for name in dict.fromkeys(names)
        if name.endswith(".sqlite")
    }
    found = {name: StoredRun(reader, reader.find("last")) for name, reader in files.items()}
    if others := [name for name in names if name not in files]:
        reader = readers.enter_context(options.open_reader(store))
        for name, run in zip(others, reader.find_all(others), strict=True):
            found[name] = StoredRun(reader, run)
    return [found[name] for name in names]
