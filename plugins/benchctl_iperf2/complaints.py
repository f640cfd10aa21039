"""What iperf 2 writes to stderr, and what it means.

Its exit code says nothing: 0 when the connection was refused, and 0 when an option was wrong. What
it cannot set it leaves as it is and goes on, so such a complaint is a failure: what would be
measured is not what was asked for.
"""

from __future__ import annotations

import re
import signal

from benchctl.api import Failure, FailureKind

_MOST_WORDS = 300

REFUSED = "Connection refused"
"""The answer of a host on which nothing listens, or of a firewall that rejects packets."""
DROPPED = "UDP packets to or from that port are dropped on the way, perhaps by a firewall"

# (pattern, kind, hint): the first match decides. src/PerfSocket.cpp, Settings.cpp, Client.cpp.
_TABLE = (
    (r"unrecognized option|invalid option|requires an argument", FailureKind.PARAMETER, ""),
    (r"reverse connect did not occur", FailureKind.UNREACHABLE,
     "in a dual test the server connects to listen_port of this host; a firewall may prevent it"),
    (r"^ERROR: ", FailureKind.PARAMETER, ""),
    (r"bind failed: Address already in use", FailureKind.BUSY,
     "the port is already in use; choose another"),
    (r"bind failed", FailureKind.PARAMETER, "this host does not have the address to bind to"),
    (r"congestion control failed", FailureKind.PARAMETER,
     "sysctl net.ipv4.tcp_available_congestion_control lists those available"),
    (r"attempt to set TCP max\w+ segment size", FailureKind.PARAMETER,
     "the kernel does not take this mss"),
    (r"SO_BINDTODEVICE|No such device", FailureKind.PARAMETER,
     "the device must exist; only root can bind to it"),
    (r"Message too long", FailureKind.PARAMETER, "the datagram is too long: reduce length"),
    (r"Unknown host|Name or service not known|name resolution", FailureKind.UNREACHABLE,
     "the name cannot be resolved, or has no address of the asked ip_version"),
    (REFUSED, FailureKind.UNREACHABLE,
     "nothing listens on that port: check the port, and that iperf runs there as a server (-s; -u"
     " for UDP)"),
    (r"unreachable|No route to host|timed out|connect failed", FailureKind.UNREACHABLE, ""),
    (r"reset by peer|Broken pipe|tcp write failed|write failed|read failed", FailureKind.PEER,
     "the server closed the connection"),
)  # fmt: skip
_CLASSES = tuple((re.compile(pattern), kind, hint) for pattern, kind, hint in _TABLE)

# iperf goes on after these, with another setting than the one asked for.
_AT_ONCE = (FailureKind.PARAMETER, FailureKind.BUSY)

_NO_ANSWER = re.compile(r"WARNING: did not receive ack of last datagram")
_PREFIX = re.compile(r"^(?:\S*/)?iperf: ")


def lacks_answer(text: str) -> bool:
    """Return whether a line says that the server's report of a UDP stream is missing."""
    return _NO_ANSWER.search(text) is not None


def classify(text: str) -> Failure | None:
    """Return the failure that a line of stderr tells, or None if it tells none."""
    words = _PREFIX.sub("", text.strip())[:_MOST_WORDS]
    for pattern, kind, hint in _CLASSES:
        if pattern.search(words):
            return Failure(kind, words, hint)
    return None


def is_final(failure: Failure) -> bool:
    """Return whether nothing that follows can be the measurement that was asked for."""
    return failure.kind in _AT_ONCE


def ended(exit_code: int) -> str:
    """Return how a program ended, in words: ``exit code 1``, ``SIGKILL``."""
    if exit_code < 0:
        try:
            return signal.Signals(-exit_code).name
        except ValueError:
            return f"signal {-exit_code}"
    return f"exit code {exit_code}"
