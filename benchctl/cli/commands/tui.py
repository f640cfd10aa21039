"""``benchctl tui``: the screens."""

from __future__ import annotations

import gc
import os
import re
import sys
import time
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchctl.cli.shared import completion, options
from benchctl.errors import BenchctlError, UsageError
from benchctl.tui.registry import SCREENS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchctl.tui.screens.base.page import AppContext, Page

PICTURES = (".svg", ".txt", "")
_WITHOUT = "--screenshot FILE, benchctl run, show and compare work without one"


def _check_terminal() -> None:
    # Textual reads keys from stdin and draws on stderr.
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            "the screens need a terminal on stdin and stderr",
            _WITHOUT,
        )
    if os.environ.get("TERM") == "dumb":
        raise UsageError(
            "the screens need a terminal that can move its cursor, and TERM is dumb", _WITHOUT
        )


def _read_size(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)x(\d+)", text)
    if match is None or not all(0 < int(part) <= 1000 for part in match.groups()):
        raise UsageError(f"--size {text}: expected COLUMNSxLINES", "for example: --size 120x40")
    return int(match[1]), int(match[2])


def _read_seconds(text: str) -> float:
    from benchctl.units import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise UsageError(f"--at: {error}") from None


def tui(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME]...",
            default_factory=list,
            show_default=False,
            help="Profile to plan and run; for other screens, the runs to show.",
            autocompletion=completion.profiles_and_runs,
        ),
    ],
    *,
    attach: Annotated[bool, typer.Option("--attach", help="Watch the run in progress.")] = False,
    replay: Annotated[
        str | None,
        typer.Option(
            "--replay", metavar="RUN", help="Replay a run.", autocompletion=completion.runs
        ),
    ] = None,
    at: Annotated[
        str,
        typer.Option(
            "--at",
            metavar="DURATION",
            help="Start the replay at this time after the start of the run.",
        ),
    ] = "0s",
    screen: Annotated[
        str | None,
        typer.Option(
            "--screen",
            metavar="SCREEN",
            help=f"Screen to start with: {', '.join(SCREENS)}.",
            autocompletion=completion.screens,
        ),
    ] = None,
    screenshot: Annotated[
        Path | None,
        typer.Option(
            "--screenshot",
            metavar="FILE",
            help="Write a picture (.svg or .txt) without a terminal, and exit.",
            autocompletion=completion.files,
        ),
    ] = None,
    size: Annotated[
        str,
        typer.Option("--size", metavar="WIDTHxHEIGHT", help="Columns and lines of the picture."),
    ] = "120x40",  # as wide as a document shows most terminals
    theme: Annotated[
        str | None,
        typer.Option(
            "--theme", metavar="THEME", help="Colour theme.", autocompletion=completion.themes
        ),
    ] = None,
    _units: options.Units = None,
    fleet: options.Fleet = None,
    store: options.Store,
) -> None:
    """Plan, watch, control, replay and compare runs on screens."""
    if screenshot is None:
        _check_terminal()
    elif screenshot.suffix.lower() not in PICTURES:
        endings = " or ".join(filter(None, PICTURES))
        raise UsageError(f"--screenshot {screenshot}: a picture ends in {endings}")
    columns_lines = _read_size(size)
    # Until the screens collect it, while no key is pressed, there is little garbage.
    gc.disable()
    from benchctl.cli.shared.fleet import following_all
    from benchctl.hosts.local.priority import give_way
    from benchctl.report.output.output import Output
    from benchctl.settings import remember, settings
    from benchctl.tui.app import BenchApp
    from benchctl.tui.hangup import end_with_terminal
    from benchctl.tui.pictures import take_picture
    from benchctl.tui.preferences import preferences_of, theme_of, without_colours
    from benchctl.tui.screens.base.page import AppContext
    from benchctl.tui.themes import DARK

    # At a fixed moment, every picture is the same.
    now = time.time()
    clock = time.time if screenshot is None else lambda: now
    # A picture must not depend on the terminal that orders it.
    of_pictures = DARK.name if screenshot is not None else None
    terminal = () if screenshot is not None else _terminal()
    preferences = preferences_of(settings(), *terminal)
    around = AppContext(store, clock, without_colours(preferences.glyphs))
    followers = ExitStack()
    if fleet is not None and screenshot is None:
        followers.enter_context(following_all(fleet))
    page = _first_page(around, names, attach, replay, _read_seconds(at), screen)
    colours = theme_of(theme) if theme else preferences.theme or of_pictures
    # A picture, or a theme for this once, changes no settings.
    keep = None if screenshot is not None or theme else partial(remember, "theme")
    app = BenchApp(around, page, keys=preferences.keys, theme=colours, remember=keep)
    gc.freeze()
    if screenshot is None:
        give_way()
        end_with_terminal(sys.stdin.fileno())
        for name in ("COLUMNS", "LINES"):  # of a shell that exports them: they do not follow
            os.environ.pop(name, None)
        with followers:
            app.run()
    else:
        with Output(screenshot, "--screenshot") as out:
            picture = take_picture(app, columns_lines, plain=screenshot.suffix.lower() == ".txt")
            if not app.return_code:
                out.write(picture)
                out.publish()
    if app.return_code:  # it ended by an error of its own, and has shown it
        sys.exit(BenchctlError.exit_code)


def _terminal() -> tuple[str, str]:
    """Return the encoding of stderr, where the screens are drawn, and the kind of terminal."""
    drawn_on = sys.__stderr__
    assert drawn_on is not None, "it is a terminal"
    # A name that has other characters must take the width that it was given.
    drawn_on.reconfigure(errors="replace")
    return drawn_on.encoding, os.environ.get("TERM", "")


def _first_page(
    around: AppContext,
    names: Sequence[str],
    attach: bool,
    replay: str | None,
    at_s: float,
    screen: str | None,
) -> Page:
    if screen not in (None, *SCREENS):
        raise UsageError(f'no screen "{screen}"', f"available: {', '.join(SCREENS)}")
    if (replay is not None or attach) and screen not in (None, "live"):
        given = "--attach" if replay is None else "--replay"
        raise UsageError(
            f"{given} shows a run on the live screen, not on {screen}",
            f"remove one, for example: benchctl tui --screen {screen}",
        )
    name = screen or "plan"
    if replay is not None or attach or name == "live":
        from benchctl.tui.screens.live import LiveScreen

        chosen = names[:1] if replay is None else [replay]
        run_id = _run_ids(around.store, chosen)[0] if chosen else _measured_now(around.store)
        return LiveScreen(around, run_id, live=replay is None, at_s=at_s)
    if name == "plan":
        from benchctl.profile.find import find_profile
        from benchctl.tui.screens.plan import PlanScreen

        return PlanScreen(around, find_profile(names[0]) if names else None)
    entry = SCREENS[name]
    if 1 < entry.runs > len(names):
        raise UsageError("give two or more runs to compare", "for example: --screen compare A B")
    chosen = names if entry.runs > 1 else (names or ["last"])[: entry.runs]
    return entry.load()(around, *_run_ids(around.store, chosen))


def _run_ids(store: Path, names: Sequence[str]) -> list[int]:
    from benchctl.store.read import Reader

    if not names:
        return []  # the history needs none, and no store
    with closing(Reader(store)) as reader:
        return [reader.find(name).id for name in names]


def _measured_now(store: Path) -> int:
    from benchctl.store.read import Reader

    with closing(Reader(store)) as reader:
        run = reader.measured_now()
    if run is None:
        raise UsageError("no run is in progress", "--replay last replays the newest run")
    return run.id
