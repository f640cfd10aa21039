"""The text of a first profile, with a comment for each part."""

from __future__ import annotations

from benchctl.units import quoted


def first_profile(server: str, backend: str, duration: str) -> str:
    """Return a profile that measures throughput both ways; an empty server is this machine.

    The answers must be valid: a host, a backend of throughput, a duration with its unit.
    """
    place = _SERVER.format(host=quoted(server)) if server else _LOCAL
    to = 'to = "server"' if server else '# to = "server"'
    return _TEXT.format(place=place, to=to, backend=quoted(backend), duration=quoted(duration))


_SERVER = """\
# The other end: a server that somebody runs there, such as "iperf3 -s". If it is busy, the ports of
# a range are tried in turn: port = "5201-5210".
[servers]
server = {{ host = {host} }}
"""
_LOCAL = """\
# Without a server, benchctl measures this machine alone. To measure a network, start a server at
# the other end, such as "iperf3 -s", and remove the "#" here and at "to" below.
# [servers]
# server = { host = "192.0.2.1" }
"""
_TEXT = """\
# A first profile. "benchctl plan FILE" shows what it does, "benchctl run FILE" does it.
# docs/profile.md describes every key; "benchctl schema" prints a schema for editors.

title = "Throughput, both ways, one and four streams"

{place}
# What one trial measures. All flows of a trial start together.
[flows.main]
backend = {backend}      # "benchctl backends" lists the tools
{to}
duration = {duration}

# A second flow would measure the round trip meanwhile:
# [flows.ping]
# backend = "ping"
# to = "server"

# What is varied. Each combination of these values is measured.
[axes]
direction = ["send", "receive"]
streams = [1, 4]

[run]
repeats = 3             # the fewest that give a useful confidence interval

# A bound; if it is not met, "benchctl run" exits with code 1.
# [[expect]]
# metric = "throughput_bps"
# at_least = "100Mbit"
"""
