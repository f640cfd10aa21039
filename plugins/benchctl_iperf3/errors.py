"""What iperf3's error messages mean.

iperf3 has one list of messages (iperf_strerror in src/iperf_error.c) whose wording differs a
little between versions; the patterns match what is common. The first that matches decides, so the
order goes from the particular to the general.
"""

from __future__ import annotations

import re
import signal

from benchctl.api import Failure, FailureKind

_TABLE: tuple[tuple[str, FailureKind, str], ...] = (
    (r"server is busy", FailureKind.BUSY, ""),
    (
        r"start listener.*Address already in use",
        FailureKind.BUSY,
        "something listens on this port already; choose another",
    ),
    (
        r"TCP_CONGESTION",
        FailureKind.PARAMETER,
        "both hosts need it: sysctl net.ipv4.tcp_available_congestion_control lists what there is",
    ),
    (
        r"Cannot assign requested address",
        FailureKind.PARAMETER,
        "the address to bind to is not one of this host's",
    ),
    (
        r"socket buffer size not set correctly",
        FailureKind.PARAMETER,
        "the kernel allows less: see sysctl net.core.rmem_max and net.core.wmem_max",
    ),
    (
        r"write to stream socket: Message too long",
        FailureKind.PARAMETER,
        "the datagram does not fit the path: make length smaller",
    ),
    (
        r"[Bb]ind.to.device|No such device",
        FailureKind.PARAMETER,
        "the device must exist, and old kernels let only root bind to it",
    ),
    (
        # Clients before 3.21 know only the number of this error.
        r"maximum permitted limit|test duration expired|int_errno=37\b",
        FailureKind.REFUSED,
        "the server allows no test of this duration; ask for less",
    ),
    (
        r"larger than server limit",
        FailureKind.REFUSED,
        "the server allows no test of this rate; ask for less",
    ),
    (r"authorization failed", FailureKind.REFUSED, "the server wants a user name and a password"),
    (
        r"parameter error|(unrecognized|invalid|ambiguous) option|option .*requires"
        r"|unable to set|NODELAY",
        FailureKind.PARAMETER,
        "",
    ),
    (
        r"connect to server.*(Name or service not known|name resolution|nodename)",
        FailureKind.UNREACHABLE,
        "the name cannot be resolved",
    ),
    (
        r"connect to server.*Connection refused",
        FailureKind.UNREACHABLE,
        "nothing listens there: check the port, and that an iperf3 server runs",
    ),
    (r"connect to server", FailureKind.UNREACHABLE, ""),
    (
        # What 3.9 makes of every connection that --connect-timeout gave up.
        r"send control message: Bad file descriptor",
        FailureKind.UNREACHABLE,
        "no connection: check the address and the port, and that an iperf3 server runs",
    ),
    (
        # The control connection stands; the one for the data does not.
        r"(connect|create a new|initialize) stream"
        r"|read from stream socket: (Resource temporarily unavailable|Connection refused)",
        FailureKind.UNREACHABLE,
        "a firewall may let the control connection through but not the data",
    ),
    (
        r"unknown control message",
        FailureKind.PEER,
        "what answers there is not an iperf3 server (iperf 2 speaks another protocol)",
    ),
    (r"server has terminated", FailureKind.PEER, "the server was ended during the test"),
    (
        r"control socket has closed|control (socket|message)|stream socket"
        r"|(send|receive|package) (results|parameters)|cookie|idle timeout",
        FailureKind.PEER,
        "",
    ),
    (r"client has terminated", FailureKind.TOOL, "a signal ended the client before its time"),
)  # fmt: skip

_CLASSES = tuple((re.compile(pattern), kind, hint) for pattern, kind, hint in _TABLE)
_PREFIX = re.compile(r"^(SERVER ERROR - |error - |interrupt - |parameter error - )+")


def classify(message: str) -> Failure:
    """Return the failure that a message of iperf3 tells, without its ``iperf3:`` in front."""
    kind, hint = next(
        ((kind, hint) for pattern, kind, hint in _CLASSES if pattern.search(message)),
        (FailureKind.TOOL, ""),
    )
    return Failure(kind, _PREFIX.sub("", message).strip(), hint)


def ended(exit_code: int) -> str:
    """Return how a program ended, in words: ``exit code 1``, ``SIGKILL``."""
    if exit_code < 0:
        try:
            return signal.Signals(-exit_code).name
        except ValueError:
            return f"signal {-exit_code}"
    return f"exit code {exit_code}"
