"""Maps owping's messages on stderr to failures.

owping ends with 0 after many failures, and its messages name the symptom ("Unable to open control
connection") rather than the cause. The table below has the observed causes.
"""

from __future__ import annotations

import re

from benchctl.api import Direction, Failure, FailureKind

# Maximum number of different messages to keep.
MOST_TEXTS = 16

# Printed in every run without NTP, and during memory allocation: irrelevant to this flow.
_NOISE = re.compile(r"NTP: |alloc_node: |PacketAlloc: |BucketIncrementDelay: ")

# The "to" session is printed first; owping reports if it is missing.
_TO_IS_MISSING = re.compile(r"Unable to fetch data for sid|\"to\" session")

CLOCKS_HINT = (
    "unless owampd or the test ended early, the clocks differ by more than the loss timeout: "
    "synchronize them, or set a longer timeout"
)

# What says which ports an end receives at.
_PORTS_HERE = "set hosts.NAME.ports of this end, or test_ports, to what its firewall lets in"
_PORTS_THERE = (
    "set hosts.NAME.ports of the other end, or testports in the owamp-server.conf of a server of "
    "others, to what its firewall lets in"
)

# The first pattern that any message matches decides.
_CAUSES = tuple(
    (re.compile(pattern), kind, hint)
    for pattern, kind, hint in (
        (r"getaddrinfo\(\)",
         FailureKind.UNREACHABLE, "check the name and DNS, or use an address"),
        ("Cannot assign requested address|SO_BINDTODEVICE",
         FailureKind.PARAMETER, "the flow's interface or source address is not on this host"),
        ("No Common Modes",
         FailureKind.REFUSED, "owampd does not allow unauthenticated tests from this host: see "
         "authmode and allow_open_mode in its configuration"),
        ("Unable to open control connection",
         FailureKind.UNREACHABLE, "check that owampd runs there and its TCP port is open; benchctl "
         "starts owampd on its own hosts only"),
        ("Server denied test",
         FailureKind.REFUSED, "a bandwidth or disk limit in owamp-server.limits, or not an OWAMP "
         "server; the log of owampd has the reason"),
        ("Server denied request for to session data",
         FailureKind.PEER, CLOCKS_HINT),
        ("Invalid (value|numeric|Schedule|DSCP|test|option)|invalid option|usage:",
         FailureKind.PARAMETER, "this version of owping does not support these parameters"),
        (r"Test session\(s\) Failed|Unable to (read|write)|Session Failed|in wrong state",
         FailureKind.PEER, "owampd ended or failed during the session; see its log"),
        ("Unable to fetch data for sid",
         FailureKind.PEER, CLOCKS_HINT),
    )
)  # fmt: skip


class Complaints:
    """The lines of owping's stderr, without the noise of every run."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._usage = False

    def add(self, line: str) -> None:
        """Take a line."""
        text = line.strip().removeprefix("owping: ")
        # The lines after the usage list all options.
        if self._usage or not text or _NOISE.match(text):
            return
        self._usage = text.startswith("usage:")
        if text not in self.texts and len(self.texts) < MOST_TEXTS:
            self.texts.append(text)

    @property
    def to_is_missing(self) -> bool:
        """Whether owping reported that it has no data of the session towards the server."""
        return any(_TO_IS_MISSING.search(text) for text in self.texts)

    def cause(self) -> Failure | None:
        """Return the failure that the messages mean, if known."""
        for pattern, kind, hint in _CAUSES:
            if any(pattern.search(text) for text in self.texts):
                return Failure(kind, f"owping: {'; '.join(self.texts[:3])}", hint)
        return None

    def failure(self, exit_code: int) -> Failure:
        """Return why owping gave no result."""
        if cause := self.cause():
            return cause
        if exit_code < 0:
            message = f"owping was ended by signal {-exit_code} before it gave a result"
            return Failure(FailureKind.TOOL, message)
        said = self.texts[-1] if self.texts else "no result"
        return Failure(FailureKind.TOOL, f"owping ended with exit code {exit_code}: {said}")


def nothing_sent(direction: Direction) -> Failure:
    """Return the failure of a session that has no packets, whatever the exit code says."""
    return Failure(FailureKind.PEER, f"owping has no packet in direction {direction}", CLOCKS_HINT)


def nothing_arrived(direction: Direction, sent: int) -> Failure:
    """Return the failure of a session whose packets were all lost."""
    ports = _PORTS_HERE if direction is Direction.RECEIVE else _PORTS_THERE
    return Failure(
        FailureKind.UNREACHABLE,
        f"none of {sent} packets arrived in direction {direction}",
        f"the UDP test ports must be open on both hosts: {ports}; {CLOCKS_HINT}",
    )
