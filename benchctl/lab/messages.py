"""What runner, keeper and emulators say to each other, over connections that pickle."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from benchctl.lab.link import Change
from benchctl.lab.model import Emulator


@dataclass(frozen=True, slots=True)
class Built:
    """The lab stands.

    ``pid`` is the keeper's, as the runner sees it; ``networks`` and ``mounts`` are the keeper's
    descriptors of the nodes' network and mount namespaces. ``emulator`` is the one that was chosen,
    and ``why_not_kernel`` says why not the kernel's where it was looked at.
    """

    pid: int
    networks: Mapping[str, int]
    mounts: Mapping[str, int]
    emulator: Emulator
    why_not_kernel: str = ""


@dataclass(frozen=True, slots=True)
class Broken:
    """The lab could not be built, or does not stand any more.

    ``forbidden`` says that this user may not have what a lab is made of.
    """

    reason: str
    forbidden: bool = False


@dataclass(frozen=True, slots=True)
class ChangeLink:
    """Asks for new settings in the direction that leaves ``ends[direction]`` of a link."""

    link: str
    direction: int
    change: Change


@dataclass(frozen=True, slots=True)
class AskCounters:
    """Asks for the `DirectionCounters` of the direction that leaves ``ends[direction]``."""

    link: str
    direction: int


@dataclass(frozen=True, slots=True)
class AskStanding:
    """Asks for None, which only a lab that stands answers."""


Request = ChangeLink | AskCounters | AskStanding


@dataclass(frozen=True, slots=True)
class DirectionCounters:
    """What happened so far in one direction of an emulated link; all but one count frames.

    ``arrived`` = ``delivered`` + ``dropped`` (the queue was full) + ``lost`` (as ``loss_ratio``
    asked) + ``queued`` (wait now) + those on their way. ``queue_max`` is the most that waited since
    this was last asked. What an emulator should never have: ``late`` were delivered more than 1 ms
    after they were due, ``late_max_ns`` at worst since this was last asked; ``missed`` found the
    emulator too busy to take them; ``refused`` could not be handed to the far device. None is what
    an emulator does not count.
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


# Connection.send and recv pickle into and out of buffers that Python 3.13.0 lets go too late, with
# a complaint on stderr.


def send(connection: Connection, message: object) -> None:
    """Send a message. Raises OSError."""
    connection.send_bytes(pickle.dumps(message))


def receive(connection: Connection) -> Any:
    """Return the next message of a connection. Raises EOFError, OSError."""
    return pickle.loads(connection.recv_bytes())
