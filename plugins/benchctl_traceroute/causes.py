"""Maps messages of mtr and traceroute to failures with a remedy."""

from __future__ import annotations

import re
from collections.abc import Iterable

from benchctl.api import Failure, FailureKind

# Texts of a tool that are kept.
MOST_TEXTS = 16

# The first message that matches any decides, by its first pattern.
_CAUSES = tuple(
    (re.compile(pattern), kind, hint)
    for pattern, kind, hint in (
        ("Address family|IP version mismatch|not supported by this traceroute",
         FailureKind.PARAMETER, "the address is not of the asked ip_version"),
        ("Failed to resolve|Name or service not known|name resolution|nodename nor servname"
         "|[Uu]nknown host|No address associated",
         FailureKind.UNREACHABLE, "check the name and DNS, or use an address"),
        ("[Nn]etwork is unreachable|No route to host|Network is down|findsaddr",
         FailureKind.UNREACHABLE, "there is no route to it from here"),
        ("non-root users cannot request an interval",
         FailureKind.PARAMETER, "give an interval of 1 s or more, or run as root"),
        (r"SO_BINDTODEVICE|no such interface|interface missing|find interface|\bbind\b"
         "|invalid local address|[Aa]ddress not available|Cannot assign requested address",
         FailureKind.PARAMETER, "the flow's interface or source address is not on this host"),
        ("enough privileges|Operation not permitted|Permission denied|mtr-packet: Failure to"
         "|Failure to start mtr-packet|icmp socket|raw socket",
         FailureKind.TOOL, "this user may not send such probes: try another protocol, run as root,"
         " or setcap cap_net_raw+ep on mtr-packet or traceroute"),
        ("Address in use|[Pp]robes exhausted|unexpected packet generator exit",
         FailureKind.TOOL, "a longer interval sends fewer probes at a time"),
        ("[Uu]sage|[Ii]nvalid|[Ii]llegal|out of range|no more than|Cannot handle|Bad option"
         "|unrecognized|bad wait",
         FailureKind.PARAMETER, "this version of the tool does not take what was asked for"),
    )
)  # fmt: skip


def remember(text: str, texts: list[str]) -> None:
    """Add a message of a tool to a bounded number of them."""
    if text.strip() and len(texts) < MOST_TEXTS:
        texts.append(text.strip())


def failure_of(tool: str, complaints: Iterable[str], exit_code: int) -> Failure:
    """Return why a tool ended without a result; the complaints are its lines on stderr."""
    said = list(complaints)
    for text in said:
        for pattern, kind, hint in _CAUSES:
            if pattern.search(text):
                return Failure(kind, f"{tool}: {text.removeprefix(f'{tool}: ')}", hint)
    if exit_code < 0:
        text = f"{tool} was ended by signal {-exit_code} before it sent a probe"
        return Failure(FailureKind.TOOL, text)
    last = said[-1] if said else "no output"
    return Failure(FailureKind.TOOL, f"{tool} ended with exit code {exit_code}: {last}")
