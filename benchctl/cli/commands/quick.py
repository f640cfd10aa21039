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
            help="The tool; default: the one that answers, simpleperf or iperf3; with --port the "
            "one whose usual port it is, else iperf3.",
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
        typer.Option("--duration", metavar="DURATION", help="Duration of the load, each way."),
    ] = "6s",
    udp: Annotated[
        str,
        typer.Option(
            "--udp", metavar="RATE", help='Rate for loss and jitter over UDP; "0" leaves it out.'
        ),
    ] = "1Mbit",
    ssh: Annotated[
        bool, typer.Option("--ssh", help="Log in to HOST and start the server there.")
    ] = False,
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
    """Measure one host: throughput both ways, round trips idle and under load, loss.

    It takes about 20 s. Which server answers is found out: simpleperf on port 8088, else iperf3 on
    5201. The result is stored like any other run; "show" and "compare" work on it.
    """
    from benchctl.cli.shared.log import keep_log
    from benchctl.cli.shared.watch import Showing, measure
    from benchctl.engine.prepare.planning import planned
    from benchctl.engine.prepare.quick_look import look_at
    from benchctl.engine.prepare.stored_plan import record_plan
    from benchctl.engine.prepare.volume import expected_traffic
    from benchctl.errors import UsageError
    from benchctl.report.lines.plan import traffic_lines
    from benchctl.report.lines.spans import to_text
    from benchctl.report.output.output import Output
    from benchctl.store.manage import read_tags
    from benchctl.toml.source import parse_toml
    from benchctl.units import parse_duration, parse_rate
    from benchctl.visible import visible

    def tell(text: str) -> None:
        if not quiet:
            print(visible(text), file=sys.stderr)

    keep_log(log, as_json=log_json, verbose=verbose)
    try:
        duration_s = parse_duration(duration)
        udp_rate = None if udp == "0" else udp
        parse_rate(udp_rate or "unlimited")
    except ValueError as error:
        raise UsageError(str(error), "see benchctl quick --help") from None
    if ssh and port is not None:
        raise UsageError("--port: with --ssh benchctl starts the server, and chooses its port")
    if save is not None:
        options.check_new(f"--save {save}", save)
    shown = options.format_for(form, output)
    with Output(output) as out:
        wanted = look_at(
            host, backend=backend, port=port, duration_s=duration_s, udp_rate=udp_rate,
            pings=not no_ping, ssh=ssh, note=tell,
        )  # fmt: skip
        source = parse_toml(wanted.text, save or Path("quick.toml"))
        prepared = planned(source, (), (), None, yes=False)
        if missing := prepared.missing:
            raise missing
        options.check_format(shown, len(prepared.plan), None)
        if save is not None:
            options.write_new(f"--save {save}", save, wanted.text)

        def record(listen: Callable[[], object]) -> int:
            run_id, name = record_plan(
                prepared, store, yes=True, tags=read_tags(tags), gives_up=True, before_commit=listen
            )
            tell(f"run {name}: {format_count(len(prepared.plan), 'trial')}, store {store}")
            if prepared.outside.remote:
                for line in traffic_lines(expected_traffic(prepared)):
                    tell(to_text([line]))
            return run_id

        code = measure(store, record, Showing(shown, out, False, quiet, notify))
    sys.exit(code)
