"""The demand of a flow on the network: from its backend, else by common names."""

import math

import pytest

from benchctl.api import (
    Backend,
    Capabilities,
    Demand,
    Direction,
    Duration,
    Field,
    Fold,
    Metric,
    Parameters,
    Rate,
    Size,
)
from benchctl.backends import installed

SEND = (Direction.SEND,)


class Plain(Backend):
    """A plugin that says nothing of its demand."""

    name = "plain"
    parameters = Parameters
    capabilities = Capabilities(SEND)

    def probe(self, role):
        return None

    def read_probe(self, role, exit_code, output):
        raise NotImplementedError

    def client(self, flow):
        raise NotImplementedError

    def duration_s(self, params):
        return 1.0


def demand_of(capabilities, params=None):
    backend = Plain()
    backend.capabilities = capabilities
    return backend.demand(params or Parameters())


def test_a_tool_that_is_known_by_its_throughput_takes_all_there_is_over_tcp():
    assert demand_of(Capabilities(SEND)) == Demand(rate_bps=math.inf, protocol="tcp")


@pytest.mark.parametrize("headline", ["rtt_s", "owd_s", "pages_per_minute"])
def test_a_tool_that_is_known_by_anything_but_a_rate_is_a_probe(headline):
    assert demand_of(Capabilities(SEND, headline=headline)).rate_bps == 0


def test_a_rate_of_the_plugins_own_says_that_its_flows_carry_data():
    own = Metric("pages_bps", "rate of pages", Fold.RATE, "higher")
    demand = demand_of(Capabilities(SEND, headline=own.name, metrics=(own,)))
    assert demand.rate_bps == math.inf


def test_the_only_protocol_of_a_tool_is_its_protocol():
    assert demand_of(Capabilities(SEND, protocols=("udp",))).protocol == "udp"


class Common(Parameters):
    rate: Rate = Field(2e6, description="rate")
    streams: int = Field(3, description="streams")
    window: Size | None = Field(None, description="buffers")
    length: Size = Field(1200.0, description="of a datagram")
    protocol: str = Field("udp", description="transport")
    ip_version: str = Field("6", description="IP version")
    omit: Duration = Field(1.5, description="warm-up")


def test_the_common_names_are_read():
    assert demand_of(Capabilities(SEND), Common()) == Demand(
        rate_bps=2e6, streams=3, protocol="udp", payload_bytes=1200, ip_version=6, omitted_s=1.5
    )


def test_the_length_of_a_write_to_tcp_is_not_that_of_its_packets():
    params = Common(protocol="tcp")
    assert demand_of(Capabilities(SEND), params).payload_bytes is None
    assert demand_of(Capabilities(SEND, headline="rtt_s"), params).payload_bytes == 1200


class Strange(Parameters):
    rate: str = Field("fast", description="a word")
    streams: list[int] = Field([1], description="which")
    window: bool = Field(True, description="whether to open one")
    length: None = Field(None, description="nothing")
    ip_version: str = Field("both", description="a word")
    omit: str = Field("first", description="a word")


def test_a_common_name_with_another_meaning_says_nothing():
    assert demand_of(Capabilities(SEND), Strange()) == Demand()


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
@pytest.mark.parametrize("name", ["iperf3", "simpleperf"])
def test_the_bundled_tools_send_what_their_parameters_say(name, protocol):
    udp = protocol == "udp"
    given = {"protocol": protocol, "rate": "2Mbit", "streams": 2, "window": "64K", "omit": "1s"}
    given |= {"ip_version": 6, "length": "1000B"} | ({} if udp else {"mss": "900B"})
    backend = installed().load(name)
    asked = backend.demand(backend.parameters.model_validate(given))
    payload_bytes, mss_bytes = (1000, math.inf) if udp else (None, 900)
    assert asked == Demand(2e6, 2, 65536, protocol, payload_bytes, mss_bytes, 6, 1.0)
    left = backend.demand(backend.parameters.model_validate({"protocol": protocol}))
    assert left == Demand(1e6 if udp else math.inf, 1, None, protocol, 1448 if udp else None)


@pytest.mark.parametrize(
    ("name", "protocol", "least_bytes"), [("ping", "icmp", 56), ("owping", "udp", 14)]
)
def test_the_bundled_probes_send_too_little_to_count(name, protocol, least_bytes):
    backend = installed().load(name)
    for written, length_bytes, version in (
        ({}, least_bytes, None),
        ({"length": "1000B", "ip_version": 4}, 1000, 4),
    ):
        asked = backend.demand(backend.parameters.model_validate(written))
        assert asked == Demand(0.0, 1, None, protocol, length_bytes, ip_version=version)
