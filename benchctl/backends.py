"""Finds backends: installed packages, and single files that the user names.

Installed ones register under the entry point group ``benchctl.backends``. Files are named by
``--plugin FILE`` or in ``BENCHCTL_PLUGINS`` (whole paths, separated as in PATH) and offer
``BACKEND``; a file takes precedence over an installed backend of its name. Code in the current
directory is never loaded by itself. Listing names imports nothing. A plugin that fails to import,
or two plugins with the same name, are reported and affect no other plugin.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from benchctl.api import Backend
from benchctl.errors import MissingError

GROUP = "benchctl.backends"
FILES_VARIABLE = "BENCHCTL_PLUGINS"

AnyBackend = Backend[Any]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A registered backend, not imported yet."""

    name: str
    origin: str
    """Its source: a distribution's name and version, or a file."""
    load: Callable[[], object]


class Registry:
    """The available backends, imported one by one on demand."""

    def __init__(self, candidates: Mapping[str, Candidate]) -> None:
        self.candidates = dict(candidates)
        self._loaded: dict[str, AnyBackend] = {}

    def load(self, name: str) -> AnyBackend:
        """Return a backend by name.

        Raises MissingError if there is none of that name, or its plugin is broken.
        """
        if name not in self._loaded:
            candidate = self.candidates.get(name)
            if candidate is None:
                known = ", ".join(sorted(self.candidates)) or "none"
                raise MissingError(f'no backend "{name}"', f"available: {known}")
            self._loaded[name] = _import(candidate)
        return self._loaded[name]


def _import(candidate: Candidate) -> AnyBackend:
    name, origin = candidate.name, candidate.origin
    try:
        backend = candidate.load()
    except (Exception, SystemExit) as error:  # third-party code may fail in any way
        raise MissingError(
            f'backend "{name}" cannot be loaded: {type(error).__name__}: {error}',
            f"it comes from {origin}; reinstall it, or report it to the author of the plugin",
        ) from error
    if not isinstance(backend, Backend):
        raise MissingError(
            f'backend "{name}" from {origin} is not a benchctl.api.Backend',
            "its entry point, or BACKEND, must be an instance",
        )
    if backend.name != name:
        raise MissingError(
            f'backend "{name}" from {origin} calls itself "{backend.name}"',
            "its entry point, or its file, must have its name",
        )
    return backend


@cache
def installed() -> Registry:
    """Return the registry of everything installed and named; the same one on every call."""
    return Registry({**_one_each(_packages()), **_one_each(_files())})


def _packages() -> Iterator[Candidate]:
    for entry in entry_points(group=GROUP):
        origin = f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value
        yield Candidate(entry.name, origin, entry.load)


def _files() -> Iterator[Candidate]:
    for text in filter(None, os.environ.get(FILES_VARIABLE, "").split(os.pathsep)):
        path = Path(text)
        load = partial(_load_file, path)
        if not path.is_absolute():  # another file in every directory, maybe a stranger's
            load = partial(_refuse, f"{FILES_VARIABLE} takes whole paths")
        yield Candidate(path.stem, text, load)


def _one_each(candidates: Iterable[Candidate]) -> dict[str, Candidate]:
    """Return candidates by name; two with one name are reported as ambiguous."""
    found: dict[str, Candidate] = {}
    for candidate in candidates:
        name, other = candidate.name, found.get(candidate.name)
        if other is not None and other.origin != candidate.origin:
            origin = f"{other.origin} and {candidate.origin}"
            candidate = Candidate(name, origin, partial(_refuse, "both offer this name"))
        found[name] = candidate
    return found


def _refuse(why: str) -> object:
    raise LookupError(why)


def _load_file(path: Path) -> object:
    name = f"benchctl_plugin_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pydantic look up annotations that are text in here.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module.BACKEND
