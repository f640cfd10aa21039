"""Commands of profiles and topologies that a person has agreed to run, remembered by their hash.

A file may come from anywhere, also one that only its reader can write. So its commands are shown
once. What comes with benchctl, and what was typed as ``--set``, needs no question.
"""

from __future__ import annotations

import errno
import hashlib
import json
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from benchctl.engine.prepare.trust import is_packaged
from benchctl.errors import ProfileError
from benchctl.profile.load import Document

if TYPE_CHECKING:
    from benchctl.lab.topology.model import Topology

Commands = Sequence[str]
"""Commands for people, each with its host and when it runs: ``h1 prepare: tc qdisc ...``."""


def commands_of(document: Document, topology: Topology | None) -> Commands:
    """Return the commands of a profile and its topology that need agreement."""
    hooks = [
        f"{_place(document, hook.host)} {hook.when.value}: {hook.command}"
        for hook in document.model.hooks
        if (source := document.source_of(("hosts", hook.host, hook.when.value)))
        is not document.overrides
        and not is_packaged(source.path)
    ]
    return [*hooks, *(commands_of_lab(topology) if topology else ())]


def _place(document: Document, name: str) -> str:
    """Return a host as its commands name it: another machine of the same name is not agreed to."""
    host = document.model.hosts.get(name)
    return f"{name} (ssh {host.ssh})" if host is not None and host.ssh else name


def commands_of_lab(topology: Topology) -> Commands:
    """Return the services of a topology that need agreement; its own SSH is none of its author."""
    if topology.path is None or is_packaged(topology.path):
        return ()
    return [
        f"{node.name} service: {shlex.join(service.argv)}"
        for node in topology.nodes.values()
        for service in node.services
        if not service.ordinary
    ]


def unagreed(commands: Commands) -> Commands:
    """Return the commands if they were not agreed to as a whole, else none."""
    return commands if commands and _hash(commands) not in _known() else ()


def agree(commands: Commands) -> None:
    """Remember that this person agrees to these commands, if any. Raises OSError."""
    if not commands:
        return
    path = _path()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.touch(mode=0o600)
    with path.open("a", encoding="ascii") as file:
        file.write(f"{_hash(commands)}\n")


def refusal(name: object, commands: Commands) -> ProfileError:
    """Return the error for commands of a file that nobody has agreed to."""
    more = f" and {len(commands) - 1} more" if len(commands) > 1 else ""
    return ProfileError(
        f"{name}: it runs commands that you have not agreed to: {commands[0]}{more}",
        "see them with benchctl plan; run them at a terminal, which asks, or add --trust",
    )


def _known() -> Iterable[str]:
    try:
        return set(_path().read_text("ascii", errors="replace").split())
    except OSError:
        return ()


def _hash(commands: Commands) -> str:
    return hashlib.sha256(json.dumps([*commands]).encode()).hexdigest()


def _path() -> Path:
    """Return the file of the hashes. Raises OSError for a user without a home.

    Then the path would begin in the current directory, where others may have written.
    """
    path = platformdirs.user_state_path("benchctl") / "agreed-commands"
    if not path.is_absolute():
        raise FileNotFoundError(errno.ENOENT, "this user has no home directory", str(path))
    return path
