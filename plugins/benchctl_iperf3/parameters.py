"""The parameters of an iperf3 flow, with the limits of iperf3 itself.

Limits are those of src/iperf.h. If versions differ the newest counts here, and
`benchctl_iperf3.backend` rejects what the installed version cannot do.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from benchctl.api import Dscp, Duration, Flow, Parameters, Rate, Size
from benchctl_iperf3.options import check_options

_NOT_FOR = {
    "tcp": ("dont_fragment",),
    "mptcp": ("dont_fragment",),
    "sctp": ("congestion_control", "zero_copy", "dont_fragment"),
    "udp": ("mss", "congestion_control", "no_delay", "zero_copy"),
}
_AUTHENTICATION = ("username", "public_key", "password_file")
UDP_LENGTHS = (16, 65507)
TCP_LENGTHS = (1, 2**20)
LEAST_INTERVAL_S = 0.1
# What iperf3 writes at once to TCP (DEFAULT_TCP_BLKSIZE, src/iperf.h).
TCP_BLOCK_BYTES = 2**17
# From 3.16 on, only whole blocks count. One that arrives in this time is 1 % of an interval of a
# second; at 105 Mbit/s, iperf3's own arrives in less.
_BLOCK_S = 0.01


def _whole_seconds(value: float) -> float:
    # iperf3 reads -t and -O with atoi(): "2.5" would silently become 2.
    if not value.is_integer():
        raise ValueError(f"{value:g} s: iperf3 takes whole seconds here")
    return value


WholeSeconds = Annotated[Duration, AfterValidator(_whole_seconds)]


def _whole_path(value: str) -> str:
    # A run is resumed from any directory.
    if not value.startswith("/") or not value.isprintable():
        raise ValueError(f"{value!r} is not the whole path of a file, from / on")
    return value


WholePath = Annotated[str, AfterValidator(_whole_path)]


def _default_duration(given: dict[str, Any]) -> float | None:
    # 10 s is iperf3's own, so a plain run compares with one started by hand.
    return 10.0 if given.get("bytes") is None else None


def _default_rate(given: dict[str, Any]) -> float:
    # iperf3's own: a UDP sender without a limit floods the network.
    return 1e6 if given.get("protocol") == "udp" else float("inf")


def _default_length(given: dict[str, Any]) -> float | None:
    # Without -l iperf3 uses the MSS of its control connection, which differs between paths (32768
    # on loopback). 1448 is its value on IPv4 Ethernet, and it fits IPv6 there too.
    return 1448.0 if given.get("protocol") == "udp" else None


class Iperf3Parameters(Parameters):
    """Parameters of one iperf3 flow; defaults are those of iperf3 unless a reason is given."""

    protocol: Literal["tcp", "udp", "sctp", "mptcp"] = Field(
        "tcp",
        description="transport protocol; sctp and mptcp if iperf3 (3.19 or later for mptcp) was"
        " built with it and both kernels have it",
    )
    bytes: Size | None = Field(
        None,
        ge=1,
        description="bytes to send in each direction, over all streams, instead of a duration",
    )
    duration: WholeSeconds | None = Field(
        default_factory=_default_duration,
        ge=1,
        le=86400,
        description="whole seconds to send, after the omitted ones; default: 10 s, unless bytes "
        "is given",
    )
    omit: WholeSeconds = Field(
        0.0,
        ge=0,
        le=600,
        description="whole seconds to leave out at the start (TCP slow start);"
        " up to 60 s before iperf3 3.18",
    )
    interval: Duration = Field(
        1.0,
        ge=LEAST_INTERVAL_S,
        le=60,
        description="seconds between two samples; iperf3 from 3.16 on uses 0.1 s for bytes without"
        " a rate, because it ends only with an interval",
    )
    streams: int = Field(1, ge=1, le=128, description="parallel connections in each direction")
    rate: Rate = Field(
        default_factory=_default_rate,
        ge=1,
        description="bits per second that each stream may send;"
        " unlimited for TCP and 1 Mbit/s for UDP unless given",
    )
    burst: int | None = Field(
        None,
        ge=1,
        le=1000,
        description="writes or datagrams that leave without a pause, at a given rate;"
        " paced one by one unless given",
    )
    length: Size | None = Field(
        default_factory=_default_length,
        description="bytes of one write (TCP, 128 KiB unless given, less without a rate in a lab of"
        " less than 105 Mbit/s; SCTP, 64 KiB) or one datagram (UDP, 1448 B)",
    )
    window: Size | None = Field(
        None,
        ge=1,
        le=512 * 2**20,
        description="bytes of the socket buffers at both ends (bounds the TCP window);"
        " the kernel's autotuning unless given",
    )
    mss: Size | None = Field(
        None,
        ge=88,
        le=32767,
        description="largest segment of TCP or SCTP in bytes (TCP_MAXSEG); up to 9216 B before"
        " iperf3 3.21",
    )
    congestion_control: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9_]+$",
        description="TCP congestion control at both ends, such as cubic or bbr;"
        " the host's default unless given",
    )
    dscp: Dscp = Field(0, description="DSCP of the data, 0 to 63 or a name such as ef or af41")
    ip_version: Literal["auto", 4, 6] = Field("auto", description="IP version to connect over")
    no_delay: bool = Field(False, description="send small writes at once (TCP_NODELAY)")
    zero_copy: bool = Field(False, description="send with sendfile(), which costs less CPU")
    # iperf3 waits without a limit. 5 s outlives two lost SYNs, which are sent again after 1 s and 3
    # s.
    connect_timeout: Duration = Field(
        5.0, ge=0.001, le=3600, description="connection timeout in seconds"
    )

    dont_fragment: bool = Field(
        False, description="forbid fragmentation of datagrams, here and on the path (IPv4)"
    )
    source_port: int | None = Field(
        None,
        ge=1,
        le=65535,
        description="source port of the first stream (--cport); each further stream uses the next",
    )
    username: str | None = Field(
        None,
        min_length=1,
        description="user name for a server that requires one, with public_key and a password: of"
        " password_file, or IPERF3_PASSWORD in benchctl's environment",
    )
    public_key: WholePath | None = Field(
        None, description="file of the server's RSA public key (PEM), to encrypt the password"
    )
    password_file: WholePath | None = Field(
        None,
        description="file whose first line is the password; it is read when iperf3 starts, and"
        " never recorded; default: IPERF3_PASSWORD in benchctl's environment",
    )
    options: Annotated[list[str], AfterValidator(check_options)] = Field(
        default_factory=list,
        description="further options of the client, passed on word by word, such as"
        ' ["--fq-rate", "1G"]; not those that have a parameter or change the output',
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Iperf3Parameters:
        if (self.bytes is None) == (self.duration is None):
            raise ValueError("give either duration or bytes, not both")
        for name in _NOT_FOR[self.protocol]:
            written = name in self.model_fields_set  # looking up a default takes longer
            if written and getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"{name} is not for {self.protocol.upper()}")
        if self.dont_fragment and self.ip_version == 6:
            raise ValueError("dont_fragment is for IPv4 only: IPv6 never fragments on the path")
        if self.burst is not None and math.isinf(self.rate):
            raise ValueError("burst needs a rate")
        last_port = (self.source_port or 0) + 2 * self.streams - 1
        if last_port > 65535:
            raise ValueError("the source ports of all streams would exceed 65535")
        given = [name for name in _AUTHENTICATION if getattr(self, name) is not None]
        if given and not (self.username and self.public_key):
            raise ValueError(f"{given[0]} needs both username and public_key")
        least, most = UDP_LENGTHS if self.protocol == "udp" else TCP_LENGTHS
        if self.length is not None and not least <= self.length <= most:
            raise ValueError(f"length is {least} to {most} bytes for {self.protocol.upper()}")
        return self


def ends_late(flow: Flow[Iperf3Parameters]) -> bool:
    """Return whether the sender is idle before the run ends: see `faults.LATE_END`."""
    unbounded = math.isinf(flow.params.rate)
    return flow.params.bytes is not None and unbounded and "late-end" in flow.tool.features


def length_bytes(flow: Flow[Iperf3Parameters]) -> float | None:
    """Return the length to request, None for iperf3's own.

    Of a sender with a rate, it is the length of its bursts, too, and stays.
    """
    params, expected_bps = flow.params, flow.expected_bps
    by_blocks = "whole-blocks" in flow.tool.features or not flow.owns_server
    if params.length is not None or params.protocol != "tcp" or math.isfinite(params.rate):
        return params.length
    if expected_bps is None or not by_blocks:
        return None
    most_bytes = math.floor(expected_bps / params.streams / 8 * _BLOCK_S)
    return None if most_bytes >= TCP_BLOCK_BYTES else max(1, most_bytes)


def interval_s(flow: Flow[Iperf3Parameters]) -> float:
    """Return the interval to request: the shortest if the run ends only with one."""
    return LEAST_INTERVAL_S if ends_late(flow) else flow.params.interval
