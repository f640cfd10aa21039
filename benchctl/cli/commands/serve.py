"""``benchctl serve``: servers for clients on other hosts."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from benchctl.cli.shared import completion, options
from benchctl.visible import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchctl.engine.serve import ServerSpec


# A host with many networks has more, and one of the first is the right one.
MOST_ADDRESSES = 4


def serve(
    *,
    tools: Annotated[
        list[str],
        typer.Option(
            "--tool",
            metavar="TOOL[:PORT]",
            default_factory=list,
            show_default=False,
            help="Serve this tool, optionally on this port; repeatable; default: all usable ones.",
            autocompletion=completion.servers,
        ),
    ],
    bind: Annotated[
        str | None,
        typer.Option("--bind", metavar="ADDRESS", help="Listen on this address; default: all."),
    ] = None,
    allow: Annotated[
        list[str],
        typer.Option(
            "--allow",
            metavar="NETWORK",
            default_factory=list,
            show_default=False,
            help="Accept clients of this network only, such as 192.0.2.0/24; repeatable.",
        ),
    ],
    duration: Annotated[
        str | None,
        typer.Option("--for", metavar="DURATION", help="End after this time, such as 1h."),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("-q", "--quiet", help="Do not show what the servers print.")
    ] = False,
) -> None:
    """Run servers for clients on other hosts, until Ctrl-C.

    Prints what to type on the other host.
    """
    from benchctl.engine.serve import Audience
    from benchctl.engine.serve import serve as run
    from benchctl.hosts.local.addresses import own_addresses

    lasts_s = options.lasting(duration)
    servers = _servers(tools, bind, _networks(allow))
    here = [bind] if bind else own_addresses()

    def listens(served: ServerSpec) -> None:
        backend, can = served.backend, served.backend.capabilities
        port = "" if served.port == can.default_port else f" --port {served.port}"
        version = f" {served.tool.version}" if served.tool.version else ""
        second_port = can.port_beside(served.port)
        ports = f"port {served.port}"
        if second_port is not None:
            ports = f"ports {served.port} and {second_port}"
        print(f"{backend.name}{version} listens on {ports}; on the other host type:")
        for address in here[:MOST_ADDRESSES]:
            print(f"  benchctl quick {address} --backend {backend.name}{port}")
        if not bind:
            print(f"a firewall of this host must let TCP and UDP to {ports} in")
        sys.stdout.flush()

    def says(served: ServerSpec, line: str) -> None:
        if not quiet:
            print(visible(f"{served.backend.name}: {line}"), file=sys.stderr)

    if not allow and not bind:
        print("benchctl: anyone who reaches these ports can measure with this host; "
              "--allow NETWORK restricts it", file=sys.stderr)  # fmt: skip
    run(servers, lasts_s, Audience(listens, says))


def _networks(texts: Sequence[str]) -> tuple[str, ...]:
    from ipaddress import ip_network

    from benchctl.errors import UsageError

    try:
        return tuple(str(ip_network(text)) for text in texts)
    except ValueError as error:
        raise UsageError(f"--allow: {error}", "for example: --allow 192.0.2.0/24") from None


def _servers(tools: Sequence[str], bind: str | None, allow: tuple[str, ...]) -> list[ServerSpec]:
    """Return the servers to run. Raises UsageError, MissingError."""
    from benchctl.api import Role
    from benchctl.backends import installed
    from benchctl.engine.checks.tools import look
    from benchctl.engine.serve import ServerSpec, everywhere, may_listen
    from benchctl.errors import MissingError, UsageError
    from benchctl.hosts.sent.ports import first_free, is_own

    if bind and not is_own(bind):
        raise UsageError(f"--bind {bind}: this host has no such address", "see ip address")
    registry = installed()
    asked = dict(map(_tool_and_port, tools)) or dict.fromkeys(sorted(registry.candidates))
    found = look(registry, {(name, Role.SERVER) for name in asked})
    servers = []
    for name, port in asked.items():
        tool = found.get((name, Role.SERVER))
        if isinstance(tool, MissingError) and tools:
            raise tool
        if tool is None or isinstance(tool, MissingError):
            if tools:
                raise UsageError(f"{name} has no server that benchctl can start")
            continue
        backend = registry.load(name)
        can = backend.capabilities
        if allow and not can.restricts_clients:
            why = f"{name} cannot restrict its clients"
            if tools:
                raise UsageError(f"--allow: {why}", "restrict them by --bind or by a firewall")
            print(f"benchctl: {why}, and is left out", file=sys.stderr)
            continue
        place = port or can.default_port
        if place is None:
            raise UsageError(f"{name} has no port of its own", f"for example: --tool {name}:5000")
        if not tools and not may_listen(place):
            why = f"only root can listen on port {place}"
            other = f"--tool {name}:{place + 8000} serves it on another"
            print(f"benchctl: {name} is left out, because {why}; {other}", file=sys.stderr)
            continue
        if not tools and not first_free(bind or everywhere(), place, 1, place):
            why = f"port {place} is taken, perhaps by a server of {name}"
            print(f"benchctl: {name} is left out, because {why}", file=sys.stderr)
            continue
        servers.append(ServerSpec(backend, tool, bind or everywhere(), place, allow))
    if not servers:
        raise UsageError("no tool can be served here", "see benchctl backends")
    return servers


def _tool_and_port(text: str) -> tuple[str, int | None]:
    from benchctl.errors import UsageError

    name, _, port = text.partition(":")
    if not port:
        return name, None
    if not (port.isdecimal() and 0 < int(port) < 65536):
        raise UsageError(f"--tool {text}: {port} is not a port", f"for example: --tool {name}:5202")
    return name, int(port)
