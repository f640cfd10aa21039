"""What `benchctl.packets.findings` says of packets, as the store and the JSON have it.

Times are in seconds since the trace began. None is what the trace does not show. Entries of older
stores lack the keys that are not required.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict


class SpreadFound(TypedDict):
    """How values are spread; ``samples`` is their number."""

    samples: int
    min: float
    mean: float
    median: float
    p95: float
    max: float


class RetransmissionsFound(TypedDict):
    """Segments that were sent again, by cause."""

    count: int
    bytes: int
    fast: int
    timeout: int
    probe: int
    other: int
    spurious: int


class WaitFound(TypedDict):
    """How long and how often a sender waited for one cause."""

    total_s: float
    count: int
    longest_s: float
    longest_at_s: float


WayFound = TypedDict(
    "WayFound",
    {
        "from": str,
        "packets": int,
        "frame_bytes": int,
        "data_packets": int,
        "data_bytes": int,
        "unique_bytes": int,
        "throughput_bps": float | None,
        "throughput_tcptrace_bps": float | None,
        "throughput_wireshark_bps": float | None,
        "mss_bytes": int | None,
        "window_scale": int | None,
        "window_scaling": NotRequired[bool | None],
        "sack_permitted": bool | None,
        "timestamps": bool | None,
        "initial_window_bytes": int | None,
        "initial_window_segments": int | None,
        "handshake_rtt_s": float | None,
        "rtt_s": SpreadFound | None,
        "retransmissions": RetransmissionsFound,
        "out_of_order": int,
        "duplicated": int,
        "duplicate_acks": int,
        "triple_duplicate_acks": int,
        "sack_acks": int,
        "sack_blocks": int,
        "dsack_blocks": int,
        "flight_max_bytes": int | None,
        "window_min_bytes": int | None,
        "window_max_bytes": int | None,
        "window_full": int | None,
        "keep_alives": int,
        "absent_bytes": int,
        "unseen_bytes": int,
        "waiting_s": float | None,
        "waits": Mapping[str, WaitFound],
    },
)
"""One direction of a connection."""


class ZeroWindowFound(TypedDict):
    """A time in which a receiver's window was closed."""

    closed_by: str
    began_s: float
    ended_s: float | None
    duration_s: float | None
    acks: int
    probes: int
    window_full_s: float | None
    unread_s: float | None
    pause_s: float | None


class ConnectionFound(TypedDict):
    """A connection; ``directions`` are those of ``ends``."""

    kind: str
    number: int
    ends: tuple[str, str]
    opened_by: str | None
    began_s: float
    duration_s: float
    ending: str
    reset_by: str | None
    one_way: NotRequired[bool]
    requests: Sequence[str]
    directions: tuple[WayFound, WayFound]
    zero_windows: Sequence[ZeroWindowFound]


class LossFound(TypedDict):
    """A packet that left one place and never came to the other."""

    left_s: float
    sequence: int
    bytes: int


CrossingFound = TypedDict(
    "CrossingFound",
    {
        "from": str,
        "left": int,
        "came": int,
        "lost": int,
        "lost_bytes": int,
        "doubled": int,
        "overtaken": int,
        "unseen": int,
        "unknown": int,
        "owd_s": SpreadFound | None,
        "losses": Sequence[LossFound],
    },
)
"""What became of one direction's packets between two places."""


class ZeroWindowSeen(TypedDict):
    """A closed window as both ends saw it."""

    closed_by: str
    at_sender: ZeroWindowFound | None
    at_receiver: ZeroWindowFound | None


class PairFound(TypedDict):
    """What two traces of a connection say together; times are those of the first."""

    kind: str
    numbers: tuple[int, int]
    ends: tuple[str, str]
    one_clock: bool
    clock_error_s: float | None
    directions: tuple[CrossingFound, CrossingFound]
    zero_windows: Sequence[ZeroWindowSeen]


ExchangeFound = TypedDict(
    "ExchangeFound",
    {
        "kind": str,
        "protocol": str,
        "from": str,
        "to": str,
        "began_s": float,
        "duration_s": float,
        "packets": int,
        "bytes": int,
        "rate_bps": float | None,
    },
)
"""What went one way between two ends, by another protocol than TCP; bytes are of frames."""
