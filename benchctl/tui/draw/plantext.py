"""A plan as text: matrix, order, time, traffic, checks, exact commands."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence

from benchctl.api import Role
from benchctl.engine.health import HealthFinding
from benchctl.engine.planning import Planned, expected_traffic
from benchctl.engine.preflight import commands_of
from benchctl.engine.trust import user_name
from benchctl.errors import MissingError
from benchctl.plan.bound import BoundTrial
from benchctl.plan.plan import Plan
from benchctl.report.searches import detection
from benchctl.run.planned import Search, When
from benchctl.tui.draw.spans import Line, Span
from benchctl.units import format_duration, format_ratio

# Some screenfuls; the whole of a large matrix is shown only on request.
SHOWN = 50


def plan_lines(
    prepared: Planned, findings: Sequence[HealthFinding] = (), most: int | None = SHOWN
) -> list[Line]:
    """Return a plan with its first ``most`` trials (None: all) as lines of text of any length."""
    plan = prepared.plan
    model = plan.document.model
    lines: list[Line] = [[Span(plan.document.name, "title"), Span(f"  {model.title}")]]
    points = _count(len(plan.points), "point")
    rows = [
        ("trials", f"{len(plan):,}: {points} x {_count(plan.repeats, 'repeat')}{_until(plan)}"),
        ("order", f"{model.run.order}, seed {plan.seed}"),
        ("time", f"{format_duration(plan.duration_s)}{_at_most(plan)}"),
        ("traffic", f"{expected_traffic(prepared)}{', the first tries' * bool(plan.search)}"),
    ]
    if plan.search is not None:
        rows.append(("search", _search(plan.search)))
    if prepared.topology is not None:
        rows.append(("lab", str(prepared.topology.path)))
    rows += [(axis, ", ".join(map(str, values))) for axis, values in plan.values.items()]
    width = max(len(name) for name, _ in rows)
    lines += [[], *([Span(f"{name:<{width}}  ", "label"), Span(text)] for name, text in rows)]
    lines += [[], [Span("Checks", "strong")], *_checks(prepared, findings)]
    lines += _services(prepared)
    lines += [[], [Span("Commands, in order", "strong")]]
    shown = len(plan) if most is None else min(most, len(plan))
    for index in range(shown):
        lines += _trial(plan.trial(index), prepared)
    if shown < len(plan):
        more = f"… and {len(plan) - shown:,} more: benchctl plan {plan.document.name} --all"
        lines.append([Span(more, "dim")])
    return lines


def _search(search: Search) -> str:
    return (
        f"the highest {search.axis} with {search.condition}, to {format_ratio(search.precision)};"
        f" {search.confirm} tries agree at each edge, at most {search.most} at each point"
    )


def _at_most(plan: Plan) -> str:
    if plan.search is None:
        return ""
    return f" for the first tries, at most {format_duration(plan.most_duration_s)}"


def _until(plan: Plan) -> str:
    if plan.until is None:
        return ""
    share = format_ratio(plan.until.share)
    return f", then up to {plan.until.most} until {plan.until.metric} is known to ±{share}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _checks(prepared: Planned, findings: Sequence[HealthFinding]) -> Iterator[Line]:
    for (name, role), tool in prepared.tools.items():
        end = "" if role is Role.CLIENT else " (server)"
        if isinstance(tool, MissingError):
            yield [Span("✗ missing  ", "bad"), Span(f"{name}{end}: {tool.message}")]
            yield [Span(f"           {tool.hint}", "warn")]
        else:
            yield [Span("✓ ok       ", "good"), Span(f"{name}{end} {tool.version}".rstrip())]
    if prepared.plan.search is not None:
        yield from _detection(prepared, prepared.plan.search)
    for finding in findings:
        yield [Span("! note     ", "warn"), Span(f"{finding.subject}: {finding.text}")]
        if finding.remedy:
            yield [Span(f"           {finding.remedy}", "dim")]


def _detection(prepared: Planned, search: Search) -> Iterator[Line]:
    backends = {flow.backend for flow in prepared.plan.routes}
    headlines = [prepared.registry.load(name).capabilities.headline for name in backends]
    lasts_s = prepared.plan.trial(0).plan.duration_s
    is_enough, text, remedy = detection(search, lasts_s, headlines)
    yield [Span("✓ ok       ", "good") if is_enough else Span("! note     ", "warn"), Span(text)]
    if remedy:
        yield [Span(f"           {remedy}", "dim")]


_WHEN = {
    When.PREPARE_RUN: "before the run",
    When.PREPARE: "before each trial",
    When.CLEANUP: "after each trial",
    When.CLEANUP_RUN: "after the run",
}


def _services(prepared: Planned) -> Iterator[Line]:
    user = user_name(os.geteuid())
    if prepared.services:
        yield []
        yield [Span("Services", "strong"), Span(f"  run as {user} while the lab stands", "dim")]
    for host, argv in prepared.services:
        yield [Span(f"     {host}: ", "label"), Span(shlex.join(argv))]
    if prepared.hooks:
        yield []
        yield [Span("Prepare and clean up", "strong"), Span(f"  run as {user}", "dim")]
    for hook in prepared.hooks:
        yield [Span(f"     {hook.host}, {_WHEN[hook.when]}: ", "label"), Span(hook.command)]
    if prepared.distrust:
        yield [Span("! note     ", "warn"), Span(f"they need --trust: {prepared.distrust}")]


def _trial(bound: BoundTrial, prepared: Planned) -> Iterator[Line]:
    trial = bound.plan
    point = " ".join(f"{axis}={value}" for axis, value in trial.point.items())
    repeat = f"repeat {trial.repeat}" if prepared.plan.repeats > 1 else ""
    head = "  ".join(filter(None, [point, repeat, format_duration(trial.duration_s)]))
    yield [Span(f"{trial.position + 1:>3}  ", "label"), Span(head)]
    for flow, end, command in commands(bound, prepared):
        if flow:
            yield [Span(f"     {flow} {end}: ", "label"), Span(command)]
        else:
            yield [Span(f"     {end}: {command}", "bad")]


def commands(bound: BoundTrial, prepared: Planned) -> list[tuple[str, str, str]]:
    """Return flow, end and command of all processes of a trial.

    If a command is not available, the flow is empty and the reason replaces the command.
    """
    try:
        found = commands_of(bound, prepared.network, prepared.tools)
    except MissingError as error:
        return [("", "no command", str(error))]
    return [
        (one.flow, end, shlex.join(argv))
        for one in found
        for end, argv in (("server", one.server), ("client", one.client))
        if argv
    ]
