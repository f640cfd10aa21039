"""Whether a file is the user's word, or may be somebody else's.

The services of a topology are commands. They run without a question only where nobody but root and
the user could have written them, and who else may exchange a directory, or a link, on the way to a
file decides what is in it.
"""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path

from benchctl.errors import ProfileError
from benchctl.lab.model import Topology
from benchctl.profile.find import packaged_profiles
from benchctl.run.planned import Settings

# As many as the kernel follows (MAXSYMLINKS, linux/namei.h).
_MOST_LINKS = 40
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def distrust(path: Path) -> str:
    """Return why somebody else may decide what a file holds, or an empty text.

    Every directory and link on the way counts. In a directory where all may write and nobody may
    remove what is another's (sticky: /tmp), only the owner of what lies there counts.
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
        entry = here / parts.pop()  # the root, where a link's target begins with it


def user_name(number: int) -> str:
    """Return a user's name, or the number where there is none."""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def distrust_services(topology: Topology) -> str:
    """Return why a topology's services may be another's commands, or an empty text.

    Those that come with benchctl are as good as the program itself.
    """
    path = topology.path
    if path is None or not any(node.services for node in topology.nodes.values()):
        return ""
    return "" if path.resolve().is_relative_to(packaged_profiles()) else distrust(path)


def distrust_run(settings: Settings, store: Path) -> str:
    """Return why a recorded run's services may be another's commands, or an empty text.

    A store is asked only whose it is: its commands were written by whoever measured into it.
    """
    if settings.lab is None or "services" not in settings.lab.text:
        return ""
    owner = store.stat().st_uid
    return "" if owner in (0, os.geteuid()) else f"it belongs to {user_name(owner)}"


def untrusted(path: Path | None, why: str) -> ProfileError:
    """Return the error of services that are not run without the user's word."""
    return ProfileError(
        f"{path}: its services are commands, and {why}",
        "check the commands with benchctl plan; to run them, add --trust",
    )
