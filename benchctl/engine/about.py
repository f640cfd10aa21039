"""What is known of the hosts of a run: their facts, and the versions of the tools there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import benchctl
from benchctl.hosts import facts
from benchctl.hosts.remote import RemoteHost
from benchctl.run.planned import LOCAL, Host
from benchctl.store.record import Recorder


class About:
    """Records the facts of hosts, those of this machine at once."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._facts: dict[str, dict[str, Any]] = {
            LOCAL.name: {"benchctl": benchctl.__version__, **facts.collect()}
        }
        self._write()

    async def greet(self, host: Host, link: RemoteHost) -> None:
        """Record the facts of a host elsewhere. Raises HostError."""
        known = self._facts.get(host.name, {})
        self._facts[host.name] = {**known, **await link.ask(facts, "collect")}
        self._write()

    def tools(self, host: Host, versions: Mapping[str, str]) -> None:
        """Record the versions of the tools on a host, by backend."""
        name = host.name if host.reach else LOCAL.name
        self._facts.setdefault(name, {})["tools"] = versions
        self._write()

    def _write(self) -> None:
        elsewhere = {name: one for name, one in self._facts.items() if name != LOCAL.name}
        self._recorder.update_run(facts=self._facts[LOCAL.name], hosts=elsewhere)
