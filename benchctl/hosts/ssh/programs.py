"""Where the programs of tools are: in the PATH, where the settings say, or here, to be sent."""

from __future__ import annotations

import re
import subprocess
import sys
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from benchctl.hosts.sent import agent, frames, gated, guardian, hostlock, messages
from benchctl.settings import settings as person_settings

_JOINED = re.compile(r"^from (__future__|benchctl).* import (\([^)]*\)|.*)\n", re.MULTILINE)


def located(argv: Sequence[str]) -> tuple[str, ...]:
    """Return a command with the path that the settings give for its program, if any."""
    return (_paths().get(argv[0], argv[0]), *argv[1:])


@cache  # a run keeps those that it began with
def _paths() -> Mapping[str, str]:
    paths: Mapping[str, str] = person_settings()["programs"]
    return paths


def sendable(argv: Sequence[str]) -> tuple[list[str | None], bytes]:
    """Return a command for a remote host, and the text of its program if that is sent along.

    A script for our own Python is: it must be one file, or a ``__main__.py`` that prints itself as
    one with ``--self``. None stands for the Python there as the first word, and for the script.
    """
    if argv[0] != sys.executable:
        return list(argv), b""
    place = _script(argv)
    if place is None:
        return [None, *argv[1:]], b""
    return [None, *argv[1:place], None, *argv[place + 1 :]], _text(argv[place])


def name_of(argv: Sequence[str]) -> str:
    """Return the name of a command's program, for people: ``iperf3``; ``simpleperf`` of ours."""
    place = _script(argv) if argv[0] == sys.executable else None
    return argv[0] if place is None else as_sent(argv)[place]


def as_sent(argv: Sequence[str]) -> tuple[str, ...]:
    """Return a command as it runs on a remote host, for people: with the names of what is sent.

    ``python3 -I -S simpleperf -s``.
    """
    if argv[0] != sys.executable:
        return tuple(argv)
    words = ["python3", *argv[1:]]
    if (place := _script(argv)) is not None:
        script = Path(argv[place])
        words[place] = script.parent.name if script.name == "__main__.py" else script.name
    return tuple(words)


def _script(argv: Sequence[str]) -> int | None:
    """Return the place of the script in a command of Python; None if it has none."""
    for place, word in enumerate(argv[1:], 1):
        if word in ("-c", "-m"):
            return None
        if not word.startswith("-"):
            return place
    return None


@cache
def _text(script: str) -> bytes:
    path = Path(script)
    if path.name != "__main__.py":
        return path.read_bytes()
    return subprocess.run(
        [sys.executable, "-I", "-S", script, "--self"], capture_output=True, check=True
    ).stdout


@cache
def module_text(module: ModuleType) -> bytes:
    """Return the text of a module that runs on remote hosts, compressed."""
    return zlib.compress(Path(str(module.__file__)).read_bytes())


AGENT = (frames, messages, hostlock, guardian, gated, agent)
"""The modules of an agent, which are one file there: each name is in one of them."""


def agent_text(settings: Mapping[str, Any]) -> bytes:
    """Return the agent as one file, which calls its `main` with these settings."""
    modules = [Path(str(module.__file__)).read_text() for module in AGENT]
    texts = [_JOINED.sub("", text) for text in modules]
    words = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    future = "from __future__ import annotations"
    return "\n".join((future, *texts, f"main({words})", "")).encode()
