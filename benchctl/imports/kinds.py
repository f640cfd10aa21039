"""The kinds of files that can be imported: those of backends, and those of importers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from benchctl.api import Backend, Importer, Metric, ParserError, Recording
from benchctl.backends import AnyBackend, installed
from benchctl.errors import MissingError, PluginError
from benchctl.imports.stores import STORE
from benchctl.plugins import REPORT_IT, PluginKind, PluginRegistry, find, plugin_bugs

Trials = Sequence[Mapping[str, Recording]]
"""The measurements in a file: for each trial, those of its flows by name."""


class FileKind(NamedTuple):
    """One kind of file; ``backend`` is the one whose tool wrote it, if it is one's."""

    name: str
    read: Callable[[bytes], Trials | None]
    """Returns the measurements in a file, None if it is of another kind. Raises ParserError.

    Raises PluginError if its code has failed: the file may be of another kind.
    """
    metrics: tuple[Metric, ...]
    headline: str
    backend: AnyBackend | None = None


class FileKinds(NamedTuple):
    """The kinds of files by name, and why plugins may be missing among them."""

    known: Mapping[str, FileKind]
    broken: Mapping[str, MissingError]


class ImporterRegistry(PluginRegistry[Importer]):
    """The importers."""

    kind = PluginKind.IMPORTER


@cache
def importers() -> ImporterRegistry:
    """Return the importers; the same registry on every call."""
    return ImporterRegistry(find(PluginKind.IMPORTER))


def find_kinds() -> FileKinds:
    """Return every kind of file that can be read."""
    known: dict[str, FileKind] = {}
    backends, broken_backends = installed(), installed().broken()
    for name in sorted(backends.candidates.keys() - broken_backends):
        backend = backends.load(name)
        if type(backend).recorded is not Backend.recorded:
            can = backend.capabilities
            known[name] = FileKind(name, _by_backend(backend), can.metrics, can.headline, backend)
    broken = importers().broken()
    for name in sorted(importers().candidates.keys() - broken):
        importer = importers().load(name)
        if name in known or name == STORE:
            origin = importers().candidates[name].origin
            broken[name] = PluginError(
                f'importer "{name}" from {origin} is not used: there is another of this name',
                REPORT_IT,
            )
        else:
            known[name] = FileKind(
                name, _by_importer(importer), importer.metrics, importer.headline
            )
    return FileKinds(known, {**broken_backends, **broken})


def _by_backend(backend: AnyBackend) -> Callable[[bytes], Trials | None]:
    def read(data: bytes) -> Trials | None:
        found = backend.recorded(data)
        return None if found is None else [{backend.name: recording} for recording in found]

    return _guarded(backend.name, read)


def _by_importer(importer: Importer) -> Callable[[bytes], Trials | None]:
    def read(data: bytes) -> Trials | None:
        found = importer.recorded(data)
        return None if found is None else [{**trial} for trial in found]

    return _guarded(importer.name, read)


def _guarded(name: str, read: Callable[[bytes], Trials | None]) -> Callable[[bytes], Trials | None]:
    def guarded(data: bytes) -> Trials | None:
        with plugin_bugs(f"the plugin {name} failed", ParserError):
            trials = read(data)
            for recording in (recording for trial in trials or () for recording in trial.values()):
                if not isinstance(recording, Recording):
                    raise TypeError(f"{type(recording).__name__} is no Recording")
        return trials

    return guarded
