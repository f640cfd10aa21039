"""What a topology says of a host that serves SSH: its service and its settings.

`benchctl.lab.build.ssh` makes the keys.
"""

from __future__ import annotations

from pathlib import Path

from benchctl.lab.topology.model import Service

PLACE = Path("/etc/ssh")
SERVER_SETTINGS = PLACE / "sshd_config"

SYSCTL = {
    # What an ordinary user of most machines may: ping, and here also listen on port 22. The group
    # is that of the user namespace's only user, as the lab sees it.
    "net.ipv4.ping_group_range": "0 0",
    "net.ipv4.ip_unprivileged_port_start": "0",
}
"""Settings of a host that serves."""


def server(port: int) -> Service:
    """Return the service that lets the lab's other hosts log in."""
    # The lab's /etc/ssh may be later than the machine's programs: no other file of it is read.
    argv = ("sshd", "-D", "-e", "-f", str(SERVER_SETTINGS), "-p", str(port))
    return Service(argv, (port,), ordinary=True)
