"""The configuration of nats-server: each member may use its own subjects, and no others.

Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from benchctl.fleet.admin.members import Members
from benchctl.fleet.carrier.streams import KEYS, LEASES, LOG, STREAMS, inbox
from benchctl.fleet.messages import COORDINATOR

ANSWER_WITHIN: Final = "60s"
"""So long a host may take to answer: to prepare the ends of a trial takes seconds."""


def server_conf(members: Members, directory: Path, listen: str) -> str:
    """Return the text of nats.conf; ``listen`` is the address and port to listen on."""
    entries = ",\n".join(f"    {json.dumps(user)}" for user in _users(members))
    return f"""\
# Written by benchctl fleet: a change here is lost. The server reads it anew on SIGHUP.
listen: {json.dumps(listen)}
server_name: {json.dumps(f"benchctl-{members.fleet}")}
pid_file: {json.dumps(str(directory / "nats.pid"))}
max_payload: 2MB
# A client that takes nothing for so long is cut off, and gets what it missed of streams later.
write_deadline: "10s"
ping_interval: "5s"
ping_max: 3
jetstream {{
  store_dir: {json.dumps(str(directory / "streams"))}
  max_file_store: 10GB
  # The default is 2 minutes, and a power cut then loses what was acknowledged.
  sync_interval: "10s"
}}
tls {{
  cert_file: {json.dumps(str(directory / "server.pem"))}
  key_file: {json.dumps(str(directory / "server.key"))}
  min_version: "1.3"
  handshake_first: "300ms"
}}
authorization {{
  timeout: 5
  users: [
{entries}
  ]
}}
"""


def _users(members: Members) -> Iterable[dict[str, Any]]:
    yield _user(
        members.setup,
        ["$JS.API.STREAM.CREATE.*", "$JS.API.STREAM.UPDATE.*", "$JS.API.STREAM.INFO.*"],
        [f"{inbox('setup')}.>"],
    )
    members_ = [*members.hosts, *members.people, *members.invited]
    answers = [f"{inbox(name)}.>" for name in dict.fromkeys(members_)]
    read = [right for stream in STREAMS for right in _reading(stream.name)]
    for nkey in members.coordinators:
        yield _user(
            nkey,
            ["bench.run.*", KEYS, LOG.subject, f"$KV.{LEASES}.>", *read, *answers],
            ["bench.hb.*", "bench.submit.*", "bench.join.*", f"{inbox(COORDINATOR)}.>"],
        )
    for name, host in members.hosts.items():
        yield _user(
            host.nkey,
            [f"bench.{kind}.{name}" for kind in ("hb", "smp", "res")],
            [f"bench.run.{name}", f"{inbox(name)}.>"],
            answers=True,
        )
    for name, person in members.people.items():
        yield _user(
            person.nkey,
            [f"bench.submit.{name}", *_reading(LOG.name)],
            [KEYS, f"{inbox(name)}.>"],
        )
    for name, invited in members.invited.items():
        yield _user(invited.nkey, [f"bench.join.{name}"], [f"{inbox(name)}.>"])


def _reading(stream: str) -> list[str]:
    return [
        f"$JS.API.STREAM.INFO.{stream}", f"$JS.API.CONSUMER.CREATE.{stream}.>",
        f"$JS.FC.{stream}.>",
    ]  # fmt: skip


def _user(
    nkey: str, publish: list[str], subscribe: list[str], *, answers: bool = False
) -> dict[str, Any]:
    permissions: dict[str, Any] = {"publish": {"allow": publish}, "subscribe": {"allow": subscribe}}
    if answers:
        permissions["allow_responses"] = {"max": 1, "expires": ANSWER_WITHIN}
    return {"nkey": nkey, "permissions": permissions}
