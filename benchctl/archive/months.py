"""What an archive has of each month."""

from __future__ import annotations

from datetime import date

from msgspec import Struct

from benchctl.archive.connection import Archive


class Month(Struct, frozen=True):
    """The runs of a month. ``size_bytes`` is that of its samples; ``files`` have them instead."""

    month: date
    runs: int
    samples: int
    size_bytes: int
    files: tuple[str, ...]


def months(archive: Archive) -> list[Month]:
    """Return the months of an archive, the newest first. Raises ArchiveError."""
    query = (
        "SELECT month, count(*), sum(samples)::bigint,"
        " coalesce(pg_total_relation_size(to_regclass('benchctl_data.piece_'"
        " || to_char(month, 'YYYY_MM'))), 0),"
        " coalesce(array_agg(DISTINCT file) FILTER (WHERE file IS NOT NULL), '{}')"
        " FROM benchctl_data.run GROUP BY month ORDER BY month DESC"
    )
    return [
        Month(month, runs, samples, size_bytes, (*files,))
        for month, runs, samples, size_bytes, files in archive.rows(query)
    ]
