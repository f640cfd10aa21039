"""``benchctl store``: the store's file itself, whole or damaged."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from benchctl.cli.shared import completion, options
from benchctl.cli.shared.command import PlainCommand, group

store = group("Check a store, or salvage a damaged one.")


@store.command(cls=PlainCommand)
def check(*, store: options.Store) -> None:
    """Read the whole store and report damage.

    Exits with code 1 if anything is damaged.
    """
    from benchctl.store.copies.salvage import check

    found = check(store)
    print(f"store {store}: {found.text()} can be read")
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


@store.command(cls=PlainCommand)
def salvage(
    copy: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="The new store file.", autocompletion=completion.files),
    ],
    *,
    store: options.Store,
) -> None:
    """Copy what can be read to a new store."""
    from benchctl.store.copies.salvage import salvage

    found = salvage(store, copy)
    print(f"store {copy}: {found.text()}")
    for problem in found.problems:
        print(f"damaged, and skipped where unreadable: {problem}", file=sys.stderr)
