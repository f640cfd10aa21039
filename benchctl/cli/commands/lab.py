"""``benchctl lab``: virtual networks by themselves, without a profile."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchctl.cli.shared import completion, options
from benchctl.cli.shared.command import PlainCommand, group
from benchctl.visible import visible

if TYPE_CHECKING:
    from benchctl.lab.lab import Lab
    from benchctl.lab.topology.model import Topology
    from benchctl.lab.verify.judgement import Look
    from benchctl.run.planned import Host

_Emulator = Annotated[
    str | None,
    typer.Option(
        "--emulator",
        metavar="NAME",
        help="auto, kernel or user; default: as in the file.",
        autocompletion=completion.emulators,
    ),
]

# The pairs of as many fill two screens; of more, nobody reads them.
_MANY_HOSTS = 10

# While a command runs on a host: its end, and what is to interrupt it.
_WAITED_FOR = {signal.SIGCHLD, signal.SIGINT}

lab = group("Show, try and check virtual networks.")


def _load(name: str) -> Topology:
    from benchctl.lab.topology.topology import load_topology
    from benchctl.profile.find import find_topology

    return load_topology(find_topology(name))


@contextlib.contextmanager
def _built(
    name: str, emulator: str | None, trust: bool, log: Path | None, log_json: bool
) -> Iterator[Lab]:
    from benchctl.cli.shared.consent import ask
    from benchctl.cli.shared.log import keep_log, show_new_lines
    from benchctl.engine.prepare.consent import agree, commands_of_lab, refusal, unagreed
    from benchctl.engine.prepare.trust import distrust_services, untrusted
    from benchctl.errors import UsageError
    from benchctl.lab.lab import Lab
    from benchctl.lab.topology.model import Emulator

    if emulator is not None and emulator not in tuple(Emulator):
        raise UsageError(f"--emulator {emulator}: choose from {', '.join(Emulator)}")
    topology = _load(name)
    if not trust and (why := distrust_services(topology)):
        raise untrusted(topology.path, why)
    commands = () if trust else unagreed(commands_of_lab(topology))
    if not ask(topology.path, commands, agree) and commands:
        raise refusal(topology.path, commands)
    keep_log(log, as_json=log_json)
    try:
        with Lab.build(topology, Emulator(emulator) if emulator else None) as built:
            yield built
    finally:
        show_new_lines()


@lab.command(cls=PlainCommand)
def show(
    topology: options.Topology,
    hosts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[HOST]...",
            help="Show only the values of the pairs of these hosts; of one, its pairs with all.",
            autocompletion=completion.hosts,
        ),
    ] = None,
) -> None:
    """Show a topology without building it.

    Nodes, addresses, links, routes, and, in a lab of up to ten hosts, theoretical values of every
    pair of hosts.
    """
    from benchctl.lab.topology.model import Kind
    from benchctl.report.pivot import align
    from benchctl.units import format_duration, format_rate

    lab = _load(topology)
    if hosts:
        _print_pairs(lab, _named(lab, hosts))
        return
    _print_doubts(lab)
    print(visible(f"{lab.name}{f': {lab.title}' if lab.title else ''}"), end="\n\n")
    rows: list[tuple[str, ...]] = []
    for node in lab.nodes.values():
        ends = [end for end in lab.interfaces(node.name) if end.has_address]
        first, *others = (
            ", ".join(f"{end.label or end.device} {end.at(version).ip}" for end in ends)
            for version in lab.ip_versions
        )
        rows.append((node.name, str(node.kind), first, ", ".join(node.aliases)))
        rows += [("", "", addresses, "") for addresses in others if addresses]
    print(align(("node", "kind", "addresses", "aliases"), rows))
    rows = []
    for link in lab.links.values():
        for end, far, settings in zip(link.ends, link.ends[::-1], link.settings, strict=True):
            rows.append(
                (
                    link.name,
                    f"{end.node} -> {far.node}",
                    format_rate(settings.rate_bps),
                    format_duration(settings.delay_s),
                    str(settings.queue_packets),
                    f"{settings.loss_ratio * 100:g} %",
                    format_duration(settings.jitter_s),
                )
            )
    print(align(("link", "direction", "rate", "delay", "queue", "loss", "jitter"), rows))
    rows = [
        (node.name, str(route.network), route.via or "-", route.device)
        for node in lab.nodes.values()
        if node.kind is not Kind.SWITCH
        for route in node.routes
        if route.table == 0
    ]
    print(align(("node", "route to", "via", "device"), rows))
    pairs = [*permutations(lab.hosts, 2)] if len(lab.hosts) <= _MANY_HOSTS else []
    if pairs or len(lab.hosts) == 1:
        _print_pairs(lab, pairs)
    else:
        first, second, *_ = lab.hosts
        print(f"values of pairs of hosts: benchctl lab show {topology} {first} {second}")


def _print_doubts(lab: Topology) -> None:
    from benchctl.lab.topology.doubts import doubts

    for doubt in doubts(lab):
        print(f"benchctl: warning: {doubt}", file=sys.stderr)


def _named(lab: Topology, hosts: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pairs of some hosts in both directions; of one, its pairs with all others."""
    from benchctl.errors import UsageError, nearest
    from benchctl.plan.network import names_of

    names = {name: name for name in lab.hosts} | names_of(lab)
    for host in hosts:
        if host not in names:
            raise UsageError(f'the lab has no host "{host}"', nearest(host, names))
    chosen = list(dict.fromkeys(names[host] for host in hosts))
    if len(chosen) > 1:
        return [*permutations(chosen, 2)]
    (chosen_host,) = chosen
    others = [host for host in lab.hosts if host != chosen_host]
    return [pair for other in others for pair in ((chosen_host, other), (other, chosen_host))]


