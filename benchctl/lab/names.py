"""Names inside a lab: what its /etc/hosts and /etc/nsswitch.conf say.

Inside a lab names resolve from its hosts file and from nowhere else: no resolver is asked, so an
alias such as ``speedtest.example.net`` reaches the lab's host and never the real one.
"""

from __future__ import annotations

import re

from benchctl.lab.model import Topology


def hosts_file(topology: Topology) -> str:
    """Return /etc/hosts: every node's name and aliases at its first address."""
    lines = ["127.0.0.1 localhost", "::1 localhost"]
    for node in topology.nodes.values():
        addresses = [end.ip for end in topology.interfaces(node.name) if end.address]
        if addresses:
            lines.append(" ".join([addresses[0], node.name, *node.aliases]))
    return "\n".join(lines) + "\n"


def nsswitch_file(text: str) -> str:
    """Return a machine's /etc/nsswitch.conf with host names taken from files alone."""
    others = re.sub(r"^\s*hosts:.*\n?", "", text, flags=re.M)
    return f"{others.rstrip()}\nhosts: files\n".lstrip()
