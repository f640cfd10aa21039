"""How to run a run again: its files as they were, and the command. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import PurePath
from typing import NamedTuple

from benchctl.run.record import Run

_EXTENDS = re.compile(r'^\s*extends\s*=\s*["\']([^"\']+)["\']', re.M)
_OPTION = re.compile(r"# (--set|--only|--repeat|--lab) (.*)")


class PastFile(NamedTuple):
    """A file of the profile: its name as the other files write it, and its text."""

    name: str
    text: str


def split_profile(run: Run) -> tuple[list[PastFile], list[str]]:
    """Return the files that a run's text consists of, and the options that its command had.

    The profile comes first, then its bases and the lab's topology.
    """
    text, topology = run.profile_text, []
    lab = run.settings.lab
    if lab is not None:
        name = PurePath(lab.path).name
        tail = f"\n# {name}\n{lab.text}"
        if text.endswith(tail):
            text = text.removesuffix(tail)
            topology.append(PastFile(name, lab.text))
    lines = text.splitlines()
    options: list[str] = []
    while lines and (match := _OPTION.fullmatch(lines[-1])):
        lines.pop()
        options[:0] = _words(match[1], match[2], topology)
    return [*_files("\n".join(lines).strip("\n") + "\n"), *topology], options


def _words(option: str, value: str, topology: list[PastFile]) -> list[str]:
    if topology and value.startswith("lab.topology="):
        return []  # the file stands beside the profile
    return [option, value]


def _files(text: str) -> Iterator[PastFile]:
    """Yield the profile and its bases: each begins with its name in a comment."""
    head, _, rest = text.partition("\n")
    name = head.removeprefix("# ").strip()
    while True:
        base = _EXTENDS.search(rest)
        written = PurePath(base[1]).name if base else ""
        heads = (f"\n# {each}\n" for each in (written, saved_as(written)))
        head = next((each for each in heads if each in rest), "")
        if base is None or not head:
            yield PastFile(name or "profile.toml", rest.strip("\n") + "\n")
            return
        own, _, rest = rest.partition(head)
        yield PastFile(name, own.strip("\n") + "\n")
        name = base[1]


def command(run: Run) -> str:
    """Return the command line that runs the files again, in the same order."""
    files, options = split_profile(run)
    words = ["benchctl", "run", saved_as(files[0].name)]
    if run.settings.lab is not None:
        words += ["--lab", PurePath(run.settings.lab.path).name]
    return shlex.join([*words, *options, "--set", f"run.seed={run.seed}"])


def saved_as(name: str) -> str:
    """Return the name of the file for a profile of a name: those of benchctl have no ending."""
    return name if name.endswith(".toml") else f"{name}.toml"


def opening_comment(run: Run) -> list[str]:
    """Return the paragraphs of the comment that a profile begins with, as written there."""
    lines: list[str] = []
    for line in split_profile(run)[0][0].text.splitlines():
        if not line.startswith("#"):
            if lines or line.strip():
                break
            continue
        if not line.startswith("#:"):  # a line for editors
            lines.append(line[1:].removeprefix(" ").rstrip())
    paragraphs = re.split(r"\n{2,}", "\n".join(lines).strip("\n"))
    return [paragraph for paragraph in paragraphs if paragraph.strip()]
