"""A plan as text: matrix, order, time, traffic, checks, exact commands."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchctl.api import Role
from benchctl.engine.checks.machine import HealthFinding
from benchctl.engine.checks.needed_hosts import needed_hosts
from benchctl.engine.checks.tools import commands_of
from benchctl.engine.prepare.planning import Planned
from benchctl.engine.prepare.volume import (
    Amount,
    Traffic,
    expected_traffic,
    most_times,
    reached_outside,
)
from benchctl.engine.prepare.volume import Path as ReachedPath
from benchctl.errors import BenchctlError, MissingError
from benchctl.hosts.local.users import user_name
from benchctl.hosts.ssh.programs import as_sent
from benchctl.plan.bound import BoundTrial, Promised
from benchctl.plan.plan import Plan, lab_settings
from benchctl.report.lines.spans import Line, Span
from benchctl.report.text.searches import detection
from benchctl.run.planned import LOCAL, Host, Search, When, way_of
from benchctl.units import format_count, format_duration, format_ratio

# Some screenfuls; the whole of a large matrix is shown only on request.
SHOWN = 50


def plan_lines(
    prepared: Planned,
    findings: Sequence[HealthFinding] = (),
    most: int | None = SHOWN,
) -> list[Line]:
    """Return a plan with its first ``most`` trials (None: all) as lines of text of any length."""
    head = [[], [Span("Commands, in order", "strong")]]
    return [*plan_head(prepared, findings), *head, *command_lines(prepared, most)]


def plan_head(prepared: Planned, findings: Sequence[HealthFinding] = ()) -> list[Line]:
    """Return a plan without its commands: matrix, time, traffic, checks."""
    plan = prepared.plan
    model = plan.document.model
    lines: list[Line] = [[Span(plan.document.name, "title"), Span(f"  {model.title}")]]
    traffic = expected_traffic(prepared)
    points = format_count(len(plan.points), "point")
    repeats = format_count(plan.repeats, "repeat")
    rows = [
        ("trials", f"{len(plan):,}: {points} x {repeats}{_until(plan)}"),
        ("order", f"{model.run.order}, seed {plan.seed}"),
        ("time", f"{_least(plan)}{format_duration(plan.duration_s)}{_at_most(plan)}"),
        ("traffic", _traffic(traffic, plan)),
    ]
    if plan.search is not None:
        rows.append(("search", _search(plan.search)))
    if prepared.topology is not None:
        rows.append(("lab", str(prepared.topology.path)))
    rows += [(axis, ", ".join(map(str, values))) for axis, values in plan.values.items()]
    width = max(len(name) for name, _ in rows)
    lines += [[], *([Span(f"{name:<{width}}  ", "label"), Span(text)] for name, text in rows)]
    lines += [[], [Span("Checks", "strong")], *_checks(prepared, findings)]
    lines += _paths(prepared, traffic)
    lines += _services(prepared)
    return lines


def start_text(prepared: Planned) -> str:
    """Return what a start does, in a line: where, how long, how much traffic."""
    plan, more = prepared.plan, most_times(prepared.plan)
    traffic = expected_traffic(prepared)
    trials = f"{format_count(len(plan), 'trial')}{' or more' * (more > 1)}"
    lasts = f"{_least(plan)}{'at most ' * (more > 1)}{format_duration(plan.duration_s * more)}"
    sent = "no traffic leaves it"
    if traffic.paths:
        sent = f"{'at most ' * (more > 1)}{traffic_text(traffic.times(more))}"
    elif traffic.in_lab and not traffic.whole.assumed_bytes:
        sent = f"at most {traffic.whole.times(more)} in the lab, none leaves it"
    return f"{trials}, {lasts}, {_where(prepared, traffic)}; {sent}"


def _where(prepared: Planned, traffic: Traffic) -> str:
    """Return from where to where a plan sends."""
    outside = reached_outside(prepared)
    if prepared.topology is not None:
        return "in a lab on this machine"
    if not outside:
        return "on this machine"

    def named(name: str) -> str:
        if name == LOCAL.name:
            return "this machine"
        address = outside.get(name, name)
        return name if name == address else f"{name} ({address})"

    paths = [*traffic.paths] or [ReachedPath(LOCAL.name, next(iter(outside)))]
    (source, to), others = paths[0], {frozenset(path) for path in paths[1:]} - {frozenset(paths[0])}
    both = (to, source) in paths
    where = f"{'between' if both else 'from'} {named(source)} {'and' if both else 'to'} {named(to)}"
    return f"{where}, and {len(others)} more" if others else where


def command_lines(
    prepared: Planned, most: int | None = SHOWN, *, short: bool = False
) -> list[Line]:
    """Return the commands of the first ``most`` trials (None: all).

    ``short`` ones have the names of programs, without their paths.
    """
    plan, lines = prepared.plan, list[Line]()
    shown = len(plan) if most is None else min(most, len(plan))
    for index in range(shown):
        lines += _trial(plan.trial(index), prepared, short=short)
    if shown < len(plan):
        more = f"… and {len(plan) - shown:,} more: benchctl plan {plan.document.name} --all"
        lines.append([Span(more, "dim")])
    return lines


def _search(search: Search) -> str:
    return (
        f"the highest {search.axis} with {search.condition}, to {format_ratio(search.precision)};"
        f" {search.confirm} tries agree at each edge, at most {search.most} at each point"
    )


def _traffic(traffic: Traffic, plan: Plan) -> str:
    return f"{traffic_text(traffic)}{', the first tries' * bool(plan.search)}"


def traffic_text(traffic: Traffic) -> str:
    """Return how much is sent; what nothing bounds between machines, at an assumed rate.

    What stays on this machine, or in a lab, has no such rate: a link or the processor limits it.
    """
    if not traffic.paths:
        most = "at most " * (traffic.in_lab and not traffic.whole.assumed_bytes)
        return (
            f"{most}{traffic.whole}, on this machine only" if traffic.whole.most_bytes else "none"
        )
    between = traffic.between
    return f"{between.at_assumed}, assumed" if between.at_assumed else str(between)


# More paths than these are a list that nobody reads; the hosts have their sums.
_PATHS_SHOWN = 30


def _paths(prepared: Planned, traffic: Traffic) -> Iterator[Line]:
    """Yield the remote hosts, and what is sent over each path and by each host."""
    remote = prepared.outside.remote
    if remote:
        yield []
        yield [
            Span("Hosts", "strong"),
            Span("  not asked yet: commands follow the versions there", "dim"),
        ]
    routes = prepared.plan.routes
    needed = {host.name for host in needed_hosts(prepared.network, routes, prepared.hooks)}
    for name in remote:
        line = [Span(f"     {name}: ", "label"), Span(_way_to(prepared.network.hosts[name]))]
        yield line if name in needed else [*line, Span(", used by no flow", "warn")]
    if len(traffic.paths) > (0 if remote else 1):
        yield []
        yield from traffic_lines(traffic)


def traffic_lines(traffic: Traffic) -> Iterator[Line]:
    """Yield what is sent over each path, and by each host; nothing in a lab."""
    if not traffic.paths:
        return
    yield [Span("Traffic by path and host", "strong")]
    for path, amount in list(traffic.paths.items())[:_PATHS_SHOWN]:
        yield [Span(f"     {path.source} to {path.to}: ", "label"), Span(_amount(amount))]
    if (left := len(traffic.paths) - _PATHS_SHOWN) > 0:
        yield [Span(f"     … and {left} more paths", "dim")]
    for name, (sent, received) in traffic.hosts.items():
        text = f"sends {_amount(sent)}, receives {_amount(received)}"
        yield [Span(f"     {name}: ", "label"), Span(text)]


def _way_to(host: Host) -> str:
    assert host.reach is not None
    text = f"{way_of(host.reach)}, address {host.address}"
    if host.address6:
        text += f" and {host.address6}"
    if host.ports is not None:
        text += f", ports {'-'.join(map(str, dict.fromkeys(host.ports)))}"
    return text + ", always the client" * (not host.reachable)


def _amount(amount: Amount) -> str:
    return amount.at_assumed or str(amount)


def _least(plan: Plan) -> str:
    if plan.parallel is None:
        return ""
    return f"{format_count(plan.parallel.at_once, 'trial')} at once, at least "


def _at_most(plan: Plan) -> str:
    if plan.search is None:
        return ""
    return f" for the first tries, at most {format_duration(plan.most_duration_s)}"


def _until(plan: Plan) -> str:
    if plan.until is None:
        return ""
    share = format_ratio(plan.until.share)
    return f", then up to {plan.until.most} until {plan.until.metric} is known to ±{share}"


def _checks(prepared: Planned, findings: Sequence[HealthFinding]) -> Iterator[Line]:
    if prepared.lab_fault is not None:
        yield from _missing("lab", prepared.lab_fault)
    for doubt in prepared.lab_doubts:
        yield [Span("! note     ", "warn"), Span(f"lab: {doubt}")]
    for (name, role), tool in prepared.tools.items():
        end = "" if role is Role.CLIENT else " (server)"
        if isinstance(tool, MissingError):
            yield from _missing(f"{name}{end}", tool)
        else:
            yield [Span("✓ ok       ", "good"), Span(f"{name}{end} {tool.version}".rstrip())]
    if prepared.outside.remote:
        hint = "the other hosts are asked by benchctl doctor --hosts, and before a run"
        yield [Span("· later    ", "dim"), Span(hint)]
    if prepared.plan.search is not None:
        yield from _detection(prepared, prepared.plan.search)
    for finding in findings:
        yield [Span("! note     ", "warn"), Span(f"{finding.subject}: {finding.text}")]
        if finding.remedy:
            yield [Span(f"           {finding.remedy}", "dim")]


def _missing(what: str, error: BenchctlError) -> Iterator[Line]:
    yield [Span("✗ missing  ", "bad"), Span(f"{what}: {error.message}")]
    yield [Span(f"           {error.hint}", "warn")]


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
    if why := prepared.needs_trust:
        need = "they need --trust" if prepared.distrust else "a terminal asks, or --trust"
        yield [Span("! note     ", "warn"), Span(f"{need}: {why}")]


def shortened(command: str) -> str:
    """Return a command with the names of its programs: no path, no interpreter."""
    words = shlex.split(command)
    if Path(words[0]).name.startswith("python"):
        script = next((place for place, word in enumerate(words) if word.endswith(".py")), 0)
        words = words[script:]
    path = Path(words[0])
    name = path.parent.name if path.name == "__main__.py" else path.name
    return shlex.join([name, *words[1:]])


def _trial(bound: BoundTrial, prepared: Planned, *, short: bool) -> Iterator[Line]:
    trial = bound.plan
    point = " ".join(f"{axis}={value}" for axis, value in trial.point.items())
    repeat = f"repeat {trial.repeat}" if prepared.plan.repeats > 1 else ""
    head = "  ".join(filter(None, [point, repeat, format_duration(trial.duration_s)]))
    yield [Span(f"{trial.position + 1:>3}  ", "label"), Span(head)]
    for shown in commands(bound, prepared):
        if shown.flow:
            where = f" on {shown.host}" if prepared.network.hosts[shown.host].reach else ""
            command = shortened(shown.command) if short else shown.command
            yield [Span(f"     {shown.flow} {shown.end}{where}: ", "label"), Span(command)]
        else:
            yield [Span(f"     {shown.end}: {shown.command}", "bad")]


class ShownCommand(NamedTuple):
    """A process of a trial: its flow, its end, the host where it runs, and its command."""

    flow: str
    end: str
    host: str
    command: str


def _as_run(argv: Sequence[str], host: Host) -> str:
    return shlex.join(argv if host.reach is None else as_sent(argv))


def _expected(bound: BoundTrial, prepared: Planned) -> Mapping[str, Promised]:
    lab = prepared.plan.document.model.lab
    if prepared.topology is None or lab is None:
        return {}
    # A plan without a lab need not wait for the import of its room.
    from benchctl.engine.site.lab_site import planned_promises

    return planned_promises(prepared.outside, lab_settings(prepared.topology, lab), bound)


def commands(bound: BoundTrial, prepared: Planned) -> list[ShownCommand]:
    """Return all processes of a trial.

    If a command is not available, the flow is empty and the reason replaces the command.
    """
    try:
        tools = {**prepared.likely_there, **prepared.tools}
        found = commands_of(bound, prepared.network, tools, _expected(bound, prepared))
    except MissingError as error:
        return [ShownCommand("", "no command", "", str(error))]
    return [
        ShownCommand(flow_commands.flow, end, host, _as_run(argv, prepared.network.hosts[host]))
        for flow_commands, flow in zip(found, bound.plan.flows, strict=True)
        for end, host, argv in (
            ("server", flow.to, flow_commands.server),
            ("client", flow.source, flow_commands.client),
        )
        if argv
    ]


def opening_comment(text: str) -> list[str]:
    """Return the comment with which a profile begins, without its signs; a paragraph is a line."""
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("#:"):  # for editors
            continue
        if not line.startswith("#"):
            break
        text = line[1:].removeprefix(" ").rstrip()
        # Lists, commands and drawings keep their lines.
        if text[:1].isalnum() and lines and lines[-1][:1].isalnum():
            lines[-1] += f" {text}"
        else:
            lines.append(text)
    return lines
