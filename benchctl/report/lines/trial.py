"""One trial in full, as text: its attempts, commands, settings, figures and notes. Pure."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Mapping, Sequence

from benchctl.analysis.flow.limiting import Limiter
from benchctl.analysis.results import NOT_VALID_HERE, FlowReport, TrialReport
from benchctl.report.lines.hosts import clock_line
from benchctl.report.lines.spans import PLAIN, Line, Span, state
from benchctl.report.pivot import align
from benchctl.report.text.captured import packets_text
from benchctl.report.text.clocks import clock_text, clocks_in
from benchctl.report.text.counters import counters_text, doubts
from benchctl.report.text.detail import (
    TrialDetail,
    asked_of,
    in_force_of,
    trial_title,
    unlike_asked,
)
from benchctl.report.text.happenings import event_text
from benchctl.report.text.lawful import law_texts
from benchctl.report.text.limiting import limit_text, limits_of
from benchctl.report.text.routes import hop_table
from benchctl.run.planned import PlannedFlow
from benchctl.run.record import Figure, HookOutcome, Note, Run, Trial
from benchctl.run.status import FAILURES
from benchctl.units import format_duration, format_value


def trial_lines(detail: TrialDetail, *, folded: bool = False) -> Iterator[Line]:
    """Yield a trial as lines of any length.

    ``folded``, the flows that failed come first. Earlier attempts, and flows that did not fail
    beside those, have one line; commands, settings and output of tools have none.
    """
    trial = detail.trial
    yield [
        Span(f"{trial_title(trial, detail.run)}: ", "strong"),
        Span(str(trial.status), state(trial.status).role),
        Span(_sharing(trial)),
    ]
    if trial.error:
        yield [Span(f"  {trial.error}", "bad")]
    yield [Span(f"  {_span_of_time(trial.started_time, trial.finished_time)}", "dim")]
    if trial.file:
        yield [Span("  imported from ", "label"), Span(trial.file)]
    last = max((flow.flow.attempt for flow in detail.flows), default=0)
    flows = [flow for flow in detail.flows if flow.flow.attempt == last]
    if trial.beside:
        numbers = ", ".join(str(position + 1) for position in trial.beside)
        yield [Span("  at the same time as ", "label"), Span(f"trial {numbers}")]
    for hook in trial.hooks:
        if hook.problem or not folded:
            yield from hook_lines(hook)
    if folded:
        yield from _folded(detail, flows)
    else:
        yield from _unfolded(detail)
    if broken := dict.fromkeys(link["link"] for link in trial.links if not link["kept"]):
        text = f"  {NOT_VALID_HERE} on {', '.join(broken)}"
        yield [Span(text, "bad")]
    for doubt in doubts(TrialReport(trial, flows), detail.run):
        yield [Span(f"  {doubt.text}", "warn")]
    for note in detail.notes:
        yield _note(note, trial.started_time)


def _folded(detail: TrialDetail, flows: Sequence[FlowReport]) -> Iterator[Line]:
    """Yield the flows of the last attempt, the failed ones first, and a line for each other."""
    for flow in () if detail.flows else detail.trial.flows:
        yield from _planned(flow)
    shown = [flow for flow in flows if flow.flow.status in FAILURES] or flows
    for report in shown:
        yield from _outcome(report)
        yield from _findings(report)
        yield from _figures(report, detail.run)
    for report in reversed(detail.flows):
        if report not in shown:
            yield next(_outcome(report))


def _unfolded(detail: TrialDetail) -> Iterator[Line]:
    trial = detail.trial
    for host, clock in trial.clocks.items():
        yield [Span(f"  {host}: ", "label"), Span(clock_line(clock))]
    for host, counted in trial.counters.items():
        yield [Span(f"  {host} counted ", "label"), Span(counters_text(counted))]
    planned = {flow.name: flow for flow in trial.flows}
    if not detail.flows:
        for flow in trial.flows:
            yield from _planned(flow)
    for report in detail.flows:
        yield from _attempt(report, planned.get(report.flow.name), detail.run)


def hook_lines(hook: HookOutcome) -> Iterator[Line]:
    """Yield a host's command that ran, and the end of its output."""
    role = "bad" if hook.problem else ""
    yield [Span(f"  {hook.when} on {hook.host} $ ", "label"), Span(hook.command)]
    for line in hook.output.splitlines():
        yield [Span("    output: ", "label"), Span(line)]
    yield [Span(f"    exit code {'-' if hook.exit_code is None else hook.exit_code}", role)]


def _sharing(trial: Trial) -> str:
    if trial.fairness_jain is None or trial.start_skew_s is None:
        return ""
    index = format_value("fairness_jain", trial.fairness_jain)
    return f", Jain's index {index}, start skew {format_duration(trial.start_skew_s)}"


def _span_of_time(started: float | None, finished: float | None) -> str:
    if started is None:
        return "not started"
    day = time.strftime("%Y-%m-%d", time.localtime(started))
    lasted = f" for {format_duration(finished - started)}" if finished is not None else ""
    return f"{day} {_clock(started)}{lasted}"


