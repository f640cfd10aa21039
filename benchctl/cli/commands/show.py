"""``benchctl show``: one run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from benchctl.cli.shared import options
from benchctl.visible import visible

if TYPE_CHECKING:
    from benchctl.report.report import Report
    from benchctl.run.record import Run
    from benchctl.store.read import Reader


def show(
    name: options.RunOrFile = "last",
    *,
    trials: Annotated[
        bool, typer.Option("--trials", help="Show every attempt of every flow in full.")
    ] = False,
    facts: Annotated[
        bool,
        typer.Option("--facts", help="Show facts about the hosts at the time of the run, as JSON."),
    ] = False,
    profile: Annotated[
        bool,
        typer.Option("--profile", help="Show the profile, with what the command line changed."),
    ] = False,
    percentiles: Annotated[
        bool,
        typer.Option("--percentiles", help="Add columns of medians and 95th percentiles."),
    ] = False,
    form: options.Format = None,
    _pager: options.Pager = False,
    _units: options.Units = None,
    events: Annotated[
        bool,
        typer.Option("--events", help="Show events within the flows, such as drops and stalls."),
    ] = False,
    _fleet: options.Fleet = None,
    store: options.Store,
) -> None:
    """Show one run: summary, trials, events, facts or profile."""
    from benchctl.cli.shared.colour import coloured
    from benchctl.report.answer import read_answer
    from benchctl.report.exports.table import text_of
    from benchctl.report.report import read_report

    if form is not None:
        others = {"--trials": trials, "--facts": facts, "--profile": profile, "--events": events}
        options.reject_beside("--format", others)
    name, store = options.run_and_store(name, store)
    with options.open_reader(store) as reader:
        run = reader.find(name)
        if form is not None:
            _export(reader, run, form)
        elif profile:
            print(run.profile_text)
        elif facts:
            remote = {"hosts": run.hosts} if run.hosts else {}
            print(json.dumps({**run.facts, **remote}, indent=2))
        elif events:
            _print_events(reader, run)
        elif trials:
            with coloured():
                _print_trials(reader, run)
        else:
            with coloured():
                _print_head(run)
                report = read_report(reader, run)
                if report.trials:
                    print(*map(visible, read_answer(reader, report)), sep="\n", end="\n\n")
                print(text_of(report, ("median", "p95") if percentiles else ()), end="")
                _print_limits(report)
                for note in reader.notes(run.id):
                    print(visible(f"{note.level}: {note.text}"))


def _export(reader: Reader, run: Run, form: str) -> None:
    """Write a run as `benchctl export` does."""
    from benchctl.report.output import formats
    from benchctl.report.output.output import Output
    from benchctl.report.report import StoredRun

    with Output(None) as out:
        formats.write(formats.load(form), StoredRun(reader, run), out)


def _print_head(run: Run) -> None:
    from benchctl.report.text.heading import heading

    print(*map(visible, heading(run)), sep="\n", end="\n\n")


def _print_limits(report: Report) -> None:
    from benchctl.report.text.limiting import limit_lines

    lines = [visible(f"  {line}") for line in limit_lines(report)]
    if lines:
        print("", "limited by", *lines, sep="\n")


def _print_events(reader: Reader, run: Run) -> None:
    from benchctl.report.report import read_report
    from benchctl.report.text.happenings import event_lines

    lines = list(event_lines(read_report(reader, run)))
    print(*map(visible, lines or ["no events"]), sep="\n")


def _print_trials(reader: Reader, run: Run) -> None:
    from benchctl.report.lines.spans import to_text
    from benchctl.report.lines.trial import hook_lines, trial_lines
    from benchctl.report.text.detail import read_details

    if run.error:
        print(visible(f"the run failed: {run.error}"))
    for hook in run.hooks:
        for line in hook_lines(hook):
            print(visible(to_text([line])))
    for detail in read_details(reader, run):
        for line in trial_lines(detail):
            print(visible(to_text([line])))
