"""benchctl's own formats: one file for each, with a function ``export``.

``export(stored)`` yields a run in pieces of text, or of bytes. One that cannot write on every
machine has a function ``check``, which is called before anything is measured. A file is imported
when it is used. `benchctl.report.output.formats` has all formats, those of plugins too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

from benchctl.exporter import Exporter


class OwnExporter(Exporter):
    """A format of ours: it gets a run as it is stored. One without endings has its own option."""

    def __init__(
        self, name: str, endings: Sequence[str], about: str, *, binary: bool = False
    ) -> None:
        self.name = name
        self.endings = (*endings,)
        self.about = about
        self.binary = binary

    def check(self) -> None:
        """Raise MissingError without a library."""
        getattr(self._module(), "check", super().check)()

    def export(self, run: Any) -> Iterable[str | bytes]:
        """Return the pieces of a `benchctl.report.report.StoredRun`. Raises StoreError."""
        pieces: Iterable[str | bytes] = self._module().export(run)
        return pieces

    def _module(self) -> Any:
        return import_module(f"{__name__}.{self.name}")


_ALL = (
    OwnExporter("table", ["txt"], "the summary, for a terminal"),
    OwnExporter("md", ["md", "markdown"], "the summary as a table in GitHub's markdown"),
    OwnExporter("csv", ["csv"], "the summary in SI units, one line per metric"),
    OwnExporter("spreadsheet", ["sheet.csv"], "as csv, but no text is taken for a formula"),
    OwnExporter("json", ["json"], "the whole run as one JSON object"),
    OwnExporter("junit", ["xml"], "the expectations as JUnit XML, for CI systems"),
    OwnExporter("jsonl", ["jsonl", "ndjson"], "the run as events, one JSON object per line"),
    OwnExporter("openmetrics", ["om", "prom"], "the summary as OpenMetrics text, for Prometheus"),
    OwnExporter("influx", ["lp"], "every sample in InfluxDB's line protocol"),
    OwnExporter(
        "parquet", ["parquet"], "every sample as Apache Parquet (needs pyarrow)", binary=True
    ),
    OwnExporter("sqlite", ["sqlite"], "the run as a store of its own", binary=True),
    OwnExporter("samples", [], "every sample as CSV: `export --samples`"),
)
OWN = {exporter.name: exporter for exporter in _ALL}
ENDINGS = {ending: exporter.name for exporter in _ALL for ending in exporter.endings}
