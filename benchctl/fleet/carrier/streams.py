"""The subjects of a fleet, its streams with their bounds, and the bucket of its leases."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from benchctl.fleet.messages import COORDINATOR


class Stream(Struct, frozen=True):
    """A stream that the server keeps on its disk, with a bound in bytes and in age.

    What is full takes no more (``discards_old`` False), or drops its oldest. One that ``is_async``
    acknowledges before it writes to the disk: whoever sends keeps a message until it is committed
    at its end.
    """

    name: str
    subject: str
    max_bytes: int
    max_age_s: float
    is_async: bool = False
    discards_old: bool = False


HOUR_S: Final = 3600.0

# 200 hosts with a message of 1 kB each second fill 720 MB in an hour. What is older is still in the
# spools of the hosts, which send again what is not committed.
SAMPLES: Final = Stream("SAMPLES", "bench.smp.*", 1 << 30, 6 * HOUR_S, is_async=True)
RESULTS: Final = Stream("RESULTS", "bench.res.*", 1 << 28, 24 * HOUR_S)
# Readers must never stop the coordinator, so its log drops its oldest.
LOG: Final = Stream("LOG", "bench.log.*", 1 << 30, 7 * 24 * HOUR_S, discards_old=True)

STREAMS: Final = (SAMPLES, RESULTS, LOG)

REPEATS_WITHIN_S: Final = 120.0
"""A stream drops a repeated message within this time: the default of nats-server."""

KEYS: Final = "bench.keys"
"""Where the coordinator says its keys, as the root key signed them."""

LEASES: Final = "lease"
LEASE_LIFE_S: Final = 2.0
"""A lease that is not renewed for so long is free."""


def inbox(name: str) -> str:
    """Return what the subjects begin with at which answers to a member arrive."""
    return f"_INBOX_{name}"


def may_answer(subject: str, reply: str) -> bool:
    """Return whether the answer to a message may go to the subject that its sender chose.

    A sender's own inbox is the only one: another subject could be that of a host or of a stream.
    """
    sender = COORDINATOR if subject.startswith("bench.run.") else subject.rpartition(".")[2]
    return reply.startswith(f"{inbox(sender)}.")


def matches(pattern: str, subject: str) -> bool:
    """Return whether a subject is one of a pattern's, with ``*`` for one word and a last ``>``."""
    wanted, words = pattern.split("."), subject.split(".")
    if wanted[-1] == ">":
        wanted.pop()
        words, rest = words[: len(wanted)], words[len(wanted) :]
        if not rest:
            return False
    return len(wanted) == len(words) and all(
        a in ("*", b) for a, b in zip(wanted, words, strict=True)
    )
