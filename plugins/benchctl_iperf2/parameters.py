"""The parameters of an iperf2 flow, with the limits of iperf 2.1 (src/Settings.cpp)."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from benchctl.api import Dscp, Duration, Fold, Metric, Parameters, Rate, Size

# Without -l, what iperf 2 writes to TCP at once (kDefault_TCPBufLen).
TCP_LENGTH_BYTES = 128 * 1024
# The reports have times with two decimals: of a shorter interval they would be a tenth off.
LEAST_INTERVAL_S = 0.1
_TICK_S = 0.01
# A datagram carries its number and its time, and the first one the settings of the test.
_UDP_LENGTHS = (64, 65507)
_TCP_LENGTHS = (64, 2**26)
# The gap between two datagrams that iperf 2 accepts (MAXIPGSECS).
_LONGEST_GAP_S = 60.0
_NOT_FOR_UDP = ("mss", "congestion_control", "no_delay")
_NOT_COMPATIBLE = ("trip_times", "dual_test")


def _whole_ticks(value: float) -> float:
    if not math.isclose(value / _TICK_S, round(value / _TICK_S), abs_tol=1e-6):
        raise ValueError(f"{value:g} s: iperf counts in hundredths of a second here")
    return value


Ticks = Annotated[Duration, AfterValidator(_whole_ticks)]


def _default_duration(given: dict[str, Any]) -> float | None:
    # 10 s is iperf's own, so a plain run compares with one started by hand.
    return 10.0 if given.get("bytes") is None else None


def _default_rate(given: dict[str, Any]) -> float:
    # Without -b, iperf 2 sends 1.05 Mbit/s (2^20) over UDP. The other backends send 1 Mbit/s.
    return 1e6 if given.get("protocol") == "udp" else float("inf")


def _default_length(given: dict[str, Any]) -> float | None:
    # iperf's own is 1470 B, which IPv6 would send in two fragments. 1448 B is that of the other
    # backends.
    return 1448.0 if given.get("protocol") == "udp" else None


class Iperf2Parameters(Parameters):
    """Parameters of one iperf2 flow; defaults are those of iperf 2 unless a reason is given."""

    protocol: Literal["tcp", "udp"] = Field("tcp", description="transport protocol")
    bytes: Size | None = Field(
        None,
        ge=1,
        description="bytes to send in each direction, over all streams, instead of a duration",
    )
    duration: Ticks | None = Field(
        default_factory=_default_duration,
        ge=0.1,
        le=86400,
        description="seconds to send; default: 10 s, unless bytes is given",
    )
    interval: Ticks = Field(
        1.0, ge=LEAST_INTERVAL_S, le=3600, description="seconds between two samples"
    )
    streams: int = Field(1, ge=1, le=128, description="parallel connections in each direction")
    rate: Rate = Field(
        default_factory=_default_rate,
        ge=1000,
        description="bits per second that each stream may send; unlimited for TCP and 1 Mbit/s for"
        " UDP unless given",
    )
    length: Size | None = Field(
        default_factory=_default_length,
        description="bytes of one write (TCP, 128 KiB unless given) or one datagram (UDP, 1448 B)",
    )
    window: Size | None = Field(
        None,
        ge=1,
        le=2**30,
        description="bytes of the socket buffers (bounds the TCP window), at both ends if benchctl"
        " starts the server; the kernel's autotuning unless given",
    )
    mss: Size | None = Field(
        None, ge=88, le=32767, description="largest TCP segment in bytes (TCP_MAXSEG)"
    )
    congestion_control: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9_]+$",
        description="TCP congestion control of the end that sends, such as cubic or bbr;"
        " the host's default unless given",
    )
    dscp: Dscp = Field(0, description="DSCP of the data, 0 to 63 or a name such as ef or af41")
    ip_version: Literal["auto", 4, 6] = Field("auto", description="IP version to connect over")
    no_delay: bool = Field(False, description="send small writes at once (TCP_NODELAY)")
    trip_times: bool = Field(
        False,
        description="measure one-way delays, by the clocks of both hosts: of each datagram (UDP),"
        " or from the beginning of a write to the end of its reading (TCP)",
    )
    dual_test: bool = Field(
        False,
        description="both directions on two connections, of which the server opens one (-d), as"
        " servers before 2.1 can do it; default: on one connection (--full-duplex)",
    )
    listen_port: int | None = Field(
        None,
        ge=1,
        le=65535,
        description="port to which the server connects in a dual test; the one after the server's"
        " unless given",
    )
    compatible: bool = Field(
        False,
        description="send nothing but data (-C), for servers of iperf 1.7 and before, and those"
        " that only look like iperf or swallow datagrams; then the reports have bytes and rates"
        " only, and a UDP server may leave the last datagram unanswered",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Iperf2Parameters:
        if (self.bytes is None) == (self.duration is None):
            raise ValueError("give either duration or bytes, not both")
        if self.bytes is not None and self.bytes % self.streams:
            raise ValueError("bytes must be a multiple of streams: each sends as much")
        if self.protocol == "udp":
            self._check_udp()
        else:
            self._check_tcp()
        for name in _NOT_COMPATIBLE if self.compatible else ():
            if getattr(self, name):
                raise ValueError(
                    f"{name} needs messages between both ends, and compatible has none"
                )
        return self

    def _check_udp(self) -> None:
        for name in _NOT_FOR_UDP:
            written = name in self.model_fields_set  # looking up a default takes longer
            if written and getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"{name} is not for UDP")
        if math.isinf(self.rate):
            raise ValueError("iperf 2 sends UDP at a rate; give one")
        self._check_length(*_UDP_LENGTHS)
        if self.length is not None and self.length * 8 / self.rate > _LONGEST_GAP_S:
            raise ValueError(
                f"the rate leaves more than {_LONGEST_GAP_S:g} s between two datagrams"
            )

    def _check_tcp(self) -> None:
        self._check_length(*_TCP_LENGTHS)
        length = self.length or TCP_LENGTH_BYTES
        if length > self.rate / 8:
            raise ValueError(
                f"iperf 2 sends at least one write a second: give a length of at most"
                f" {self.rate / 8:.0f} B at this rate"
            )

    def _check_length(self, least: int, most: int) -> None:
        if self.length is not None and not least <= self.length <= most:
            raise ValueError(f"length is {least} to {most} bytes for {self.protocol.upper()}")


OWN_METRICS = (
    Metric(
        "write_to_read_s",
        "from the beginning of a write to the end of its reading at the other end, by the clocks of"
        " both (TCP with trip_times)",
        Fold.DISTRIBUTION,
        "lower",
    ),
    Metric(
        "interval_write_to_read_s",
        "mean of write_to_read_s in an interval",
        Fold.DISTRIBUTION,
        "lower",
    ),
    Metric("interval_owd_s", "mean of owd_s in an interval", Fold.DISTRIBUTION, "lower"),
    Metric(
        "iperf2_sent_bps",
        "sent_bps as reported by iperf 2, kept when its time includes a wait for the server",
        Fold.VALUE,
    ),
)
