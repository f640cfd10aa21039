"""The profiles that the plan screen offers."""

from __future__ import annotations

from pathlib import Path

from benchctl.profile.find import packaged_profiles


def find_profiles(here: Path) -> list[tuple[str, Path]]:
    """Return profiles by display name: those in and below ``here``'s profiles, then bundled."""
    found: dict[Path, tuple[str, Path]] = {}
    ours = packaged_profiles()
    for root, files in (
        (here, sorted(here.glob("*.toml"))),
        (here, sorted((here / "profiles").rglob("*.toml"))),
        (ours, sorted(ours.rglob("*.toml"))),
    ):
        for path in files:
            inside = path.relative_to(root)
            if "labs" not in inside.parts and path.name != "pyproject.toml":
                name = str(inside.with_suffix("")).removeprefix("profiles/")
                found.setdefault(path.resolve(), (name, path))
    return list(found.values())


def written(path: Path) -> float:
    """Return when a file was last written; 0 while an editor is replacing it."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
