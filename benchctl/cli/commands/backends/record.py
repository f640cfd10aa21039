"""``benchctl backends record``: a command is run once, and its output kept for tests."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from benchctl.cli.shared import completion, options
from benchctl.visible import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchctl.api import Direction
    from benchctl.backends import AnyBackend
    from benchctl.testing.transcript import Transcript

_DIRECTIONS = ("send", "receive", "both", "round-trip")


def record(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="The backend; with a command, it need not exist yet.",
            autocompletion=completion.backends,
        ),
    ],
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[COMMAND...]",
            help="The command to run, after --; default: the backend's own, on loopback.",
        ),
    ] = None,
    *,
    settings: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            default_factory=list,
            show_default=False,
            help="Set a parameter of the flow; repeatable.",
        ),
    ],
    direction: Annotated[
        str | None,
        typer.Option(
            "--direction",
            metavar="DIRECTION",
            help=f"One of {', '.join(_DIRECTIONS)}; default: the backend's first.",
            autocompletion=lambda: [*_DIRECTIONS],
        ),
    ] = None,
    case: Annotated[
        str,
        typer.Option("--as", metavar="CASE", help="Name of the files, such as refused."),
    ] = "run",
    directory: Annotated[
        Path | None,
        typer.Option(
            "--transcripts",
            metavar="DIRECTORY",
            help="Where to keep them; default: tests/transcripts if it exists, else transcripts.",
            autocompletion=completion.files,
        ),
    ] = None,
    server: Annotated[
        bool, typer.Option("--server", help="The command is the server of the flow.")
    ] = False,
    duration: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="DURATION",
            help="Stop the command after this time; default: 1min, or as the flow takes.",
        ),
    ] = None,
    expect: Annotated[
        bool,
        typer.Option(
            "--expect", help="Run nothing; write what the parser makes of all transcripts now."
        ),
    ] = False,
) -> None:
    """Run a command once, and keep its output as a transcript for tests.

    Keeps the command, its exit code, and its output with the time at which each piece arrived.
    Ctrl-C stops the command, and that is kept, too. Beside a transcript are the events that the
    backend's parser makes of it.
    """
    from benchctl.api import Role
    from benchctl.errors import UsageError
    from benchctl.testing.account import notes
    from benchctl.testing.recording import Job
    from benchctl.testing.recording import record as run
    from benchctl.testing.transcript import default_directory

    place = default_directory() if directory is None else directory
    if expect:
        others = {"COMMAND": command, "--set": settings, "--direction": direction,
                  "--for": duration, "--server": server}  # fmt: skip
        options.reject_beside("--expect", others)
        _expect(_backend(name), place)
        return
    if not name.isprintable():  # half of a surrogate pair cannot be written
        raise UsageError(f"{name}: not the name of a backend")
    if server and not command:
        raise UsageError("--server: there is no COMMAND", "without one, both ends are recorded")
    backend = _backend_if_any(name) if command else _backend(name)
    job = Job(
        name,
        backend,
        tuple(command or ()),
        Role.SERVER if server else Role.CLIENT,
        _direction(direction, backend),
        _parameters(settings, backend),
        options.lasting(duration),
    )
    _check_new(case, place)
    transcripts = run(job)
    for transcript in transcripts:
        _keep(transcript, case, place, backend)
        for note in notes(transcript, by_default=job.limit_s is None):
            print(f"benchctl: {note}", file=sys.stderr)
    if not command and all(transcript.role is Role.SERVER for transcript in transcripts):
        print("benchctl: the server was not ready, so no client was started", file=sys.stderr)
        sys.exit(1)


def _keep(transcript: Transcript, case: str, place: Path, backend: AnyBackend | None) -> None:
    """Write a transcript, and say what is in it."""
    from benchctl.errors import UnwrittenError
    from benchctl.testing.account import account, expect
    from benchctl.testing.transcript import path_of

    path = path_of(place, case, transcript.role)
    try:
        transcript.save(path)
    except OSError as error:
        raise UnwrittenError(str(path), error) from None
    print(f"{path}: {account(transcript)}")
    if backend is not None:
        print(f"  events  {expect(path, transcript, backend)}")


def _expect(backend: AnyBackend, place: Path) -> None:
    from benchctl.errors import UsageError
    from benchctl.testing.account import expect
    from benchctl.testing.transcript import transcripts_in

    try:
        found = transcripts_in(place)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if not found:
        raise UsageError(f"{place}: there are no transcripts", "record one, or see --transcripts")
    for path, transcript in found.items():
        print(f"{path}: {expect(path, transcript, backend)}")


def _check_new(case: str, place: Path) -> None:
    """Find out before anything runs whether the files can be written. Raises UsageError."""
    from benchctl.api import Role
    from benchctl.errors import UsageError
    from benchctl.testing.transcript import path_of

    if not re.fullmatch(r"[A-Za-z0-9][\w.+-]*", case, re.ASCII):
        raise UsageError(f"--as {case}: not the name of a file", "for example: --as refused")
    for role in Role:
        path = path_of(place, case, role)
        options.check_new(str(path), path)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--transcripts {place}: {error.strerror}") from None


def _backend(name: str) -> AnyBackend:
    from benchctl.backends import installed
    from benchctl.errors import MissingError

    registry = installed()
    if name not in registry.candidates:
        raise MissingError(f'no backend "{name}"', "name the command to record after --")
    return registry.load(name)


def _backend_if_any(name: str) -> AnyBackend | None:
    from benchctl.backends import installed
    from benchctl.errors import MissingError

    if name not in installed().candidates:
        return None
    try:
        return _backend(name)
    except MissingError as error:
        print(f"benchctl: {visible(error.message)}; recorded without it", file=sys.stderr)
        return None


def _parameters(settings: Sequence[str], backend: AnyBackend | None) -> dict[str, Any]:
    from benchctl.errors import UsageError
    from benchctl.profile.overrides import read_value
    from benchctl.profile.values import check_setting
    from benchctl.testing.loopback import check_parameters

    found = {}
    for text in settings:
        key, equals, written = text.partition("=")
        if not equals or not key.isidentifier() or not written.isprintable():
            raise UsageError(f"--set {text}: expected KEY=VALUE", "for example: --set count=5")
        found[key] = read_value(written)
        try:
            check_setting(found[key])
        except ValueError as error:
            raise UsageError(f"--set {text}: {error}") from None
    if backend is not None:
        check_parameters(backend, found)
    return found


def _direction(text: str | None, backend: AnyBackend | None) -> Direction | None:
    from benchctl.api import Direction
    from benchctl.errors import UsageError, nearest

    if text is None:
        return None
    can = [*Direction] if backend is None else backend.capabilities.directions
    if text in can:
        return Direction(text)
    who = "no direction" if backend is None else f"{backend.name} cannot measure in it"
    hint = nearest(text, can) or f"supported: {', '.join(can)}"
    raise UsageError(f"--direction {text}: {who}", hint)
