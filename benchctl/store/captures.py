"""Where the packets of a run are: in a folder of its own beside the store, deleted with the run."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

# Others should see them as little as the store itself.
PRIVATE_FOLDER = 0o700


def captures_of(store: Path, run: str) -> Path:
    """Return the folder of a run's packets, which need not exist."""
    return store.with_name(f"{store.name}.packets") / run


def delete_captures(store: Path, run: str) -> None:
    """Delete the packets of a run, if there are any."""
    folder = captures_of(store, run)
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):  # Other runs have packets there, or there are none at all.
        folder.parent.rmdir()
