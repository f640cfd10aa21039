"""Makes a page of stored runs: what was asked, what came out, what it was measured with.

Only what is shown is chosen here; the words are those of `benchctl show` and `benchctl compare`.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from textwrap import dedent

from benchctl.analysis.results import TrialReport
from benchctl.errors import UsageError
from benchctl.report.answer import read_answer
from benchctl.report.comparison.changes import change_matrix
from benchctl.report.comparison.comparison import (
    arranged,
    compare_reports,
    comparison_table,
    explanation,
    letter,
    side_by_side,
)
from benchctl.report.comparison.differences import differences
from benchctl.report.page.again import command, opening_comment, split_profile
from benchctl.report.page.blocks import (
    Block,
    Bullets,
    Code,
    PageContent,
    PageSection,
    Paragraph,
    PictureBlock,
    TableBlock,
)
from benchctl.report.page.packets import packet_sections
from benchctl.report.page.pictures import pictures_of
from benchctl.report.pivot import Pivot, pivot, with_interval
from benchctl.report.report import Report, StoredRun, without_figures, yet
from benchctl.report.text.delays import delay_table
from benchctl.report.text.detail import asked_of, flat, in_force_of
from benchctl.report.text.happenings import event_text, tally
from benchctl.report.text.heading import heading
from benchctl.report.text.limiting import limit_lines
from benchctl.report.text.remarks import remarks
from benchctl.report.text.routes import route_differences
from benchctl.report.text.searches import search_table
from benchctl.run.planned import Host, PlannedFlow, way_of
from benchctl.run.record import HookOutcome, Run
from benchctl.units import format_duration, format_time, format_value

# More rows than anybody reads; the exports have all of them.
MOST_ROWS = 1000
MOST_ITEMS = 50
# The answer should be near the top of a page.
MOST_FLOWS = 4


def page_of(stored: Sequence[StoredRun], *, pictures: bool = True) -> PageContent:
    """Return the page of some runs, the first of which is A. Raises StoreError."""
    reports = [stored_run.report for stored_run in stored]
    if len(stored) == 1:
        return PageContent(_title(reports[0].run), list(_sections(stored[0], reports[0], pictures)))
    titles = dict.fromkeys(_title(report.run) for report in reports)
    runs = [
        PageSection(
            f"{letter(number)}: {_title(report.run)}", list(_sections(stored_run, report, pictures))
        )
        for number, (stored_run, report) in enumerate(zip(stored, reports, strict=True))
    ]
    return PageContent(" / ".join(titles), [_compared(reports), *runs])


def _title(run: Run) -> str:
    return run.title or run.profile


def _sections(stored: StoredRun, report: Report, pictures: bool) -> Iterator[PageSection]:
    said = read_answer(stored.reader, report)
    yield PageSection("What came out", [Paragraph(" ".join(said), strong=True)])
    if pictures and report.summary:
        yield PageSection("Figures", list(pictures_of(stored.reader, report)))
    yield PageSection("Summary", [*_verdicts(report), *_summary(report)])
    if blocks := list(_remarked(stored, report)):
        yield PageSection("What is behind it", blocks)
    yield PageSection("What was asked", list(_asked(report)))
    yield from packet_sections(report)
    yield PageSection("Trials and commands", list(_trials(report)))
    yield PageSection("Hosts", list(_hosts(report.run)))
    yield PageSection("Run it again", list(_again(report.run)))


def _compared(reports: Sequence[Report]) -> PageSection:
    runs = [report.run for report in reports]
    names = table(
        ["", "run", "profile", "started", "status", "tags"],
        [
            [
                letter(n),
                run.name,
                run.profile,
                _moment(run.started_time),
                str(run.status),
                ", ".join(run.tags),
            ]
            for n, run in enumerate(runs)
        ],
    )
    blocks: list[Block] = [names]
    if (other := differences(*runs, routes=route_differences(*reports))).rows:
        blocks.append(TableBlock(other))
    compared = [arranged(report, *runs) for report in compare_reports(reports[0], *reports[1:])]
    if any(comparison.a and comparison.b for ones in compared for comparison in ones):
        shown = comparison_table(compared[0]) if len(compared) == 1 else side_by_side(compared)
        blocks.append(cut(shown, "benchctl compare --json"))
        blocks.append(
            Bullets(explanation([comparison for ones in compared for comparison in ones]))
        )
        for other_report, ones in zip(reports[1:], compared, strict=True):
            with suppress(UsageError):  # no mesh, or nothing that is a share of A
                blocks.append(PictureBlock(change_matrix(reports[0], other_report, ones)))
    else:
        blocks.append(Paragraph("These runs have no figure in common."))
    return PageSection("Comparison", blocks)


def _asked(report: Report) -> Iterator[Block]:
    run = report.run
    yield from map(Paragraph, heading(run))
    first, *others = opening_comment(run) or [""]
    if first:
        yield _words(first)
    if others:
        yield PageSection(
            "The profile's own words", [_words(other) for other in others], folded=True
        )
    axes = [[axis, ", ".join(map(str, values))] for axis, values in run.values.items()]
    if axes:
        yield table(["axis", "values"], axes)
    flows = [
        [name, *_all_of(ones)]
        for name, ones in _by_name(flow for trial in report.trials for flow in trial.trial.flows)
    ]
    if flows:
        flows_table = table(["flow", "tool", "from", "to", "direction", "asked"], flows)
        many = len(flows) > MOST_FLOWS
        yield (
            PageSection(f"{len(flows)} flows and their parameters", [flows_table], True)
            if many
            else flows_table
        )


def _words(paragraph: str) -> Block:
    """Return a paragraph of a comment; lines that are indented are a table or a formula."""
    indented = any(line.startswith("  ") for line in paragraph.splitlines())
    return Code(dedent(paragraph)) if indented else Paragraph(" ".join(paragraph.split()))


def _by_name(flows: Iterable[PlannedFlow]) -> Iterator[tuple[str, list[PlannedFlow]]]:
    found: dict[str, list[PlannedFlow]] = {}
    for flow in flows:
        found.setdefault(flow.name, []).append(flow)
    yield from found.items()


def _all_of(flows: Sequence[PlannedFlow]) -> Iterator[str]:
    """Yield the cells that say what a flow is, over all trials."""
    for name in ("backend", "source", "to", "direction"):
        yield ", ".join(dict.fromkeys(str(getattr(flow, name)) for flow in flows))
    asked: dict[str, dict[str, None]] = {}
    for flow in flows:
        for name, value in asked_of(flow).items():
            asked.setdefault(name, {})[value] = None
    yield ", ".join(f"{name} {' | '.join(values)}" for name, values in asked.items())


def _verdicts(report: Report) -> Iterator[Block]:
    if (found := search_table(report)) is not None:
        yield PageSection("Highest rates", [TableBlock(found)])
    if report.outcomes:
        rows = [
            [outcome.text, str(outcome.answer), outcome.why, str(outcome.severity)]
            for outcome in report.outcomes
        ]
        heads = ["expectation", "answer", "figures", "if not met"]
        yield PageSection("Expectations", [table(heads, rows)])


def _remarked(stored: StoredRun, report: Report) -> Iterator[Block]:
    if limits := list(limit_lines(report)):
        yield PageSection("What limited the flows", [bullets(limits)])
    lines = [remark for remark in remarks(report, tables=True) if remark]
    lines += [f"{note.level}: {note.text}" for note in stored.reader.notes(report.run.id)]
    if lines:
        yield PageSection("Remarks", [bullets(lines)])
    if events := list(_events(report)):
        axes = report.run.varying
        heads = ["trial", *axes, "repeat", "flow", "direction", "event"]
        title = f"Within the flows: {tally(report)}"
        yield PageSection(title, [table(heads, events)], folded=True)


def _events(report: Report) -> Iterator[list[str]]:
    for trial in report.trials:
        place = _place(report.run, trial)
        for flow in trial.flows:
            for event in flow.events:
                yield [*place, flow.flow.name, event.direction, event_text(event)]


def _place(run: Run, report: TrialReport) -> list[str]:
    """Return the cells that name a trial."""
    point = report.trial.point
    values = (str(point.get(axis, "-")) for axis in run.varying)
    return [str(report.trial.position + 1), *values, str(report.trial.repeat)]


def _summary(report: Report) -> Iterator[Block]:
    shown = pivot(report)
    if not shown.rows:
        yield Paragraph(without_figures(report))
        return
    yield cut(shown, "benchctl export --format csv")
    if (delays := delay_table(report)) is not None:
        yield PageSection("One-way delays", [cut(delays, "benchctl show")])
    axes = report.run.varying
    rows = [
        [
            *(str(row.point.get(axis, "-")) for axis in axes), row.flow or "-",
            row.direction or "-", row.metric, str(row.spread.n), with_interval(row),
            *(format_value(row.metric, value) for value in (
                row.spread.median, row.spread.min, row.spread.max
            )),
        ]
        for row in report.summary
    ]  # fmt: skip
    heads = [*axes, "flow", "direction", "metric", "n", "mean", "median", "min", "max"]
    every = table(heads, rows, "benchctl export --format csv", numbers=5)
    yield PageSection("Every metric", [every], folded=True, long=True)
    yield PageSection(
        "What the columns mean", [table(["column", "meaning"], _glossary(report))], True
    )


_COLUMNS = (
    ("n", "number of repeats"),
    ("±", "half the 95 % interval of the mean over the repeats (Student's t)"),
    ("asked", "the rate that the profile asks for"),
    ("expected", "by theory, from the topology alone"),
    ("reported", "by others, as the profile says"),
)


def _glossary(report: Report) -> list[list[str]]:
    """Return what the columns and metrics of a summary are."""
    vocabulary = report.run.vocabulary
    names = dict.fromkeys(row.metric for row in report.summary)
    metric_rows = [[name, vocabulary.describe(name).description] for name in names]
    return [*map(list, _COLUMNS), *(row for row in metric_rows if row[1])]


def _trials(report: Report) -> Iterator[Block]:
    run = report.run
    rows = [
        [
            *_place(run, trial), str(trial.trial.status), _moment(trial.trial.started_time),
            _lasted(trial), _value_text("start_skew_s", trial.trial.start_skew_s),
            _value_text("fairness_jain", trial.trial.fairness_jain), trial.trial.error,
        ]
        for trial in report.trials
    ]  # fmt: skip
    heads = [
        "trial", *run.varying, "repeat", "status", "started", "lasted", "start skew",
        "Jain's index", "error",
    ]  # fmt: skip
    if not rows:
        yield Paragraph(f"no trial has ended{yet(run)}")
        return
    yield table(heads, rows, "benchctl export --format json")
    commands = [
        [*_place(run, trial), *cells] for trial in report.trials for cells in _commands(trial)
    ]
    of_run = [["-"] * (len(run.varying) + 2) + _of_hook(hook) for hook in run.hooks]
    heads = ["trial", *run.varying, "repeat", "flow", "", "command or settings"]
    every = table(heads, [*of_run, *commands], "benchctl show --trials")
    yield PageSection("Exact commands, and the settings in force", [every], folded=True)


def _moment(time: float | None) -> str:
    return "-" if time is None else format_time(time)


def _lasted(report: TrialReport) -> str:
    begun, ended = report.trial.started_time, report.trial.finished_time
    return "-" if begun is None or ended is None else format_duration(ended - begun)


def _value_text(metric: str, value: float | None) -> str:
    return "-" if value is None else format_value(metric, value)


def _commands(report: TrialReport) -> Iterator[list[str]]:
    if report.trial.file:
        yield ["-", "file", report.trial.file]
    for hook in report.trial.hooks:
        yield _of_hook(hook)
    for flow in (flow.flow for flow in report.flows):
        if flow.server:
            yield [flow.name, "server", shlex.join(flow.server)]
        if flow.client:
            yield [flow.name, "client", shlex.join(flow.client)]
        if in_force := in_force_of(flow):
            text = ", ".join(f"{name} {value}" for name, value in in_force.items())
            yield [flow.name, "in force", text]


def _of_hook(hook: HookOutcome) -> list[str]:
    return ["-", f"{hook.when} on {hook.host}", hook.command]


def _hosts(run: Run) -> Iterator[Block]:
    network = run.settings.network.network
    places = [[name, _address(host)] for name, host in network.hosts.items()] + [
        [name, f"{peer.host}{_ports(peer.ports)}"] for name, peer in network.peers.items()
    ]
    if run.settings.lab is not None:
        lab = run.settings.lab
        emulator = f", emulator {lab.emulator}" if lab.emulator else ""
        yield Paragraph(f"The flows ran in the lab {lab.path}{emulator}, on this machine:")
    elif places:
        yield table(["host", "address"], places)
    if not run.facts:
        yield Paragraph("No facts of the machine were recorded.")
    remote = {f"host {name}": facts for name, facts in run.hosts.items()}
    for name, facts in {"this machine": run.facts, **remote}.items():
        if rows := [[fact, str(value)] for fact, value in flat(facts)]:
            yield PageSection(f"Facts of {name}", [table(["fact", "value"], rows)], folded=True)


def _address(host: Host) -> str:
    reached_by = f", by {way_of(host.reach)}" if host.reach else ""
    return f"{host.address}{_ports(host.ports)}{reached_by}"


def _ports(ports: tuple[int, int] | None) -> str:
    if ports is None:
        return ""
    low, high = ports
    return f", port {low}" if low == high else f", ports {low}-{high}"


def _again(run: Run) -> Iterator[Block]:
    if not run.profile_text:
        yield Paragraph(
            f"It was imported from {run.origin}: see its trials for their files."
            if run.origin
            else "The text of the profile was not recorded."
        )
        return
    files, _ = split_profile(run)
    yield Code(command(run))
    version = run.facts.get("benchctl", "of an unknown version")
    where = "the files below" if len(files) > 1 else "the file below"
    yield Paragraph(f"With benchctl {version}, in a folder with {where}:")
    for file in files:
        yield PageSection(file.name, [Code(file.text, file.name)], folded=True)
    yield Paragraph(f"SHA-256 of the profile with all that belongs to it: {run.profile_sha256}")


def table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], whole: str = "", numbers: int = 0
) -> TableBlock:
    """Return rows as a table; the last ``numbers`` columns are right-aligned."""
    right = tuple(place >= len(heads) - numbers for place in range(len(heads)))
    return cut(Pivot(tuple(heads), right, tuple(map(tuple, rows))), whole)


def cut(shown: Pivot, whole: str) -> TableBlock:
    """Return a table with as many rows as are read; ``whole`` is the command that has all."""
    count = len(shown.rows)
    if count <= MOST_ROWS:
        return TableBlock(shown)
    kept = Pivot(shown.heads, shown.numeric, shown.rows[:MOST_ROWS])
    return TableBlock(kept, f"The first {MOST_ROWS:,} of {count:,} rows; all are in: {whole}")


def bullets(lines: Sequence[str]) -> Bullets:
    """Return as many lines as are read, and how many more there are."""
    if len(lines) <= MOST_ITEMS:
        return Bullets(lines)
    more = f"and {len(lines) - MOST_ITEMS:,} more: benchctl show"
    return Bullets([*lines[:MOST_ITEMS], more])
