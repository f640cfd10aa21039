"""A lab from the runner's side: build it, run commands on its hosts, change its links.

The runner keeps one connection to the keeper process. When the runner ends, by any signal, the
connection closes, the keeper ends, and the kernel takes everything away; see `keeper`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from multiprocessing import Pipe
from threading import Lock
from types import MappingProxyType
from typing import Any

from benchctl.errors import LabError, LabKilledError
from benchctl.lab import capability
from benchctl.lab.build.services import WITH_FEWER_PRIVILEGES
from benchctl.lab.capability import Launcher
from benchctl.lab.emulate.link import Change
from benchctl.lab.emulate.messages import (
    AskCounters,
    AskNode,
    AskStanding,
    Broken,
    Built,
    ChangeLinks,
    DirectionCounters,
    LinkDirection,
    Request,
    receive,
    send,
)
from benchctl.lab.topology.model import Emulator, Topology
from benchctl.lab.topology.segments import Hop
from benchctl.run.planned import Host, HostInterface

# A lab of nine hosts takes one second; the rest is for slow machines.
_BUILD_TIMEOUT_S = 60.0
# A lab of hundreds of hosts is gone within a second. The kernel lets the init of a PID namespace
# end only when all in it were reaped (zap_pid_ns_processes in kernel/pid_namespace.c), and orphans
# of those that entered it are reaped by PID 1, which in some containers reaps nothing.
_END_TIMEOUT_S = 5.0
# It answers within a millisecond, or after some tc commands during a ramp emulated by the kernel.
_ANSWER_TIMEOUT_S = 10.0

# Runs between nsenter and the command. nsenter puts only its children into the PID namespace, so a
# process has to fork, survive the signals that the runner sends to the process group, and end as
# the command ended. A shell's message about a child's death is not the command's output, so it is
# discarded.
_RELAY = (
    'exec 9>&2 2>/dev/null; cd "$PWD"; '
    "trap : HUP INT QUIT TERM; "
    '(exec "$@" 2>&9 9>&-); code=$?; trap - HUP INT QUIT TERM; '
    '[ "$code" -le 128 ] || kill -s "$(kill -l "$code")" $$; exit "$code"'
)


_KILLED = Broken("its keeper was killed")


class _GoneError(Exception):
    """The keeper has ended, or reported that the lab has; ``end`` is None if it is silent."""

    def __init__(self, reason: str, end: Broken | None = None) -> None:
        super().__init__(reason)
        self.end = end


class _KeeperProcess:
    """The keeper process, and the connection to it."""

    def __init__(self, launcher: Launcher) -> None:
        self._connection, theirs = Pipe()
        self._log = os.memfd_create("lab keeper")
        keeper = (sys.executable, "-P", "-m", "benchctl.lab.keeper", str(theirs.fileno()))
        # A session of its own: Ctrl-C in the terminal goes to the runner alone.
        try:
            self._process = subprocess.Popen(
                (*launcher.argv, *keeper), stdin=subprocess.DEVNULL, stdout=self._log,
                stderr=self._log, pass_fds=[theirs.fileno()], start_new_session=True,
            )  # fmt: skip
        except FileNotFoundError as error:
            program = launcher.argv[0]
            package = capability.PROGRAMS.get(program, program)
            raise LabError(
                f"the lab cannot be built: no program {program} in the PATH", f"install {package}"
            ) from error
        except OSError as error:
            raise LabError(
                f"the lab cannot be built: {error.filename or 'a process'}: {error.strerror}"
            ) from error
        theirs.close()
        self._end: Broken | None = None

    def tell(self, message: object) -> None:
        try:
            send(self._connection, message)
        except (BrokenPipeError, ConnectionResetError):
            # Its last message explains its end.
            self.hear()

    def hear(self, timeout_s: float | None = None) -> Any:
        if self._end is None and not self._connection.poll(timeout_s):
            raise _GoneError(f"no answer within {timeout_s:.0f} s")
        if self._end is None:
            try:
                answer = receive(self._connection)
            except (EOFError, ConnectionResetError):
                answer = Broken("", forbidden=True)  # Even unshare could not start.
            if not isinstance(answer, Broken):
                return answer
            # A failed part of the lab may have reported why; the keeper knows only that it failed.
            lines = os.pread(self._log, 1 << 16, 0).decode("utf-8", "replace").splitlines()
            # The exit code of unshare (util-linux 2.38) for a killed child.
            lines = [line for line in lines if "sigprocmask unblock failed" not in line]
            said = "; ".join(filter(None, [answer.reason, *lines[-1:]]))
            self._end = Broken(said, answer.forbidden) if said else _KILLED
        raise _GoneError(self._end.reason, self._end)

    def end(self) -> None:
        if not self._connection.closed:
            self._connection.close()
            os.close(self._log)
        try:
            self._process.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Lab:
    """A running lab; a context manager.

    ``nodes`` are all nodes by name, as hosts that run commands. A command must be started as a
    process group of its own, and is signalled as a group. A node's address is that of its first
    interface, and empty for a switch. ``emulator`` is the one in use, ``why_not_kernel`` the reason
    if the kernel was rejected, and ``keeper_pid`` the process whose end ends the lab.
    """

    def __init__(
        self, topology: Topology, built: Built, launcher: Launcher, keeper: _KeeperProcess
    ) -> None:
        self.topology = topology
        self.emulator = built.emulator
        self.why_not_kernel = built.why_not_kernel
        self.keeper_pid = built.pid
        self.nodes: Mapping[str, Host] = MappingProxyType(
            {name: _host(topology, name, built, launcher) for name in topology.nodes}
        )
        self._keeper = keeper
        self._asking = Lock()

    @classmethod
    def build(cls, topology: Topology, emulator: Emulator | None = None) -> Lab:
        """Build a lab, by default with the topology's choice of emulator.

        Raises LabError if the kernel refuses, or a service of the lab does not start, and
        LabKilledError if its keeper was killed meanwhile.
        """
        launcher = capability.launcher()
        keeper = _KeeperProcess(launcher)
        try:
            keeper.tell((topology, emulator or topology.emulator))
            built: Built = keeper.hear(_BUILD_TIMEOUT_S)
        except _GoneError as error:
            keeper.end()
            kind = LabKilledError if error.end is _KILLED else LabError
            hint = capability.remedy() if error.end and error.end.forbidden else ""
            raise kind(f"the lab cannot be built: {error}", hint) from None
        except BaseException:
            keeper.end()
            raise
        return cls(topology, built, launcher, keeper)

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the lab; no process of it is left afterwards."""
        self._keeper.end()

    def change(self, link: str, change: Change, leaving: str | None = None) -> None:
        """Change the settings of a link, now or at a time on the monotonic clock.

        With ``leaving``, only the direction that leaves this node. Raises LabError if the link is a
        bare cable, or the lab has failed.
        """
        if self.topology.links[link].ideal:
            raise LabError(
                f"link {link} is not emulated: it has no settings to change",
                "give it a rate or a delay in the topology file",
            )
        ends = enumerate(self.topology.links[link].ends)
        directions = [(link, i) for i, end in ends if leaving in (None, end.node)]
        self._ask(ChangeLinks(dict.fromkeys(directions, change)))

    def change_each(self, changes: Mapping[Hop, Change]) -> None:
        """Change emulated links, each in one direction, at the same time; raises as `change`."""
        self._ask(ChangeLinks({hop.key: change for hop, change in changes.items()}))

    def counters(self, link: str, leaving: str) -> DirectionCounters:
        """Return the counters of the direction of an emulated link that leaves a node.

        Raises LabError if the lab has failed.
        """
        direction = 0 if self.topology.links[link].ends[0].node == leaving else 1
        return self._counters([(link, direction)])[0]

    def counted(self, hops: Iterable[Hop]) -> dict[Hop, DirectionCounters]:
        """Return the counters of emulated links, each in one direction; raises as `counters`."""
        hops = list(dict.fromkeys(hops))
        return dict(zip(hops, self._counters([hop.key for hop in hops]), strict=True))

    def _counters(self, directions: Sequence[LinkDirection]) -> list[DirectionCounters]:
        counters: list[DirectionCounters] = self._ask(AskCounters(directions))
        return counters

    def node_counters(self, node: str) -> dict[str, Any]:
        """Return what the kernel has counted on a node, as `benchctl.hosts.sent.counters.read`.

        The processors are the machine's. Raises LabError if the lab has failed.
        """
        counted: dict[str, Any] = self._ask(AskNode(node))
        return counted

    def check(self) -> None:
        """Raise LabError, with the reason, if the lab has failed."""
        # By a request, because the connection of a killed keeper closes only with the last of the
        # lab.
        self._ask(AskStanding())

    def _ask(self, request: Request) -> Any:
        try:
            with self._asking:  # threads ask, too
                self._keeper.tell(request)
                return self._keeper.hear(_ANSWER_TIMEOUT_S)
        except _GoneError as error:
            raise LabError(f"the lab failed: {error}") from None


def _host(topology: Topology, name: str, built: Built, launcher: Launcher) -> Host:
    ends = [end for end in topology.interfaces(name) if end.has_address]
    # Entering one's own user namespace is an error (setns(2), EINVAL).
    user = ("--user", "--preserve-credentials") if launcher.user_namespace else ()
    prefix = (
        "nsenter", f"--target={built.pid}", *user, "--pid", "--wd=.",
        f"--mount=/proc/{built.pid}/fd/{built.mounts[name]}",
        f"--net=/proc/{built.pid}/fd/{built.networks[name]}", "--no-fork", "--",
        "sh", "-c", _RELAY, "benchctl-relay", *WITH_FEWER_PRIVILEGES,
    )  # fmt: skip
    return Host(
        name=name,
        address=topology.known_at(name),
        prefix=prefix,
        interfaces={end.label or end.device: HostInterface(end.device, end.ip) for end in ends},
        shares_ports=False,
        address6=topology.known_at(name, 6),
    )
