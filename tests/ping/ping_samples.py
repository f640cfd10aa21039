"""What ping 20221126 of iputils once printed, and a BSD transcript in the format of its source."""

from pathlib import Path

from contract import recorded
from hypothesis import settings

from benchctl.api import replay
from benchctl_ping.parser import PingParser

# The same examples on every run, and no matter how busy the machine is.
REPEATABLE = settings(derandomize=True, deadline=None)

SAMPLES = Path(__file__).with_name("samples")
NAMES = sorted(path.stem for path in SAMPLES.glob("*.cmd"))

# ping.c of FreeBSD and macOS: numbers from 0, no stamps, "packets received", stddev.
BSD = b"""\
PING 192.0.2.1 (192.0.2.1): 56 data bytes
64 bytes from 192.0.2.1: icmp_seq=0 ttl=61 time=12.345 ms
Request timeout for icmp_seq 1
64 bytes from 192.0.2.1: icmp_seq=2 ttl=61 time=14.000 ms
64 bytes from 192.0.2.1: icmp_seq=2 ttl=61 time=14.500 ms (DUP!)

--- 192.0.2.1 ping statistics ---
3 packets transmitted, 2 packets received, +1 duplicates, 33.3% packet loss
round-trip min/avg/max/stddev = 12.345/13.615/14.500/0.921 ms
"""


def parser(count=1000, interval_s=0.2):
    return PingParser(count, interval_s, first_seq=1)


def events(name, **arguments):
    return recorded(SAMPLES / name).replay(parser(**arguments))


def said(text, stderr=b"", code=0, **arguments):
    return replay(parser(**arguments), text.encode(), stderr, code)


def only(kind, told):
    """Return the one event of a kind."""
    (event,) = (event for event in told if isinstance(event, kind))
    return event