def _print_pairs(lab: Topology, pairs: Sequence[tuple[str, str]]) -> None:
    from benchctl.report.pivot import align

    for version in lab.ip_versions:
        start = "from" if len(lab.ip_versions) == 1 else f"from, IPv{version}"
        heads = (start, "to", "rtt", "TCP goodput", "bottleneck", "BDP")
        print(align(heads, _values(lab, pairs, version)))


def _values(lab: Topology, pairs: Sequence[tuple[str, str]], version: int) -> list[tuple[str, ...]]:
    from benchctl.lab.topology.expect import path
    from benchctl.units import format_duration, format_rate, format_size

    rows: list[tuple[str, ...]] = []
    for source, target in pairs:
        try:
            network_path = path(lab, source, target, None, version)
        except LookupError:
            rows.append((source, target, "no path", "-", "-", "-"))
            continue
        limited = network_path.tcp_bps() != float("inf")
        rows.append(
            (
                source,
                target,
                format_duration(network_path.rtt_s()),
                format_rate(network_path.tcp_bps()),
                network_path.bottleneck.link.name if limited else "-",
                format_size(network_path.bdp_bytes()) if limited else "-",
            )
        )
    return rows


@lab.command("exec", cls=PlainCommand, context_settings={"ignore_unknown_options": True})
def execute(
    topology: options.Topology,
    host: Annotated[
        str,
        typer.Argument(
            metavar="HOST", help="Host that runs the command.", autocompletion=completion.hosts
        ),
    ],
    command: Annotated[
        list[str], typer.Argument(metavar="COMMAND...", help="The command, after --.")
    ],
    *,
    emulator: _Emulator = None,
    trust: options.Trust = False,
    log: options.Log = None,
    log_json: options.LogJson = False,
) -> None:
    """Run one command on a host of a lab.

    Builds the lab, removes it afterwards, and exits with the code of the command. Says at its end
    which links lost frames or were late because the machine was too slow.
    """
    from benchctl.errors import LabError
    from benchctl.lab.topology.segments import Hop
    from benchctl.lab.verify.strain import carried, strains_of

    with _built(topology, emulator, trust, log, log_json) as lab:
        hops = [
            Hop(link, i) for link in lab.topology.links.values() if not link.ideal for i in (0, 1)
        ]
        before = lab.counted(hops) if hops else {}
        code = _run(lab, host, command)
        try:
            links = carried(before, lab.counted(hops)) if hops else ()
        except LabError as error:  # it failed as the command ended, whose code counts
            print(f"benchctl: {error.message}", file=sys.stderr)
            links = ()
        for text in strains_of(links):
            print(f"benchctl: {text}", file=sys.stderr)
    sys.exit(code)


