"""Makes the pages of a mesh of what is known of it: matrices, pairs, runs. Pure.

A page is a template and its values, which the template escapes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from benchctl.metrics import Fold, title_of
from benchctl.report.figures.figure import Axis
from benchctl.report.mesh.changes import LogLine, SeriesChange
from benchctl.report.mesh.content import KnownMesh, MeshPair, Variant, file_of
from benchctl.report.mesh.drawing import HistoryLine, HistorySpan, extent_of, history_of
from benchctl.report.mesh.judging import MEANINGS, WORST_FIRST, FigureState, Judged
from benchctl.report.mesh.reading import DETAIL_DAYS
from benchctl.report.page.html import require_jinja
from benchctl.report.trend import signed_ratio
from benchctl.run.record import Run
from benchctl.units import format_count, format_time, format_value, scale_of, timestamp
from benchctl.visible import visible, visible_lines

_HERE = Path(__file__).parent
# With more columns there is no room for values, only for marks.
MOST_VALUES = 12
MOST_MATRICES = 40
MOST_ATTENTION, MOST_TOLD, MOST_LISTED = 40, 30, 20
# Newest runs of a pair as rows; with a run each minute, a week has 10,000.
MOST_ROWS = 200
MOST_LINES = 8
# Of all drawings of past days: a year of 3540 paths and one metric has each day.
DRAWN_VALUES = 4_200_000


class MatrixCell(NamedTuple):
    """A cell of a matrix: its link, mark, class, value if there is room, and all in words."""

    href: str
    mark: str
    kind: str
    value: str
    title: str


class PageLink(NamedTuple):
    """A link: its address, empty for none, and its text."""

    href: str
    text: str


class Pages:
    """All pages of a mesh; texts are those of HTML files, by their paths in the site."""

    def __init__(
        self,
        mesh: KnownMesh,
        entries: Sequence[LogLine],
        title: str,
        *,
        made: float,
        runs: frozenset[str],
    ) -> None:
        """``runs`` are the names of those that have a page, ``made`` is now (Unix)."""
        jinja2 = require_jinja()
        environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(_HERE), autoescape=True,
            undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        )  # fmt: skip
        self._template = cache(environment.get_template)
        self._mesh, self._entries, self._title, self._made = mesh, entries, title, made
        self._runs = runs
        count = len(mesh.series) * len(mesh.past) * 3
        self._step = max(1, -(-count // DRAWN_VALUES))
        self._matrices = self._order()
        self._names = [*self._file_names()]

    def _order(self) -> list[tuple[str, Variant]]:
        """Return metric and variant of each matrix, the main metrics first."""
        mesh = self._mesh
        there: dict[tuple[str, Variant], None] = {}
        for series in mesh.series:
            there[mesh.numbers.series[series].metric, mesh.variant(series)] = None
        order = {name: place for place, name in enumerate(mesh.metrics)}
        return sorted(there, key=lambda matrix: (order[matrix[0]], matrix[1]))

    def _file_names(self) -> Iterator[str]:
        for place, (metric, variant) in enumerate(self._matrices):
            yield f"matrix-{file_of(metric, *variant)}.html" if place else "index.html"

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield path and text of the page of each pair."""
        for pair in sorted(self._mesh.by_pair, key=sorted):
            yield self._pair_page(pair)

    def matrices(self) -> Iterator[tuple[str, str]]:
        """Yield path and text of each matrix; the first one, which people open, comes last."""
        for place in reversed(range(min(MOST_MATRICES, len(self._matrices)))):
            yield self._names[place], self._matrix_page(place)
        if not self._matrices:
            yield "index.html", self._matrix_page(None)

    def _render(self, template: str, up: str, **values: Any) -> str:
        text: str = self._template(template).render(
            up=up, meanings=MEANINGS, as_of=self._as_of, **values
        )
        return visible_lines(text)

    @property
    def _as_of(self) -> Mapping[str, str]:
        return {"text": format_time(self._mesh.as_of), "time": timestamp(self._mesh.as_of)}

    # --- matrices -------------------------------------------------------------------------

    def _matrix_page(self, place: int | None) -> str:
        mesh = self._mesh
        series: list[int] = []
        metric, variant, heading = "", None, "Nothing was measured"
        if place is not None:
            metric, variant = self._matrices[place]
            series = [
                number
                for number in mesh.series
                if mesh.numbers.series[number].metric == metric and mesh.variant(number) == variant
            ]
            heading = self._heading(place)
        rows, columns = self._axes(series)
        judged = {mesh.pair(number): mesh.judged(number) for number in series}
        values = len(columns) <= MOST_VALUES
        grid = [
            (self._host(source),
             [self._cell((source, target), metric, judged.get((source, target)), values)
              for target in columns])
            for source in rows
        ]  # fmt: skip
        counts = Counter(figure.state for figure in judged.values())
        return self._render(
            "matrix.html", "",
            title=self._title, heading=heading,
            matrices=[
                (PageLink(self._names[n], self._heading(n)), n == place)
                for n in range(min(MOST_MATRICES, len(self._matrices)))
            ],
            more=max(0, len(self._matrices) - MOST_MATRICES),
            columns=[self._host(host) for host in columns], rows=grid, values=values,
            held=[*dict.fromkeys(mesh.held_against(number) for number in series)],
            counts=[(state, counts[state]) for state in MEANINGS if counts[state]],
            attention=[*self._attention(series, metric)],
            log=[(format_time(entry.time), self._run_link(entry.run, ""), entry.text)
                  for entry in sorted(self._entries, key=lambda entry: -entry.time)[:MOST_TOLD]],
            reasons=[*self._reasons()], runs=[*self._newest_runs()],
            made=format_time(self._made), detail=DETAIL_DAYS, past=len(mesh.past),
        )  # fmt: skip

    def _heading(self, place: int) -> str:
        metric, variant = self._matrices[place]
        named = self._mesh.named(variant)
        return title_of(metric) + (f": {named}" if named else "")

    def _axes(self, series: Sequence[int]) -> tuple[list[str], list[str]]:
        """Return the hosts of the rows and of the columns."""
        mesh = self._mesh
        pairs = {mesh.pair(number) for number in series}
        sources, targets = ({pair[end] for pair in pairs} for end in (0, 1))
        if sources & targets:  # a mesh: the same hosts both ways
            sources = targets = sources | targets
        return ([host for host in mesh.hosts if host in sources],
                [host for host in mesh.hosts if host in targets])  # fmt: skip

    def _host(self, name: str) -> tuple[str, str]:
        return self._mesh.short_names[name], visible(name)

    def _cell(
        self, pair: MeshPair, metric: str, judged: Judged | None, values: bool
    ) -> MatrixCell | None:
        if pair[0] == pair[1] and judged is None:
            return None
        names = f"{visible(pair[0])} → {visible(pair[1])}"
        there = frozenset(pair) in self._mesh.by_pair
        href = pair_path(pair) if there else ""
        if judged is None:
            failed = self._mesh.failed_now(pair)
            state = FigureState.FAILED if failed else FigureState.NONE
            return MatrixCell(
                href, state.value, state.word, "", f"{names}: {failed or 'not measured'}"
            )
        said = "no value" if judged.value is None else format_value(metric, judged.value)
        when = "" if judged.time is None else f", {format_time(judged.time)}"
        title = f"{names}: {said}, {judged.why}{when}"
        is_new = judged.value is not None and judged.state not in (
            FigureState.FAILED,
            FigureState.OLD,
        )
        shown = said if values and is_new else ""
        return MatrixCell(href, judged.state.value, judged.state.word, shown, title)

    def _attention(self, series: Sequence[int], metric: str) -> Iterator[tuple[Any, ...]]:
        """Yield the figures that somebody should look at, the worst first."""
        mesh = self._mesh
        worst = [
            number
            for number in series
            if WORST_FIRST[mesh.judged(number).state] <= WORST_FIRST[FigureState.DIFFERENT]
        ]
        worst.sort(key=lambda number: (WORST_FIRST[mesh.judged(number).state], mesh.pair(number)))
        for number in worst[:MOST_ATTENTION]:
            judged, pair = mesh.judged(number), mesh.pair(number)
            is_new = judged.value is not None and judged.state is not FigureState.FAILED
            said = format_value(metric, judged.value or 0.0) if is_new else ""
            link = self._pair_link(pair, "")
            yield link, judged.state, said, judged.why
        if len(worst) > MOST_ATTENTION:
            yield (
                PageLink("", format_count(len(worst) - MOST_ATTENTION, "more")[:-1]),
                FigureState.NONE,
                "",
                "",
            )

    def _reasons(self) -> Iterator[tuple[str, int, list[PageLink]]]:
        """Yield why trials of the newest runs failed, how many, and of which pairs, as links."""
        mesh, last = self._mesh, {*self._mesh.history.last.values()}
        found: defaultdict[str, list[MeshPair]] = defaultdict(list)
        for flow, failures in mesh.history.failures.items():
            pair_flow = mesh.numbers.flows[flow]
            for failure in failures:
                if failure.run in last:
                    found[failure.why].append((pair_flow.source, pair_flow.to))
        for why, pairs in sorted(found.items(), key=lambda reason: -len(reason[1])):
            links = [self._pair_link(pair, "") for pair in dict.fromkeys(pairs)]
            yield why, len(pairs), links[:MOST_LISTED]

    def _newest_runs(self) -> Iterator[tuple[PageLink, str, str, str]]:
        mesh = self._mesh
        failed = Counter(trial.run for own in mesh.history.failures.values() for trial in own)
        for place, run in [*enumerate(mesh.history.runs)][: -MOST_LISTED - 1 : -1]:
            said = format_count(failed[place], "trial") + " failed" if failed[place] else ""
            yield self._run_link(run.name, ""), format_time(run.created_time), str(run.status), said

    def _pair_link(self, pair: MeshPair, up: str) -> PageLink:
        first, second = (self._mesh.short_names[host] for host in pair)
        return PageLink(f"{up}{pair_path(pair)}", f"{first} → {second}")

    def _run_link(self, name: str, up: str) -> PageLink:
        return PageLink(f"{up}{run_path(name)}" if name in self._runs else "", name)

    # --- pairs ----------------------------------------------------------------------------

    def _pair_page(self, pair: frozenset[str]) -> tuple[str, str]:
        mesh = self._mesh
        ends = sorted(pair, key=mesh.hosts.index) if len(pair) > 1 else [*pair, *pair]
        first, second = ends
        by_metric: defaultdict[str, list[int]] = defaultdict(list)
        for series in mesh.by_pair[pair]:
            by_metric[mesh.numbers.series[series].metric].append(series)
        sections, heads, columns = [], [], []
        for metric in mesh.metrics:
            if own := by_metric.get(metric, []):
                own.sort(
                    key=lambda series: (mesh.pair(series) != (first, second), mesh.variant(series))
                )
                sections.append(self._section(metric, own, (first, second)))
                heads += [self._column(metric, series, (first, second)) for series in own]
                columns += own
        heads, rows = self._table(columns, heads)
        text = self._render(
            "pair.html", "../",
            title=f"{visible(first)} ⇄ {visible(second)}", ends=(visible(first), visible(second)),
            site=self._title, sections=sections, heads=heads, rows=rows,
            failures=[
                (format_time(trial.time), f"{visible(flow.source)} → {visible(flow.to)}", trial.why,
                 self._run_link(mesh.history.runs[trial.run].name, "../"))
                for flow, trial in mesh.failures((first, second))[:MOST_ROWS]
            ],
            detail=DETAIL_DAYS,
        )  # fmt: skip
        return pair_path((first, second)), text

    def _direction(self, series: int, ends: MeshPair) -> str:
        """Return which way data go, A being the first end, and what else tells series apart."""
        direction = "A → B" if self._mesh.pair(series) == ends else "B → A"
        named = self._mesh.named(self._mesh.variant(series))
        return f"{direction}, {named}" if named else direction

    def _column(self, metric: str, series: int, ends: MeshPair) -> str:
        return f"{title_of(metric)} {self._direction(series, ends)}"

    def _section(self, metric: str, own: Sequence[int], ends: MeshPair) -> Mapping[str, Any]:
        mesh = self._mesh
        lines = [self._line(number, series) for number, series in enumerate(own[:MOST_LINES])]
        changes = sorted(
            (change for series in own for change in mesh.changes.get(series, ())),
            key=lambda change: -change.since,
        )
        extent = extent_of(lines)
        drawing = ""
        title = title_of(metric)
        if extent is not None:
            described = mesh.history.vocabulary.describe(metric)
            zero = described.fold in (Fold.RATE, Fold.COUNT) and extent[0] >= 0
            span = HistorySpan(mesh.past, mesh.first, max(mesh.as_of, mesh.first + 1))
            drawing = history_of(
                Axis(title, metric, *extent, from_zero=zero), lines, span,
                title=f"{title} between {visible(ends[0])} and {visible(ends[1])}",
                events=[(change.since, str(n)) for n, change in _numbered(changes)],
                failed=[*self._failed(own)], step=self._step,
            )  # fmt: skip
        return {
            "title": title,
            "drawing": drawing,
            "legend": [
                (n, self._direction(series, ends)) for n, series in enumerate(own[:MOST_LINES])
            ],
            "now": [
                (self._direction(series, ends), mesh.judged(series), self._said(metric, series))
                for series in own
            ],
            "step": self._step if mesh.past else 0,
            "changes": [
                (n, self._direction(change.series, ends), _in_words(metric, change),
                 format_time(change.since), self._run_link(change.run, "../"))
                for n, change in _numbered(changes)
            ],
        }  # fmt: skip

    def _said(self, metric: str, series: int) -> str:
        judged = self._mesh.judged(series)
        if judged.value is None or judged.time is None:
            return f"{judged.why}; no value before"
        said = f"{format_value(metric, judged.value)} at {format_time(judged.time)}"
        if judged.state in (FigureState.FAILED, FigureState.OLD):
            return f"{judged.why}; before that {said}"
        return f"{said}; {judged.why}"

    def _line(self, number: int, series: int) -> HistoryLine:
        values = self._mesh.history.values.get(series, ())
        return HistoryLine(
            number, self._mesh.days(series), [value[0] for value in values],
            [value[1] for value in values],
        )  # fmt: skip

    def _failed(self, own: Sequence[int]) -> Iterator[float]:
        mesh = self._mesh
        for flow in {mesh.numbers.series[series].flow for series in own}:
            yield from (trial.time for trial in mesh.history.failures.get(flow, ()))
            yield from mesh.failed_days.get(flow, ())

    def _table(self, columns: Sequence[int], heads: Sequence[str]) -> tuple[list[str], str]:
        """Return the headings of the newest values, and their rows as HTML, the newest first.

        Of a year's pages this is the larger part: end tags are left out where HTML has them
        optional (13.1.2.4).
        """
        mesh = self._mesh
        by_run: dict[int, dict[int, list[float]]] = {}
        times: dict[int, float] = {}
        for series in columns:
            for time, value, run in mesh.history.values.get(series, ()):
                by_run.setdefault(run, {}).setdefault(series, []).append(value)
                times.setdefault(run, time)
        scales = []
        for series in columns:
            metric = mesh.numbers.series[series].metric
            most = max(
                (abs(measured[1]) for measured in mesh.history.values.get(series, ())), default=0.0
            )
            scales.append(scale_of(metric, most))
        lines = []
        for run in sorted(by_run, reverse=True)[:MOST_ROWS]:
            own = by_run[run]
            cells = "".join(
                f"<td>{_mean(own[series]) / factor:.4g}" if series in own else "<td>"
                for series, (factor, _) in zip(columns, scales, strict=True)
            )
            name, when = mesh.history.runs[run].name, format_time(times[run])
            link = f"../{run_path(name)}" if name in self._runs else ""
            head = f'<a href="{escape(link)}">{when}</a>' if link else when
            lines.append(f"<tr><td>{head}{cells}\n")
        units = [unit for _, unit in scales]
        return [f"{head} ({unit})" if unit else head
                for head, unit in zip(heads, units, strict=True)], "".join(lines)  # fmt: skip

    # --- runs -----------------------------------------------------------------------------

    def run_page(self, run: Run, place: int | None) -> str:
        """Return the page of a run that has too many trials for a whole report.

        ``place`` is that among the newest runs, None of an older one.
        """
        mesh = self._mesh
        failures = [
            (flow, trial)
            for number, own in mesh.history.failures.items()
            for trial in own
            if place is not None and trial.run == place
            for flow in [mesh.numbers.flows[number]]
        ]
        changes = [
            (mesh.numbers.series[change.series].metric, mesh.pair(change.series), change)
            for own in mesh.changes.values()
            for change in own
            if change.run == run.name
        ]
        return self._render(
            "run.html", "../",
            title=run.name, site=self._title, about=visible(run.title or run.profile),
            facts=[
                ("profile", run.profile), ("began", format_time(run.created_time)),
                ("ended", format_time(run.finished_time) if run.finished_time else "not yet"),
                ("status", f"{run.status}{f': {run.error}' if run.error else ''}"),
                ("trials", f"{run.trials:,}" + f", {len(failures):,} failed" * (place is not None)),
                ("tags", ", ".join(run.tags)),
            ],
            failures=[
                (self._pair_link((flow.source, flow.to), "../"), trial.why)
                for flow, trial in failures[:MOST_ROWS]
            ],
            changes=[
                (self._pair_link(pair, "../"), title_of(metric), _in_words(metric, change))
                for metric, pair, change in changes
            ],
            is_new=place is not None,
        )  # fmt: skip


def _mean(values: Sequence[float]) -> float:
    # Nearly all trials have one repeat.
    return fmean(values) if len(values) > 1 else values[0]


def _numbered(changes: Sequence[SeriesChange]) -> list[tuple[int, SeriesChange]]:
    """Return changes with their numbers, the oldest being 1."""
    return [(len(changes) - place, change) for place, change in enumerate(changes)]


def _in_words(metric: str, change: SeriesChange) -> str:
    before, after = (format_value(metric, end) for end in (change.before, change.after))
    share = ""
    if change.before:
        share = f" ({signed_ratio((change.after - change.before) / abs(change.before))})"
    return f"{change.verdict}: {before} to {after}{share}"


@cache
def _pair_file(first: str, second: str) -> str:
    return f"pairs/{file_of(first, second)}.html"


def pair_path(pair: MeshPair) -> str:
    """Return the path of the page of two hosts, in whichever order."""
    first, second = sorted(pair)
    return _pair_file(first, second)


def run_path(name: str) -> str:
    """Return the path of the page of a run."""
    return f"runs/{name}.html"
