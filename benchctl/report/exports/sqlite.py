"""One run as a store of its own, which ``--store FILE`` opens."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchctl.report.report import StoredRun
from benchctl.store.copies.copy import copy_run

_PIECE_BYTES = 1 << 20


def export(stored: StoredRun) -> Iterator[bytes]:
    """Yield the file of such a store in pieces. Raises StoreError."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "run.sqlite"
        copy_run(stored.reader.path, stored.run.id, copy)
        with copy.open("rb") as file:
            while piece := file.read(_PIECE_BYTES):
                yield piece
