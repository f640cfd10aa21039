"""Reads the kernel's struct tcp_info (include/uapi/linux/tcp.h), as much as the kernel gives."""

from __future__ import annotations

import struct
from typing import Callable

TCP_INFO_BYTES = 256

_Scale = Callable[[float], float]


def _micro(value: float) -> float:
    return value / 1e6


def _bytes_to_bits(value: float) -> float:
    return value * 8


def _same(value: float) -> float:
    return value


# Later kernels only append to the struct, so an offset means the same everywhere.
_COUNTS: tuple[tuple[str, str, int, _Scale], ...] = (
    ("retransmits", "=I", 100, _same),
    ("busy_s", "=Q", 168, _micro),
    ("rwnd_limited_s", "=Q", 176, _micro),
    ("sndbuf_limited_s", "=Q", 184, _micro),
    ("bytes_sent", "=Q", 200, _same),
    ("bytes_resent", "=Q", 208, _same),
)
_VALUES: tuple[tuple[str, str, int, _Scale], ...] = (
    ("segments_lost", "=I", 32, _same),
    ("path_mtu_bytes", "=I", 60, _same),
    ("tcp_rtt_s", "=I", 68, _micro),
    ("tcp_rttvar_s", "=I", 72, _micro),
    ("reordering", "=I", 88, _same),
    ("tcp_min_rtt_s", "=I", 148, _micro),
    ("delivery_rate_bps", "=Q", 160, _bytes_to_bits),
    ("peer_window_bytes", "=I", 228, _same),
)
_MSS_OFFSET, _CWND_OFFSET = 16, 80
_UNACKED_OFFSET, _UNSENT_OFFSET = 24, 144


def read_tcp_info(data: bytes) -> tuple[dict[str, float], dict[str, float]]:
    """Return the counts since the connection's start, and the current values.

    ``bytes_sent`` counts each byte once, however often it was sent (tcpi_bytes_sent less
    tcpi_bytes_retrans, Linux 4.19). A member that this kernel lacks is left out, and so is a
    minimum round-trip time before the first measurement (all ones).
    """
    counts, values = _read(data, _COUNTS), _read(data, _VALUES)
    if "bytes_resent" in counts:
        counts["bytes_sent"] -= counts.pop("bytes_resent")
    else:
        counts.pop("bytes_sent", None)
    mss, cwnd = (struct.unpack_from("=I", data, at)[0] for at in (_MSS_OFFSET, _CWND_OFFSET))
    values["cwnd_bytes"] = cwnd * mss
    if values.get("tcp_min_rtt_s") == 0xFFFFFFFF / 1e6:
        del values["tcp_min_rtt_s"]
    return counts, values


def read_waiting(data: bytes) -> tuple[int, int]:
    """Return the bytes not sent yet (Linux 4.6, else 0) and the segments not acknowledged yet."""
    unsent = struct.unpack_from("=I", data, _UNSENT_OFFSET)[0] if len(data) >= 148 else 0
    return unsent, struct.unpack_from("=I", data, _UNACKED_OFFSET)[0]


def _read(data: bytes, fields: tuple[tuple[str, str, int, _Scale], ...]) -> dict[str, float]:
    return {
        name: scale(struct.unpack_from(form, data, offset)[0])
        for name, form, offset, scale in fields
        if offset + struct.calcsize(form) <= len(data)
    }
