"""Maps ping's messages to failures with a remedy."""

from __future__ import annotations

import re
from collections.abc import Iterable

from benchctl.api import Failure, FailureKind

_TOO_LONG = "[Mm]essage too long|[Ff]rag needed|Packet too big"

# The first pattern that a message matches decides.
_CAUSES = tuple(
    (re.compile(pattern), kind, hint)
    for pattern, kind, hint in (
        ("Name or service not known|name resolution|nodename nor servname|cannot resolve"
         "|[Uu]nknown host|No address associated",
         FailureKind.UNREACHABLE, "check the name and DNS, or use an address"),
        ("Address family",
         FailureKind.PARAMETER, "the address is not of the asked ip_version"),
        ("[Nn]etwork is unreachable|No route to host|Network is down",
         FailureKind.UNREACHABLE, "there is no route to it from here"),
        (r"SO_BINDTODEVICE|unknown iface|bad interface name|\bbind\b",
         FailureKind.PARAMETER, "the flow's interface or source address is not on this host"),
        ("broadcast",
         FailureKind.PARAMETER, "give the address of one host"),
        ("minimal interval|interval too short",
         FailureKind.PARAMETER, "give a longer interval, or run as root"),
        (_TOO_LONG,
         FailureKind.PARAMETER, "lower length, or allow fragmentation"),
        ("socket|Operation not permitted|Permission denied",
         FailureKind.TOOL, "this user may not send pings: see sysctl net.ipv4.ping_group_range, "
         "or setcap cap_net_raw+p on ping"),
        ("usage|invalid|illegal|out of range|unrecognized",
         FailureKind.PARAMETER, "this version of ping does not take what was asked for"),
    )
)  # fmt: skip


def failure_of(complaints: Iterable[str], exit_code: int) -> Failure:
    """Return why ping ended without its statistics; the complaints are its lines on stderr."""
    said = list(complaints)
    if exit_code < 0:
        return Failure(
            FailureKind.TOOL,
            f"ping was ended by signal {-exit_code} before it gave its statistics",
        )
    for text in said:
        for pattern, kind, hint in _CAUSES:
            if pattern.search(text):
                return Failure(kind, f"ping: {text}", hint)
    last = said[-1] if said else "no statistics"
    return Failure(FailureKind.TOOL, f"ping ended with exit code {exit_code}: {last}")


def no_reply(sent: int, errors: int, notices: Iterable[str]) -> Failure:
    """Return the failure of a ping without a reply; the notices are what it got instead."""
    texts = list(notices)
    message = f"no reply to {sent} probes"
    if errors:
        message += f", {errors} of them in error"
    if texts:
        message += f": {'; '.join(texts)}"
    if any(re.search(_TOO_LONG, text) for text in texts):
        return Failure(FailureKind.PARAMETER, message, "lower length, or allow fragmentation")
    return Failure(
        FailureKind.UNREACHABLE, message, "is the host up, and does it answer ICMP echo requests?"
    )
