"""What a profile would do, as text: matrix, order, time, traffic, checks, exact commands."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchctl.api import Role
from benchctl.engine.health import Finding, examine
from benchctl.engine.planning import Planned, planned
from benchctl.engine.preflight import commands_of, first_missing
from benchctl.engine.traffic import Traffic, expected_traffic
from benchctl.engine.trust import user_name
from benchctl.errors import BenchctlError, MissingError
from benchctl.plan.bound import BoundTrial
from benchctl.tui.draw.spans import Line, Span
from benchctl.units import format_duration

# Some screens' worth; the whole of a large matrix helps nobody, and `plan --all` shows it.
SHOWN = 50


@dataclass(frozen=True, slots=True)
class Drawn:
    """A plan as it is drawn, or why there is none."""

    lines: Sequence[Line]
    prepared: Planned | None = None

    @property
    def can_run(self) -> bool:
        """Whether everything the plan needs is there."""
        return self.prepared is not None and first_missing(self.prepared.tools) is None


def draw_plan(profile: str) -> Drawn:
    """Plan a profile and draw it; looks for programs and at the machine, sends nothing."""
    try:
        prepared = planned(profile, None, None, None, yes=False)
    except BenchctlError as error:
        return Drawn(_error(error))
    findings = [one for one in examine(prepared.registry) if _concerns(one, prepared)]
    return Drawn(plan_lines(prepared, expected_traffic(prepared), findings), prepared)


def _concerns(finding: Finding, prepared: Planned) -> bool:
    """Return whether a plan's reader should know; its own tools are told apart from this."""
    of_labs = finding.subject.startswith("lab") and prepared.topology is None
    of_tools = finding.subject in prepared.registry.candidates
    return finding.level != "ok" and not of_labs and not of_tools


def _error(error: BenchctlError) -> list[Line]:
    lines: list[Line] = [[Span(f"✗ {error.message}", "bad")]]
    if error.hint:
        lines.append([Span(f"  {error.hint}")])
    return lines


def plan_lines(prepared: Planned, traffic: Traffic, findings: Sequence[Finding]) -> list[Line]:
    """Return a plan as lines of text of any length."""
    plan = prepared.plan
    model = plan.document.model
    lines: list[Line] = [[Span(plan.document.name, "title"), Span(f"  {model.title}")]]
    lines += [[Span(line, "dim")] for line in model.description.strip().splitlines()]
    points = _count(len(plan.points), "point")
    rows = [
        ("trials", f"{len(plan):,}: {points} x {_count(plan.repeats, 'repeat')}"),
        ("order", f"{model.run.order}, seed {plan.seed}"),
        ("time", f"{format_duration(plan.duration_s)}"),
        ("traffic", str(traffic)),
    ]
    if prepared.topology is not None:
        rows.append(("lab", str(prepared.topology.path)))
    rows += [(axis, ", ".join(map(str, values))) for axis, values in plan.values.items()]
    width = max(len(name) for name, _ in rows)
    lines += [[], *([Span(f"{name:<{width}}  ", "label"), Span(text)] for name, text in rows)]
    lines += [[], [Span("Checks", "strong")], *_checks(prepared, findings)]
    lines += _services(prepared)
    lines += [[], [Span("Commands, in order", "strong")]]
    for index in range(min(SHOWN, len(plan))):
        lines += _trial(plan.trial(index), prepared)
    if len(plan) > SHOWN:
        more = f"… and {len(plan) - SHOWN:,} more: benchctl plan {plan.document.name} --all"
        lines.append([Span(more, "dim")])
    return lines


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _checks(prepared: Planned, findings: Sequence[Finding]) -> Iterator[Line]:
    for (name, role), tool in prepared.tools.items():
        end = "" if role is Role.CLIENT else " (server)"
        if isinstance(tool, MissingError):
            yield [Span("✗ missing  ", "bad"), Span(f"{name}{end}: {tool.message}")]
            yield [Span(f"           {tool.hint}", "warn")]
        else:
            yield [Span("✓ ok       ", "good"), Span(f"{name}{end} {tool.version}".rstrip())]
    for finding in findings:
        yield [Span("! note     ", "warn"), Span(f"{finding.subject}: {finding.text}")]
        if finding.remedy:
            yield [Span(f"           {finding.remedy}", "dim")]


def _services(prepared: Planned) -> Iterator[Line]:
    if not prepared.services:
        return
    user = user_name(os.geteuid())
    yield []
    yield [Span("Services", "strong"), Span(f"  run as {user} while the lab stands", "dim")]
    for host, argv in prepared.services:
        yield [Span(f"     {host}: ", "label"), Span(shlex.join(argv))]
    if prepared.distrust:
        yield [Span("! note     ", "warn"), Span(f"they need --trust: {prepared.distrust}")]


def _trial(bound: BoundTrial, prepared: Planned) -> Iterator[Line]:
    trial = bound.plan
    point = " ".join(f"{axis}={value}" for axis, value in trial.point.items())
    repeat = f"repeat {trial.repeat}" if prepared.plan.repeats > 1 else ""
    head = "  ".join(filter(None, [point, repeat, format_duration(trial.duration_s)]))
    yield [Span(f"{trial.position + 1:>3}  ", "label"), Span(head)]
    try:
        found = commands_of(bound, prepared.network, prepared.tools)
    except (MissingError, ValueError) as error:
        yield [Span(f"     no command: {error}", "bad")]
        return
    for commands in found:
        for role, argv in (("server", commands.server), ("client", commands.client)):
            if argv:
                yield [Span(f"     {commands.flow} {role}: ", "label"), Span(shlex.join(argv))]
