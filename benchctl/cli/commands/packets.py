"""``benchctl packets``: what happened inside the connections of a packet trace."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchctl.cli.shared import completion, options
from benchctl.errors import UsageError
from benchctl.visible import visible

if TYPE_CHECKING:
    from benchctl.packets.trace import Trace

IN_FULL = 5
"""Connections that are shown in full without being named: more are read as a list."""
LISTED = 50


def packets(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A packet trace: pcap or pcapng, also gzipped.",
            autocompletion=completion.files,
        ),
    ],
    other: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE2]",
            show_default=False,
            help="A trace of the same connections from another place: what left one and came to"
            " the other.",
            autocompletion=completion.files,
        ),
    ] = None,
    *,
    numbers: Annotated[
        list[int],
        typer.Option(
            "--connection",
            metavar="N",
            default_factory=list,
            show_default=False,
            help="Show only this connection, in full; repeatable.",
        ),
    ],
    everything: Annotated[
        bool, typer.Option("--all", help="Show all connections in full.")
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print one JSON object per file, connection and exchange."),
    ] = False,
    no_keep: Annotated[
        bool, typer.Option("--no-keep", help="Print only, and keep no run in the store.")
    ] = False,
    interval: Annotated[
        str | None,
        typer.Option(
            "--interval",
            metavar="DURATION",
            help="The intervals of the kept series; default: some 500 of at least 1 ms.",
        ),
    ] = None,
    tags: options.Tags,
    _pager: options.Pager = False,
    _units: options.Units = None,
    _fleet: options.Fleet = None,
    store: options.Store,
) -> None:
    """Show what happened inside the connections of a packet trace, and why they were slow.

    The trace is kept as a run, with its series over time, and the name of the run is printed last.
    """
    from benchctl.packets.trace import read_trace
    from benchctl.store.manage import read_tags

    if everything:
        options.reject_beside("--all", {"--connection": numbers})
    if no_keep:
        options.reject_beside("--no-keep", {"--interval": interval})
    if other is not None:
        named = {"--all": everything, "--interval": interval, "--connection": numbers}
        options.reject_beside("a second file", named)
        _print_both(file, other, as_json=as_json)
        return
    step_s = _interval_s(interval)
    # What is read stays to the end: to look for garbage in it takes a third of the time.
    gc.disable()
    trace = read_trace(file, None if no_keep else lambda _, connection: connection.record(step_s))
    connections = len(trace.connections)
    for number in numbers:
        if not 1 <= number <= connections:
            raise UsageError(f"--connection {number}: the connections are 1 to {connections:,}")
    for fault in trace.capture.faults:
        print(f"benchctl: {visible(f'{file}: {fault}')}", file=sys.stderr)
    if as_json:
        _print_json(trace, numbers)
    else:
        _print_text(trace, numbers, everything=everything)
    if not no_keep:
        _keep(trace, store, numbers, read_tags(tags), anew=interval is not None, as_json=as_json)


def _print_both(file: Path, other: Path, *, as_json: bool) -> None:
    """Print what two traces of the same connections say together; neither is kept."""
    from benchctl.packets.both import TracePlace, pairs_of
    from benchctl.packets.findings import pair_entry, trace_entry
    from benchctl.packets.pairing import Passages
    from benchctl.packets.trace import read_trace
    from benchctl.report.text import packets_text as text

    places = []
    for path in (file, other):
        passages = Passages()
        places.append(TracePlace(read_trace(path, passages=passages), passages))
        for fault in places[-1].trace.capture.faults:
            print(f"benchctl: {visible(f'{path}: {fault}')}", file=sys.stderr)
    heads = [trace_entry(place.trace) for place in places]
    pairs = list(pairs_of(places[0], places[1]))
    pairs.sort(key=lambda pair: pair.connections[0].frame_bytes, reverse=True)
    entries = [pair_entry(pair, one_clock=False) for pair in pairs]
    if as_json:
        print(*map(json.dumps, [*heads, *entries]), sep="\n")
        return
    for head in heads:
        print(*map(visible, text.head_lines(head)), sep="\n")
    if not entries:
        raise UsageError(f"{file} and {other} have no connection in common")
    for entry in entries[:LISTED]:
        print()
        print(text.pair_text(entry), end="")
    if len(entries) > LISTED:
        print(f"and {len(entries) - LISTED:,} smaller ones: --json has all")


def _interval_s(text: str | None) -> float | None:
    from benchctl.units import parse_duration

    try:
        step_s = None if text is None else parse_duration(text)
    except ValueError as error:
        raise UsageError(f"--interval: {error}") from None
    if step_s is not None and step_s <= 0:
        raise UsageError(f"--interval {text}: an interval is longer than 0 s")
    return step_s


def _keep(
    trace: Trace, store: Path, numbers: Sequence[int], tags: Sequence[str],
    *, anew: bool, as_json: bool,
) -> None:  # fmt: skip
    """Keep the trace as a run, and print its name."""
    from benchctl.api import ParserError
    from benchctl.imports.packets import keep_trace

    try:
        kept = keep_trace(trace, store, numbers=numbers, anew=anew, tags=tags)
    except ParserError as error:
        print(f"benchctl: {visible(f'{trace.capture.path}: not kept: {error}')}", file=sys.stderr)
        return
    if as_json:
        print(json.dumps({"kind": "run", "name": kept and kept.name}))
    elif kept is None:
        print("\nno connection with data: nothing is kept")
    else:
        more = f", without {kept.left_out:,} smaller connections" if kept.left_out else ""
        print(f"\nkept{more} as {kept.name}")


def _print_json(trace: Trace, numbers: Sequence[int]) -> None:
    from benchctl.packets.findings import connection_entry, exchange_entry, trace_entry

    found = trace.connections
    print(json.dumps(trace_entry(trace)))
    for number in numbers or range(1, len(found) + 1):
        print(json.dumps(connection_entry(number, found[number - 1])))
    for exchange in () if numbers else trace.frames.exchanges.values():
        print(json.dumps(exchange_entry(exchange)))


def _print_text(trace: Trace, numbers: Sequence[int], *, everything: bool) -> None:
    from benchctl.packets.findings import connection_entry, exchange_entry, trace_entry
    from benchctl.report.text import packets_text as text

    found, exchanges = trace.connections, list(trace.frames.exchanges.values())
    print(*map(visible, text.head_lines(trace_entry(trace))), sep="\n")
    largest = sorted(range(1, len(found) + 1), key=lambda n: found[n - 1].frame_bytes, reverse=True)
    if len(found) > 1 and not numbers:
        shown = largest[:LISTED]
        print()
        print(text.overview([connection_entry(n, found[n - 1]) for n in shown]), end="")
        if len(found) > len(shown):
            print(f"and {len(found) - len(shown):,} smaller ones: --json has all")
    for number in numbers or (sorted(largest) if everything else largest[:IN_FULL]):
        print()
        print(text.connection_text(connection_entry(number, found[number - 1])), end="")
    if exchanges and not numbers:
        exchanges.sort(key=lambda exchange: exchange.bytes_count, reverse=True)
        print()
        print(text.exchanges_text(list(map(exchange_entry, exchanges[:LISTED]))), end="")
        if len(exchanges) > LISTED:
            print(f"and {len(exchanges) - LISTED:,} smaller ones: --json has all")
