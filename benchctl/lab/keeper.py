"""The process that holds a lab: builds it, keeps it, and removes it by ending.

It runs as init of its own PID namespace (`lab` starts it so). Everything of the lab lives in there:
emulators, services, and the commands on its hosts. When it ends, in any way, the kernel kills all
of them, and the namespaces and cables go with the last of them. It ends when the connection to the
runner closes; no other clean-up is needed.
"""

from __future__ import annotations

import errno
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NoReturn

from benchctl.hosts.sent import counters
from benchctl.lab.build.devices import BuildError
from benchctl.lab.build.namespaces import Namespaces
from benchctl.lab.build.script import Ends
from benchctl.lab.build.services import Running, ServiceError
from benchctl.lab.emulate.emulator import run_direction
from benchctl.lab.emulate.kernel import (
    KernelLinks,
    LinkPlace,
    refusal,
    several_processors,
    unpunctual,
)
from benchctl.lab.emulate.link import Change
from benchctl.lab.emulate.messages import (
    AskCounters,
    AskNode,
    Broken,
    Built,
    ChangeLinks,
    LinkDirection,
    Request,
    receive,
    send,
)
from benchctl.lab.syscalls import enter_network
from benchctl.lab.topology.model import Emulator, Link, Topology

# The first descriptor after the standard streams.
_CONTROL = 3
# Standard streams, the runner, programs that start, and what Python opens now and then.
_SPARE_FILES = 64


class _EmulatorError(Exception):
    """An emulator ended."""


