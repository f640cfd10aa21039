"""``benchctl packets``: what happened inside the connections of a packet trace."""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from benchctl.cli import completion, options
from benchctl.errors import UsageError
from benchctl.visible import visible

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
    _pager: options.Pager = False,
    _units: options.Units = None,
) -> None:
    """Show what happened inside the connections of a packet trace, and why they were slow."""
    from benchctl.packets.trace import read_trace
    from benchctl.report.packets import connection_entry, exchange_entry, trace_entry

    if everything:
        options.reject_beside("--all", {"--connection": numbers})
    # What is read stays to the end: to look for garbage in it takes a third of the time.
    gc.disable()
    trace = read_trace(file)
    found, exchanges = trace.connections, list(trace.frames.exchanges.values())
    for number in numbers:
        if not 1 <= number <= len(found):
            raise UsageError(f"--connection {number}: the connections are 1 to {len(found):,}")
    head = trace_entry(trace)
    for fault in head["faults"]:
        print(f"benchctl: {visible(f'{file}: {fault}')}", file=sys.stderr)
    if as_json:
        print(json.dumps(head))
        for number in numbers or range(1, len(found) + 1):
            print(json.dumps(connection_entry(number, found[number - 1])))
        for exchange in () if numbers else exchanges:
            print(json.dumps(exchange_entry(exchange)))
        return
    from benchctl.report import packets_text as text

    print(*map(visible, text.head_lines(head)), sep="\n")
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
        exchanges.sort(key=lambda one: one.bytes_count, reverse=True)
        print()
        print(text.exchanges_text(list(map(exchange_entry, exchanges[:LISTED]))), end="")
        if len(exchanges) > LISTED:
            print(f"and {len(exchanges) - LISTED:,} smaller ones: --json has all")
