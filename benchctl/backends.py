"""Finds backends: installed packages, and single files that the user names.

Installed ones register under the entry point group ``benchctl.backends``. Files are named by
``--plugin FILE`` or in ``BENCHCTL_PLUGINS`` (separated as in PATH) and offer ``BACKEND``; code that
merely lies in the current directory is never loaded. Listing names imports nothing; a plugin that
fails to import is reported as broken and does not disturb the others.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
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
    """A backend that was announced but not yet imported."""

    name: str
    origin: str
    """Who announced it: a distribution's name and version, or a file."""
    load: Callable[[], object]


class Registry:
    """The backends that can be used here, imported one by one as they are asked for."""

    def __init__(self, candidates: Mapping[str, Candidate]) -> None:
        self.candidates = dict(candidates)
        self._loaded: dict[str, AnyBackend] = {}

    def load(self, name: str) -> AnyBackend:
        """Return a backend by name.

        Raises MissingError when there is none of that name, or its plugin is broken.
        """
        if name not in self._loaded:
            candidate = self.candidates.get(name)
            if candidate is None:
                known = ", ".join(sorted(self.candidates)) or "none"
                raise MissingError(f'no backend "{name}"', f"there are: {known}")
            self._loaded[name] = _import(candidate)
        return self._loaded[name]


def _import(candidate: Candidate) -> AnyBackend:
    try:
        backend = candidate.load()
    except Exception as error:  # a stranger's code may fail in any way at all
        raise MissingError(
            f'backend "{candidate.name}" cannot be loaded: {type(error).__name__}: {error}',
            f"it comes from {candidate.origin}; reinstall it, or tell its author",
        ) from error
    if not isinstance(backend, Backend):
        raise MissingError(
            f'backend "{candidate.name}" from {candidate.origin} is not a benchctl.api.Backend',
            "its entry point must name an instance",
        )
    return backend


@cache
def installed() -> Registry:
    """Return the registry of everything installed and named; the same one on every call."""
    candidates = {
        entry.name: Candidate(
            entry.name,
            f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value,
            entry.load,
        )
        for entry in entry_points(group=GROUP)
    }
    for text in filter(None, os.environ.get(FILES_VARIABLE, "").split(os.pathsep)):
        path = Path(text)
        candidates[path.stem] = Candidate(path.stem, text, _file_loader(path))
    return Registry(candidates)


def _file_loader(path: Path) -> Callable[[], object]:
    def load() -> object:
        spec = importlib.util.spec_from_file_location(f"benchctl_plugin_{path.stem}", path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{path} is not a Python file")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.BACKEND

    return load
