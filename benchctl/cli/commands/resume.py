"""``benchctl resume``: continue a run that was stopped or killed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Annotated

import typer

from benchctl.cli.shared import options


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
    strict: options.Strict = False,
    junit: options.Junit = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="Measure failed and timed-out trials again, too.")
    ] = False,
    detach: options.Detach = False,
    no_wait: options.NoWait = False,
    trust: options.Trust = False,
    _units: options.Units = None,
    store: options.Store,
) -> None:
    """Continue a run that was stopped or killed.

    Measures only the remaining trials; with --failed, also those that failed or timed out.
    """
    from benchctl.cli.shared.log import keep_log
    from benchctl.cli.shared.watch import Showing, measure
    from benchctl.engine.runner.host_locks import hosts_of_run
    from benchctl.engine.runner.launch import check_free, free_host, left_to_resume
    from benchctl.report.output.output import Output

    keep_log(log, as_json=log_json, verbose=verbose)
    shown = options.format_for(form, output, live_events=events)
    if detach:
        of_results = {
            "--format": form, "--output": output, "--events": events,
            "--verbose": verbose, "--notify": notify, "--strict": strict, "--junit": junit,
        }  # fmt: skip
        options.reject_beside("--detach", of_results)
    if no_wait:
        check_free(store)
    with options.open_reader(store) as reader:
        run = reader.find(name)
        options.check_format(shown, run.trials, run.settings.until or run.settings.search)
        left = left_to_resume(reader, run, trust=trust, failed=failed)
        hosts = hosts_of_run(reader, run, failed=failed) if no_wait else []
    with (
        Output(output) as out,
        options.open_junit(junit) as cases,
        ExitStack() as until_started,
    ):
        if no_wait:
            until_started.enter_context(free_host(store, hosts))
        if not quiet:
            print(f"run {run.name}: {left} of {run.trials} trials left", file=sys.stderr)
        showing = Showing(shown, out, events, quiet, notify, strict, cases)
        started = until_started.close

        def listen_first(listen: Callable[[], object]) -> int:
            listen()
            return run.id

        code = measure(
            store, listen_first, showing,
            failed=failed, detach=detach, no_wait=no_wait, started=started,
        )  # fmt: skip
    sys.exit(code)
