"""Looks for the programs that backends need, on the hosts that will run them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping

from benchctl.api import Role, Tool
from benchctl.backends import AnyBackend
from benchctl.errors import MissingError
from benchctl.hosts.spawn import Spawner, run
from benchctl.run.network import Host

PROBE_TIMEOUT_S = 10.0


class Toolbox:
    """Probes each backend's programs once; hosts share this machine's programs.

    ``tell`` takes the versions of all programs so far, by backend, after each new one.
    """

    def __init__(
        self, spawner: Spawner, tell: Callable[[Mapping[str, str]], None] | None = None
    ) -> None:
        self._spawner = spawner
        self._tell = tell
        self._found: dict[tuple[str, Role], Tool] = {}

    async def find(self, backend: AnyBackend, role: Role, host: Host) -> Tool:
        """Return the program of one end of a backend's flows.

        Raises MissingError, with the reason and how to get it, if it is not usable.
        """
        key = (backend.name, role)
        if key not in self._found:
            self._found[key] = await self._probe(backend, role, host)
            if self._tell:
                found = self._found.items()
                self._tell({name: tool.version for (name, _), tool in found if tool.version})
        return self._found[key]

    async def _probe(self, backend: AnyBackend, role: Role, host: Host) -> Tool:
        probe = backend.probe(role)
        if probe is None:
            return Tool("")
        program = probe.argv[0]
        what = f'backend "{backend.name}"'
        if shutil.which(program) is None:
            raise MissingError(f"{what}: no program {program} in the PATH", probe.install)
        try:
            code, output = await run(self._spawner, host, probe.argv, PROBE_TIMEOUT_S)
        except TimeoutError:
            raise MissingError(
                f"{what}: {' '.join(probe.argv)} did not end within {PROBE_TIMEOUT_S:.0f} s"
            ) from None
        except OSError as error:
            raise MissingError(f"{what}: {program} cannot be started: {error.strerror}") from error
        try:
            return backend.read_probe(role, code, output)
        except ValueError as error:
            raise MissingError(f"{what}: {error}", probe.install) from error

    async def of_flow(
        self, backend: AnyBackend, source: Host, target: Host | None
    ) -> dict[Role, Tool]:
        """Return the programs of both ends; the server's only if benchctl runs it."""
        tools = {Role.CLIENT: await self.find(backend, Role.CLIENT, source)}
        if target is not None and backend.capabilities.needs_server:
            tools[Role.SERVER] = await self.find(backend, Role.SERVER, target)
        return tools
