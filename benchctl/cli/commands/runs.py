"""``benchctl runs``: the runs in the store: list, tag, stop and delete them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from benchctl.cli.shared import completion, options
from benchctl.cli.shared.command import PlainCommand, group, no_options_before
from benchctl.units import format_count
from benchctl.visible import padded, visible, width_of

if TYPE_CHECKING:
    from benchctl.errors import StoreDamagedError
    from benchctl.run.record import Run, RunOutline
    from benchctl.store.read import Reader

_LEAST = 22
"""The least width of names, so that most lists have the same columns."""

_Names = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN...",
        help="Runs: names, unique parts of them, tags, last or baseline.",
        autocompletion=completion.runs,
    ),
]


def _list(
    context: typer.Context,
    *,
    tags: Annotated[
        list[str],
        typer.Option(
            "--tag",
            metavar="TAG",
            default_factory=list,
            show_default=False,
            help="Only runs with this tag, or a unique part of it; repeatable.",
            autocompletion=completion.tags,
        ),
    ],
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            metavar="PROFILE",
            help="Only runs of this profile, or a unique part.",
            autocompletion=completion.measured_profiles,
        ),
    ] = None,
    since: options.Since = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="Only runs that failed or died.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per run.")] = False,
    archive: options.Archive = None,
    _pager: options.Pager = False,
    _fleet: options.Fleet = None,
    store: options.Store,
) -> None:
    if context.invoked_subcommand is not None:
        no_options_before(context)
        return
    if archive is not None:
        _list_archived(archive, tags, profile, since, failed, as_json=as_json)
        return
    from benchctl.cli.shared.colour import coloured
    from benchctl.errors import StoreDamagedError

    with options.open_reader(store) as reader:
        lost: list[StoreDamagedError] = []
        try:
            found = reader.outlines()
        except StoreDamagedError:
            found = list(_readable(reader, reader.run_ids(), lost))
        found = _chosen(found, tags, profile, since, failed)
        if as_json:
            from benchctl.report.exports.entries import run_entry

            for run in _readable(reader, [run.id for run in found], lost):
                print(json.dumps(run_entry(run)))
        else:
            with coloured():
                print_table(found)
        if lost:
            sys.stdout.flush()
            raise lost[0]


def _list_archived(
    url: str,
    tags: list[str],
    profile: str | None,
    since: str | None,
    failed: bool,
    *,
    as_json: bool,
) -> None:
    from benchctl.archive.connection import open_archive
    from benchctl.archive.pull import archived_runs, as_store
    from benchctl.cli.shared.colour import coloured

    with open_archive(options.archive_url(url)) as opened:
        there = archived_runs(opened)
        outlines = [archived.outline(place) for place, archived in enumerate(there)]
        found = _chosen(outlines, tags, profile, since, failed)
        if not as_json:
            with coloured():
                print_table(found)
            return
        from benchctl.report.exports.entries import run_entry

        for outline in found:  # one by one: their trials come with them
            with as_store(opened, [there[outline.id]]) as path, options.open_reader(path) as reader:
                print(json.dumps(run_entry(reader.find("last"))))


runs = group("List all runs, newest first.\n\nIts commands tag, stop and delete runs.", _list)


def _readable(reader: Reader, ids: list[int], lost: list[StoreDamagedError]) -> Iterator[Run]:
    """Yield the runs that can be read; the errors of the others go to ``lost``."""
    from benchctl.errors import StoreDamagedError

    for run_id in ids:
        try:
            yield reader.run(run_id)
        except StoreDamagedError as error:
            lost.append(error)


def _chosen(
    found: list[RunOutline],
    tags: list[str],
    profile: str | None,
    since: str | None,
    failed: bool,
) -> list[RunOutline]:
    from benchctl.run.status import Status
    from benchctl.store.read import unique

    profiles = dict.fromkeys(run.profile for run in found)
    if tags:
        known = dict.fromkeys(tag for run in found for tag in run.tags)
        wanted = {unique(tag, known, "tag", f"tags are: {', '.join(known)}") for tag in tags}
        found = [run for run in found if wanted <= {*run.tags}]
    if profile is not None:
        name = unique(profile, profiles, "profile", f"profiles are: {', '.join(profiles)}")
        found = [run for run in found if run.profile == name]
    if since is not None:
        earliest = read_time(since)
        found = [run for run in found if run.created_time >= earliest]
    if failed:
        found = [run for run in found if run.status in (Status.FAILED, Status.DIED)]
    return found


def read_time(text: str, option: str = "--since") -> float:
    """Return a local date and time, or a duration before now, as Unix time.

    Raises UsageError, which names the option.
    """
    import time
    from datetime import datetime

    from benchctl.errors import UsageError
    from benchctl.units import parse_duration

    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        pass
    try:
        return time.time() - parse_duration(text)
    except ValueError:
        raise UsageError(
            f'{option} "{text}": neither a date nor a duration',
            f"for example: {option} 2026-11-20, 2026-11-20T08:00, 12h, 7d",
        ) from None


def print_table(found: Sequence[RunOutline]) -> None:
    """Print runs as a table."""
    from benchctl.units import format_time

    tagged = any(run.tags for run in found)
    profiles = [visible(run.profile) for run in found]
    name_width = max([_LEAST, *(len(run.name) for run in found)]) + 2
    profile_width = max([_LEAST, *map(width_of, profiles)]) + 2
    status = f"{'status':<13}tags" if tagged else "status"
    heads = f"{'run':<{name_width}}{'when':<18}{'profile':<{profile_width}}{'trials':>7}"
    lines = [f"{heads}  {status}"]
    for run, profile in zip(found, profiles, strict=True):
        when = format_time(run.created_time)
        end = f"{run.status.value:<13}{', '.join(run.tags)}".rstrip()
        lines.append(
            f"{run.name:<{name_width}}{when:<18}{padded(profile, profile_width)}{run.trials:>7}"
            f"  {visible(end)}"
        )
    print("\n".join(lines))  # at once: ten thousand lines take less time than their prints


@runs.command(cls=PlainCommand)
def tag(
    name: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="A run: its name, a unique part of it, a tag, last or baseline.",
            autocompletion=completion.runs,
        ),
    ],
    tags: Annotated[
        list[str],
        typer.Argument(
            metavar="[TAG]...",
            default_factory=list,
            show_default=False,
            help="Tags to add.",
            autocompletion=completion.tags,
        ),
    ],
    *,
    remove: Annotated[
        list[str],
        typer.Option(
            "--remove",
            metavar="TAG",
            default_factory=list,
            show_default=False,
            help="Remove this tag, or a unique part of it; repeatable.",
            autocompletion=completion.tags,
        ),
    ],
    store: options.Store,
) -> None:
    """Add tags to a run, or remove some; prints its tags."""
    from benchctl.store.manage import read_tags, set_tags
    from benchctl.store.read import unique

    with options.open_reader(store) as reader:
        run = reader.find(name)
    hint = f"its tags are: {', '.join(run.tags)}" if run.tags else "the run has no tags"
    gone = {unique(part, run.tags, "tag", hint) for part in remove}
    now = read_tags([*(tag for tag in run.tags if tag not in gone), *tags])
    if now != run.tags:
        set_tags(store, run.id, now)
    for tag in now:
        print(visible(tag))


@runs.command(cls=PlainCommand)
def stop(
    name: options.RunName = "last", *, fleet: options.Fleet = None, store: options.Store
) -> None:
    """Stop a run in progress, and keep its measurements.

    The run ends cleanly, as with Ctrl-C; "benchctl resume" continues it.
    """
    from benchctl.engine.runner.launch import stop as stop_run
    from benchctl.errors import UsageError

    with options.open_reader(store) as reader:
        run = reader.find(name)
    if fleet is not None:
        from benchctl.fleet.messages import Done
        from benchctl.fleet.person import ask_fleet
        from benchctl.fleet.person_messages import StopRun

        ask_fleet(fleet, StopRun(run.name), Done)
        print(f"run {run.name} stops", file=sys.stderr)
        return
    if not stop_run(store, run.id):
        raise UsageError(f"run {run.name} is not in progress", "see benchctl runs")
    print(f"run {run.name} stops; continue with: benchctl resume {run.name}", file=sys.stderr)


@runs.command(cls=PlainCommand)
def delete(
    names: _Names,
    *,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask; needed without a terminal.")
    ] = False,
    for_good: Annotated[
        bool, typer.Option("--for-good", help="Delete at once; nothing brings them back.")
    ] = False,
    store: options.Store,
) -> None:
    """Delete runs with all their measurements.

    They stay in a trash beside the store for 30 days. Asks on a terminal; without one, --yes is
    needed.
    """
    import time

    from benchctl.errors import UsageError
    from benchctl.store.copies.trash import trash_run
    from benchctl.store.manage import delete_run

    with options.open_reader(store) as reader:
        # Each once, even if named twice; a wrong name is found before any is deleted.
        chosen = list({run.id: run for run in map(reader.find, names)}.values())
        for run in filter(reader.is_alive, chosen):
            raise UsageError(f"run {run.name} is in progress", "stop it first")
    if not yes:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise UsageError(
                "no run is deleted without a question", "add --yes to delete without one"
            )
        for run in chosen:
            trials = format_count(run.trials, "trial")
            print(visible(f"{run.name}  {run.profile}, {trials}"), file=sys.stderr)
        if not typer.confirm("Delete for good?" if for_good else "Delete?", err=True):
            return
    for run in chosen:
        if for_good:
            delete_run(store, run.id)
        else:
            trash_run(store, run.id, time.time())
        print(run.name)


@runs.command(cls=PlainCommand)
def undelete(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="[RUN]...",
            default_factory=list,
            show_default=False,
            help="Deleted runs: names, or unique parts of them; default: list them.",
        ),
    ],
    *,
    store: options.Store,
) -> None:
    """Bring deleted runs back from the trash, or list those in it."""
    from benchctl.store.copies.trash import deleted_runs, undelete_run
    from benchctl.units import format_time

    for name in names:
        print(undelete_run(store, name))
    if not names and (found := deleted_runs(store)):
        width = max(_LEAST, *(len(run.name) for run in found)) + 2
        print(f"{'run':<{width}}deleted")
        for run in found:
            print(f"{run.name:<{width}}{format_time(run.deleted_time)}")
