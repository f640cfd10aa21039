"""Where the packets of a run are: in a folder of its own beside the store, deleted with the run.

Those of a trace that was kept are where they were, and stay there.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from benchctl.errors import UsageError
from benchctl.run.record import RecordedPackets

# Others should see them as little as the store itself.
PRIVATE_FOLDER = 0o700


def captures_of(store: Path, run: str) -> Path:
    """Return the folder of a run's packets, which need not exist."""
    return store.with_name(f"{store.name}.packets") / run


def trace_path(store: Path, packets: RecordedPackets) -> Path:
    """Return the file of some packets. Raises UsageError if it is gone, or is another one now."""
    path = store.parent / packets.file
    try:
        status = path.stat()
    except OSError as error:
        raise UsageError(
            f"{path}: {error.strerror}, and the run has no copy of its packets"
        ) from None
    now = status.st_size, status.st_mtime
    if packets.changed_time and now != (packets.size_bytes, packets.changed_time):
        raise UsageError(
            f"{path}: it has changed since the run was kept",
            f"benchctl packets {path} keeps it anew",
        )
    return path


def delete_captures(store: Path, run: str) -> None:
    """Delete the packets of a run, if there are any."""
    folder = captures_of(store, run)
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):  # Other runs have packets there, or there are none at all.
        folder.parent.rmdir()