class Keeper:
    """A lab, from its building to its end."""

    def __init__(self, topology: Topology, emulator: Emulator) -> None:
        self._topology = topology
        self._emulator = emulator
        self._namespaces = Namespaces(topology)
        self._kernel: KernelLinks | None = None
        self._controls: dict[LinkDirection, Connection] = {}
        self._emulators: dict[int, str] = {}
        self._services: dict[int, Running] = {}

    def build(self) -> Built:
        """Build the lab. Raises OSError, BuildError or ServiceError."""
        _allow_files(2 * len(self._topology.nodes) + 2 * len(self._topology.links) + _SPARE_FILES)
        self._namespaces.create()
        why_not = unpunctual() or refusal() if self._emulator is Emulator.AUTO else ""
        if self._emulator is Emulator.AUTO:
            self._emulator = Emulator.USER if why_not else Emulator.KERNEL
        links = {name: link for name, link in self._topology.links.items() if not link.ideal}
        devices = {name: (f"link{i}a", f"link{i}b") for i, name in enumerate(links)}
        if self._emulator is Emulator.KERNEL:
            try:
                self._connect_by_kernel(links, devices)
            except BuildError as error:
                raise BuildError(f"the kernel cannot emulate links here: {error}") from None
        else:
            self._namespaces.connect(devices)
            for name, link in links.items():
                self._start_emulator(link, devices[name], 0, 2 * len(links))
                self._start_emulator(link, devices[name][::-1], 1, 2 * len(links))
        for direction in self._controls:
            self._hear(direction)
        self._start_services()
        # /proc is still the runner's, so this is our process ID as the runner sees it.
        pid = int(Path("/proc/self").readlink().name)
        places = self._namespaces
        return Built(pid, places.descriptors, places.mounts, self._emulator, why_not)

    def serve(self, runner: Connection) -> None:
        """Serve the runner's requests until it is gone.

        Raises BuildError, ServiceError or _EmulatorError if a part of the lab fails.
        """
        wake, wakeup = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wakeup)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        readers: list[Any] = [runner, wake]
        while True:
            # First: a child may have ended before the signal had its handler.
            self._reap()
            timeout_s = self._kernel.advance() if self._kernel else None
            ready = wait(readers, timeout_s)  # select() knows no descriptor above 1,023
            if wake in ready:
                os.read(wake, 4096)
            if runner in ready:
                try:
                    request: Request = receive(runner)
                except EOFError:
                    break
                send(runner, self._obey(request))
        if self._kernel:
            self._kernel.close()

    def _obey(self, request: Request) -> Any:
        """Return the answer to a request."""
        match request:
            case ChangeLinks(changes) if self._kernel:
                return self._kernel.change(changes)
            case ChangeLinks(changes):
                self._ask_emulators(changes)
            case AskCounters(directions) if self._kernel:
                return self._kernel.counters(directions)
            case AskCounters(directions):
                return self._ask_emulators(dict.fromkeys(directions))
            case AskNode(node):
                enter_network(self._namespaces.descriptors[node])  # of which /proc/net is then
                return counters.read()
            case _:
                self._reap()
        return None

    def _connect_by_kernel(self, links: Mapping[str, Link], devices: Mapping[str, Ends]) -> None:
        self._namespaces.connect(devices, several_processors())
        within = self._namespaces.descriptors
        places = {}
        for name, link in links.items():
            a, b = link.ends
            places[name] = LinkPlace(link, devices[name], (within[a.node], within[b.node]))
        if places:
            self._kernel = KernelLinks(self._namespaces.emulator, places)

    def _ask_emulators(self, messages: Mapping[LinkDirection, Change | None]) -> list[Any]:
        for direction, message in messages.items():
            send(self._controls[direction], message)
        return [self._hear(direction) for direction in messages]

    def _hear(self, direction: LinkDirection) -> Any:
        """Return an emulator's answer."""
        try:
            return receive(self._controls[direction])
        except EOFError:
            raise _EmulatorError(f"the emulator of link {direction[0]} ended") from None

    def _start_emulator(self, link: Link, devices: Ends, direction: int, of: int) -> None:
        ours, theirs = Pipe()
        enter_network(self._namespaces.emulator)
        try:
            pid = os.fork()
        except OSError as error:
            raise BuildError(_no_more_processes(error, len(self._emulators), of)) from None
        if not pid:
            # Of hundreds of emulators, each would have the descriptors of those before it.
            os.dup2(theirs.fileno(), _CONTROL)
            os.closerange(_CONTROL + 1, theirs.fileno() + 1)
            control = Connection(_CONTROL)
            seed = f"{self._topology.seed} {link.name} {direction}"
            settings = link.settings[direction]
            _end_with(lambda: run_direction(settings, seed, devices, link.mtu, control, of))
        theirs.close()
        self._emulators[pid] = link.name
        self._controls[link.name, direction] = ours

    def _start_services(self) -> None:
        started = []
        for node in self._topology.nodes.values():
            enter_network(self._namespaces.descriptors[node.name])
            with self._namespaces.view(node.name):
                for service in node.services:
                    running = Running(node.name, service)
                    self._services[running.pid] = running
                    started.append((node.name, running))
        for host, running in started:
            enter_network(self._namespaces.descriptors[host])
            running.wait_ready()

    def _reap(self) -> None:
        """Collect children that have ended, including orphans of the lab's commands."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            if pid in self._services:
                raise self._services[pid].ended(status)
            if pid in self._emulators:
                raise _EmulatorError(f"the emulator of link {self._emulators[pid]} ended")


def _allow_files(needed: int) -> None:
    """Let this process have so many descriptors. Raises BuildError if the system grants fewer."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= needed:
        return
    if hard < needed:
        raise BuildError(
            f"it needs {needed:,} open files, and the limit is {hard:,} (ulimit -Hn): make the lab"
            " smaller, or raise the limit"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _no_more_processes(error: OSError, started: int, needed: int) -> str:
    """Return which limit a system met that starts no more processes (fork(2))."""
    said = f"it needs {needed:,} processes for its links, and the system starts no more than"
    if error.errno == errno.ENOMEM:
        return f"{said} {started:,}: the memory is used up: make the lab smaller"
    most, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    limits = [] if most == resource.RLIM_INFINITY else [f"{most:,} of this user (ulimit -u)"]
    with suppress(OSError, ValueError):
        group = Path("/proc/self/cgroup").read_text().rpartition("::")[2].strip()
        most = int(Path(f"/sys/fs/cgroup{group}/pids.max").read_text())
        limits.append(f"{most:,} of this control group (pids.max)")
    limits.append(f"{Path('/proc/sys/kernel/pid_max').read_text().strip()} in all")
    return f"{said} {started:,}. Limits are {', '.join(limits)}: make the lab smaller"


def _end_with(work: Callable[[], None]) -> NoReturn:
    """End this forked process with the work, never returning into its parent's code."""
    try:
        work()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def main() -> None:
    """Keep the lab whose topology comes over the connection with the given descriptor."""
    # Ctrl-C is handled by the runner, which closes the lab in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    runner = Connection(int(sys.argv[1]))
    topology, emulator = receive(runner)
    try:
        keeper = Keeper(topology, emulator)
        send(runner, keeper.build())
        keeper.serve(runner)
    except (OSError, BuildError, ServiceError, _EmulatorError) as error:
        send(runner, Broken(str(error), isinstance(error, PermissionError)))


if __name__ == "__main__":
    main()