@lab.command(cls=PlainCommand)
def shell(
    topology: options.Topology,
    *,
    emulator: _Emulator = None,
    trust: options.Trust = False,
    log: options.Log = None,
    log_json: options.LogJson = False,
) -> None:
    """Read commands for the hosts of a lab.

    As in "h1 ping h4" or "h4 iperf3 -s &"; the lab exists until "exit" or Ctrl-D.
    """
    with _built(topology, emulator, trust, log, log_json) as lab, _children() as start:
        hosts = " ".join(lab.topology.hosts)
        print(f"{lab.topology.name}: hosts {hosts}", file=sys.stderr)
        print(
            '"HOST COMMAND" runs a command on a host; a final "&" runs it in the background;',
            file=sys.stderr,
        )
        print('"exit" or Ctrl-D removes the lab', file=sys.stderr)
        for line in _lines([*lab.topology.nodes]):
            _obey(lab, line, start)


def _obey(lab: Lab, line: str, start: Callable[[Host, list[str]], None]) -> None:
    from benchctl.errors import UsageError

    try:
        words = shlex.split(line)
    except ValueError as error:
        print(f"benchctl: {error}", file=sys.stderr)
        return
    if not words:
        return
    host, *command = words
    try:
        if command and command[-1] == "&":
            start(_host(lab, host), command[:-1])
        else:
            _run(lab, host, command or ["sh"])
    except UsageError as error:
        print(f"benchctl: {error.message}; {error.hint}", file=sys.stderr)


def _lines(names: list[str]) -> Iterator[str]:
    """Yield lines from the terminal, with history and completion of names, or from stdin."""
    prompt = ""
    if sys.stdin.isatty():
        import readline

        def complete(text: str, state: int) -> str | None:
            matches = [f"{name} " for name in names if name.startswith(text)]
            return matches[state] if state < len(matches) else None

        readline.set_completer(complete)
        readline.parse_and_bind("tab: complete")
        prompt = "lab> "
        signal.signal(signal.SIGINT, signal.default_int_handler)  # each ends one line
    while True:
        try:
            line = input(prompt)
        except EOFError:
            return
        except KeyboardInterrupt:
            print()
            continue
        if line.strip() in ("exit", "quit"):
            return
        yield line


@contextlib.contextmanager
def _children() -> Iterator[Callable[[Host, list[str]], None]]:
    """Start background commands at the prompt; all end with it.

    None is reaped before that: its process group could be somebody else's by then.
    """
    import threading

    from benchctl.hosts.log import command_log

    children: list[tuple[subprocess.Popen[bytes], threading.Thread]] = []

    def start(host: Host, command: list[str]) -> None:
        argv = [*host.prefix, *command]
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, process_group=0)
        ended = command_log().started(host.name, command, child.pid)

        def wait() -> None:  # it ends while the prompt waits for a line
            signal.pthread_sigmask(signal.SIG_BLOCK, _WAITED_FOR)  # they are the main thread's
            end = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
            assert end is not None
            ended(end.si_status if end.si_code == os.CLD_EXITED else -end.si_status)

        waiting = threading.Thread(target=wait)
        waiting.start()
        children.append((child, waiting))

    try:
        yield start
    finally:
        for child, _ in children:
            os.killpg(child.pid, signal.SIGTERM)
        for child, waiting in children:
            waiting.join()
            child.wait()


def _host(lab: Lab, host: str) -> Host:
    from benchctl.errors import UsageError
    from benchctl.plan.network import names_of

    names = {name: name for name in lab.nodes} | names_of(lab.topology)
    if host not in names:
        raise UsageError(f'the lab has no host "{host}"', f"hosts are: {', '.join(names)}")
    return lab.nodes[names[host]]


