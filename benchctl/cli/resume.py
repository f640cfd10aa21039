"""``benchctl resume``: continue a run that was stopped or killed."""

from __future__ import annotations

import sys

from benchctl.cli import options


def resume(
    name: options.RunName = "last",
    *,
    form: options.Format = None,
    output: options.OutputFile = None,
    events: options.Events = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    log: options.Log = None,
    log_json: options.LogJson = False,
    notify: options.Notify = None,
    trust: options.Trust = False,
    _units: options.Units = None,
    store: options.Store,
) -> None:
    """Continue a run that was stopped or killed.

    Measures only the remaining trials.
    """
    from benchctl.cli.log import keep_log
    from benchctl.cli.watch import measure
    from benchctl.engine.launch import left_to_resume
    from benchctl.report.output import Output

    keep_log(log, as_json=log_json, verbose=verbose)
    shown = options.format_for(form, output, live_events=events)
    with options.open_reader(store) as reader:
        run = reader.find(name)
        left = left_to_resume(reader, run, trust=trust)
    with Output(output) as out:
        if not quiet:
            print(f"run {run.name}: {left} of {run.trials} trials left", file=sys.stderr)
        code = measure(store, run.id, shown, out, live_events=events, quiet=quiet, notify=notify)
    sys.exit(code)
