"""The parameters of measurements by OWAMP: those of every tool, and those of the built-in one.

A profile for one tool runs with another, because both have the names of `OneWayParameters`.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import (
    BeforeValidator,
    Field,
    TypeAdapter,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from benchctl.api import Dscp, Duration, Parameters, Size

# The default duration of throughput tests; with the default interval it is owping's own 100.
DEFAULT_DURATION_S = 10.0

# A receiver keeps some bytes for each packet.
MOST_PACKETS = 1_000_000

# The least size of a test packet: RFC 4656, 4.1.2 (OWAMP); RFC 5357, 4.2.1 (TWAMP, whose answers
# are as long as its probes); RFC 8762, 4.2 and 4.3 (STAMP).
LEAST_BYTES = {
    "owamp": {"open": 14, "authenticated": 48, "encrypted": 48},
    "twamp": {"open": 41, "authenticated": 112, "encrypted": 112},
    "twamp-light": {"open": 41},
    "stamp": {"open": 44, "authenticated": 112},
}  # fmt: skip
MOST_PADDING_BYTES = 65000
"""A datagram of IPv4 carries 65507 bytes."""

Protocol = Literal["owamp", "twamp", "twamp-light", "stamp"]
Mode = Literal["open", "authenticated", "encrypted"]


def _read_drift(value: object) -> float:
    gain, _, per = f"{value}".partition("/")
    duration = TypeAdapter(Duration)
    try:
        return duration.validate_python(gain) / duration.validate_python(f"1{per.strip()}")
    except ValueError:
        raise ValueError(f'{value!r} is not a drift; for example "1ms/min"') from None


_DRIFT_SCHEMA = {"type": "string", "pattern": r"^[0-9]*\.?[0-9]+ ?(ns|us|ms|s) ?/ ?(s|min|h|d)$"}
Drift = Annotated[float, BeforeValidator(_read_drift), WithJsonSchema(_DRIFT_SCHEMA)]
"""Seconds in each second; written ``"1ms/min"``."""


class OneWayParameters(Parameters):
    """How many packets, how often, and with which properties.

    ``count`` and ``duration`` are both upper bounds and the one reached first ends the flow, so
    that a profile can give either and sweep ``duration`` over all flows of a trial. With neither,
    packets are sent for 10 s.
    """

    count: int | None = Field(
        default=None, ge=1, description="maximum number of packets to send in each direction"
    )
    duration: Duration | None = Field(
        default=None, gt=0,
        description="maximum time to send, in seconds; default: 10 s, unless count is given",
    )  # fmt: skip
    # owping accepts a negative one and sends without a pause.
    interval: Duration = Field(
        default=0.1, ge=0.0001, le=3600,
        description="time between two packets, in seconds; the mean when it is exponential",
    )  # fmt: skip
    schedule: Literal["exponential", "fixed"] = Field(
        default="exponential",
        description="how intervals vary: exponential samples a path without bias (RFC 2330, 11.1)",
    )
    timeout: Duration | None = Field(
        default=None, ge=0.01, le=3600,
        description="a packet that takes longer is lost, in seconds; more than the clocks differ. "
        "default: 2 s plus the round-trip time",
    )  # fmt: skip
    length: Size | None = Field(
        default=None, ge=14,
        description="UDP payload of each packet, in bytes: that of the protocol, and padding; "
        "default: no padding",
    )  # fmt: skip
    dscp: Dscp | None = Field(default=None, description="DSCP value of the packets (RFC 2474)")
    ip_version: Literal["auto", 4, 6] = Field(
        default="auto", description="IP version, 4 or 6; auto: by the address"
    )
    test_ports: str | None = Field(
        default=None, pattern=r"^\d{1,5}-\d{1,5}$",
        description='UDP ports to use on this side, such as "8760-9960"; default: those of its '
        "host, or any",
    )  # fmt: skip
    mode: Mode = Field(
        default="open", description="whether packets are authenticated or encrypted (RFC 4656, 4.1)"
    )
    username: str | None = Field(
        default=None, min_length=1, max_length=80,
        description="user whose key authenticates or encrypts (KeyID)",
    )  # fmt: skip
    key_file: str | None = Field(
        default=None, pattern="^/",
        description="whole path of the file of the key: of owamp the passphrase alone, of owping "
        "users and passphrases as pfstore writes them",
    )  # fmt: skip

    @field_validator("test_ports")
    @classmethod
    def _two_ports(cls, value: str | None) -> str | None:
        if value is not None:
            low, high = map(int, value.split("-"))
            if not 1 <= low < high <= 65535:
                raise ValueError(
                    "test_ports must be a range from a lower to a higher port, such as 8760-9960"
                )
        return value

    @model_validator(mode="after")
    def _bounded(self) -> OneWayParameters:
        if self.packets > MOST_PACKETS:
            raise ValueError(f"{self.packets} packets are more than {MOST_PACKETS}")
        if self.mode == "open" and (self.username or self.key_file):
            raise ValueError("username and key_file belong to mode authenticated or encrypted")
        if self.mode not in LEAST_BYTES[self.spoken]:
            raise ValueError(f"{self.spoken} has no mode {self.mode}")
        if self.mode != "open" and not self.key_file:
            raise ValueError(f"mode {self.mode} needs a key_file")
        if self.mode != "open" and (self.username is None) == (self.spoken != "stamp"):
            raise ValueError("OWAMP and TWAMP need a username beside key_file, STAMP has none")
        least = LEAST_BYTES[self.spoken][self.mode]
        most = self.header_bytes + MOST_PADDING_BYTES
        if not least <= self.payload_bytes <= most:
            raise ValueError(
                f"a length of {self.length:.0f} bytes; a packet has {least} to {most} here"
            )
        return self

    @property
    def spoken(self) -> str:
        """The protocol."""
        return "owamp"

    @property
    def packets(self) -> int:
        """How many packets fit both bounds: those due at 0, interval, … before duration ends."""
        if self.duration is None and self.count is not None:
            return self.count
        # The margin keeps 2.1 s / 0.3 s, which is 7.000000000000001, from becoming eight.
        due = math.ceil((self.duration or DEFAULT_DURATION_S) / self.interval - 1e-9)
        return due if self.count is None else min(due, self.count)

    @property
    def header_bytes(self) -> int:
        """The size of OWAMP's packet without padding, from which the tools count padding."""
        return LEAST_BYTES["owamp"][self.mode]

    @property
    def padding_bytes(self) -> int:
        """How much each packet has beyond that."""
        return 0 if self.length is None else int(self.length) - self.header_bytes

    @property
    def payload_bytes(self) -> int:
        """The UDP payload of each packet."""
        return int(self.length or LEAST_BYTES[self.spoken][self.mode])


class OwampParameters(OneWayParameters):
    """Those of the built-in tool."""

    protocol: Protocol = Field(
        default="owamp",
        description="owamp measures each direction (RFC 4656); twamp (RFC 5357), twamp-light and "
        "stamp (RFC 8762) send packets to a reflector and back",
    )
    clock_offset: Duration | None = Field(
        default=None,
        description="for experiments: how far ahead the clock of a server is that benchctl starts",
    )
    clock_drift: Drift | None = Field(
        default=None,
        description='for experiments: what that clock gains, such as "1ms/min"',
    )

    @property
    def spoken(self) -> str:
        return self.protocol


def test_ports(given: str | None, ports: tuple[int, int] | None) -> str | None:
    """Return the UDP ports of one end: those of the flow, else those of its host; None: any."""
    return given or (f"{ports[0]}-{ports[1]}" if ports else None)


def decimal(value: float) -> str:
    """Write a number without an exponent, seconds to the nanosecond."""
    return f"{value:.9f}".rstrip("0").rstrip(".")
