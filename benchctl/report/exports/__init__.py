"""The exports: one file for each, with a function ``export``.

``export(stored)`` yields a run in pieces of text, or of bytes. One that cannot write every run has
a function ``check``, which is called before anything is measured. The command line, completion and
docs/output.md take the exports from the table here; a file is imported when it is used.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from benchctl.report.output import Output
    from benchctl.report.report import StoredRun


class Export(NamedTuple):
    """One export. ``endings`` are those of its files; without any, it has an option of its own."""

    name: str
    endings: tuple[str, ...]
    about: str
    binary: bool = False

    def check(self, *, single: bool) -> None:
        """Find out before anything is measured whether a run can be written in this form.

        ``single`` is whether it will have one trial. Raises UsageError, and MissingError.
        """
        check = getattr(import_module(f"{__name__}.{self.name}"), "check", None)
        if check is not None:
            check(single=single)

    def pieces(self, stored: StoredRun) -> Iterable[str | bytes]:
        """Yield a run, as text or, if it is binary, as bytes. Raises StoreError."""
        pieces: Iterable[str | bytes] = import_module(f"{__name__}.{self.name}").export(stored)
        return pieces

    def write(self, stored: StoredRun, output: Output) -> None:
        """Write a run. Raises StoreError, and UnwrittenError if the file cannot be written."""
        for piece in self.pieces(stored):
            output.write(piece)
        output.publish()


_ALL = (
    Export("table", ("txt",), "the summary, for a terminal"),
    Export("md", ("md", "markdown"), "the summary as a table in GitHub's markdown"),
    Export("csv", ("csv",), "the summary in SI units, one line per metric"),
    Export("json", ("json",), "the whole run as one JSON object"),
    Export("junit", ("xml",), "the expectations as JUnit XML, for CI systems"),
    Export("jsonl", ("jsonl", "ndjson"), "the run as events, one JSON object per line"),
    Export("openmetrics", ("om", "prom"), "the summary as OpenMetrics text, for Prometheus"),
    Export("influx", ("lp",), "every sample in InfluxDB's line protocol"),
    Export("parquet", ("parquet",), "every sample as Apache Parquet (needs pyarrow)", binary=True),
    Export("flent", ("flent.gz",), "one trial as a data file of flent", binary=True),
    Export("sqlite", ("sqlite",), "the run as a store of its own", binary=True),
    Export("samples", (), "every sample as CSV: `export --samples`"),
)
EXPORTS = {export.name: export for export in _ALL}
FORMATS = tuple(export.name for export in _ALL if export.endings)
ENDINGS = {ending: export.name for export in _ALL for ending in export.endings}
