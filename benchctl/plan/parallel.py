"""A plan whose trials run side by side: what a profile says of it, their order, and their time."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator

from msgspec.structs import replace

from benchctl.plan.matching import OpenTrial, coloured, first_batch, least_s, open_trial
from benchctl.plan.plan import Plan
from benchctl.profile.model import Order
from benchctl.profile.places import SiteTable
from benchctl.run.planned import Network, Parallel, Uplink, When
from benchctl.toml.source import Key
from benchctl.units import format_rate, quoted

_AROUND_TRIALS = (When.PREPARE, When.CLEANUP)


def side_by_side(plan: Plan, network: Network) -> Plan:
    """Return a plan with its limits, order and time if its profile has trials run side by side.

    Raises ProfileError for what cannot be together.
    """
    run, sites = plan.document.model.run, plan.document.model.sites
    for name, site in sites.items():
        _check_site(plan, network, name, site)
    if run.parallel == 1:
        return plan
    limits = Parallel(
        None if run.parallel == "hosts" else run.parallel,
        run.per_host,
        tuple(Uplink(name, tuple(site.hosts), site.trials) for name, site in sites.items()),
        run.total_rate,
    )
    trials = list(plan.of_points())
    open_trials = [open_trial(trial, network, number) for number, trial in enumerate(trials)]
    for key, what, hint in _obstacles(plan, open_trials):
        raise plan.document.error(key, what, hint)
    order = list(range(len(trials)))
    if run.order is Order.INTERLEAVED:
        order = coloured([trial.hosts for trial in open_trials], plan.seed)
        each = range(plan.repeats)
        whole = array("Q", (p * plan.repeats + r for r in each for p in order))
        plan = replace(plan, order=whole)
    batch = first_batch(limits, network, (open_trials[number] for number in order))
    limits = replace(limits, at_once=len(batch))
    lasting = [
        (opened, plan.repeats * (trial.plan.duration_s + run.pause))
        for opened, trial in zip(open_trials, trials, strict=True)
    ]
    duration_s = least_s(limits, network, lasting, len(batch)) - run.pause
    return replace(plan, parallel=limits, duration_s=duration_s)


def _check_site(plan: Plan, network: Network, name: str, site: SiteTable) -> None:
    for host in site.hosts:
        if host not in network.hosts:
            known = f"hosts are: {', '.join(network.hosts)}"
            raise plan.document.error(("sites", name, "hosts"), f"no host {quoted(host)}", known)


def _obstacles(plan: Plan, trials: list[OpenTrial]) -> Iterator[tuple[Key, str, str]]:
    """Yield key, message and hint of what does not go with trials side by side."""
    model, here = plan.document.model, ("run", "parallel")
    alone = "set run.parallel = 1"
    if plan.search is not None:
        yield here, "a search tries one rate after another", alone
    if model.lab is not None and model.lab.changes:
        yield here, "lab.changes are those of one trial at a time", alone
    if len(plan.labs) > 1:
        yield here, "an axis changes the lab, which is then built again between trials", alone
    ends = {name for flow in plan.routes for name in (flow.source, flow.to)}
    for hook in model.hooks:
        key = ("hosts", hook.host, str(hook.when))
        if hook.when in _AROUND_TRIALS and hook.host not in ends:
            what = "runs around each trial, but no flow ends at this host: others would run then"
            yield key, what, alone
        elif hook.when in _AROUND_TRIALS and model.run.per_host > 1:
            yield key, "runs around each trial, and others may run on this host", "set per_host = 1"
    most_bps = model.run.total_rate
    if most_bps is None:
        return
    for trial in trials:
        if math.isinf(trial.rate_bps):
            what = "the flows have no rate of their own that could be added up"
            yield ("run", "total_rate"), what, "give each a rate, or leave total_rate out"
        elif trial.rate_bps > most_bps:
            what = f"a trial alone sends {format_rate(trial.rate_bps)}"
            yield ("run", "total_rate"), what, f"give at least {format_rate(trial.rate_bps)}"
