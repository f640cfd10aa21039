"""``benchctl backends new``: a backend to start from."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from benchctl.cli.shared import completion


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the new backend.")],
    *,
    single_file: Annotated[
        bool, typer.Option("--single-file", help="Write one Python file, not a package.")
    ] = False,
    directory: Annotated[
        Path,
        typer.Option(
            "--directory",
            metavar="DIR",
            show_default=False,
            help="Write it here; default: the current directory.",
            autocompletion=completion.files,
        ),
    ] = Path(),
) -> None:
    """Write a new backend that works and passes its tests.

    It wraps a small tool that comes with benchctl: put yours in its place.
    """
    from benchctl.backends import installed
    from benchctl.cli.shared.options import check_new, write_new
    from benchctl.errors import UsageError
    from benchctl.testing import scaffold

    try:
        scaffold.check_name(name)
    except ValueError as error:
        raise UsageError(f'no backend can be called "{name}": {error}') from None
    if other := installed().candidates.get(name):
        raise UsageError(
            f'there is a backend "{name}" already, from {other.origin}', "choose another name"
        )
    if single_file:
        ((file, text),) = scaffold.single_file(name).items()
        path = directory / file
        write_new(str(path), path, text)
        print(path, flush=True)
        print(f"next: benchctl backends check {path}", file=sys.stderr)
        return
    root = directory / f"benchctl-{name}"
    check_new(str(root), root)
    files = scaffold.package(name)
    _write_all(root, files)
    print(*(root / file for file in files), sep="\n", flush=True)
    print(f"next: cd {root}, then pytest, or see README.md there", file=sys.stderr)


def _write_all(root: Path, files: Mapping[str, str]) -> None:
    """Write a directory whole or not at all. Raises UsageError."""
    import shutil
    import tempfile

    from benchctl.errors import UsageError

    scratch = None
    try:
        scratch = Path(tempfile.mkdtemp(prefix=f".{root.name}-", dir=root.parent))
        whole = scratch / root.name
        for file, text in files.items():
            path = whole / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        whole.rename(root)
    except OSError as error:
        raise UsageError(f"{root}: {error.strerror}") from None
    finally:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)
