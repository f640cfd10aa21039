"""Arguments and options of several commands, and the store that they name."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchctl.cli.shared import completion, streams
from benchctl.errors import BenchctlError, StoreDamagedError, UsageError, nearest, surroundings

if TYPE_CHECKING:
    from benchctl.report.output.output import Output
    from benchctl.store.read import Reader


_fleet_copy: Path | None = None
"""The copy of a fleet's runs that takes the place of the store."""


def _use_fleet(file: Path | None) -> Path | None:
    global _fleet_copy
    _fleet_copy = None
    if file is not None:
        from benchctl.cli.shared.fleet import current_copy

        _fleet_copy = current_copy(file)
    return file


def _default_store() -> Path:
    if _fleet_copy is not None:
        return _fleet_copy
    from benchctl.settings import settings

    store: Path = settings()["store"]
    return store


def default_tags() -> list[str]:
    """Return the tags of new runs that are given no others."""
    from benchctl.settings import settings

    return [*settings()["tags"]]


def _use_pager(asked: bool) -> bool:
    if asked:
        streams.page()
    return asked


def _use_units(text: str | None) -> str | None:
    from benchctl.settings import settings
    from benchctl.units import display_in

    try:
        if shown := text or settings()["units"]:
            display_in(shown)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return text


def _known_format(name: str | None) -> str | None:
    if name is not None:
        from benchctl.report.exports import ENDINGS
        from benchctl.report.output.formats import names

        # To look for those of plugins takes time.
        if name not in ENDINGS.values() and name not in (known := names()):
            hint = nearest(name, known) or f"formats are: {', '.join(known)}"
            raise UsageError(f'--format "{name}" is no format', hint)
    return name


def _not_stdout(path: Path | None) -> Path | None:
    """Return the file to write; None for "-", as without one."""
    return None if path == Path("-") else path


