"""The pictures of docs/experiments/, and how they are made: by the commands that stand there.

``python tests/docs/pictures.py [PICTURE...] [-- OPTION...]`` measures and draws them anew, all or
those named, such as ``b2-loss``. The options go to each run: ``--set duration=5s`` shortens it. The
runs stay in build/experiments.sqlite.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "experiments").glob("*.md"))


class Drawn(NamedTuple):
    """A picture with the commands that make it, in words."""

    run: list[str]
    plot: list[str]
    file: Path


def pictures():
    """Return each picture after the commands that stand before it, page by page."""
    return [
        Drawn(shlex.split(run), shlex.split(plot), page.parent / file)
        for page in PAGES
        for run, plot, file in re.findall(
            r"^(benchctl run [^\n]*)$(?:(?!^benchctl run ).)*?"
            r"^(benchctl plot [^\n]*)\n```\n\n!\[[^]]+\]\(([^)]*)\)$",
            page.read_text(encoding="utf-8"), re.M | re.S,
        )
    ]  # fmt: skip


def main(*words):
    """Make pictures anew; a run with failed trials ends in its picture all the same."""
    names, _, options = " ".join(words).partition("--")
    store = ROOT / "build" / "experiments.sqlite"
    store.parent.mkdir(exist_ok=True)
    for one in pictures():
        if names and one.file.stem not in names.split():
            continue
        program = [sys.executable, "-m", "benchctl"]
        stored = ["--store", str(store)]
        subprocess.run([*program, *one.run[1:], *shlex.split(options), *stored], check=False)
        subprocess.run([*program, *one.plot[1:], *stored], cwd=one.file.parent, check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
