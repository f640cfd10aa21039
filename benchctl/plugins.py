"""Finds plugins of every kind: in installed packages, and in single files that the user names.

Installed ones register under the entry point group of their kind, such as ``benchctl.backends``.
Files are named by ``--plugin FILE`` or in ``BENCHCTL_PLUGINS`` (whole paths, separated as in PATH)
and offer the variable of a kind, such as ``BACKEND``, or several; a file takes precedence over an
installed plugin of its name. Code in the current directory is never loaded by itself. Listing names
imports nothing. A plugin that fails to import, or two of a kind with the same name, are reported
and affect no other plugin.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from functools import cache, partial
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    NamedTuple,
    TypeVar,
    get_origin,
    get_type_hints,
)

from benchctl.errors import BenchctlError, IncompatibleError, MissingError, PluginError

if TYPE_CHECKING:
    from importlib.metadata import Distribution

FILES_VARIABLE = "BENCHCTL_PLUGINS"

REPORT_IT = "report it to the author of the plugin"

T = TypeVar("T")


@contextmanager
def plugin_bugs(what: str, *allowed: type[Exception], hint: str = REPORT_IT) -> Iterator[None]:
    """Turn what a plugin raises into a PluginError: ``what``, the type of its error, and its text.

    Errors of benchctl pass, and those that its contract has ``allowed``.
    """
    try:
        yield
    except BenchctlError:
        raise
    except allowed:
        raise
    except (Exception, SystemExit) as error:  # third-party code may fail in any way
        raise PluginError(f"{what}: {type(error).__name__}: {error}", hint) from error


class PluginKind(StrEnum):
    """A kind of plugin."""

    BACKEND = "backend"
    EXPORTER = "exporter"
    IMPORTER = "importer"

    @property
    def group(self) -> str:
        """The entry point group of its packages."""
        return f"benchctl.{self}s"

    @property
    def variable(self) -> str:
        """The variable by which a single file offers it."""
        return self.name

    @property
    def contract(self) -> str:
        """The class of `benchctl.api` that it is an instance of."""
        return self.capitalize()


class Candidate(NamedTuple):
    """A registered plugin, not imported yet."""

    name: str
    origin: str
    """Its source: a distribution's name and version, or a file."""
    load: Callable[[], object]


class PluginRegistry(Generic[T]):
    """The available plugins of a kind, imported one by one on demand."""

    kind: ClassVar[PluginKind]

    def __init__(self, candidates: Mapping[str, Candidate]) -> None:
        self.candidates = dict(candidates)
        self._loaded: dict[str, T] = {}

    def load(self, name: str) -> T:
        """Return a plugin by name.

        Raises MissingError if there is none of that name, PluginError if it is broken, and
        IncompatibleError if it is of a version of the API that is not supported.
        """
        if name not in self._loaded:
            candidate = self.candidates.get(name)
            if candidate is None:
                known = ", ".join(sorted(self.candidates)) or "none"
                raise MissingError(f'no {self.kind} "{name}"', f"available: {known}")
            plugin = _import(self.kind, candidate)
            if why := self.objection(plugin):
                raise PluginError(
                    f'{self.kind} "{name}" from {candidate.origin} cannot be used: {why}',
                    REPORT_IT,
                )
            self._loaded[name] = plugin
        return self._loaded[name]

    def broken(self) -> dict[str, MissingError]:
        """Return why plugins cannot be used, by name; imports all of them."""
        found = {}
        for name in sorted(self.candidates):
            try:
                self.load(name)
            except MissingError as error:
                found[name] = error
        return found

    def objection(self, plugin: T) -> str:
        """Return why a plugin cannot be used beside others, although it keeps to its contract.

        An empty text if it can, as by default.
        """
        return ""


def find(kind: PluginKind) -> dict[str, Candidate]:
    """Return everything of a kind that is installed or named, by name."""
    return {**_one_each(_packages(kind)), **named_files(kind)}


def named_files(kind: PluginKind) -> dict[str, Candidate]:
    """Return the plugins of a kind in files that the user names."""
    return _one_each(_files(kind))


