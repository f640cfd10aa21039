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
from typing import TYPE_CHECKING, Any, TypeAlias

from benchctl.errors import IncompatibleError, MissingError, PluginError

if TYPE_CHECKING:
    from benchctl.api import Backend

GROUP = "benchctl.backends"
FILES_VARIABLE = "BENCHCTL_PLUGINS"

AnyBackend: TypeAlias = "Backend[Any]"


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

        Raises MissingError if there is none of that name, PluginError if it is broken, and
        IncompatibleError if it is of a version of the API that is not supported.
        """
        if name not in self._loaded:
            candidate = self.candidates.get(name)
            if candidate is None:
                known = ", ".join(sorted(self.candidates)) or "none"
                raise MissingError(f'no backend "{name}"', f"available: {known}")
            self._loaded[name] = _import(candidate)
        return self._loaded[name]


def _import(candidate: Candidate) -> AnyBackend:
    from benchctl.api import Backend  # which loads pydantic: a tenth of a second

    name, origin = candidate.name, candidate.origin
    try:
        backend = candidate.load()
    except (Exception, SystemExit) as error:  # third-party code may fail in any way
        if isinstance(error, ImportError) and error.name == "benchctl.api":
            raise _incompatible(candidate, str(error)) from error  # a newer one has more names
        raise PluginError(
            f'backend "{name}" cannot be loaded: {type(error).__name__}: {error}',
            f"it comes from {origin}; reinstall it, or report it to the author of the plugin",
        ) from error
    if not isinstance(backend, Backend):
        raise PluginError(
            f'backend "{name}" from {origin} is not a benchctl.api.Backend',
            "its entry point, or BACKEND, must be an instance",
        )
    _check(candidate, backend)
    if backend.name != name:
        raise PluginError(
            f'backend "{name}" from {origin} calls itself "{backend.name}"',
            "its entry point, or its file, must have its name",
        )
    return backend


def _check(candidate: Candidate, backend: AnyBackend) -> None:
    """Raise PluginError for a backend without the attributes that it must have."""
    from benchctl.api import API_VERSION, OLDEST_API_VERSION, Capabilities

    _check_attribute(candidate, backend, "api_version", int)
    version = backend.api_version
    if not OLDEST_API_VERSION <= version <= API_VERSION:
        here = f"this benchctl supports {OLDEST_API_VERSION} to {API_VERSION}"
        why = f"it was written for version {version} of benchctl.api; {here}"
        raise _incompatible(candidate, why, version)
    kinds = {"name": str, "summary": str, "parameters": type, "capabilities": Capabilities}
    for attribute, kind in kinds.items():
        _check_attribute(candidate, backend, attribute, kind)


def _check_attribute(
    candidate: Candidate, backend: AnyBackend, attribute: str, kind: type[object]
) -> None:
    if not isinstance(getattr(backend, attribute, None), kind):
        raise PluginError(
            f'backend "{candidate.name}" from {candidate.origin}: '
            f"{attribute} must be set, and of type {kind.__name__}",
            "report it to the author of the plugin",
        )


def _incompatible(candidate: Candidate, why: str, version: int | None = None) -> IncompatibleError:
    return IncompatibleError(
        f'backend "{candidate.name}" from {candidate.origin} is incompatible: {why}',
        "install another version of the plugin, or of benchctl",
        version,
    )


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
