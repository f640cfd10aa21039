"""``benchctl store``: the store's file itself, whole or damaged."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from benchctl.cli import options
from benchctl.cli.options import InOrder


@click.group(cls=InOrder)
def store() -> None:
    """Check a store, save what can be read of a damaged one."""


@store.command()
@options.store
def check(store: Path | None) -> None:
    """Read the whole store and say what is damaged.

    Ends with code 1 when something is.
    """
    from benchctl.store.database import default_path
    from benchctl.store.salvage import check

    path = store or default_path()
    found = check(path)
    print(f"store {path}: {found.text()} can be read")
    for problem in found.problems:
        print(f"damaged: {problem}")
    if found.problems:
        sys.stdout.flush()
        print(
            "benchctl: the store is damaged\n"
            "  benchctl store salvage FILE copies what can be read to a new store",
            file=sys.stderr,
        )
        sys.exit(1)


@store.command()
@click.argument("copy", metavar="FILE", type=options.FILE, help="The new store file.")
@options.store
def salvage(copy: Path, store: Path | None) -> None:
    """Copy what can be read to a new store."""
    from benchctl.store.database import default_path
    from benchctl.store.salvage import salvage

    found = salvage(store or default_path(), copy)
    print(f"store {copy}: {found.text()}")
    for problem in found.problems:
        print(f"damaged, and skipped where unreadable: {problem}", file=sys.stderr)
