"""Maps iperf3's error messages to failures.

iperf3 has one list of messages (iperf_strerror in src/iperf_error.c) whose wording differs a little
between versions; the patterns match the common part. The first match decides, so specific patterns
come before general ones.
"""

from __future__ import annotations

import re
import signal
from dataclasses import replace

from benchctl.api import Failure, FailureKind

CLIENT_ENDED = "the client has terminated"

_TABLE: tuple[tuple[str, FailureKind, str], ...] = (
    (r"server is busy", FailureKind.BUSY, ""),
    (
        r"start listener.*Address already in use",
        FailureKind.BUSY,
        "the port is already in use; choose another",
    ),
    (
        r"TCP_CONGESTION",
        FailureKind.PARAMETER,
        "both hosts need it: sysctl net.ipv4.tcp_available_congestion_control lists those "
        "available",
    ),
    (
        r"Cannot assign requested address",
        FailureKind.PARAMETER,
        "this host does not have the address to bind to",
    ),
    (
        r"socket buffer size not set correctly",
        FailureKind.PARAMETER,
        "the kernel's limit is lower: see sysctl net.core.rmem_max and net.core.wmem_max",
    ),
    (
        r"write to stream socket: Message too long",
        FailureKind.PARAMETER,
        "the datagram exceeds the path MTU: reduce length",
    ),
    (
        r"[Bb]ind.to.device|No such device",
        FailureKind.PARAMETER,
        "the device must exist; on old kernels only root can bind to it",
    ),
    (
        r"maximum permitted limit|test duration expired",
        FailureKind.REFUSED,
        "the server limits the duration; reduce it",
    ),
    (
        r"larger than server limit",
        FailureKind.REFUSED,
        "the server limits the rate; reduce it",
    ),
    (
        r"authorization failed",
        FailureKind.REFUSED,
        "the server requires username, public_key and a password (password_file, or"
        " IPERF3_PASSWORD in the environment), and clocks that agree within 10 s; if one end is"
        ' older than 3.17, also options = ["--use-pkcs1-padding"]',
    ),
    (
        r"specify a username, password",
        FailureKind.PARAMETER,
        "set password_file, or IPERF3_PASSWORD in the environment; public_key must be a PEM file"
        " that this user may read",
    ),
    (
        r"(Protocol not (supported|available)|no SCTP support)",
        FailureKind.PARAMETER,
        "this host's kernel does not have the protocol: modprobe sctp, or sysctl net.mptcp.enabled",
    ),
    (
        r"Address already in use",
        FailureKind.BUSY,
        "source_port is in use: for a minute after each connection, its end keeps the port",
    ),
    (
        r"Address family",
        FailureKind.PARAMETER,
        "the address is of another IP version than ip_version: remove ip_version or change the "
        "address",
    ),
    (
        r"parameter error|(unrecognized|invalid|ambiguous) option|option .*requires"
        r"|unable to set|NODELAY",
        FailureKind.PARAMETER,
        "",
    ),
    (
        r"connect to server.*(Name or service not known|name resolution|nodename|No address)",
        FailureKind.UNREACHABLE,
        "the name cannot be resolved, or has no address of the asked ip_version",
    ),
    (
        r"connect to server.*Connection refused",
        FailureKind.UNREACHABLE,
        "nothing listens on that port: check the port, and that an iperf3 server runs",
    ),
    (
        r"connect to server",
        FailureKind.UNREACHABLE,
        "check the address and the port; a firewall may drop or reject what comes to it",
    ),
    (
        # What 3.9 reports for every connection that --connect-timeout gave up.
        r"send control message: Bad file descriptor",
        FailureKind.UNREACHABLE,
        "no connection: check the address, its IP version and the port, and that an iperf3 server"
        " runs",
    ),
    (
        # It reads random data into a mapped file, which cannot grow (iperf_new_stream).
        r"failed to read /dev/urandom: Bad address|No space left on device",
        FailureKind.TOOL,
        "no space for iperf3's buffer on this host: free some in /tmp, or set TMPDIR",
    ),
    (
        # The control connection is open, but the data connection fails.
        r"(connect|create a new|initialize) stream"
        r"|read from stream socket: (Resource temporarily unavailable|Connection refused)",
        FailureKind.UNREACHABLE,
        "a firewall may let the control connection through but not the data",
    ),
    (
        r"unknown control message",
        FailureKind.PEER,
        "the peer is not an iperf3 server (perhaps iperf 2 or a web server)",
    ),
    (r"server has terminated", FailureKind.PEER, "the server stopped during the test"),
    (
        r"control socket has closed|control (socket|message)|stream socket"
        r"|(send|receive|package) (results|parameters)|cookie|idle timeout",
        FailureKind.PEER,
        "",
    ),
    (r"^error - $", FailureKind.TOOL, "the server is newer than the client, and may limit the "
    "duration"),
    (CLIENT_ENDED, FailureKind.TOOL, "a signal ended the client before its time"),
)  # fmt: skip

# Errors of the server that older clients report by number only (src/iperf_api.h of 3.21).
_NUMBERED = {
    "37": "client's requested duration exceeds the server's maximum permitted limit",
}
_NUMBER = re.compile(r"int_errno=(\d{1,9})\b")

_CLASSES = tuple((re.compile(pattern), kind, hint) for pattern, kind, hint in _TABLE)
_PREFIX = re.compile(r"^(SERVER ERROR - |error - |interrupt - |parameter error - )+")
# The client appends errno's text for the number of its own error.
_SUFFIX = re.compile(r", errno: Unknown error \d+$")

SILENT = Failure(
    FailureKind.PEER,
    "the server accepted the connection and did not respond",
    "it may not be an iperf3 server (a web server waits like this), or it may be stuck",
)
# The client waits for the answer to its first datagram, which it does not repeat
# (iperf_udp_connect).
UDP_SILENT = replace(
    SILENT,
    hint="UDP packets to or from its port may be dropped on the way, perhaps by a firewall",
)
UDP_SILENT_PEER = replace(SILENT, hint=f"{UDP_SILENT.hint}; or {SILENT.hint}")


def classify(message: str) -> Failure:
    """Return the failure of an iperf3 message, without its ``iperf3:`` prefix."""
    if (number := _NUMBER.search(message)) and number[1] in _NUMBERED:
        message = _NUMBERED[number[1]]
    kind, hint = next(
        ((kind, hint) for pattern, kind, hint in _CLASSES if pattern.search(message)),
        (FailureKind.TOOL, ""),
    )
    words = _SUFFIX.sub("", _PREFIX.sub("", message)).strip()
    return Failure(kind, words or "an error that this version of iperf3 does not know", hint)


def ended(exit_code: int) -> str:
    """Return how a program ended, in words: ``exit code 1``, ``SIGKILL``."""
    if exit_code < 0:
        try:
            return signal.Signals(-exit_code).name
        except ValueError:
            return f"signal {-exit_code}"
    return f"exit code {exit_code}"
