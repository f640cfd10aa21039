"""``benchctl report``: runs as one page for people who have nothing else."""

from __future__ import annotations

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
    output: options.OutputFile = None,
    _units: options.Units = None,
    store: options.Store,
) -> None:
    """Write runs as one page: what was asked, what came out, and why.

    The page has tables, figures, hosts, exact commands and the profile, and needs no other file.
    """
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
