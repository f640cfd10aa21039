"""Plans what a person submits, anew and by the fleet's own knowledge of its hosts.

A profile comes from elsewhere: nothing of it may run, read or connect to anything on this machine.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from msgspec.structs import replace

from benchctl.engine.prepare.planning import Planned, planned
from benchctl.engine.prepare.stored_plan import record_plan
from benchctl.engine.prepare.volume import expected_traffic
from benchctl.errors import UsageError, nearest
from benchctl.fleet.coordinator.queue import AskedRun
from benchctl.fleet.person_messages import Submit
from benchctl.profile.load import Document, load_profile
from benchctl.run.planned import FleetTarget, Parallel
from benchctl.store.manage import read_tags
from benchctl.store.record import RunRequest
from benchctl.toml.source import parse_toml


def plan_submission(submit: Submit, hosts: Collection[str]) -> Planned:
    """Plan a profile with the hosts of a fleet. Raises ProfileError, UsageError or MissingError."""
    sources = tuple(parse_toml(file.text, Path(Path(file.name).name)) for file in submit.files)
    check_document(load_profile(sources, submit.assignments), hosts)
    prepared = planned(sources, submit.assignments, submit.only, submit.repeats, submit.yes)
    for flow in prepared.plan.routes:
        for name in (flow.source, flow.to):
            host = prepared.network.hosts.get(name)
            if host is not None and not isinstance(host.reach, FleetTarget):
                what = f"flow {flow.name}: {name} is no host of the fleet"
                raise prepared.plan.document.error(
                    ("hosts", name), what, f"give it with [hosts.{name}] fleet = true"
                )
    # A trial waits for its hosts, and has them for itself, however many run.
    plan = prepared.plan
    parallel = plan.parallel or Parallel(most=1, at_once=1)
    return _with_plan(prepared, replace(plan, parallel=parallel))


def _with_plan(prepared: Planned, plan: object) -> Planned:
    import dataclasses

    return dataclasses.replace(prepared, plan=plan)  # type: ignore[arg-type]


def check_document(document: Document, hosts: Collection[str]) -> None:
    """Raise ProfileError if a profile needs anything but hosts of the fleet."""
    model = document.model
    if model.lab is not None:
        raise document.error(
            ("lab",), "a fleet measures no labs", "run it without --fleet, or with --lab none"
        )
    for hook in model.hooks:
        key = ("hosts", hook.host, hook.when.value)
        raise document.error(key, "a fleet runs no commands of a profile", "remove it")
    for name, host in model.hosts.items():
        if host.ssh is not None:
            raise document.error(
                ("hosts", name, "ssh"), "a fleet logs in to no hosts", "use fleet = true"
            )
        planned_host = model.outside.hosts.get(name)
        reach = getattr(planned_host, "reach", None)
        if isinstance(reach, FleetTarget) and reach.name not in hosts:
            what = f"the fleet has no host {reach.name}"
            raise document.error(("hosts", name), what, nearest(reach.name, hosts))


def request_of(prepared: Planned, person: str, now_s: float) -> AskedRun:
    """Return what a plan needs of the fleet."""
    names = {
        host.reach.name
        for flow in prepared.plan.routes
        for end in (flow.source, flow.to)
        if (host := prepared.network.hosts.get(end)) and isinstance(host.reach, FleetTarget)
    }
    if not names:
        raise UsageError("the profile measures with no host of the fleet")
    parallel = prepared.plan.parallel
    at_once = parallel.at_once if parallel else 1
    sent = expected_traffic(prepared).between.most_bytes
    return AskedRun(0, "", person, frozenset(names), at_once, sent, now_s)


def record_submission(
    submit: Submit, prepared: Planned, request: AskedRun, store: Path
) -> AskedRun:
    """Write a submitted run into the store. Raises ProfileError, UsageError or StoreError."""
    asked = RunRequest(request.person, f"{request.person} {submit.token}", request.sent_bytes)
    run_id, name = record_plan(
        prepared, store, yes=submit.yes, tags=read_tags(submit.tags), asked=asked
    )
    return replace(request, run_id=run_id, name=name)
