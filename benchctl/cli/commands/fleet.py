"""``benchctl fleet``: hosts that stay ready to measure, and who may ask them."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchctl.cli.shared import completion
from benchctl.cli.shared.command import PlainCommand, group
from benchctl.errors import UsageError
from benchctl.visible import visible

if TYPE_CHECKING:
    from benchctl.fleet.admin.directory import FleetDirectory

fleet = group(
    "Measure with hosts that stay ready.\n\n"
    "They are of several places and owners. A server carries messages, a coordinator "
    "plans and stores, and agents measure on the hosts."
)

_Directory = Annotated[
    Path,
    typer.Argument(
        metavar="DIR",
        help="The directory of the fleet, which fleet init made.",
        autocompletion=completion.files,
    ),
]
_InDirectory = Annotated[
    Path,
    typer.Option(
        "--directory",
        metavar="DIR",
        envvar="BENCHCTL_FLEET_DIR",
        show_envvar=False,
        help="The directory of the fleet; default: BENCHCTL_FLEET_DIR, or this directory.",
        autocompletion=completion.files,
    ),
]
_PersonFile = Annotated[
    Path | None,
    typer.Option(
        "--fleet",
        metavar="FILE",
        help="A person's file; default: admin.fleet in the directory of the fleet.",
        autocompletion=completion.files,
    ),
]
_Name = Annotated[str, typer.Argument(metavar="NAME", help="A host or a person of the fleet.")]
_Hosts = Annotated[
    int | None,
    typer.Option(
        "--hosts", metavar="N", min=1, max=100_000, help="Their runs may use N hosts at once."
    ),
]
_Trials = Annotated[
    int | None,
    typer.Option(
        "--trials", metavar="N", min=1, max=100_000, help="Their runs may measure N trials at once."
    ),
]
_DayBytes = Annotated[
    str | None,
    typer.Option(
        "--day-bytes",
        metavar="SIZE",
        help="The runs that they submit within 24 hours may send so much: 100GB.",
    ),
]


@fleet.command(cls=PlainCommand)
def init(
    directory: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="A new directory.", autocompletion=completion.files),
    ],
    *,
    address: Annotated[
        str | None,
        typer.Option(
            "--address",
            metavar="HOST:PORT",
            help="Where hosts reach the server; default: only this machine, for a trial.",
        ),
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(
            "--listen",
            metavar="HOST:PORT",
            help="Where the server listens; default: the port of --address on all addresses.",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Of the fleet; default: that of DIR."),
    ] = None,
) -> None:
    """Make the directory of a new fleet: keys, certificates, configuration and systemd units.

    Nothing is started. Who administers the fleet uses DIR/admin.fleet.
    """
    from benchctl.fleet.admin.directory import FleetDirectory, check_address, check_name
    from benchctl.fleet.admin.server import DEFAULT_PORT, find_server
    from benchctl.fleet.admin.units import write_units
    from benchctl.fleet.trust.keys import fingerprint
    from benchctl.hosts.sent.ports import free_ports

    program = find_server()
    if address is None:
        port = next(free_ports("127.0.0.1", DEFAULT_PORT))
        listen = address = listen or f"127.0.0.1:{port}"
    check_address(address)
    listen = check_address(listen or f"0.0.0.0:{address.rpartition(':')[2]}")
    name = check_name(name or directory.absolute().name.lower())
    made = FleetDirectory.make(directory, name, address, listen, time.time())
    units = write_units(made.path, program, sys.executable, listen)
    print(made.path)
    print(
        f"fleet {name} at {address}\n"
        f"root key {fingerprint(made.server().root)}\n"
        "try it on this machine:\n"
        f"  benchctl fleet up {directory}\n"
        "or run it for good:\n"
        f"  sudo systemctl enable --now {' '.join(map(str, units))}\n"
        "then add hosts and people:\n"
        f"  benchctl fleet add paris --directory {directory}\n"
        f"  benchctl fleet invite alice --role run --directory {directory}",
        file=sys.stderr,
    )


@fleet.command(cls=PlainCommand)
def up(directory: _Directory) -> None:
    """Run server and coordinator for a trial, until Ctrl-C.

    Whatever of them dies is started again. The server's log is in DIR/nats.log.
    """
    from benchctl.fleet.admin.up import up as run
    from benchctl.fleet.carrier.opening import wait_for

    wait_for(run(_opened(directory), lambda line: print(line, file=sys.stderr, flush=True)))


@fleet.command(cls=PlainCommand)
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name for it, such as paris.")],
    *,
    over_ssh: Annotated[
        str | None,
        typer.Option(
            "--over-ssh",
            metavar="[USER@]HOST",
            help="Install benchctl there, let the host join, and start its agent.",
        ),
    ] = None,
    package: Annotated[
        str,
        typer.Option(
            "--package",
            metavar="PACKAGE",
            help="With --over-ssh: what pip installs; default: this version of benchctl.",
        ),
    ] = "",
    proxy: Annotated[
        str,
        typer.Option(
            "--proxy",
            metavar="HOST:PORT",
            help="With --over-ssh: an HTTP proxy between the host and the server.",
        ),
    ] = "",
    directory: _InDirectory = Path(),
) -> None:
    """Add a host: print what to run there, and the token to join with.

    The token works once, within 24 hours. A host that has joined can join again, with a new key.
    """
    from benchctl.fleet.admin.ssh import join_over_ssh
    from benchctl.fleet.trust.membership import TOKEN_LIFE_S

    if over_ssh is None and (package or proxy):
        raise UsageError("--package and --proxy are for --over-ssh")
    token = _opened(directory).invite_host(name, time.time() + TOKEN_LIFE_S)
    if over_ssh is not None:
        join_over_ssh(token, over_ssh, package, proxy)
        return
    print(
        f"On {name}, with Python 3.11 or newer:\n"
        '  pip install "benchctl[fleet]"\n'
        "  benchctl agent join\n"
        "and paste this line, a secret that works once within 24 hours:",
        file=sys.stderr,
    )
    print(token.text)


@fleet.command(cls=PlainCommand)
def remove(name: _Name, *, directory: _InDirectory = Path()) -> None:
    """Withdraw a host or a person: their key is worth nothing any more."""
    opened = _opened(directory)
    opened.change(lambda members: members.without(name))
    print(f"{name} is withdrawn")
    if opened.server_pid() is None:
        print("no server runs here: it is out when the server starts", file=sys.stderr)


@fleet.command(cls=PlainCommand)
def invite(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name for the person.")],
    *,
    role: Annotated[
        str,
        typer.Option(
            "--role",
            metavar="view|run|admin",
            help="What they may: look; submit runs and stop them; or stop those of others, too.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="The person's file, a secret; default: NAME.fleet.",
            autocompletion=completion.files,
        ),
    ] = None,
    hosts: _Hosts = None,
    trials: _Trials = None,
    day_bytes: _DayBytes = None,
    directory: _InDirectory = Path(),
) -> None:
    """Let a person use the fleet: write one file for them, which --fleet takes.

    fleet limit changes how much they may use.
    """
    if role not in ("view", "run", "admin"):
        raise UsageError(f'--role "{role}": it is view, run or admin')
    path = output or Path(f"{name}.fleet")
    limits = _limits(hosts, trials, day_bytes)
    _opened(directory).invite_person(name, role, path, limits)  # type: ignore[arg-type]
    print(path)
    print(f"give it to {name} in private: whoever has it is {name}", file=sys.stderr)


@fleet.command(cls=PlainCommand)
def limit(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A person of the fleet.")],
    *,
    hosts: _Hosts = None,
    trials: _Trials = None,
    day_bytes: _DayBytes = None,
    directory: _InDirectory = Path(),
) -> None:
    """Change how much a person may use; their file stays as it is.

    It holds for runs that begin from now on. fleet people shows the limits.
    """
    from benchctl.fleet.admin.people import limits_text

    limits = _limits(hosts, trials, day_bytes)
    if not limits:
        raise UsageError("nothing is changed", "give --hosts, --trials or --day-bytes")
    members = _opened(directory).change(lambda members: members.with_limits(name, limits))
    print(limits_text(name, members.people[name]))


@fleet.command(cls=PlainCommand)
def people(
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per person.")
    ] = False,
    directory: _InDirectory = Path(),
) -> None:
    """Show the people: their roles, and how much they may use at once and in a day."""
    import msgspec

    from benchctl.fleet.admin import people as shown
    from benchctl.report.pivot import align

    members = _opened(directory).members()
    if as_json:
        for name, person in sorted(members.people.items()):
            print(msgspec.json.encode(shown.person_object(name, person)).decode())
        return
    print(align(shown.HEADS, shown.people_rows(members), shown.NUMERIC), end="")


@fleet.command(cls=PlainCommand)
def hosts(
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per host.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also show tools and the owners' limits.")
    ] = False,
    file: _PersonFile = None,
    directory: _InDirectory = Path(),
) -> None:
    """Show the hosts: state, version, clock, when they were heard of, and what is to be done."""
    import msgspec

    from benchctl.fleet.admin import hosts as shown
    from benchctl.fleet.admin.directory import ADMIN_FILE
    from benchctl.fleet.person import ask_fleet
    from benchctl.fleet.person_messages import HostList, ListHosts
    from benchctl.report.pivot import align

    answer = ask_fleet(file or _opened(directory).path / ADMIN_FILE, ListHosts(), HostList)
    listed = list(answer.hosts)
    now_s = time.time()
    notes = shown.host_notes(listed, now_s)
    if file is None:
        opened = _opened(directory)
        listed = shown.with_members(listed, opened.members())
        notes += opened.notes(now_s)
    if as_json:
        for host in listed:
            print(msgspec.json.encode(shown.host_object(host)).decode())
        return
    print(align(shown.HEADS, shown.host_rows(listed, now_s)), end="")
    for line in [line for host in listed for line in shown.details(host)] if verbose else []:
        print(visible(line))
    for note in dict.fromkeys(notes):
        print(visible(note), file=sys.stderr)


@fleet.command(cls=PlainCommand)
def queue(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per run.")] = False,
    file: _PersonFile = None,
    directory: _InDirectory = Path(),
) -> None:
    """Show who measures what, and what waits for what."""
    import msgspec

    from benchctl.fleet.admin import people as shown
    from benchctl.fleet.admin.directory import ADMIN_FILE
    from benchctl.fleet.person import ask_fleet
    from benchctl.fleet.person_messages import ListQueue, Queue
    from benchctl.report.pivot import align

    queued = ask_fleet(file or _opened(directory).path / ADMIN_FILE, ListQueue(), Queue)
    if as_json:
        for run in queued.runs:
            print(msgspec.json.encode(run).decode())
        return
    if not queued.runs:
        print("nothing is measured", file=sys.stderr)
        return
    print(align(shown.QUEUE_HEADS, shown.queue_rows(queued.runs), shown.QUEUE_NUMERIC), end="")


@fleet.command(cls=PlainCommand)
def renew(
    *,
    key: Annotated[
        bool,
        typer.Option("--key", help="Give the coordinator another key, too; the root key signs it."),
    ] = False,
    directory: _InDirectory = Path(),
) -> None:
    """Make another certificate of the server, valid for 397 days from now.

    Restart server and coordinator afterwards. With --key, the coordinator's next key, which all
    know already, takes the place of its own. Hosts and people then learn which one follows it.
    """
    opened = _opened(directory)
    opened.renew_certificate(time.time())
    print("the server has another certificate")
    if key:
        number = opened.renew_coordinator()
        print(f"the coordinator has another key: set {number}")
    print("restart the server and the coordinator", file=sys.stderr)


@fleet.command(cls=PlainCommand, hidden=True)
def streams(directory: _Directory) -> None:
    """Make the streams of a server that has just started, or bring them up to date."""
    from benchctl.fleet.admin.server import make_streams
    from benchctl.fleet.carrier.opening import wait_for

    wait_for(make_streams(_opened(directory), 30))


@fleet.command(cls=PlainCommand)
def coordinator(directory: _Directory) -> None:
    """Run the coordinator, as its systemd unit does; fleet up starts one, too."""
    from benchctl.fleet.coordinator.program import main

    sys.exit(main(directory))


def _opened(path: Path) -> FleetDirectory:
    from benchctl.fleet.admin.directory import FleetDirectory

    return FleetDirectory(path)


def _limits(hosts: int | None, trials: int | None, day_bytes: str | None) -> dict[str, int]:
    """Return the limits of a person that were given. Raises UsageError."""
    from benchctl.fleet.admin.people import MOST
    from benchctl.units import parse_size

    try:
        sent = None if day_bytes is None else int(parse_size(day_bytes))
        if sent is not None and sent > MOST:
            raise ValueError(f"{day_bytes} is too large")
    except ValueError as error:
        raise UsageError(f"--day-bytes {error}") from None
    given = {"hosts_at_once": hosts, "trials_at_once": trials, "bytes_a_day": sent}
    return {key: value for key, value in given.items() if value is not None}