def use_files(files: Iterable[Path]) -> None:
    """Name files, before those that are named already; to be called before any is looked for."""
    before = os.environ.get(FILES_VARIABLE)
    # In the environment, so that the runner's process finds them too.
    found = [str(file.resolve()) for file in files] + ([before] if before else [])
    os.environ[FILES_VARIABLE] = os.pathsep.join(found)


def _import(kind: PluginKind, candidate: Candidate) -> Any:
    from benchctl import api  # which loads pydantic: a tenth of a second

    name, origin = candidate.name, candidate.origin
    hint = f"it comes from {origin}; reinstall it, or {REPORT_IT}"
    with plugin_bugs(f'{kind} "{name}" cannot be loaded', hint=hint):
        try:
            plugin: Any = candidate.load()
        except ImportError as error:
            if error.name == "benchctl.api":  # a newer one has more names
                raise _incompatible(kind, candidate, str(error)) from error
            raise
    contract: Any = getattr(api, kind.contract)
    if not isinstance(plugin, contract):
        raise PluginError(
            f'{kind} "{name}" from {origin} is not a benchctl.api.{kind.contract}',
            f"its entry point, or {kind.variable}, must be an instance",
        )
    _check(kind, candidate, plugin, contract)
    if plugin.name != name:
        raise PluginError(
            f'{kind} "{name}" from {origin} calls itself "{plugin.name}"',
            "its entry point, or its file, must have its name",
        )
    return plugin


def _check(kind: PluginKind, candidate: Candidate, plugin: Any, contract: type[object]) -> None:
    """Raise PluginError for a plugin without the attributes that its contract declares."""
    from benchctl.api import API_VERSION, OLDEST_API_VERSION

    for attribute, hint in get_type_hints(contract).items():
        declared = get_origin(hint) or hint
        if not isinstance(getattr(plugin, attribute, None), declared):
            raise PluginError(
                f'{kind} "{candidate.name}" from {candidate.origin}: '
                f"{attribute} must be set, and of type {declared.__name__}",
                REPORT_IT,
            )
        # Of all attributes the first: those of another version may differ.
        if attribute == "api_version":
            version = plugin.api_version
            if not OLDEST_API_VERSION <= version <= API_VERSION:
                here = f"this benchctl supports {OLDEST_API_VERSION} to {API_VERSION}"
                why = f"it was written for version {version} of benchctl.api; {here}"
                raise _incompatible(kind, candidate, why, version)


def _incompatible(
    kind: PluginKind, candidate: Candidate, why: str, version: int | None = None
) -> IncompatibleError:
    return IncompatibleError(
        f'{kind} "{candidate.name}" from {candidate.origin} is incompatible: {why}',
        "install another version of the plugin, or of benchctl",
        version,
    )


def _packages(kind: PluginKind) -> Iterator[Candidate]:
    from importlib.metadata import entry_points  # not needed for formats of our own

    for entry in entry_points(group=kind.group):
        origin = _named(entry.dist) if entry.dist else entry.value
        yield Candidate(entry.name, origin, entry.load)


@cache
def _named(package: Distribution) -> str:
    # Each look at the metadata reads all of it, with the package's readme.
    about = package.metadata
    return f"{about['Name']} {about['Version']}"


def _files(kind: PluginKind) -> Iterator[Candidate]:
    for text in filter(None, os.environ.get(FILES_VARIABLE, "").split(os.pathsep)):
        path = Path(text)
        if not path.is_absolute():  # another file in every directory, maybe a stranger's
            why = f"{FILES_VARIABLE} takes whole paths"
            yield Candidate(path.stem, text, partial(_refuse, why))
        elif kind in _kinds_in(path):
            yield Candidate(path.stem, text, partial(_load_file, path, kind.variable))


def _kinds_in(path: Path) -> set[PluginKind]:
    """Return what a file offers, by the names in its code, which does not run.

    One whose code cannot be read may be anything, and one that offers nothing should be a backend.
    """
    try:
        with warnings.catch_warnings(action="ignore"):  # the import will show them
            code = compile(path.read_bytes(), path, "exec", dont_inherit=True)
    except Exception:  # the import will say why
        return {*PluginKind}
    return {kind for kind in PluginKind if kind.variable in code.co_names} or {PluginKind.BACKEND}


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


def _load_file(path: Path, variable: str) -> object:
    name = f"benchctl_plugin_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pydantic look up annotations that are text in here.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return getattr(module, variable)
