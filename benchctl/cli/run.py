"""``benchctl run``: measure a profile."""

from __future__ import annotations

import sys

from benchctl.cli import options


def run(
    profile: options.Profile,
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
    lab: options.Lab = None,
    tags: options.Tags,
    trust: options.Trust = False,
    yes: options.Yes = False,
    _units: options.Units = None,
    store: options.Store,
) -> None:
    """Run every trial of a profile, then print the summary."""
    from benchctl.cli.log import keep_log
    from benchctl.cli.watch import measure
    from benchctl.engine.planning import planned
    from benchctl.engine.preflight import first_missing
    from benchctl.engine.prepare import record_plan
    from benchctl.report.output import Output
    from benchctl.store.manage import read_tags

    keep_log(log, as_json=log_json, verbose=verbose)
    shown = options.format_for(form, output, live_events=events)
    with Output(output) as out:
        prepared = planned(profile, assignments, only, repeats, yes, lab)
        if missing := first_missing(prepared.tools):
            raise missing
        run_id, name = record_plan(prepared, store, trust=trust, tags=read_tags(tags))
        if not quiet:
            trials = "1 trial" if len(prepared.plan) == 1 else f"{len(prepared.plan)} trials"
            print(f"run {name}: {trials}, store {store}", file=sys.stderr)
        code = measure(store, run_id, shown, out, live_events=events, quiet=quiet, notify=notify)
    sys.exit(code)
