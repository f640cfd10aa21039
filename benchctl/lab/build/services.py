"""Programs that run on the hosts of a lab as long as it exists, mostly servers.

A service is ready once each of its ports has a listener. If one ends, the lab fails: without it,
the lab is not what the topology promises.
"""

from __future__ import annotations

import os
import shlex
import signal
import time
from pathlib import Path

from benchctl.hosts.log import command_log
from benchctl.lab.build import ssh
from benchctl.lab.build.devices import program_path
from benchctl.lab.topology.model import Service

# A host can configure its own network, send anything, and serve under any user and port. Everything
# beyond is removed, even for root: kernel modules, devices, the clock, mounts, other processes'
# memory, the machine's log and its shutdown. Root keeps access to its files, so this protects
# against mistakes; it is not a sandbox for untrusted programs. See capabilities(7).
_KEPT = (
    "chown", "dac_override", "fowner", "fsetid", "kill", "setgid", "setuid", "setpcap",
    "net_bind_service", "net_broadcast", "net_admin", "net_raw", "ipc_lock", "sys_chroot",
    "sys_nice", "audit_write",
)  # fmt: skip

WITH_FEWER_PRIVILEGES = (
    "setpriv", f"--bounding-set=-all,{','.join(f'+{name}' for name in _KEPT)}", "--"
)  # fmt: skip
"""The words before a command that runs with what a host needs."""


# A server needs milliseconds; a loaded machine, or a program that loads a large model, needs more.
READY_TIMEOUT_S = 30.0
_POLL_S = 0.005
_STATE_LISTEN = "0A"
"""As /proc/net/tcp writes TCP_LISTEN (net/ipv4/tcp_ipv4.c, include/net/tcp_states.h)."""


class ServiceError(Exception):
    """A service ended, or does not listen."""


class Running:
    """A service that was started in this process's network namespace."""

    def __init__(self, host: str, service: Service) -> None:
        self._service = service
        self._name = f"{host}: {shlex.join(service.argv)}"
        program = program_path(service.argv[0])
        if program is None:
            raise ServiceError(f"{self._name}: no such program")
        user = ssh.AS_USER if service.ordinary else WITH_FEWER_PRIVILEGES
        # sshd wants its whole path.
        argv = (*user, program, *service.argv[1:])
        self._log = os.memfd_create(f"{host} service")
        null = os.open(os.devnull, os.O_RDONLY)
        streams = [(os.POSIX_SPAWN_DUP2, null, 0)]
        streams += [(os.POSIX_SPAWN_DUP2, self._log, number) for number in (1, 2)]
        try:
            self.pid = os.posix_spawnp(
                argv[0], argv, os.environ, file_actions=streams,
                setsigdef=[signal.SIGINT],
            )  # fmt: skip
        except OSError as error:
            raise ServiceError(f"{self._name}: {error.strerror}") from None
        finally:
            os.close(null)
        self._log_end = command_log().started(host, service.argv, self.pid)

    def wait_ready(self) -> None:
        """Wait until it listens; to be called in its network namespace. Raises ServiceError."""
        deadline_s = time.monotonic() + READY_TIMEOUT_S
        while missing := set(self._service.ports) - _listening():
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                raise self.ended(status)
            if time.monotonic() > deadline_s:
                ports = ", ".join(map(str, sorted(missing)))
                raise ServiceError(f"{self._name}: does not listen on port {ports}{self._output()}")
            time.sleep(_POLL_S)

    def ended(self, status: int) -> ServiceError:
        """Return the error for its end, by its wait status."""
        code = os.waitstatus_to_exitcode(status)
        self._log_end(code)
        how = f"exit code {code}" if code >= 0 else f"signal {-code}"
        return ServiceError(f"{self._name}: ended with {how}{self._output()}")

    def _output(self) -> str:
        # Its last line of output, if any.
        lines = os.pread(self._log, 1 << 16, 0).decode("utf-8", "replace").split("\n")
        last = [line.strip() for line in lines if line.strip()][-1:]
        return f": {last[0]}" if last else ""


def _listening() -> set[int]:
    ports = set()
    for table in ("tcp", "tcp6"):
        lines = Path("/proc/self/net", table).read_text().splitlines()[1:]
        for fields in map(str.split, lines):
            if fields[3] == _STATE_LISTEN:
                ports.add(int(fields[1].rpartition(":")[2], 16))
    return ports
