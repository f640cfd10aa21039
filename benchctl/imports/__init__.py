"""Reads files that tools wrote before: each kind of file becomes trials of a run.

A backend reads the files of its own tool (`benchctl.api.Backend.recorded`), with the parser of its
own: so a new backend brings its import. A file that is no backend's has a module here with a
function ``recorded``. Both get the bytes of a file and return its measurements, or None if it is
not theirs. Everything else is the same for all: reading the file within bounds (`files`), the axes
(`axes`), and the run (`run`), which is built beside the store and then copied into it as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import NamedTuple

from benchctl.api import Backend, ParserError, Recording
from benchctl.backends import AnyBackend, Registry
from benchctl.errors import BenchctlError, MissingError

Trials = Sequence[Mapping[str, Recording]]
"""The measurements in a file: for each trial, those of its flows by name."""

_OWN = ("flent",)
"""The kinds of files that are no backend's: a module here for each."""


class FileKind(NamedTuple):
    """One kind of file; ``backend`` is the one whose tool wrote it, if it is one's."""

    name: str
    read: Callable[[bytes], Trials | None]
    backend: AnyBackend | None = None


def kinds(registry: Registry) -> dict[str, FileKind]:
    """Return every kind of file that can be read, by name; a plugin that is broken has none."""
    found = {}
    for name in sorted(registry.candidates):
        try:
            backend = registry.load(name)
        except MissingError:
            continue
        if type(backend).recorded is not Backend.recorded:
            found[name] = FileKind(name, _by(backend), backend)
    for name in _OWN:
        found[name] = FileKind(name, import_module(f"{__name__}.{name}").recorded)
    return found


def _by(backend: AnyBackend) -> Callable[[bytes], Trials | None]:
    def read(data: bytes) -> Trials | None:
        try:
            found = backend.recorded(data)
        except (ParserError, BenchctlError):
            raise
        except Exception as error:  # third-party code may fail in any way
            raise ParserError(
                f"the plugin {backend.name} failed: {type(error).__name__}: {error}"
            ) from error
        return None if found is None else [{backend.name: one} for one in found]

    return read
