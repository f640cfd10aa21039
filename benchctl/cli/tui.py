"""``benchctl tui``: the screens."""

from __future__ import annotations

import gc
import re
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchctl.cli import options
from benchctl.errors import BenchctlError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchctl.tui.screens.page import Page

SCREENS = ("plan", "live", "summary", "history", "compare")
# As wide as most terminals in a document can be shown.
PICTURE = "120x40"
PICTURES = (".svg", ".txt", "")


def _check_terminal() -> None:
    # Textual reads keys from stdin and draws on stderr.
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            "the screens need a terminal, as stdin and stderr",
            "--screenshot FILE draws one without; benchctl run, show and compare need none",
        )


def _read_size(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)x(\d+)", text)
    if match is None or not all(0 < int(part) <= 1000 for part in match.groups()):
        raise UsageError(f"--size {text}: not columns x lines", "as in --size 120x40")
    return int(match[1]), int(match[2])


def _read_seconds(text: str) -> float:
    from benchctl.units import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise UsageError(f"--at: {error}") from None


@click.command()
@click.argument(
    "names",
    metavar="[NAME]...",
    nargs=-1,
    help="A profile to plan and run; for other screens, the run or runs to show.",
)
@click.option("--attach", is_flag=True, help="Watch the run that is measured now.")
@click.option("--replay", metavar="RUN", help="See a run once more.")
@click.option(
    "--at", default="0s", metavar="DURATION", help="Begin the replay so long after the run's start."
)
@click.option("--screen", metavar="SCREEN", help=f"Begin with one of {', '.join(SCREENS)}.")
@click.option(
    "--screenshot",
    type=options.FILE,
    metavar="FILE",
    help="Write a picture (.svg, or text as .txt) without a terminal, and end.",
)
@click.option(
    "--size",
    default=PICTURE,
    metavar="WIDTHxHEIGHT",
    help=f"Columns and lines of the picture; default {PICTURE}.",
)
@click.option("--theme", metavar="THEME", help="Colours, by a theme's name.")
@options.store
def tui(
    names: Sequence[str],
    attach: bool,
    replay: str | None,
    at: str,
    screen: str | None,
    screenshot: Path | None,
    size: str,
    theme: str | None,
    store: Path | None,
) -> None:
    """Plan, watch, steer, look back and compare on screens."""
    if screenshot is None:
        _check_terminal()
    elif screenshot.suffix.lower() not in PICTURES:
        endings = " or ".join(filter(None, PICTURES))
        raise UsageError(f"--screenshot {screenshot}: a picture ends in {endings}")
    columns_lines = _read_size(size)
    # Hardly anything made until the first frame is garbage, and to look for it takes a tenth.
    gc.disable()
    from benchctl.hosts.priority import give_way
    from benchctl.report.output import Output
    from benchctl.store.database import default_path
    from benchctl.tui.app import BenchApp
    from benchctl.tui.pictures import take_picture
    from benchctl.tui.preferences import default_path as settings_path
    from benchctl.tui.preferences import read_preferences, theme_of
    from benchctl.tui.themes import DARK

    path = store or default_path()
    settings = read_preferences(settings_path())
    # Of a moment that stands, every picture is the same.
    now = time.time()
    clock = time.time if screenshot is None else lambda: now
    # Nor should a picture depend on the terminal that it is ordered from.
    of_pictures = DARK.name if screenshot is not None else None
    page = _first_page(path, clock, names, attach, replay, _read_seconds(at), screen)
    app = BenchApp(
        path,
        page,
        clock=clock,
        keys=settings.keys,
        theme=theme_of(theme) if theme else settings.theme or of_pictures,
        glyphs=settings.glyphs,
    )
    gc.freeze()
    gc.enable()
    if screenshot is None:
        give_way()
        app.run()
    else:
        with Output(screenshot, "--screenshot") as out:
            picture = take_picture(app, columns_lines, plain=screenshot.suffix.lower() == ".txt")
            if not app.return_code:
                out.write(picture)
                out.publish()
    if app.return_code:  # it ended by an error of its own, and has shown it
        sys.exit(BenchctlError.exit_code)


def _first_page(
    path: Path,
    clock: Callable[[], float],
    names: Sequence[str],
    attach: bool,
    replay: str | None,
    at_s: float,
    screen: str | None,
) -> Page:
    from benchctl.tui import opening

    if screen not in (None, *SCREENS):
        raise UsageError(f'no screen "{screen}"', f"available: {', '.join(SCREENS)}")
    if (replay is not None or attach) and screen not in (None, "live"):
        given = "--attach" if replay is None else "--replay"
        raise UsageError(
            f"{given} shows a run on the live screen, not on {screen}",
            f"leave one out, as in: benchctl tui --screen {screen}",
        )
    if replay is not None:
        return opening.open_replay(path, _run_id(path, replay), clock, at_s)
    if attach or screen == "live":
        return opening.open_live(path, _alive_id(path, names), clock)
    if screen == "history":
        return opening.open_history(path)
    if screen == "summary":
        return opening.open_summary(path, _run_id(path, names[0] if names else "last"))
    if screen == "compare":
        if len(names) < 2:
            raise UsageError("name two runs or more to compare", "as in: --screen compare A B")
        return opening.open_compare(path, [_run_id(path, name) for name in names])
    from benchctl.profile.load import find_profile

    return opening.open_plan(find_profile(names[0]) if names else None)


def _run_id(path: Path, name: str) -> int:
    from benchctl.store.read import Reader

    with closing(Reader(path)) as reader:
        return reader.find(name).id


def _alive_id(path: Path, names: Sequence[str]) -> int:
    """Return the run that is named, or the newest that is measured now."""
    from benchctl.store.read import Reader

    with closing(Reader(path)) as reader:
        if names:
            return reader.find(names[0]).id
        for run in reader.runs():
            if reader.is_alive(run):
                return run.id
    raise UsageError("no run is being measured now", "--replay last shows the newest once more")
