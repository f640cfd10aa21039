"""The messages between runner, keeper and emulators, over connections that pickle."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from benchctl.lab.emulate.link import Change
from benchctl.lab.topology.model import Emulator


@dataclass(frozen=True, slots=True)
class Built:
    """The lab is ready.

    ``pid`` is the keeper's, as the runner sees it. ``networks`` and ``mounts`` are the keeper's
    descriptors of the nodes' network and mount namespaces. ``emulator`` is the one in use, and
    ``why_not_kernel`` the reason if the kernel was rejected.
    """

    pid: int
    networks: Mapping[str, int]
    mounts: Mapping[str, int]
    emulator: Emulator
    why_not_kernel: str = ""


@dataclass(frozen=True, slots=True)
class Broken:
    """The lab could not be built, or has failed.

    ``forbidden`` means that this user lacks the permissions for a lab.
    """

    reason: str
    forbidden: bool = False


LinkDirection = tuple[str, int]
"""A link by name, in the direction that leaves the end with this index."""


@dataclass(frozen=True, slots=True)
class ChangeLinks:
    """Requests new settings; the answer is None, when those that are due have been set."""

    changes: Mapping[LinkDirection, Change]


@dataclass(frozen=True, slots=True)
class AskCounters:
    """Requests the `DirectionCounters` of each of these, as a list."""

    directions: Sequence[LinkDirection]


@dataclass(frozen=True, slots=True)
class AskNode:
    """Requests what the kernel has counted on a node, as `benchctl.hosts.sent.counters.read`."""

    node: str


@dataclass(frozen=True, slots=True)
class AskStanding:
    """Requests None, which only a working lab answers."""


Request = ChangeLinks | AskCounters | AskNode | AskStanding


@dataclass(frozen=True, slots=True)
class DirectionCounters:
    """Counters of one direction of an emulated link, in frames except one.

    ``arrived`` = ``delivered`` + ``dropped`` (the queue was full) + ``lost`` (by ``loss_ratio``) +
    ``queued`` (waiting now) + those in transit. ``queue_max`` is the longest queue since the last
    request. Errors of the emulator: ``late`` were delivered more than 1 ms after they were due,
    ``late_max_ns`` at worst since the last request; ``missed`` found the emulator too busy to
    receive them; ``refused`` could not be passed to the far device. None means that an emulator
    does not count this.
    """

    arrived: int
    delivered: int
    dropped: int
    lost: int
    queued: int
    queue_max: int | None
    late: int | None
    late_max_ns: int | None
    missed: int | None
    refused: int | None


# Connection.send and recv pickle into and out of buffers that Python 3.13.0 releases too late, with
# a message on stderr.


def send(connection: Connection, message: object) -> None:
    """Send a message. Raises OSError."""
    connection.send_bytes(pickle.dumps(message))


def receive(connection: Connection) -> Any:
    """Return the next message of a connection. Raises EOFError, OSError."""
    return pickle.loads(connection.recv_bytes())