Profile = Annotated[
    str,
    typer.Argument(
        metavar="PROFILE",
        help="A profile file, or the name of an included profile.",
        autocompletion=completion.profiles,
    ),
]
RunName = Annotated[
    str,
    typer.Argument(
        metavar="[RUN]",
        help="A run: its name, a unique part of it, a tag, last or baseline.",
        autocompletion=completion.runs,
    ),
]
RunOrFile = Annotated[
    str,
    typer.Argument(
        metavar="[RUN]",
        help="A run: its name, a unique part of it, a tag, last or baseline; or its .sqlite file.",
        autocompletion=completion.runs,
    ),
]
Topology = Annotated[
    str,
    typer.Argument(
        metavar="TOPOLOGY",
        help="A topology file, or the name of an included topology.",
        autocompletion=completion.topologies,
    ),
]
Detach = Annotated[
    bool,
    typer.Option(
        "--detach", help="Print the name of the run and return; the run continues by itself."
    ),
]
NoWait = Annotated[
    bool,
    typer.Option(
        "--no-wait", help="Fail with code 2 if another run is being measured here, or on its hosts."
    ),
]
Tags = Annotated[
    list[str],
    typer.Option(
        "--tag",
        metavar="TAG",
        default_factory=default_tags,
        show_default=False,
        help="Tag the run; commas separate several; repeatable; default: as in the settings.",
        autocompletion=completion.tags,
    ),
]
Store = Annotated[
    Path,
    typer.Option(
        "--store",
        metavar="FILE",
        default_factory=_default_store,
        show_default=False,
        help="The store file; default: as in benchctl settings.",
        autocompletion=completion.files,
    ),
]
_FLEET_HELP = "The runs of a fleet, by the file that you got from its administrator."
Fleet = Annotated[
    Path | None,
    typer.Option(
        "--fleet",
        metavar="FILE",
        callback=_use_fleet,
        is_eager=True,  # before the store is looked for, whose place the copy takes
        help=_FLEET_HELP,
        autocompletion=completion.files,
    ),
]
FleetFile = Annotated[
    Path | None,
    typer.Option(
        "--fleet",
        metavar="FILE",
        help="Do it with a fleet, by the file that you got from its administrator.",
        autocompletion=completion.files,
    ),
]
Assignments = Annotated[
    list[str],
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        default_factory=list,
        show_default=False,
        help="Set any value of the profile, such as duration=5s; repeatable.",
        autocompletion=completion.settings_of_profile,
    ),
]
Only = Annotated[
    list[str],
    typer.Option(
        "--only",
        metavar="AXIS=VALUE",
        default_factory=list,
        show_default=False,
        help="Run only points with this value of an axis; commas separate several; repeatable.",
        autocompletion=completion.values,
    ),
]
FailOn = Annotated[
    list[str],
    typer.Option(
        "--fail-on",
        metavar="LIMIT",
        default_factory=list,
        show_default=False,
        help='Exit with 1 on a change such as "throughput_bps worse by 5%"; repeatable.',
    ),
]
StrictLimits = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="With --fail-on: exit with 1 also if the repeats do not exclude such a change.",
    ),
]
Repeats = Annotated[
    int | None,
    typer.Option("--repeat", metavar="N", min=1, help="How many times to measure each point."),
]
Lab = Annotated[
    str | None,
    typer.Option(
        "--lab",
        metavar="TOPOLOGY",
        help="Run in this lab; none: in the real network.",
        autocompletion=completion.labs,
    ),
]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Run the services, prepare and cleanup commands of its files without a question.",
    ),
]
Yes = Annotated[
    bool,
    typer.Option("--yes", help="Allow more than 100,000 trials, or 100 GB between machines."),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        callback=_known_format,
        help="One of {formats}; default: by the extension of the output file, else table.",
        autocompletion=completion.formats,
    ),
]
OutputFile = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE",
        callback=_not_stdout,
        help="Write to this file instead of stdout.",
        autocompletion=completion.files,
    ),
]
Events = Annotated[
    bool, typer.Option("--events", help="Write events as they happen, as JSON lines.")
]
Units = Annotated[
    str | None,
    typer.Option(
        "--units",
        metavar="UNITS",
        callback=_use_units,
        help="Units of rates: bits or bytes, with si or iec prefixes, such as bytes,iec.",
        autocompletion=lambda: ["bits", "bytes", "si", "iec"],
    ),
]
Verbose = Annotated[
    bool,
    typer.Option("-v", "--verbose", help="Show every command on stderr as it starts and ends."),
]
Log = Annotated[
    Path | None,
    typer.Option(
        "--log",
        metavar="FILE",
        help="Append every command line with its host, start, end and exit code to this file.",
        autocompletion=completion.files,
    ),
]
LogJson = Annotated[
    bool, typer.Option("--log-json", help="Log as JSON lines; on stderr if no file is named.")
]
Pager = Annotated[
    bool,
    typer.Option(
        "--pager", callback=_use_pager, help="Show the output in PAGER, or less, on a terminal."
    ),
]
Notify = Annotated[
    str | None,
    typer.Option(
        "--notify",
        metavar="COMMAND",
        help='Run this shell command at the end; "bell" rings the terminal bell.',
    ),
]
Since = Annotated[
    str | None,
    typer.Option(
        "--since", metavar="WHEN", help="Only runs since a date, or not older than a duration."
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict", help="Exit with 1 unless every expectation is met, warnings and undecided too."
    ),
]
Junit = Annotated[
    Path | None,
    typer.Option(
        "--junit",
        metavar="FILE",
        help="Write the expectations to this file as JUnit XML, for CI systems.",
        autocompletion=completion.files,
    ),
]
Archive = Annotated[
    str | None,
    typer.Option(
        "--archive",
        metavar="URL",
        help="The runs of this archive, not of the store; settings: the one in the settings.",
    ),
]
ArchiveUrl = Annotated[
    str,
    typer.Option(
        "--archive",
        metavar="URL",
        default_factory=str,
        show_default=False,
        help="The archive; default: as in benchctl settings.",
    ),
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Show no progress on stderr.")]


def archive_url(given: str | None) -> str:
    """Return the URL of an archive: the given one, or that of the settings. Raises UsageError."""
    from benchctl.settings import settings

    if given and given != "settings":
        return given
    url: str | None = settings()["archive"]
    if not url:
        raise UsageError(
            "no archive is named", 'use --archive URL, or archive = "URL" in settings.toml'
        )
    return url


def run_and_store(name: str, store: Path) -> tuple[str, Path]:
    """Return a run's name and its store; the file of an exported run is a store of its own."""
    return ("last", Path(name)) if name.endswith(".sqlite") else (name, store)


@contextmanager
def open_junit(path: Path | None) -> Iterator[Output | None]:
    """Open the file of `Junit` before anything is measured; None without one. Raises UsageError."""
    from benchctl.report.output.output import Output

    if path is None:
        yield None
        return
    with Output(path, "--junit") as output:
        yield output


@contextmanager
def open_reader(store: Path) -> Iterator[Reader]:
    """Open a store to read it. Raises StoreError.

    An error in a command because of a damaged store is not a bug: the damage is reported.
    """
    from benchctl.store.read import Reader

    try:
        with closing(Reader(store)) as reader:
            yield reader
    except Exception as error:
        from benchctl.store.copies.salvage import diagnose

        known = isinstance(error, BenchctlError) or surroundings(error)
        if known and not isinstance(error, StoreDamagedError):
            raise
        raise diagnose(store) or error from error


def check_new(name: str, path: Path) -> None:
    """Raise UsageError if there is a file already; ``name`` is what the command line says."""
    if os.path.lexists(path):
        raise UsageError(f"{name}: the file exists", "choose another name")


def write_new(name: str, path: Path, text: str) -> None:
    """Write a new file, whole or not at all. Raises UsageError; see `check_new`."""
    check_new(name, path)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        with suppress(OSError):
            path.unlink()
        raise UsageError(f"{name}: {error.strerror}") from None


def reject_beside(option: str, others: Mapping[str, object]) -> None:
    """Raise UsageError if any of the other options, by their names, was given too."""
    if given := [name for name, value in others.items() if value]:
        raise UsageError(f"{option} and {given[0]} exclude each other", "remove one of the two")


def lasting(duration: str | None) -> float | None:
    """Return the seconds of a ``--for``. Raises UsageError."""
    from benchctl.units import parse_duration

    try:
        return None if duration is None else parse_duration(duration)
    except ValueError as error:
        raise UsageError(f"--for: {error}") from None


def format_for(given: str | None, output: Path | None, *, live_events: bool = False) -> str:
    """Return the output format: by name, by the output file's ending, or a table.

    Events have one format, whatever the ending. Raises UsageError for an unknown ending, for events
    in another format, and for bytes on a terminal.
    """
    if live_events:
        if given not in (None, "jsonl"):
            raise UsageError(
                f"--events writes JSON lines, and not --format {given}",
                "remove one of the two; benchctl export writes the result afterwards",
            )
        given = "jsonl"
    from benchctl.report.output import formats

    given = given or _format_by_ending(output)
    if given and formats.load(given).binary and output is None and sys.stdout.isatty():
        raise UsageError(f"--format {given} is not for a terminal", "name a file with -o")
    return given or "table"


def _format_by_ending(output: Path | None) -> str | None:
    from benchctl.report.exports import ENDINGS
    from benchctl.report.output import formats

    if output is None or not output.suffix or formats.by_ending(output.name, ENDINGS):
        return by_ending(output, ENDINGS)
    endings, notes = formats.plugged_endings()
    return by_ending(output, {**ENDINGS, **endings}, notes)


def check_format(form: str, trials: int, grows: object) -> None:
    """Find out before anything is measured whether a run of so many trials can be written.

    ``grows`` is what may add trials. Raises UsageError, and MissingError for a missing library.
    """
    from benchctl.report.output import formats

    formats.check(formats.load(form), single=trials == 1 and not grows)


def by_ending(
    output: Path | None, endings: Mapping[str, str], notes: Sequence[str] = ()
) -> str | None:
    """Return the format that an output file's extension names; None without one.

    Raises UsageError for an unknown extension; ``notes`` say which may be missing.
    """
    from benchctl.report.output import formats

    if output is None or not output.suffix:
        return None
    found = formats.by_ending(output.name, endings)
    if found is None:
        known = ", ".join(f".{ending}" for ending in endings)
        hints = [f"extensions are {known}", "or choose a format with --format", *notes]
        raise UsageError(
            f"-o {output}: no format has the extension {output.suffix.lower()}", "; ".join(hints)
        )
    return found
