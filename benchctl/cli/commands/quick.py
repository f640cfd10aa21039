"""``benchctl quick``: a first look at one host, without a profile."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchctl.cli.shared import completion, options
from benchctl.units import format_count

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from benchctl.backends import Registry
    from benchctl.metrics import Direction


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
    from benchctl.backends import installed
    from benchctl.cli.shared.log import keep_log
    from benchctl.cli.shared.watch import Showing, measure
    from benchctl.engine.checks.network import check_name
    from benchctl.engine.prepare.planning import planned
    from benchctl.engine.prepare.stored_plan import record_plan
    from benchctl.engine.prepare.volume import expected_traffic
    from benchctl.errors import UsageError
    from benchctl.profile.quick import HERE, Quick
    from benchctl.profile.values import check_host
    from benchctl.report.output.output import Output
    from benchctl.store.manage import read_tags
    from benchctl.toml.source import parse_toml
    from benchctl.tui.draw.text.plantext import traffic_lines
    from benchctl.tui.draw.text.spans import to_text
    from benchctl.units import parse_duration, parse_rate
    from benchctl.visible import visible

    keep_log(log, as_json=log_json, verbose=verbose)
    try:
        check_host(host)
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
    is_here = host in HERE and port is None
    if not (ssh or is_here):
        check_name(host)
    with Output(output) as out:
        tool = backend or (OURS if ssh or is_here else _answering(host, port, quiet=quiet))
        directions, accepts = _abilities(tool, installed())
        pings = not no_ping and _may_ping()
        wanted = Quick(host, tool, directions, duration_s, port, udp_rate, pings, ssh, accepts)
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
            if not quiet:
                trials = format_count(len(prepared.plan), "trial")
                print(f"run {name}: {trials}, store {store}", file=sys.stderr)
                if prepared.outside.elsewhere:
                    for line in traffic_lines(expected_traffic(prepared)):
                        print(visible(to_text([line])), file=sys.stderr)
            return run_id

        code = measure(store, record, Showing(shown, out, False, quiet, notify))
    sys.exit(code)


# In the order in which they are looked for, each at its own port.
OURS, OTHER = "simpleperf", "iperf3"


def _answering(host: str, port: int | None, *, quiet: bool) -> str:
    """Return the tool whose server answers at a host. Raises MissingError if none does."""
    from benchctl.backends import installed
    from benchctl.engine.checks.network import listening
    from benchctl.errors import MissingError

    registry = installed()
    ports = {
        number: name
        for name in (OURS, OTHER)
        if (number := registry.load(name).capabilities.default_port) is not None
    }
    if port is not None:  # a port that is nobody's own does not say whose it is
        return ports.get(port, OTHER)
    found = listening(host, [*ports])
    for number, name in ports.items():
        if not found[number]:
            if not quiet:
                print(f"{name} answers at {host} port {number}", file=sys.stderr)
            return name
    said = ", ".join(f"{name} port {number} {found[number]}" for number, name in ports.items())
    raise MissingError(
        f"no server answers at {host}: {said}",
        f"start one there: benchctl serve; or let benchctl log in: benchctl quick --ssh {host}",
    )


def _may_ping() -> bool:
    """Return whether this user may send pings, and say so if not."""
    from benchctl.engine.checks.network import may_ping

    if may_ping():
        return True
    why = "benchctl: there are no pings, because this user may not send any"
    print(f"{why}: see sysctl net.ipv4.ping_group_range", file=sys.stderr)
    print("  in a container, --cap-add NET_RAW lets ping send", file=sys.stderr)
    return False


def _abilities(name: str, registry: Registry) -> tuple[tuple[Direction, ...], Collection[str]]:
    """Return in which directions a tool is measured, and the names of its parameters."""
    from benchctl.errors import UsageError
    from benchctl.metrics import PROBES, Direction

    backend = registry.load(name)
    can = backend.capabilities
    # One direction of delays alone says nothing of the clocks.
    probes = can.headline in PROBES and Direction.BOTH in can.directions
    wish = (Direction.BOTH,) if probes else (Direction.SEND, Direction.RECEIVE)
    directions = tuple(one for one in wish if one in can.directions)
    if not directions:
        raise UsageError(
            f"--backend {name}: it does not measure throughput",
            "choose another: see benchctl backends",
        )
    return directions, backend.parameters.model_fields.keys()
