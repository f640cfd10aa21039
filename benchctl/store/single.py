"""Reads the samples of single series onwards, each up to a moment of its flow."""

from __future__ import annotations

from pathlib import Path

from benchctl.store.database import connect, store_errors

# Some milliseconds of work.
MOST = 512
# By the index of series: a reader of all would go by id, as `bulk` does.
_ONWARDS = """
SELECT id, start_s, end_s, omitted, data FROM sample INDEXED BY sample_of_series
WHERE series_id = ? AND id > ? AND id <= ? ORDER BY id LIMIT ?
"""


class SingleSeries:
    """Reads one store. Methods raise StoreError on failure."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = connect(path)

    def close(self) -> None:
        """Close the store."""
        self._connection.close()

    def onwards(
        self, series_id: int, after: int, last: int, until_s: float
    ) -> tuple[int, list[tuple[float, bytes]], bool]:
        """Return the next samples that end before ``until_s``: their lengths, and packed values.

        They have ids above ``after``, up to ``last``; those of the omitted part are left out. Also
        returned are the id to go on from, and whether there is more at once.
        """
        with store_errors(self._path):
            wanted = (series_id, after, last, MOST)
            rows = self._connection.execute(_ONWARDS, wanted).fetchall()
        values: list[tuple[float, bytes]] = []
        for number, start_s, end_s, omitted, data in rows:
            if end_s >= until_s:
                return after, values, False
            after = number
            if not omitted:
                values.append((end_s - start_s, data))
        return after, values, len(rows) == MOST
