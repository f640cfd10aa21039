"""``benchctl again``: measure a run's profile once more, and compare."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchctl.cli.shared import options
from benchctl.units import format_count

if TYPE_CHECKING:
    from benchctl.engine.prepare.planning import Planned
    from benchctl.run.record import Run


def again(
    name: options.RunName = "last",
    *,
    repeats: options.Repeats = None,
    fail_on: options.FailOn,
    strict: options.StrictLimits = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    log: options.Log = None,
    log_json: options.LogJson = False,
    notify: options.Notify = None,
    tags: options.Tags,
    trust: options.Trust = False,
    yes: options.Yes = False,
    _units: options.Units = None,
    store: options.Store,
) -> None:
    """Measure the profile of a run once more, as it was stored, and compare both runs.

    Options of the first run and the topology of its lab are kept. The exit code is that of the
    comparison, or of the run if a trial failed.
    """
    from benchctl.cli.commands.compare import compare
    from benchctl.cli.shared.consent import ask
    from benchctl.cli.shared.log import keep_log
    from benchctl.cli.shared.watch import Showing, measure
    from benchctl.engine.prepare.consent import agree, unagreed
    from benchctl.engine.prepare.stored_plan import record_plan
    from benchctl.errors import UsageError
    from benchctl.report.comparison.limits import EXAMPLE, parse_limit
    from benchctl.report.output.output import Output
    from benchctl.store.manage import read_tags

    keep_log(log, as_json=log_json, verbose=verbose)
    for text in fail_on:
        parse_limit(text)
    if strict and not fail_on:
        raise UsageError("--strict needs --fail-on", EXAMPLE)
    with options.open_reader(store) as reader:
        run = reader.find(name)
    with TemporaryDirectory() as directory, Output(None) as out:
        prepared = _planned(run, Path(directory), repeats, yes=yes)
        if missing := prepared.missing:
            raise missing
        if not trust:
            trust = ask(run.profile, unagreed(prepared.commands), agree)
        recorded = ""

        def record(listen: Callable[[], object]) -> int:
            nonlocal recorded
            run_id, recorded = record_plan(
                prepared, store, trust=trust, yes=yes, tags=read_tags(tags), before_commit=listen
            )
            if not quiet:
                trials = format_count(len(prepared.plan), "trial")
                print(f"run {recorded}: {trials}, as {run.name}, store {store}", file=sys.stderr)
            return run_id

        code = measure(store, record, Showing("table", out, False, quiet, notify))
    if code > 1:  # it was interrupted, or measured nothing
        sys.exit(code)
    print()
    compare(
        [run.name, recorded],
        against=None, fail_on=fail_on, strict=strict, within=None, store=store,
    )  # fmt: skip
    if len(prepared.plan) == len(prepared.plan.points):
        print("one repeat of each figure decides nothing: use --repeat 5")
    sys.exit(code)


def _planned(run: Run, directory: Path, repeats: int | None, *, yes: bool) -> Planned:
    """Plan a run's stored files, in a directory of their own. Raises UsageError."""
    from benchctl.engine.prepare.planning import planned
    from benchctl.errors import UsageError
    from benchctl.report.page.again import saved_as, split_profile

    if not run.profile_text:
        why = f"was imported from {run.origin}" if run.origin else "has no profile"
        raise UsageError(f"run {run.name} {why}: there is nothing to measure", "see benchctl runs")
    files, words = split_profile(run)
    for file in files:
        (directory / saved_as(file.name)).write_text(file.text, encoding="utf-8")
    given: dict[str, list[str]] = {"--set": [], "--only": [], "--repeat": [], "--lab": []}
    for option, value in zip(words[::2], words[1::2], strict=True):
        given[option].append(value)
    if run.settings.lab is not None:
        given["--lab"].append(str(directory / saved_as(Path(run.settings.lab.path).name)))
    if repeats is None and given["--repeat"]:
        repeats = int(given["--repeat"][-1])
    lab = given["--lab"][-1] if given["--lab"] else None
    profile = str(directory / saved_as(files[0].name))
    return planned(profile, given["--set"], given["--only"], repeats, yes, lab)
