"""Whether a file is under the user's control, or may have been written by others.

The services of a topology are commands, and so are ``prepare`` and ``cleanup`` of a profile. They
run without confirmation only if nobody but root and the user could have written them. Whoever can
replace a directory or a link on the way to a file decides what is in it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from benchctl.errors import ProfileError
from benchctl.hosts.local.users import user_name
from benchctl.profile.find import packaged_profiles
from benchctl.profile.load import Document
from benchctl.run.planned import Settings
from benchctl.toml.source import STDIN

if TYPE_CHECKING:
    from benchctl.lab.topology.model import Topology

# As many as the kernel follows (MAXSYMLINKS, linux/namei.h).
_MOST_LINKS = 40
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def distrust(path: Path) -> str:
    """Return why others may control the content of a file, or an empty text.

    Every directory and link on the way counts. In a sticky directory (/tmp), where all may write
    and only owners may remove, only the owner of the entry counts.
    """
    parts = [*reversed(path.absolute().parts)]
    here, links = Path(parts.pop()), 0
    entry = here
    while True:
        try:
            found = entry.lstat()
        except OSError as error:
            return f"{entry}: {error.strerror}"
        if found.st_uid not in (0, os.geteuid()):
            return f"{entry} belongs to {user_name(found.st_uid)}"
        if stat.S_ISLNK(found.st_mode):
            target, links = entry.readlink(), links + 1
            parts += reversed(target.parts)
            if links > _MOST_LINKS:
                return f"{entry}: too many links"
        else:
            sticky = stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX
            if found.st_mode & _OTHERS_WRITE and not sticky:
                return f"{entry} is writable by others than its owner"
            here = entry
        if not parts:
            return ""
        entry = here / parts.pop()  # the root, where a link's target starts with it


def distrust_services(topology: Topology) -> str:
    """Return why others may control a topology's services, or an empty text.

    Files that come with benchctl are trusted as the program itself.
    """
    path = topology.path
    if path is None or not any(node.services for node in topology.nodes.values()):
        return ""
    return "" if is_packaged(path) else distrust(path)


def distrust_hooks(document: Document) -> tuple[Path, str] | None:
    """Return the file of which others may control a host's commands, and why, if there is one.

    What the user typed, as ``--set``, is trusted; what came from stdin may be anybody's.
    """
    for hook in document.model.hooks:
        source = document.source_of(("hosts", hook.host, hook.when.value))
        if source is document.overrides:
            continue
        if source.path == STDIN:
            return source.path, "it does not say who wrote it"
        if not is_packaged(source.path) and (why := distrust(source.path)):
            return source.path, why
    return None


def is_packaged(path: Path) -> bool:
    """Return whether a file comes with benchctl."""
    return path.resolve().is_relative_to(packaged_profiles())


def distrust_run(settings: Settings, store: Path) -> str:
    """Return why others may control a recorded run's commands, or an empty text.

    Only the owner of the store counts: whoever measured into it wrote its commands.
    """
    services = settings.lab is not None and "services" in settings.lab.text
    if not (services or settings.hooks):
        return ""
    owner = store.stat().st_uid
    return "" if owner in (0, os.geteuid()) else f"it belongs to {user_name(owner)}"


def untrusted(path: Path | None, why: str, what: str = "services") -> ProfileError:
    """Return the error for services, or other commands, that need the user's confirmation."""
    return ProfileError(
        f"{path}: its {what} are commands, and {why}",
        "check the commands with benchctl plan; to run them, add --trust",
    )
