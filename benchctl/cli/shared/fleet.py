"""The copy of a fleet's runs that commands read."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from benchctl.errors import FleetError
from benchctl.visible import visible

T = TypeVar("T")


def current_copy(file: Path) -> Path:
    """Return the copy of a fleet's runs, brought up to date if the fleet is reached.

    Says as of when it is if not. Raises FleetError if there is no copy either.
    """
    from benchctl.fleet.copy import copy_of, update_copy

    copy = copy_of(file)
    try:
        update_copy(file)
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


@contextmanager
def following_all(file: Path) -> Iterator[None]:
    """Keep the copy of a fleet's runs current until the block ends, those that begin too.

    It begins when those that are measured are followed.
    """
    argv = [sys.executable, "-P", "-m", "benchctl.fleet.following", os.fspath(file.resolve())]
    process = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.readline()  # it follows all that there are, or has ended
    process.stdout.close()
    try:
        yield
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait()
