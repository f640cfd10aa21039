"""Writes the page of a mesh as files that any web server serves.

Each file is written beside the old one and takes its place when it is complete; one that would not
change is left alone. The page that people open is last. So an update that is killed leaves pages
that can be read, and the next one goes on.
"""

from __future__ import annotations

import secrets
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from statistics import fmean

import msgspec

import benchctl
from benchctl.errors import UnwrittenError, UsageError
from benchctl.report.mesh.changes import (
    SCHEDULED,
    LogLine,
    SeriesChange,
    found_changes,
    logged_changes,
)
from benchctl.report.mesh.content import KnownMesh
from benchctl.report.mesh.judging import Reference
from benchctl.report.mesh.pages import Pages, pair_path, run_path
from benchctl.report.mesh.reading import History, HistoryReading, read_history
from benchctl.report.page.content import page_of
from benchctl.report.page.html import html_of, require_jinja
from benchctl.report.report import StoredRun, read_report
from benchctl.run.record import Run, RunOutline
from benchctl.store.bulk import Bulk, without_collector
from benchctl.store.read import Reader
from benchctl.units import format_time, format_value
from benchctl.visible import visible, visible_lines

_HERE = Path(__file__).parent
DAYS, PAIRS, RUNS = "days", "pairs", "runs"
# Reports of runs: the newest ones, whole for those whose figures a page has room for.
MOST_REPORTS, MOST_TRIALS = 100, 200
_REPORTS, _PAIRS_STAMP = "reports.json", "pairs.sha256"
# Files are removed only from a directory that was empty when this one came.
_MARK = ".benchctl-mesh"
_LEFT_BEHIND_S = 3600.0


class MeshSite:
    """The directory of a site."""

    def __init__(self, path: Path) -> None:
        """Raises UsageError if it cannot be one, or holds what is no site of a mesh."""
        self._path = path
        self.written: dict[str, bool] = {}
        """The files of this update, and whether each has changed."""
        try:
            there = [entry.name for entry in path.iterdir()] if path.exists() else []
            if there and _MARK not in there:
                raise UsageError(f"-o {path}: holds other files", "name a directory of its own")
            path.mkdir(parents=True, exist_ok=True)
            (path / _MARK).touch()
            for folder in (DAYS, PAIRS, RUNS):
                (path / folder).mkdir(exist_ok=True)
            for left in path.glob("**/.benchctl-*.part"):
                if time.time() - left.stat().st_mtime > _LEFT_BEHIND_S:
                    left.unlink(missing_ok=True)
        except OSError as error:
            raise UsageError(f"-o {path}: {error.strerror}") from None

    def read(self, name: str) -> bytes | None:
        """Return a file of days; None if it is not there."""
        return self._read(f"{DAYS}/{name}")

    def write(self, name: str, content: bytes) -> None:
        """Write a file of days. Raises UnwrittenError."""
        self.put(f"{DAYS}/{name}", content)

    def keep_only(self, names: Sequence[str]) -> None:
        """Remove the files of other days."""
        kept = {*names, _REPORTS, _PAIRS_STAMP}
        self._remove(path for path in (self._path / DAYS).iterdir() if path.name not in kept)

    def put(self, name: str, content: bytes) -> None:
        """Write a file if its content is another one. Raises UnwrittenError."""
        target = self._path / name
        self.written[name] = self.written.get(name, False)
        if self._read(name) == content:
            return
        beside = target.with_name(f".benchctl-{secrets.token_hex(8)}.part")
        try:
            try:
                beside.write_bytes(content)
                beside.replace(target)
            except BaseException:
                beside.unlink(missing_ok=True)
                raise
        except OSError as error:
            raise UnwrittenError(str(target), error) from None
        self.written[name] = True

    def clean(self) -> None:
        """Remove pages that are not of this update."""
        found = [*self._path.glob("matrix-*.html"), *self._path.glob(f"{PAIRS}/*.html"),
                 *self._path.glob(f"{RUNS}/*.html")]  # fmt: skip
        self._remove(
            path for path in found if path.relative_to(self._path).as_posix() not in self.written
        )

    def keep(self, name: str) -> None:
        """Leave a file as it is."""
        self.written.setdefault(name, False)

    def has(self, name: str) -> bool:
        """Return whether a file is there."""
        return (self._path / name).is_file()

    def _read(self, name: str) -> bytes | None:
        try:
            return (self._path / name).read_bytes()
        except OSError:
            return None

    @staticmethod
    def _remove(paths: Iterable[Path]) -> None:
        for path in [*paths]:
            with suppress(OSError):
                path.unlink()


def write_site(
    reader: Reader,
    outlines: Sequence[RunOutline],
    site: MeshSite,
    *,
    entries: Sequence[LogLine],
    now: float,
) -> KnownMesh:
    """Write the site of some runs; ``entries`` is what the logs of schedules say of them.

    Raises StoreError, UnwrittenError, MissingError without Jinja2, and UsageError if nothing was
    measured.
    """
    require_jinja()
    with without_collector():
        return _written(reader, outlines, site, entries, now)


