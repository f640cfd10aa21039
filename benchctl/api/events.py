"""What the output of a tool says, as values: the events that a parser yields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from benchctl.metrics import Sample, Summary, TracedRoute


@dataclass(frozen=True, slots=True)
class Ready:
    """The server accepts clients from now on. A server's parser yields it once."""


@dataclass(frozen=True, slots=True)
class Started:
    """The Unix time of the tool's own second 0 (``epoch_s``), as the tool reports it.

    From a server it is the second 0 of the data that the server sends, by the server's clock.
    """

    epoch_s: float


@dataclass(frozen=True, slots=True)
class Effective:
    """Settings in effect, beside the requested ones: ``{"window_bytes": 425984, ...}``."""

    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Warn:
    """Something that the user should know about this flow; the measurement is valid."""

    message: str


class FailureKind(StrEnum):
    """Why a flow failed; decides whether another attempt makes sense."""

    BUSY = "busy"
    """The server runs another measurement: try the next port, then wait."""
    UNREACHABLE = "unreachable"
    """No connection: refused, no route, timed out, unknown name."""
    REFUSED = "refused"
    """The peer answered and rejected the request; a second attempt is useless."""
    PARAMETER = "parameter"
    """The tool does not accept a parameter here; a second attempt is useless."""
    PEER = "peer"
    """The peer disappeared or violated the protocol during the measurement."""
    TOOL = "tool"
    """The tool itself failed, or gave no result."""

    @property
    def retryable(self) -> bool:
        """Whether another attempt may succeed."""
        return self not in (FailureKind.PARAMETER, FailureKind.REFUSED)


@dataclass(frozen=True, slots=True)
class Failure:
    """The measurement failed. Samples seen before are kept; the flow is marked failed."""

    kind: FailureKind
    message: str
    hint: str = ""


Event = Ready | Started | Sample | Summary | TracedRoute | Effective | Warn | Failure
