"""Reads the kernel's struct tcp_info (include/uapi/linux/tcp.h), as much as the kernel gives."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache

TCP_INFO_BYTES = 256

# Later kernels only append to the struct, so an offset means the same everywhere. Times, whose
# names end with _s, are in microseconds there.
_MEMBERS: tuple[tuple[str, str, int], ...] = (
    ("mss_bytes", "I", 16),
    ("segments_lost", "I", 32),
    ("path_mtu_bytes", "I", 60),
    ("tcp_rtt_s", "I", 68),
    ("tcp_rttvar_s", "I", 72),
    ("cwnd_segments", "I", 80),
    ("reordering", "I", 88),
    ("retransmits", "I", 100),
    ("tcp_min_rtt_s", "I", 148),
    ("delivery_rate_bps", "Q", 160),
    ("busy_s", "Q", 168),
    ("rwnd_limited_s", "Q", 176),
    ("sndbuf_limited_s", "Q", 184),
    ("bytes_sent", "Q", 200),
    ("bytes_resent", "Q", 208),
    ("peer_window_bytes", "I", 228),
)
_COUNTS = ("retransmits", "busy_s", "rwnd_limited_s", "sndbuf_limited_s", "bytes_sent")
_NEVER_MEASURED_S = 0xFFFFFFFF / 1e6
_UNACKED_OFFSET, _UNSENT_OFFSET = 24, 144


def read_tcp_info(data: bytes) -> tuple[dict[str, float], dict[str, float]]:
    """Return the counts since the connection's start, and the current values.

    ``bytes_sent`` counts each byte once, however often it was sent (tcpi_bytes_sent less
    tcpi_bytes_retrans, Linux 4.19). A member that this kernel lacks is left out, and so is a
    minimum round-trip time before the first measurement (all ones).
    """
    layout, names, times = _layout(len(data))
    values: dict[str, float] = dict(zip(names, layout.unpack_from(data)))
    for name in times:
        values[name] /= 1e6
    if "delivery_rate_bps" in values:
        values["delivery_rate_bps"] *= 8
    values["cwnd_bytes"] = values.pop("cwnd_segments") * values.pop("mss_bytes")
    if values.get("tcp_min_rtt_s") == _NEVER_MEASURED_S:
        del values["tcp_min_rtt_s"]
    if "bytes_resent" in values:
        values["bytes_sent"] -= values.pop("bytes_resent")
    else:
        values.pop("bytes_sent", None)
    return {name: values.pop(name) for name in _COUNTS if name in values}, values


def read_waiting(data: bytes) -> tuple[int, int]:
    """Return the bytes not sent yet (Linux 4.6, else 0) and the segments not acknowledged yet."""
    unsent = struct.unpack_from("=I", data, _UNSENT_OFFSET)[0] if len(data) >= 148 else 0
    return unsent, struct.unpack_from("=I", data, _UNACKED_OFFSET)[0]


@cache
def _layout(size: int) -> tuple[struct.Struct, Sequence[str], Sequence[str]]:
    """Return the struct of the members within a size, their names, and those of the times.

    One call that reads all costs a tenth of a call for each, and streams read many times a second.
    """
    form, names, end = "=", [], 0
    for name, kind, offset in _MEMBERS:
        if offset + struct.calcsize("=" + kind) <= size:
            form += f"{offset - end}x{kind}"
            end = offset + struct.calcsize("=" + kind)
            names.append(name)
    return struct.Struct(form), names, [name for name in names if name.endswith("_s")]