def _written(
    reader: Reader,
    outlines: Sequence[RunOutline],
    site: MeshSite,
    entries: Sequence[LogLine],
    now: float,
) -> KnownMesh:
    history = read_history(reader, outlines, site)
    if not history.values and not history.failures:
        raise UsageError("no trial has ended", "see benchctl runs")
    newest = [history.runs[place] for place in history.last.values()]
    changes = [*logged_changes(history, entries)]
    for run in newest:
        if not any(tag.startswith(SCHEDULED) for tag in run.tags):
            own = [
                outline
                for outline in outlines
                if outline.profile == run.profile and outline.status.has_ended
            ]
            changes += found_changes(reader, history, own)
    outcomes = {
        run.profile: read_report(reader, run).outcomes for run in newest if run.settings.expect
    }
    mesh = KnownMesh(history, changes, outcomes, _baselines(reader, history))
    titles = dict.fromkeys(visible(run.title or run.profile) for run in newest)
    reported = [*history.runs[-MOST_REPORTS:], *_changed(reader, outlines, history, changes)]
    names = frozenset(run.name for run in reported)
    pages = Pages(mesh, entries, " / ".join(titles), made=now, runs=names)
    for name, content in _shared():
        site.put(name, content)
    _write_reports(reader, history, reported, pages, site)
    stamp = _stamp(reader, outlines, entries, mesh, names)
    paths = [pair_path((min(pair), max(pair))) for pair in mesh.by_pair]
    if stamp and stamp == site.read(_PAIRS_STAMP) and all(map(site.has, paths)):
        for path in paths:
            site.keep(path)
    else:
        site.write(_PAIRS_STAMP, b"")  # an update that is killed leaves pages of two states
        for name, text in pages.pairs():
            site.put(name, text.encode("utf-8", "surrogateescape"))
    for name, text in pages.matrices():
        site.put(name, text.encode("utf-8", "surrogateescape"))
    site.clean()
    site.write(_PAIRS_STAMP, stamp)
    return mesh


def _stamp(
    reader: Reader,
    outlines: Sequence[RunOutline],
    entries: Sequence[LogLine],
    mesh: KnownMesh,
    names: Iterable[str],
) -> bytes:
    """Return a hash of all that the pages of pairs depend on; empty while a run goes on."""
    if not all(outline.status.has_ended for outline in outlines):
        return b""
    files = [(path.name, path.stat().st_mtime_ns) for path in sorted(_HERE.iterdir())]
    shown = [format_value(metric, 1e9) for metric in mesh.metrics]  # in which units
    stamps = reader.stamps()
    runs = [(outline, stamps.get(outline.id)) for outline in outlines]
    known = (benchctl.__version__, files, shown, format_time(0), sorted(names), runs, entries)
    return sha256(repr(known).encode("utf-8", "surrogatepass")).hexdigest().encode()


def _shared() -> Iterable[tuple[str, bytes]]:
    page = _HERE.parent / "page" / "page.css"
    yield "mesh.css", page.read_bytes() + (_HERE / "mesh.css").read_bytes()
    yield "mesh.js", (_HERE / "mesh.js").read_bytes()


def _changed(
    reader: Reader,
    outlines: Sequence[RunOutline],
    history: History,
    changes: Iterable[SeriesChange],
) -> list[Run]:
    """Return the older runs with which something changed, as far as they are stored."""
    since = {change.run: change.since for change in changes}
    new = {run.name for run in history.runs}
    old = [outline for outline in outlines if outline.name in since and outline.name not in new]
    old.sort(key=lambda outline: since[outline.name])
    return [reader.run(outline.id) for outline in old[-MOST_REPORTS:]]


def _baselines(reader: Reader, history: History) -> dict[int, Reference]:
    """Return the figures of the baselines of profiles, by series."""
    found: dict[int, Reference] = {}
    for profile, run_id in reader.baselines().items():
        if profile not in history.last:
            continue
        run = reader.run(run_id)
        values: defaultdict[int, list[float]] = defaultdict(list)
        bulk = Bulk(reader.path)
        try:
            reading = HistoryReading(reader, bulk, history.numbers)
            flows, _ = reading.flows(run)
            for series, _, value in reading.figures(run, flows):
                values[series].append(value)
        finally:
            bulk.close()
        name = f"the baseline of {format_time(run.created_time)}"
        found |= {
            series: Reference(name, fmean(own), fmean(own), fmean(own))
            for series, own in values.items()
        }
    return found


def _write_reports(
    reader: Reader, history: History, runs: Sequence[Run], pages: Pages, site: MeshSite
) -> None:
    """Write the pages of runs; that of a run that has ended is written once."""
    before = _known_reports(site.read(_REPORTS))
    known: dict[str, str] = {}
    places = {run.name: place for place, run in enumerate(history.runs)}
    for run in runs:
        path, place = run_path(run.name), places.get(run.name)
        if run.trials > MOST_TRIALS or not run.status.has_ended:
            site.put(path, pages.run_page(run, place).encode("utf-8", "surrogateescape"))
            continue
        stamp = f"{run.status} {run.finished_time} {','.join(run.tags)}"
        if before.get(run.name) == stamp and site.has(path):
            site.keep(path)
        else:
            text = visible_lines(html_of(page_of([StoredRun(reader, run)])))
            site.put(path, text.encode("utf-8", "surrogateescape"))
        known[run.name] = stamp
    site.write(_REPORTS, msgspec.json.encode(known))


def _known_reports(file: bytes | None) -> dict[str, str]:
    try:
        return msgspec.json.decode(file, type=dict[str, str]) if file else {}
    except msgspec.MsgspecError:
        return {}
