"""The parameters of a simpleperf flow, with the names that other backends use."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, TypeAdapter, model_validator

from benchctl.api import Dscp, Duration, Field, Fold, Metric, Parameters, Rate, Size
from benchctl_simpleperf.simpleperf.protocol.settings import (
    PAUSE_MOST_S,
    STREAMS_LIMIT,
    TCP_LENGTH_BYTES,
    UDP_LENGTH_BYTES,
    UDP_LENGTH_LEAST,
    UDP_LENGTH_MOST,
    UDP_RATE_BPS,
    WINDOW_LIMIT,
)

_TCP_ONLY = ("congestion_control", "mss", "no_delay", "zero_copy", "pause_reading", "probe")
_NOT_PLAIN = ("omit", "zero_copy", "server_window", "pause_reading", "probe")


_DURATION: TypeAdapter[float] = TypeAdapter(Duration)


def pauses_of(text: str) -> list[tuple[float, float]]:
    """Return when each pause begins and how long it lasts, in seconds. Raises ValueError."""
    pauses = []
    for pause in text.split(","):
        at, _, length = pause.partition(":")
        pauses.append((_DURATION.validate_python(at.strip()), _DURATION.validate_python(length)))
    return pauses


def _check_pauses(text: str) -> str:
    free_s = 0.0
    try:
        pauses = pauses_of(text)
    except ValueError:
        example = '"20s:3s", or several, as in "20s:3s, 60s:500ms"'
        raise ValueError(
            f"{text!r} is not when to pause and for how long, such as {example}"
        ) from None
    for at_s, length_s in pauses:
        if not 0.001 <= length_s <= PAUSE_MOST_S:
            raise ValueError(f"a pause lasts 1 ms to {PAUSE_MOST_S:g} s")
        if at_s < free_s:
            raise ValueError("each pause begins after the one before it has ended")
        free_s = at_s + length_s
    return text


Pauses = Annotated[str, AfterValidator(_check_pauses)]
"""When a receiver stops reading, and for how long; written ``"20s:3s, 60s:500ms"``."""


def _default_duration(given: dict[str, Any]) -> float | None:
    # The 10 s of iperf3, so that the two compare.
    return 10.0 if given.get("bytes") is None else None


def _default_rate(given: dict[str, Any]) -> float:
    # A UDP sender without a limit floods the network, so the default is iperf3's 1 Mbit/s.
    return UDP_RATE_BPS if given.get("protocol") == "udp" else float("inf")


def _default_length(given: dict[str, Any]) -> float:
    return float(UDP_LENGTH_BYTES if given.get("protocol") == "udp" else TCP_LENGTH_BYTES)


class SimpleperfParameters(Parameters):
    """Parameters of one flow."""

    protocol: Literal["tcp", "udp"] = Field("tcp", description="transport protocol")
    bytes: Size | None = Field(
        None,
        ge=1,
        description="bytes to send in each direction, over all streams, instead of a duration",
    )
    duration: Duration | None = Field(
        default_factory=_default_duration,
        ge=0.001,
        le=86400,
        description="seconds to measure, after the omitted ones; default: 10 s, unless bytes is "
        "given",
    )
    omit: Duration = Field(
        0.0, ge=0, le=3600, description="seconds to leave out at the start (TCP slow start)"
    )
    interval: Duration = Field(
        1.0, ge=0.01, le=86400, description="seconds between two samples; at least 10 ms"
    )
    streams: int = Field(
        1, ge=1, le=STREAMS_LIMIT, description="parallel streams in each direction"
    )
    rate: Rate = Field(
        default_factory=_default_rate,
        ge=1000,
        description="bits per second that each stream sends, evenly paced;"
        " unlimited for TCP and 1 Mbit/s for UDP unless given",
    )
    length: Size = Field(
        default_factory=_default_length,
        ge=1,
        le=2**26,
        description="bytes of one datagram (UDP: 1448 B unless given) or one send (TCP: 128 KiB)",
    )
    window: Size | None = Field(
        None,
        ge=1,
        le=WINDOW_LIMIT,
        description="bytes of the socket buffers at both ends (bounds the TCP window);"
        " the kernel's autotuning unless given",
    )
    client_window: Size | None = Field(
        None,
        ge=1,
        le=WINDOW_LIMIT,
        description="bytes of the client's socket buffers; those of window unless given",
    )
    server_window: Size | None = Field(
        None,
        ge=1,
        le=WINDOW_LIMIT,
        description="bytes of the server's socket buffers; those of window unless given",
    )
    mss: Size | None = Field(
        None, ge=88, le=65535, description="largest TCP segment in bytes (TCP_MAXSEG)"
    )
    congestion_control: str | None = Field(
        None,
        pattern=r"^[a-z0-9_-]{1,15}$",
        description="TCP congestion control at both ends, such as cubic or bbr;"
        " the host's default unless given",
    )
    dscp: Dscp = Field(0, description="DSCP of the data, 0 to 63 or a name such as ef or af41")
    ip_version: Literal["auto", 4, 6] = Field("auto", description="IP version to connect over")
    no_delay: bool = Field(False, description="send small writes at once (TCP_NODELAY)")
    zero_copy: bool = Field(
        False, description="send with sendfile() and drop received data unread: less CPU, more rate"
    )
    plain: bool = Field(
        False,
        description="speak the plain protocol of the first simpleperf (chunks of 1000 B, BYE);"
        " the server may be any that speaks it",
    )
    pause_reading: Pauses | None = Field(
        None,
        description="for experiments: when a server that benchctl starts stops reading, after its "
        'first byte, and for how long, such as "20s:3s, 60s:500ms"; TCP closes its window then',
    )
    probe: Duration | None = Field(
        None,
        ge=0.01,
        le=3600,
        description="seconds between new connections beside a TCP load, each timed until the"
        " server answers; with the load's own round-trip times they give responsiveness_rpm",
    )
    # 5 s outlives two lost SYNs, which are sent again after 1 s and 3 s.
    connect_timeout: Duration = Field(
        5.0, ge=0.001, le=3600, description="connection timeout in seconds"
    )

    @model_validator(mode="after")
    def _fits_together(self) -> SimpleperfParameters:
        if (self.bytes is None) == (self.duration is None):
            raise ValueError("give either duration or bytes, not both")
        if self.protocol == "udp":
            self._refuse(_TCP_ONLY, "TCP only")
            if not UDP_LENGTH_LEAST <= self.length <= UDP_LENGTH_MOST:
                raise ValueError(f"a datagram has {UDP_LENGTH_LEAST} to {UDP_LENGTH_MOST} bytes")
        if self.plain:
            self._refuse((*_NOT_PLAIN, "rate", "length"), "the control protocol only")
            if self.protocol == "udp":
                raise ValueError("the plain protocol runs over TCP only")
        return self

    def _refuse(self, names: tuple[str, ...], where: str) -> None:
        given = self.model_fields_set
        for name in names:
            field = type(self).model_fields[name]
            if name in given and getattr(self, name) != field.get_default():
                raise ValueError(f"{name} is for {where}")


OWN_METRICS = (
    Metric(
        "connect_s",
        "time of the TCP handshake of a new connection beside the load",
        Fold.DISTRIBUTION,
        "lower",
    ),
    Metric(
        "response_s",
        "time from a new connection's hello to the server's welcome, beside the load",
        Fold.DISTRIBUTION,
        "lower",
    ),
    Metric(
        "delivery_rate_bps",
        "rate at which the peer acknowledged data, by the sender's kernel (tcpi_delivery_rate)",
        Fold.DISTRIBUTION,
        "higher",
    ),
    Metric(
        "segments_lost",
        "segments that the sender currently considers lost (tcpi_lost)",
        Fold.DISTRIBUTION,
        "lower",
    ),
    Metric(
        "reading_late_s",
        "how long after the end of the interval the sender's TCP_INFO was read",
        Fold.DISTRIBUTION,
        "lower",
    ),
    Metric("busy_s", "time with data in flight or to send (tcpi_busy_time)", Fold.COUNT),
    Metric(
        "rwnd_limited_s",
        "time that the sender was limited by the peer's receive window (tcpi_rwnd_limited)",
        Fold.COUNT,
    ),
    Metric(
        "sndbuf_limited_s",
        "time that the sender was limited by its send buffer (tcpi_sndbuf_limited)",
        Fold.COUNT,
    ),
    Metric(
        "packet_gap_s",
        "time between the arrivals of two datagrams, by kernel timestamps if available",
        Fold.DISTRIBUTION,
    ),
    Metric(
        "cpu_client_host_ratio",
        "CPU utilization of the client's host; 1 is all cores",
        Fold.VALUE,
        "lower",
    ),
    Metric(
        "cpu_server_host_ratio",
        "CPU utilization of the server's host; 1 is all cores",
        Fold.VALUE,
        "lower",
    ),
)