def _run(lab: Lab, name: str, command: Sequence[str]) -> int:
    from benchctl.hosts.log import command_log

    host = _host(lab, name)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _WAITED_FOR)
    try:
        with subprocess.Popen(
            [*host.prefix, *command],
            preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before),
        ) as process:
            ended = command_log().started(host.name, command, process.pid)
            while (code := process.poll()) is None:
                received = signal.sigwaitinfo(_WAITED_FOR)
                # The terminal sends Ctrl-C to the command, too; what a process sends
                # (sigaction(2): si_code <= 0) comes here alone.
                if received.si_signo == signal.SIGINT and received.si_code <= 0:
                    _interrupt(process.pid)
            ended(code)
    finally:
        while signal.sigtimedwait(_WAITED_FOR, 0) is not None:
            pass  # they were the command's
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if code:
        lab.check()  # a failed lab ended the command, which reports nothing more
    return 128 - code if code < 0 else code


def _interrupt(pid: int) -> None:
    """Interrupt a command of a host, and what started it in the lab."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    with contextlib.suppress(OSError):  # it has just ended
        for process_id in (*map(int, children.read_text().split()), pid):
            os.kill(process_id, signal.SIGINT)


@lab.command(cls=PlainCommand)
def check(
    topology: options.Topology,
    *,
    emulator: _Emulator = None,
    trust: options.Trust = False,
    log: options.Log = None,
    log_json: options.LogJson = False,
) -> None:
    """Measure each link, and all of them at once.

    Delay, jitter, loss, queue, rate, order and changes of settings, in each direction. Exits with
    code 1 if a link does not keep a promise, by itself or while the others of a path are busy.
    """
    from benchctl.errors import LabError
    from benchctl.lab.topology.model import Emulator
    from benchctl.lab.verify.verify import ceiling_bps, fail_on_a_path, together, verify
    from benchctl.report.pivot import align
    from benchctl.units import format_rate

    with _built(topology, emulator, trust, log, log_json) as lab:
        looks = verify(lab, lab.topology.links)
        loads = {hop: hop.settings.rate_bps for look in looks for hop in look.leg.hops}
        busy, _ = together(lab, loads)
        on_a_path = fail_on_a_path(lab, busy)
        used = lab.emulator
    at_once = {together.leg: format_rate(together.carried_bps) for together in busy}
    rows = [row for look in looks for row in _rows(look, at_once.get(look.leg, "-"))]
    heads = ("link", "way", "", "delay", "jitter", "loss", "queue", "rate", "at once", "kept")
    print(align(heads, rows))
    for busy_leg in busy:
        if busy_leg.problem:
            print(f"at once: {busy_leg.problem}")
    for one_of_them in (Emulator.KERNEL, Emulator.USER):
        try:
            most = f"one link carries at most {format_rate(ceiling_bps(one_of_them))} here"
        except LabError as error:
            most = error.message
        whose = ", this lab's" if one_of_them is used else ""
        print(f"emulator {one_of_them}{whose}: {most}")
    _print_doubts(lab.topology)
    problems = [look.problem for look in looks if look.problem]
    problems += [together.problem for together in on_a_path]
    for problem in problems:
        print(f"benchctl: {problem}", file=sys.stderr)
    sys.exit(1 if problems else 0)


def _rows(look: Look, at_once: str) -> list[tuple[str, ...]]:
    """Return the promises of a measured link and the measured values, as two rows of a table."""
    from math import isnan

    from benchctl.lab.verify.judgement import Promise, PromiseVerdict
    from benchctl.units import format_duration, format_rate, format_ratio

    shown: dict[Promise, Callable[[float], str]] = {
        Promise.DELAY: format_duration,
        Promise.JITTER: format_duration,
        Promise.LOSS: format_ratio,
        Promise.QUEUE: lambda frames: f"{frames:.0f}",
        Promise.RATE: format_rate,
    }
    promised, measured = [], []
    for promise, text in shown.items():
        found = look.findings.get(promise)
        promised.append(text(found.promised) if found else "-")
        measured.append(text(found.measured) if found and not isnan(found.measured) else "-")
    broken = [f.promise for f in look.findings.values() if f.verdict is PromiseVerdict.BROKEN]
    kept = [f"no: {', '.join(broken)}" if broken else "yes"]
    if look.unverified:
        kept.append(f"not verified: {', '.join(look.unverified)}")
    direction = f"{look.leg.source.node} to {look.leg.target.node}"
    return [
        (", ".join(look.leg.links), direction, "promised", *promised, "", ""),
        ("", "", "measured", *measured, at_once, "; ".join(kept)),
    ]
