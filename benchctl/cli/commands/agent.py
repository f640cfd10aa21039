"""``benchctl agent``: this machine as a host of a fleet."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from benchctl.cli.shared import completion
from benchctl.cli.shared.command import PlainCommand, group

agent = group(
    "Let this machine be a host of a fleet.\n\n"
    "It measures when it is asked to. It connects to the fleet's server, and needs no port that is "
    "open to others."
)


def default_directory() -> Path:
    """Return where the agent's files of this user are."""
    import platformdirs

    return platformdirs.user_config_path("benchctl") / "agent"


@agent.command(cls=PlainCommand)
def join(
    *,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--directory",
            metavar="DIR",
            help="Where the host's key is kept; default: ~/.config/benchctl/agent.",
            autocompletion=completion.files,
        ),
    ] = None,
    proxy: Annotated[
        str,
        typer.Option(
            "--proxy", metavar="HOST:PORT", help="Connect through an HTTP proxy, by CONNECT."
        ),
    ] = "",
    units: Annotated[
        Path | None,
        typer.Option(
            "--units",
            metavar="DIR",
            help="Where user units of systemd are; default: ~/.config/systemd/user.",
            autocompletion=completion.files,
        ),
    ] = None,
) -> None:
    """Join a fleet with the token of `fleet add`, read from standard input.

    The host makes its own key, which never leaves it. A unit for systemd is written; nothing is
    started: the commands for that are printed.
    """
    from getpass import getuser

    import platformdirs

    from benchctl.fleet.admin.joining import join as join_fleet
    from benchctl.fleet.admin.units import AGENT_UNIT, agent_unit
    from benchctl.fleet.carrier.opening import wait_for
    from benchctl.fleet.trust.membership import Token

    if sys.stdin.isatty():
        print("paste the token, then press Enter:", file=sys.stderr)
    token = Token.parse(sys.stdin.readline(16384).strip())
    directory = (directory or default_directory()).absolute()
    member = wait_for(join_fleet(token, directory, proxy))
    units = units or platformdirs.user_config_path() / "systemd" / "user"
    units.mkdir(parents=True, exist_ok=True)
    (units / AGENT_UNIT).write_text(agent_unit(sys.executable, directory), encoding="utf-8")
    print(f"{member.name} has joined the fleet {member.fleet}")
    print(
        f"{directory}\n{units / AGENT_UNIT}\n"
        "start it now and after each reboot:\n"
        f"  systemctl --user daemon-reload && systemctl --user enable --now {AGENT_UNIT}\n"
        f"  loginctl enable-linger {getuser()}",
        file=sys.stderr,
    )


@agent.command(cls=PlainCommand)
def run(
    directory: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DIR]",
            help="Where agent join put the host's key; default: ~/.config/benchctl/agent.",
            autocompletion=completion.files,
        ),
    ] = None,
) -> None:
    """Serve the fleet that this host has joined, until it is stopped.

    Tools are run by this machine's own backends, within the limits of `agent.toml` in the
    directory. What they measure stays on the disk until the fleet's coordinator has stored it.
    """
    from benchctl.fleet.resident.program import main

    main((directory or default_directory()).absolute())
