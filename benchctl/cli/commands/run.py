"""``benchctl run``: measure a profile."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Annotated

import typer

from benchctl.cli.shared import completion, options
from benchctl.errors import UsageError
from benchctl.units import format_count

_Profile = Annotated[
    str | None,
    typer.Argument(
        metavar="[PROFILE]",
        help="A profile file, or the name of an included profile.",
        autocompletion=completion.profiles,
    ),
]


def run(
    profile: _Profile = None,
    *,
    assignments: options.Assignments,
    only: options.Only,
    repeats: options.Repeats = None,
    form: options.Format = None,
    output: options.OutputFile = None,
    events: options.Events = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    log: options.Log = None,
    log_json: options.LogJson = False,
    notify: options.Notify = None,
    strict: options.Strict = False,
    junit: options.Junit = None,
    lab: options.Lab = None,
    tags: options.Tags,
    detach: options.Detach = False,
    attach: Annotated[
        str | None,
        typer.Option(
            "--attach",
            metavar="RUN",
            help="Watch a run in progress instead; Ctrl-C leaves it running.",
            autocompletion=completion.runs,
        ),
    ] = None,
    server_wait: Annotated[
        str | None,
        typer.Option(
            "--wait-for-server",
            metavar="DURATION",
            help="Retry for at most this long while a server does not answer.",
        ),
    ] = None,
    no_wait: options.NoWait = False,
    trust: options.Trust = False,
    yes: options.Yes = False,
    fleet: options.FleetFile = None,
    _units: options.Units = None,
    store: options.Store,
) -> None:
    """Run every trial of a profile, then print the summary."""
    from benchctl.cli.shared.consent import ask
    from benchctl.cli.shared.fleet_run import attach_to_fleet, run_on_fleet, submission
    from benchctl.cli.shared.log import keep_log
    from benchctl.cli.shared.watch import Showing, attach_to, measure
    from benchctl.engine.checks.needed_hosts import needed_hosts
    from benchctl.engine.prepare.consent import agree, unagreed
    from benchctl.engine.prepare.planning import planned
    from benchctl.engine.prepare.stored_plan import record_plan
    from benchctl.engine.prepare.volume import expected_traffic
    from benchctl.engine.runner.launch import check_free, free_host
    from benchctl.report.lines.plan import traffic_lines
    from benchctl.report.lines.spans import to_text
    from benchctl.report.output.output import Output
    from benchctl.store.manage import read_tags
    from benchctl.visible import visible

    keep_log(log, as_json=log_json, verbose=verbose)
    shown = options.format_for(form, output, live_events=events)
    if fleet is not None:
        of_this_machine = {
            "--lab": lab, "--wait-for-server": server_wait, "--no-wait": no_wait, "--trust": trust,
            "--log": log, "--log-json": log_json, "--verbose": verbose,
        }  # fmt: skip
        options.reject_beside("--fleet", of_this_machine)
        with Output(output) as out, options.open_junit(junit) as cases:
            showing = Showing(shown, out, events, quiet, notify, strict, cases)
            if attach is not None:
                sys.exit(attach_to_fleet(fleet, attach, showing))
            if profile is None:
                raise UsageError("give a profile to run")
            asked = submission(profile, assignments, only, repeats, tags, yes=yes)
            sys.exit(run_on_fleet(fleet, asked, showing, detach=detach))
    if attach is not None:
        of_new_runs = {
            "PROFILE": profile, "--set": assignments, "--only": only, "--repeat": repeats,
            "--lab": lab, "--tag": tags != options.default_tags(), "--detach": detach,
            "--wait-for-server": server_wait, "--no-wait": no_wait,
        }  # fmt: skip
        options.reject_beside("--attach", of_new_runs)
        with Output(output) as out, options.open_junit(junit) as cases:
            showing = Showing(shown, out, events, quiet, notify, strict, cases)
            sys.exit(attach_to(store, attach, showing))
    if profile is None:
        raise UsageError("give a profile to run", "for example: benchctl run quickstart")
    if detach:
        of_results = {
            "--format": form, "--output": output, "--events": events,
            "--verbose": verbose, "--notify": notify, "--strict": strict, "--junit": junit,
        }  # fmt: skip
        options.reject_beside("--detach", of_results)
    wait_s = _read_wait(server_wait)
    with (
        Output(output) as out,
        options.open_junit(junit) as cases,
        ExitStack() as until_started,
    ):
        if no_wait:  # who must not wait for a run should not wait for the plan either
            check_free(store)
        prepared = planned(profile, assignments, only, repeats, yes, lab)
        plan = prepared.plan
        options.check_format(shown, len(plan), plan.until or plan.search)
        if missing := prepared.missing:
            raise missing
        if not (trust or prepared.distrust):
            trust = ask(plan.document.name, unagreed(prepared.commands), agree)
        if no_wait:
            in_lab = prepared.topology is not None
            hosts = [] if in_lab else needed_hosts(prepared.network, plan.routes, prepared.hooks)
            until_started.enter_context(free_host(store, hosts))

        def record(listen: Callable[[], object]) -> int:
            run_id, name = record_plan(
                prepared,
                store,
                trust=trust,
                yes=yes,
                tags=read_tags(tags),
                server_wait_s=wait_s,
                before_commit=listen,
            )
            if not quiet:
                trials = format_count(len(plan), "trial")
                print(f"run {name}: {trials}, store {store}", file=sys.stderr)
                if prepared.outside.remote:
                    for line in traffic_lines(expected_traffic(prepared)):
                        print(visible(to_text([line])), file=sys.stderr)
            return run_id

        showing = Showing(shown, out, events, quiet, notify, strict, cases)
        started = until_started.close
        code = measure(store, record, showing, detach=detach, no_wait=no_wait, started=started)
    sys.exit(code)


def _read_wait(text: str | None) -> float:
    from benchctl.units import parse_duration

    try:
        return 0.0 if text is None else parse_duration(text)
    except ValueError as error:
        raise UsageError(f"--wait-for-server: {error}") from None
