"""``benchctl quick``: a first look at one host, without a profile."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchctl.cli.shared import completion, options
from benchctl.units import format_count

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchctl.backends import Registry
    from benchctl.engine.prepare.planning import Planned
    from benchctl.profile.quick import Quick


def quick(
    host: Annotated[
        str,
        typer.Argument(
            metavar="HOST",
            help='Name or address of a host that runs a server; "local" is this machine.',
        ),
    ],
    *,
    backend: Annotated[
        str | None,
        typer.Option(
            "--backend",
            metavar="NAME",
            help="The tool; default: iperf3, else simpleperf.",
            autocompletion=completion.backends,
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            metavar="PORT",
            min=1,
            max=65535,
            help="Port of the server; default: that of the tool.",
        ),
    ] = None,
    duration: Annotated[
        str,
        typer.Option(
            "--duration", metavar="DURATION", help="Duration of each measurement but the first."
        ),
    ] = "5s",
    udp: Annotated[
        str | None,
        typer.Option("--udp", metavar="RATE", help="Measure loss and jitter at this rate, too."),
    ] = None,
    no_ping: Annotated[
        bool, typer.Option("--no-ping", help="Do not ping: for hosts that do not reply.")
    ] = False,
    save: Annotated[
        Path | None,
        typer.Option(
            "--save",
            metavar="FILE",
            help="Write the profile to a new file, to change it and run it again.",
            autocompletion=completion.files,
        ),
    ] = None,
    form: options.Format = None,
    output: options.OutputFile = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    log: options.Log = None,
    log_json: options.LogJson = False,
    notify: options.Notify = None,
    tags: options.Tags,
    _units: options.Units = None,
    store: options.Store,
) -> None:
    """Measure one host: throughput both ways, round trip idle and under load.

    The result is stored like any other run; "show" and "compare" work on it.
    """
    from benchctl.cli.shared.log import keep_log
    from benchctl.cli.shared.watch import Showing, measure
    from benchctl.engine.checks.network import check_name
    from benchctl.engine.prepare.stored_plan import record_plan
    from benchctl.errors import UsageError
    from benchctl.profile.quick import HERE, Quick
    from benchctl.profile.values import check_host
    from benchctl.report.output.output import Output
    from benchctl.store.manage import read_tags
    from benchctl.units import parse_duration, parse_rate

    keep_log(log, as_json=log_json, verbose=verbose)
    try:
        check_host(host)
        parse_duration(duration)
        parse_rate(udp or "unlimited")
    except ValueError as error:
        raise UsageError(str(error), "see benchctl quick --help") from None
    if save is not None:
        options.check_new(f"--save {save}", save)
    shown = options.format_for(form, output)
    if host not in HERE:
        check_name(host)
    wanted = Quick(host, backend or "iperf3", (), duration, port, udp, pings=not no_ping)
    with Output(output) as out:
        text, prepared = _planned(wanted, save, alone=backend is not None)
        options.check_format(shown, len(prepared.plan), None)
        if save is not None:
            options.write_new(f"--save {save}", save, text)

        def record(listen: Callable[[], object]) -> int:
            run_id, name = record_plan(
                prepared, store, yes=True, tags=read_tags(tags), gives_up=True, before_commit=listen
            )
            if not quiet:
                trials = format_count(len(prepared.plan), "trial")
                print(f"run {name}: {trials}, store {store}", file=sys.stderr)
            return run_id

        code = measure(store, record, Showing(shown, out, False, quiet, notify))
    sys.exit(code)


def _planned(wanted: Quick, save: Path | None, *, alone: bool) -> tuple[str, Planned]:
    """Return the profile and its plan; unless ``alone``, with simpleperf if the tool is missing."""
    from dataclasses import replace

    from benchctl.backends import installed
    from benchctl.engine.prepare.planning import planned
    from benchctl.toml.source import parse_toml

    found = _with_directions(wanted, installed())
    prepared = planned(parse_toml(found.text, save or Path("quick.toml")), (), (), None, yes=False)
    if missing := prepared.missing:
        if alone or wanted.backend == "simpleperf":
            raise missing
        return _planned(replace(wanted, backend="simpleperf"), save, alone=True)
    return found.text, prepared


def _with_directions(wanted: Quick, registry: Registry) -> Quick:
    from dataclasses import replace

    from benchctl.errors import UsageError
    from benchctl.metrics import PROBES, Direction

    can = registry.load(wanted.backend).capabilities
    # One direction of delays alone says nothing of the clocks.
    probes = can.headline in PROBES and Direction.BOTH in can.directions
    wish = (Direction.BOTH,) if probes else (Direction.SEND, Direction.RECEIVE)
    ways = [way for way in wish if way in can.directions]
    if not ways:
        raise UsageError(
            f"--backend {wanted.backend}: it does not measure throughput",
            "choose another: see benchctl backends",
        )
    return replace(wanted, directions=ways)
