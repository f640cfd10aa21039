"""What commands ask a fleet for, and the copy of its runs that they read."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Any, TypeVar

from benchctl.errors import FleetError
from benchctl.visible import visible

T = TypeVar("T")


def ask_fleet(file: Path, message: Any, kind: type[T]) -> T:
    """Return the coordinator's answer. Raises UsageError if it refuses, and FleetError."""
    from benchctl.fleet.person import opened

    async def ask() -> T:
        async with opened(file) as (link, _):
            return await link.ask(message, kind)

    return asyncio.run(ask())


def current_copy(file: Path) -> Path:
    """Return the copy of a fleet's runs, brought up to date if the fleet is reached.

    Says as of when it is if not. Raises FleetError if there is no copy either.
    """
    from benchctl.fleet.copy import bring_up_to_date
    from benchctl.fleet.person import copy_path, opened
    from benchctl.fleet.trust.membership import read_membership

    copy = copy_path(read_membership(file))

    async def update() -> None:
        async with opened(file) as (link, member):
            await bring_up_to_date(link, member, copy)

    try:
        asyncio.run(update())
    except FleetError as error:
        if not copy.exists():
            raise
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(_changed_time(copy)))
        text = f"benchctl: {error.message}; what is shown is as of {at}"
        print(visible(text), file=sys.stderr)
    return copy


def _changed_time(store: Path) -> float:
    files = (store, store.with_name(f"{store.name}-wal"))
    return max(file.stat().st_mtime for file in files if file.exists())
