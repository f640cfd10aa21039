"""Build what a release consists of, look at what is in it, and install it as users do.

The files that git tracks are the measure: the sdist holds each of them, the wheel each of the
packages and profiles, and neither holds anything else. The wheel is built from the sdist, so what
somebody builds from the sdist is the same. ``make dist`` runs this in an environment that has the
tools; it exits with 1 and one line for each thing that is wrong.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.metadata import Metadata

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
BIN = Path(sys.executable).parent
# Without these a package index shows a page that leaves its reader guessing.
WANTED = (
    "summary", "description", "description_content_type", "author", "license_expression",
    "license_files", "requires_python", "keywords", "classifiers", "requires_dist",
)  # fmt: skip
# What the build itself adds to a wheel.
INFORMATION = ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")
INSTALLERS = ("pipx", "uv tool")
COMMANDS = (
    "simpleowamp --version", "simpleperf --version", "benchctl --version",
    "benchctl run -q quickstart --repeat 1",
    "benchctl show last", "benchctl help run",
    "benchctl backends new mine",
    "benchctl backends check benchctl-mine/benchctl_mine/mine.py"
    " --transcripts benchctl-mine/tests/transcripts",
)  # fmt: skip


def main() -> int:
    """Build, look, install; returns the exit code."""
    shutil.rmtree(DIST, ignore_errors=True)
    _run([BIN / "uv", "build", "--quiet", "--no-build-isolation", "--python", sys.executable])
    (sdist,), (wheel,) = DIST.glob("*.tar.gz"), DIST.glob("*.whl")
    if faults := list(_faults(sdist, wheel)):
        print(*faults, sep="\n", file=sys.stderr)
        return 1
    for installer in INSTALLERS:
        _install(installer, wheel)
    print(f"{sdist.relative_to(ROOT)} and {wheel.relative_to(ROOT)} are good")
    return 0


def _faults(sdist: Path, wheel: Path) -> Iterator[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, stdout=subprocess.PIPE)
    tracked = set(listed.stdout.decode().split("\0")) - {""}
    with tarfile.open(sdist) as archive:
        found = {name.partition("/")[2] for name in archive.getnames()}
    yield from differences(sdist.name, found, {*tracked, "PKG-INFO"})

    with zipfile.ZipFile(wheel) as archive:
        found = set(archive.namelist())
        name, version, *_ = wheel.name.split("-")
        information = f"{name}-{version}.dist-info/"
        metadata = archive.read(f"{information}METADATA")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    target = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    places = {package: Path(package).name for package in target["packages"]}
    shared = f"{name}-{version}.data/data/"
    places |= {folder: shared + place for folder, place in target["shared-data"].items()}
    wanted = in_wheel(tracked, places | target["force-include"])
    yield from differences(wheel.name, found, wanted | {information + name for name in INFORMATION})
    yield from metadata_faults(metadata)


def in_wheel(tracked: set[str], places: dict[str, str]) -> set[str]:
    """Return the names in the wheel of what is tracked in some folders, given each one's place."""
    return {
        place + name.removeprefix(folder)
        for folder, place in places.items()
        for name in tracked
        if name.startswith(f"{folder}/")
    }


def differences(where: str, found: set[str], wanted: set[str]) -> list[str]:
    """Return a line for each file that is missing, or that nobody wanted."""
    return [
        *(f"{where}: {name} is missing" for name in sorted(wanted - found)),
        *(f"{where}: {name} does not belong there" for name in sorted(found - wanted)),
    ]


def metadata_faults(text: bytes) -> list[str]:
    """Return a line for each field of the metadata that is not valid, or not there."""
    try:
        metadata = Metadata.from_email(text, validate=True)
    except ExceptionGroup as group:
        return [f"metadata: {error}" for error in group.exceptions]
    return [f"metadata: {field} is missing" for field in WANTED if not getattr(metadata, field)]


def _install(installer: str, wheel: Path) -> None:
    """Install a wheel as somebody whose home is empty, with the locked versions, and try it."""
    with tempfile.TemporaryDirectory() as home:
        # Without their hashes: with them pip wants one of the wheel, too.
        locked = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
        versions = [line.rstrip("\\") for line in locked if line[:1].isalnum()]
        constraints = Path(home, "constraints")
        constraints.write_text("\n".join(versions), encoding="utf-8")
        elsewhere = ("BENCHCTL_", "PIPX_", "PYTHON", "UV_TOOL_", "XDG_")
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(elsewhere)},
            "HOME": home,
            "PIP_CONSTRAINT": str(constraints),
            "UV_CONSTRAINT": str(constraints),
        }
        program, *words = installer.split()
        install = [BIN / program, *words, "install", "--quiet", "--python", sys.executable, wheel]
        _run(install, cwd=home, env=environment)
        for command in COMMANDS:
            print(f"{installer}: {command}", flush=True)
            program, *words = command.split()
            _run([Path(home, ".local/bin", program), *words], cwd=home, env=environment)


def _run(argv: list[Any], **options: Any) -> None:
    subprocess.run(list(map(str, argv)), **{"cwd": ROOT, **options}, check=True)


if __name__ == "__main__":
    sys.exit(main())