def _clock(moment: float) -> str:
    """Format a Unix time as the time of day, to the millisecond."""
    return f"{time.strftime('%H:%M:%S', time.localtime(moment))}.{int(moment % 1 * 1000):03d}"


def _planned(flow: PlannedFlow) -> Iterator[Line]:
    yield [Span(f"  {flow.name}: {flow.backend}, {flow.source} to {flow.to}, {flow.direction}")]
    yield from _listed("asked", asked_of(flow))


def _outcome(report: FlowReport) -> Iterator[Line]:
    """Yield how an attempt of a flow ended, why, and what helps."""
    flow = report.flow
    code = "" if flow.exit_code is None else f", exit code {flow.exit_code}"
    yield [
        Span(f"  {flow.name}, attempt {flow.attempt}: ", "strong"),
        Span(str(flow.status), state(flow.status).role),
        Span(f"{f': {flow.error}' if flow.error else ''}{code}"),
    ]
    if flow.hint:
        yield [Span(f"    {flow.hint}", "warn")]


def _attempt(report: FlowReport, planned: PlannedFlow | None, run: Run) -> Iterator[Line]:
    flow = report.flow
    yield from _outcome(report)
    if flow.started_time is not None:
        yield [Span(f"    {_span_of_time(flow.started_time, flow.finished_time)}", "dim")]
    if flow.server:
        yield [Span("    server $ ", "label"), Span(shlex.join(flow.server))]
    if flow.client:
        yield [Span("    $ ", "label"), Span(shlex.join(flow.client))]
    for line in flow.stderr.splitlines():
        yield [Span("    stderr: ", "label"), Span(line)]
    in_force = in_force_of(flow)
    if planned is not None:
        asked = asked_of(planned)
        yield from _listed("asked", asked)
        for name in unlike_asked(flow, planned):
            text = f"    ≠ {name}: asked {asked[name]}, in force {in_force[name]}"
            yield [Span(text, "warn")]
    yield from _listed("in force", in_force)
    yield from _figures(report, run)
    if flow.route:
        table = hop_table(flow.route)
        for line in align(table.heads, table.rows, table.numeric).splitlines():
            yield [Span(f"    {line}")]
    for packets in flow.captures:
        where = f"{packets.host}: " if packets.host else ""
        text = f"    packets   {where}{packets.file}, {packets.text}"
        yield [Span(text, "warn" if packets.dropped else PLAIN)]
    for text in packets_text(flow):
        yield [Span("")]
        for line in text.splitlines():
            yield [Span(f"    {line}".rstrip())]
    if (clocks := clocks_in(run, report)) is not None:
        yield [Span(f"    {clock_text(clocks)}", "strong")]
    yield from _findings(report)


def _figures(report: FlowReport, run: Run) -> Iterator[Line]:
    flow = report.flow
    rank = {name: place for place, name in enumerate(run.vocabulary.wanted)}
    for direction, metric in sorted(
        report.reported, key=lambda key: (key[0], rank.get(key[1], len(rank)), key[1])
    ):
        figure = report.reported[direction, metric]
        expected = flow.expected.get(direction, {}).get(metric)
        beside = f", expected {format_value(metric, expected)}" if expected is not None else ""
        source = "" if figure.origin == "tool" else f"  (from the {figure.origin})"
        value = format_value(metric, figure.value) + _spread(metric, figure)
        yield [
            Span(f"    {direction:<10} {metric} = {value}{beside}{source}"),
            *(Span(f"  {text}", "warn") for text in law_texts(metric, figure)),
        ]


def _findings(report: FlowReport) -> Iterator[Line]:
    """Yield what limited a flow, and what happened within it."""
    for direction, limit in limits_of(report).items():
        is_known = limit.by is not Limiter.UNKNOWN
        words = f"{'limited by' if is_known else 'limit'} {limit_text(limit)}"
        yield [Span(f"    {direction:<10} {words}", "strong")]
    for event in report.events:
        yield [Span(f"    {event.direction:<10} {event_text(event)}", "strong")]


def _spread(metric: str, figure: Figure) -> str:
    """Return what a distribution has beside its mean."""
    parts = [f"{name} {format_value(metric, figure.spread[name])}" for name in
            ("min", "median", "p95", "max") if name in figure.spread]  # fmt: skip
    return f" ({', '.join(parts)})" if parts else ""


def _listed(what: str, settings: Mapping[str, str]) -> Iterator[Line]:
    if settings:
        text = ", ".join(f"{name} {value}" for name, value in settings.items())
        yield [Span(f"    {what:<8}  ", "label"), Span(text)]


def _note(note: Note, started: float | None) -> Line:
    after = f" (+{format_duration(note.time - started)})" if started and note.time > started else ""
    role = "warn" if note.level == "warning" else "strong"
    return [Span(f"  {_clock(note.time)}{after} ", "dim"), Span(f"{note.level}: {note.text}", role)]
