"""One import: which files become which run, and what becomes of each file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from benchctl.api import ParserError
from benchctl.errors import MissingError, UsageError
from benchctl.imports.files import MOST_FILES, File, files_in, is_store, name_of, read
from benchctl.imports.kinds import FileKind, Trials
from benchctl.imports.result import ImportedRun, Left
from benchctl.imports.run import RunBuilder
from benchctl.imports.stores import STORE, import_store
from benchctl.store.copies.copy import AlreadyThereError
from benchctl.store.read import Reader

_TELLING = (".json", ".gz", ".sqlite")
"""Endings of files that say what they are: if one is not, it is reported."""


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """What to import as what.

    ``kind`` is that of all files, None to recognise each. ``profile`` and ``flow`` are names for
    the runs and their flows, empty to take those of files and tools. ``dry`` leaves the store as it
    is.
    """

    store: Path
    kinds: Mapping[str, FileKind]
    kind: str | None = None
    profile: str = ""
    flow: str = ""
    tags: Sequence[str] = ()
    dry: bool = False


def import_paths(paths: Sequence[Path], request: ImportRequest) -> Iterator[ImportedRun | Left]:
    """Import files and folders: each folder is a run, and all single files together are one.

    Files of different kinds are runs of their own. Yields the runs, and the files that are left.
    Raises UsageError for a path that is not there, StoreError.
    """
    folders = [path for path in paths if path.is_dir()]
    single = [path for path in paths if path not in folders]
    for path in single:
        if not path.exists():
            raise UsageError(f"{path}: there is no such file or folder")
    if single:
        at = single[0]
        name = stem(at) if len(single) == 1 else at.resolve().parent.name
        yield from _Group(request, name, named=True).take(single)
    for folder in folders:
        found = False
        for outcome in _Group(request, folder.resolve().name, named=False).take(files_in(folder)):
            found = True
            yield outcome
        if not found:
            yield Left(name_of(folder), "there is no file in it")


def stem(path: Path) -> str:
    """Return a file's name without its endings: ``one`` of ``one.flent.gz``."""
    return path.name.lstrip(".").partition(".")[0] or path.name


class _Group:
    """The files of one import that belong together: a run for each kind among them."""

    def __init__(self, request: ImportRequest, name: str, *, named: bool) -> None:
        """``named`` is whether each file was named, and not found in a folder."""
        self._request = request
        self._profile = request.profile or name_of(Path(name or "imported"))
        self._named = named
        self._runs: dict[str, RunBuilder] = {}
        self._seen: dict[str, str] = {}
        """The names of the imported files by the hashes of their content."""

    def take(self, paths: Iterable[Path]) -> Iterator[ImportedRun | Left]:
        """Import files; yields the runs, and the files that are left."""
        request = self._request
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            reader = None
            if request.store.exists():
                reader = stack.enter_context(closing(Reader(request.store)))
            for number, path in enumerate(paths):
                if number == MOST_FILES:
                    raise UsageError(
                        f"more than {MOST_FILES:,} files", "import the folders within one by one"
                    )
                try:
                    if request.kind in (None, STORE) and is_store(path):
                        yield from import_store(path, request.store, request.tags, dry=request.dry)
                    elif (left := self._import(read(path), reader, folder, stack)) is not None:
                        yield left
                except OSError as error:
                    yield Left(name_of(path), error.strerror or "cannot be read")
                except ParserError as error:
                    yield Left(name_of(path), str(error))
            for run in filter(len, self._runs.values()):
                try:
                    yield run.finish(None if request.dry else request.store)
                except AlreadyThereError as error:
                    why = f"another import brought its files, as {error.run}; import the rest again"
                    yield Left(self._profile, why)

    def _import(
        self, file: File, reader: Reader | None, folder: Path, stack: ExitStack
    ) -> Left | None:
        """Import one file; returns why not. Raises ParserError if its content cannot be."""
        request = self._request
        where = self._seen.get(file.sha256) or (reader and reader.imported(file.sha256))
        if where:
            return Left(file.name, f"is there already: {where}", is_fault=False)
        kind, trials = self._recognised(file)
        if kind is None:
            known = ", ".join([*request.kinds, STORE])
            telling = self._named or file.path.suffix.lower() in _TELLING
            return Left(file.name, f"is of no kind that is known: {known}", is_fault=telling)
        if kind.name not in self._runs:
            built = folder / f"{kind.name}.sqlite"
            run = RunBuilder(built, kind, self._profile, request.flow, request.tags)
            self._runs[kind.name] = stack.enter_context(closing(run))
        self._runs[kind.name].add(file, trials)
        self._seen[file.sha256] = file.name
        return None

    def _recognised(self, file: File) -> tuple[FileKind | None, Trials]:
        """Return the kind of a file, and what it measured. Raises ParserError."""
        kinds, asked = self._request.kinds, self._request.kind
        failed: MissingError | None = None
        for kind in kinds.values():
            if asked in (None, kind.name):
                try:
                    trials = kind.read(file.data)
                except MissingError as error:
                    failed = failed or error
                    continue
                if trials is not None:
                    return kind, trials
        if failed is not None:
            raise ParserError(failed.message)
        if asked is not None:
            raise ParserError(f"is no file of {asked}")
        return None, ()
