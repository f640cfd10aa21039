"""Finds profiles and topologies: the user's files, and those that come with benchctl."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from benchctl.errors import ProfileError, nearest

NO_LAB = "none"
"""Instead of a topology: in the real network, whatever a profile or its base says."""

PACKAGE = Path(__file__).resolve().parent.parent


def packaged_profiles() -> Path:
    """Return the directory of the profiles that come with benchctl."""
    installed = PACKAGE / "profiles"
    return installed if installed.is_dir() else PACKAGE.parent / "profiles"


def shipped_profiles() -> dict[str, Path]:
    """Return the profiles that come with benchctl, by the names that `find_profile` takes."""
    root = packaged_profiles()
    return {
        file.relative_to(root).with_suffix("").as_posix(): file
        for file in sorted(root.rglob("*.toml"))
        if "labs" not in file.relative_to(root).parts
    }


def shipped_topologies() -> dict[str, Path]:
    """Return the topologies that come with benchctl, by their names."""
    return {file.stem: file for file in sorted((packaged_profiles() / "labs").glob("*.toml"))}


def find_profile(name: str) -> Path:
    """Return the path of a profile: a file, or the name of one that comes with benchctl.

    Raises ProfileError with the nearest known name.
    """
    return _find("profile", name, Path(name), shipped_profiles())


def profiles_in(directory: Path) -> dict[str, Path]:
    """Return the profiles of a directory, and those below its ``profiles``, by their names.

    A file that cannot be read may become one, but other files in TOML are none: topologies have
    links in place of flows.
    """
    files = [*sorted(directory.glob("*.toml")), *sorted((directory / "profiles").rglob("*.toml"))]
    return {
        file.relative_to(directory).with_suffix("").as_posix().removeprefix("profiles/"): file
        for file in files
        if (found := _tables(file)) is None or not found or {"flows", "extends"} & {*found}
    }


def title_of(path: Path) -> str:
    """Return the title of a profile; empty if it has none of its own, or cannot be read."""
    title = (_tables(path) or {}).get("title")
    return title if isinstance(title, str) else ""


def _tables(path: Path) -> Mapping[str, object] | None:
    """Return the keys of a file and their values; None if it cannot be read."""
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def find_topology(name: str, path: Path | None = None) -> Path:
    """Return a topology file: the one at a path, or the bundled one of this name.

    ``path`` defaults to the name itself. Raises ProfileError with the nearest known name.
    """
    return _find("topology", name, path or Path(name), shipped_topologies())


def find_any(name: str) -> Path:
    """Return a file, or the bundled profile or topology of this name.

    Raises ProfileError with the nearest known name.
    """
    return _find("file", name, Path(name), shipped_topologies() | shipped_profiles())


def shortened(path: Path) -> Path:
    """Return a path without "..", if that is the same file: a link may lead elsewhere."""
    short = Path(os.path.normpath(path))
    try:
        return short if short.samefile(path) else path
    except OSError:
        return path


def is_file(path: Path) -> bool:
    """Return whether a file or a pipe exists that this user can reach."""
    try:
        return path.is_file() or path.is_fifo()
    except OSError:  # a name too long, or a directory that may not be entered
        return False


def _find(what: str, name: str, file: Path, known: Mapping[str, Path]) -> Path:
    bare = name.removesuffix(".toml").removeprefix("profiles/").removeprefix("labs/")
    # The bare name of a bundled file does not mean a file in the current directory.
    if not (bare == name and bare in known) and is_file(file):
        return shortened(file)
    if bare in known:
        return known[bare]
    # It imports pydantic, which the list of profiles on a screen does without.
    from benchctl.profile.values import as_text

    raise ProfileError(
        f"{as_text(name)}: no such {what}: not a file, and not included with benchctl",
        nearest(bare, known) or f"available: {', '.join(known)}",
    )
