"""``benchctl schedule``: measure profiles again and again."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchctl.cli.shared import completion, options
from benchctl.cli.shared.command import PlainCommand, group
from benchctl.errors import UsageError

if TYPE_CHECKING:
    from benchctl.schedule.book import Book, LogEntry
    from benchctl.schedule.times import Recurrence

schedule = group(
    "Measure profiles again and again, and say what has changed.\n\n"
    "Runs that are due are started by `schedule run`, or the timer of `schedule install`."
)


_NONE = "no schedules: add one with benchctl schedule add PROFILE --every 6h"
_Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="A schedule.", autocompletion=completion.schedules),
]


@schedule.command(cls=PlainCommand)
def add(
    profile: options.Profile,
    *,
    every: Annotated[
        str, typer.Option("--every", metavar="DURATION", help="How often, such as 6h or 1d.")
    ],
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="HH:MM",
            help="Time of the day of one of the runs; default: from now on.",
        ),
    ] = None,
    zone: Annotated[
        str,
        typer.Option(
            "--zone",
            metavar="ZONE",
            help="Time zone of --at, such as Europe/Paris; default: local.",
        ),
    ] = "",
    jitter: Annotated[
        str,
        typer.Option(
            "--jitter", metavar="DURATION", help="Start each run later by a random time up to this."
        ),
    ] = "0s",
    overlap: Annotated[
        str,
        typer.Option(
            "--overlap",
            metavar="skip|queue",
            help="What becomes of a time at which the run before still goes on.",
        ),
    ] = "skip",
    keep: Annotated[
        str | None,
        typer.Option(
            "--keep",
            metavar="DURATION",
            help="Move older runs to the trash, but no baseline, and none that the archive of"
            " push = true lacks; default: keep all.",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Default: the name of the profile."),
    ] = None,
    notify: Annotated[
        str | None,
        typer.Option(
            "--notify", metavar="COMMAND", help="Run a command for each event, with JSON as input."
        ),
    ] = None,
    assignments: options.Assignments,
    only: options.Only,
    repeats: options.Repeats = None,
    lab: options.Lab = None,
    trust: options.Trust = False,
    store: options.Store,
) -> None:
    """Add a schedule.

    The profile is read again for each run. Its runs get the tag schedule:NAME.
    """
    from benchctl.cli.shared.consent import ask
    from benchctl.engine.prepare.consent import agree, refusal, unagreed
    from benchctl.engine.prepare.planning import planned
    from benchctl.schedule.book import Book, Overlap, Schedule
    from benchctl.schedule.text import due_lines

    prepared = planned(profile, assignments, only, repeats, False, lab)
    document = prepared.plan.document
    if os.path.lexists(profile) and not Path(profile).is_file():
        raise UsageError(f"{profile}: a schedule reads it again", "give a file that stays there")
    words = [word for text in assignments for word in ("--set", text)]
    words += [word for text in only for word in ("--only", text)]
    words += [] if repeats is None else ["--repeat", str(repeats)]
    words += [] if lab is None else ["--lab", _absolute(lab)]
    if commands := unagreed(prepared.commands):
        if trust:
            words.append("--trust")
        elif not ask(document.name, commands, agree):
            raise refusal(document.name, commands)
    try:
        kind = Overlap(overlap)
    except ValueError:
        raise UsageError(f'--overlap "{overlap}": it is skip or queue') from None
    added = Schedule(
        name or document.name.replace("/", "-"), _absolute(profile),
        _rule(every, at, zone, jitter, name or document.name), kind,
        None if keep is None else _duration("--keep", keep),
        tuple(words), notify,
    )  # fmt: skip
    _check_name(added.name)
    Book(store).add(added)
    print(added.name)
    print(f"next: {due_lines([added], time.time(), 1)[0]}", file=sys.stderr)
    print("start what is due with: benchctl schedule run, or install", file=sys.stderr)


def _absolute(name: str) -> str:
    """Return a file by its whole path: a scheduler runs elsewhere. Other names are included."""
    return str(Path(name).absolute()) if os.path.lexists(name) else name


def _check_name(name: str) -> None:
    import re

    if not re.fullmatch(r"[\w.-]{1,60}", name):
        raise UsageError(
            f'"{name}" is no name of a schedule', "use letters, digits, - . _ in --name"
        )


def _duration(option: str, text: str) -> float:
    from benchctl.units import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from None


def _rule(every: str, at: str | None, zone: str, jitter: str, seed: str) -> Recurrence:
    """Return when runs are due, from now on. Raises UsageError."""
    from datetime import datetime
    from zoneinfo import ZoneInfo

    from benchctl.schedule.times import Recurrence

    at_s = None
    if at is not None:
        try:
            read = datetime.strptime(at, "%H:%M")
        except ValueError:
            raise UsageError(
                f'--at "{at}": no time of the day', "for example: --at 02:00"
            ) from None
        at_s = read.hour * 3600.0 + read.minute * 60.0
    elif zone:
        raise UsageError("--zone needs --at")
    if zone:
        try:
            ZoneInfo(zone)
        except (OSError, ValueError, KeyError):
            hint = "for example: --zone Europe/Paris, or --zone UTC"
            raise UsageError(f'--zone "{zone}" is not known on this machine', hint) from None
    rule = Recurrence(
        _duration("--every", every), time.time(), at_s, zone,
        _duration("--jitter", jitter), seed,
    )  # fmt: skip
    try:
        rule.check()
    except ValueError as error:
        raise UsageError(f"--every {every}: {error}") from None
    return rule


@schedule.command(cls=PlainCommand)
def remove(name: _Name, *, store: options.Store) -> None:
    """Remove a schedule; its runs stay."""
    from benchctl.schedule.book import Book

    Book(store).remove(name)
    print(name)


@schedule.command(cls=PlainCommand, name="list")
def list_(
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per schedule.")
    ] = False,
    store: options.Store,
) -> None:
    """List the schedules, with their next and last runs."""
    import msgspec

    from benchctl.report.pivot import align
    from benchctl.schedule.book import Book
    from benchctl.schedule.text import HEADS, schedule_rows

    book = Book(store)
    schedules = book.schedules().values()
    if as_json:
        for listed in schedules:
            print(msgspec.json.encode(listed).decode())
    elif schedules:
        print(align(HEADS, schedule_rows(schedules, book.entries(), time.time())), end="")
    else:
        print(_NONE)


@schedule.command(cls=PlainCommand, name="next")
def next_(
    count: Annotated[int, typer.Option("-n", metavar="N", min=1, max=1000, help="How many.")] = 10,
    *,
    store: options.Store,
) -> None:
    """Show the next due times."""
    from benchctl.schedule.book import Book
    from benchctl.schedule.text import due_lines

    lines = due_lines(Book(store).schedules().values(), time.time(), count)
    print(*(lines or [_NONE]), sep="\n")


@schedule.command(cls=PlainCommand)
def log(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="Only of this schedule.", autocompletion=completion.schedules
        ),
    ] = None,
    *,
    since: options.Since = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per entry.")
    ] = False,
    _pager: options.Pager = False,
    store: options.Store,
) -> None:
    """Show what became of schedules: runs, changes, failures, and what was missed."""
    import msgspec

    from benchctl.cli.commands.runs import read_time
    from benchctl.schedule.book import Book, with_added
    from benchctl.schedule.text import entry_line
    from benchctl.visible import visible

    earliest = 0.0 if since is None else read_time(since)
    for entry in with_added(_entries(Book(store), name)):
        if entry.time >= earliest:
            line = msgspec.json.encode(entry).decode() if as_json else visible(entry_line(entry))
            print(line)


def _entries(book: Book, name: str | None) -> list[LogEntry]:
    """Return the log, or that of one schedule, also of a removed one. Raises UsageError."""
    entries = book.entries()
    if name is None:
        return entries
    if own := [entry for entry in entries if entry.schedule == name]:
        return own
    book.find(name)
    return []


@schedule.command(cls=PlainCommand)
def run(
    *,
    due: Annotated[
        bool, typer.Option("--due", help="Run what is due now, then end; as a timer does.")
    ] = False,
    store: options.Store,
) -> None:
    """Run what is due, until Ctrl-C.

    One process does so for each store. A first Ctrl-C also interrupts the run in progress.
    """
    from signal import SIGHUP, SIGINT, SIGTERM

    from benchctl.errors import NoReaderError
    from benchctl.interrupts import Asked
    from benchctl.schedule.book import Book
    from benchctl.schedule.loop import Scheduler
    from benchctl.schedule.text import due_lines
    from benchctl.visible import visible

    def say(line: str) -> None:
        try:
            print(visible(line), flush=True)
        except NoReaderError:  # end in order, after the run in progress
            asked.by = asked.by or SIGTERM

    book, asked = Book(store), Asked()
    schedules = book.schedules()
    if not schedules:
        raise UsageError("there is no schedule", "benchctl schedule add PROFILE --every 6h")
    with book.working() as is_free, asked.listening((SIGINT, SIGTERM, SIGHUP)):
        if not is_free:
            if due:
                return
            raise UsageError("another process runs the schedules of this store already")
        scheduler = Scheduler(book, say, asked)
        if due:
            scheduler.run_due()
        else:
            print(f"next: {due_lines(schedules.values(), time.time(), 1)[0]}", file=sys.stderr)
            scheduler.run()
    if asked.by is not None:
        sys.exit(128 + asked.by)


@schedule.command(cls=PlainCommand)
def install(
    *,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--directory",
            metavar="DIR",
            help="Where user units are; default: ~/.config/systemd/user.",
            autocompletion=completion.files,
        ),
    ] = None,
    store: options.Store,
) -> None:
    """Write a systemd user timer that runs what is due each minute.

    It replaces an earlier one. Nothing is started: the commands for that are printed.
    """
    from getpass import getuser

    import platformdirs

    from benchctl.schedule.unit import NAME, units

    if directory is None:
        directory = platformdirs.user_config_path() / "systemd" / "user"
        if not directory.is_absolute():
            raise UsageError("this user has no home directory", "use --directory")
    directory.mkdir(parents=True, exist_ok=True)
    for file, text in units(store.absolute()).items():
        (directory / file).write_text(text, encoding="utf-8")
        print(directory / file)
    print(
        "start it:\n"
        f"  systemctl --user daemon-reload && systemctl --user enable --now {NAME}.timer\n"
        "user timers stop when you log out, unless your user lingers:\n"
        f"  loginctl enable-linger {getuser()}",
        file=sys.stderr,
    )
