"""The formats that a run is written in: benchctl's own (`exports`), and those of plugins.

The command line, completion and docs/output.md take them from here. Plugins get what is promised
of a run (`promised`), and what they do wrong is reported as theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from benchctl.errors import UsageError
from benchctl.exporter import Exporter, ExportError
from benchctl.plugins import REPORT_IT, PluginKind, PluginRegistry, find, named_files, plugin_bugs
from benchctl.report.exports import ENDINGS, OWN, OwnExporter

if TYPE_CHECKING:
    from benchctl.report.output.output import Output
    from benchctl.report.report import StoredRun

_ENDING = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")


class ExporterRegistry(PluginRegistry[Exporter]):
    """The formats of plugins."""

    kind = PluginKind.EXPORTER

    def objection(self, plugin: Exporter) -> str:
        """Return why a format cannot be used: it could be taken for one of ours."""
        if plugin.name in OWN:
            return "benchctl itself has a format of this name"
        for ending in plugin.endings:
            if not _ENDING.fullmatch(ending):
                return f'its ending "{ending}" is not in lower case, or begins with a dot'
            if (ours := by_ending(f".{ending}", ENDINGS)) is not None:
                return f"files that end in .{ending} are of benchctl's own format {ours}"
        return ""


@cache
def plugged() -> ExporterRegistry:
    """Return the formats of plugins; the same registry on every call."""
    return ExporterRegistry(find(PluginKind.EXPORTER))


def names() -> list[str]:
    """Return the names of all formats; imports no plugin."""
    own = [name for name, exporter in OWN.items() if exporter.endings]
    return [*own, *sorted(plugged().candidates.keys() - OWN)]


def load(name: str) -> Exporter:
    """Return a format. Raises MissingError.

    A plugin with the name of one of ours is rejected if the user names its file; an installed one
    changes nothing.
    """
    if name in OWN and name not in named_files(PluginKind.EXPORTER):
        return OWN[name]
    return plugged().load(name)


def plugged_endings() -> tuple[Mapping[str, str], list[str]]:
    """Return the formats of plugins by the endings of their files, and why some are left out."""
    claims: dict[str, list[str]] = {}
    broken = plugged().broken()
    for name in sorted(plugged().candidates.keys() - broken):
        for ending in plugged().load(name).endings:
            claims.setdefault(ending, []).append(name)
    notes = [error.message for error in broken.values()]
    notes += [
        f"{' and '.join(several)} both have .{ending}"
        for ending, several in claims.items()
        if len(several) > 1
    ]
    return {ending: name for ending, (name, *others) in claims.items() if not others}, notes


def by_ending(file: str, endings: Mapping[str, str]) -> str | None:
    """Return the format whose ending a file's name has, the longest if there are several."""
    found = [ending for ending in endings if file.lower().endswith(f".{ending}")]
    return endings[max(found, key=len)] if found else None


def check(exporter: Exporter, *, single: bool) -> None:
    """Find out before anything is measured whether a run can be written in a format.

    ``single`` is whether it will have one trial. Raises UsageError, and MissingError.
    """
    if exporter.single_trial and not single:
        raise UsageError(
            f"a file of {exporter.name} holds one trial, and this run has several",
            "afterwards, benchctl export writes one with --trial, or each with -o DIRECTORY",
        )
    with _its_errors(exporter):
        exporter.check()


def pieces(exporter: Exporter, stored: StoredRun) -> Iterator[str | bytes]:
    """Yield a run in a format: as text or, if that is binary, as bytes.

    Raises StoreError, UsageError if the format cannot hold this run, and MissingError.
    """
    from benchctl.report.exports.promised import promised

    kind = bytes if exporter.binary else str
    with _its_errors(exporter):
        is_own = isinstance(exporter, OwnExporter)
        run: Any = stored if is_own else promised(stored, exporter)
        for piece in exporter.export(run):
            if not isinstance(piece, kind):
                raise TypeError(f"it yields {type(piece).__name__}, and not {kind.__name__}")
            yield piece


def write(exporter: Exporter, stored: StoredRun, output: Output) -> None:
    """Write a run; raises as `pieces`, and UnwrittenError if the file cannot be written."""
    for piece in pieces(exporter, stored):
        output.write(piece)
    output.publish()


@contextmanager
def _its_errors(exporter: Exporter) -> Iterator[None]:
    """Report what the code of a plugin raises as the plugin's."""
    allowed = Exception if isinstance(exporter, OwnExporter) else ExportError
    hint = f"{REPORT_IT}; the run can be exported in another format"
    try:
        with plugin_bugs(f'exporter "{exporter.name}" failed', allowed, hint=hint):
            yield
    except ExportError as error:
        raise UsageError(error.message, error.hint) from error
