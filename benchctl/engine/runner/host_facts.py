"""What is known of the hosts of a run: their facts, the versions of the tools, the connections."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import benchctl
from benchctl.hosts.link import HostLink
from benchctl.hosts.sent import facts
from benchctl.run.planned import LOCAL, Host
from benchctl.run.record import HostConnection
from benchctl.store.record import Recorder

# How often a screen learns how far the clocks are apart. With many hosts less often: the row of the
# run is written as a whole, with the connections to all of them.
LOOK_S = 5.0
HOSTS_A_LOOK = 10


class HostFacts:
    """Records the facts of hosts, those of this machine at once."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._facts: dict[str, dict[str, Any]] = {
            LOCAL.name: {"benchctl": benchctl.__version__, **facts.collect()}
        }
        self._written: dict[str, dict[str, Any]] = {}
        self._links: dict[str, tuple[HostLink, float]] = {}
        """The latest to each host, and when it was opened."""
        self._write(LOCAL.name)

    async def on_connect(self, host: Host, link: HostLink) -> None:
        """Record the facts of a remote host, and what it lacks. Raises HostError."""
        if link.missing_features and host.name not in self._facts:
            text = f"host {host.name}: {link.missing_features}"
            self._recorder.add_note(text, "warning", time.time(), None, None)
        known = self._facts.get(host.name, {})
        self._facts[host.name] = {**known, **await link.ask(facts, "collect")}
        self._write(host.name)
        self._links[host.name] = link, time.time()
        self._look()
        link.ended.add_done_callback(lambda _: None if link.closes else self._look())

    async def watch(self) -> None:
        """Record what is known of the connections, again and again."""
        while True:
            await asyncio.sleep(LOOK_S * max(1.0, len(self._links) / HOSTS_A_LOOK))
            self._look()

    def _look(self) -> None:
        if self._links:
            now = time.time()
            connections = {
                name: HostConnection(
                    since_time,
                    link.lost or link.away,
                    link.clock.reading(now) if link.clock else None,
                )
                for name, (link, since_time) in self._links.items()
            }
            self._recorder.update_run(connections=connections)

    def tools(self, host: Host, versions: Mapping[str, str]) -> None:
        """Record the versions of the tools on a host, by backend."""
        name = host.name if host.reach else LOCAL.name
        self._facts.setdefault(name, {})["tools"] = versions
        self._write(name)

    def _write(self, name: str) -> None:
        """Record the facts of a host, unless they are written already."""
        known = dict(self._facts[name])
        if known == self._written.get(name):
            return
        self._written[name] = known
        if name == LOCAL.name:
            self._recorder.update_run(facts=known)
        else:
            self._recorder.update_host(name, known)
