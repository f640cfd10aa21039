"""What the backend asks iperf for, and what it rejects before anything runs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from iperf2.iperf2_support import client, flow, server
from pydantic import ValidationError

from benchctl.api import Direction, Role
from benchctl_iperf2 import BACKEND


def follows(argv, option):
    return argv[argv.index(option) + 1]


def test_a_plain_client_asks_for_exact_enhanced_reports():
    assert client() == (
        "iperf", "-c", "192.0.2.1", "-p", "5001", "-e", "-f", "b", "-i", "1", "-t", "10",
    )  # fmt: skip


def test_a_plain_server_ends_after_its_client_and_listens_at_one_address():
    assert server(streams=3) == (
        "iperf", "-s", "-B", "192.0.2.1", "-p", "5001", "-P", "3", "-e", "-f", "b", "-i", "1",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"direction": "receive"}, ["-R"]),
        ({"direction": "both"}, ["--full-duplex"]),
        ({"direction": "both", "dual_test": True}, ["-d", "-L", "5002"]),
        ({"direction": "both", "dual_test": True, "listen_port": 6001}, ["-L", "6001"]),
        ({"streams": 4, "bytes": "4M"}, ["-n", "1048576", "-P", "4"]),
        ({"window": "256K", "length": "64K", "mss": "1400B"},
         ["-l", "65536", "-w", "262144", "-M", "1400"]),
        ({"dscp": "ef"}, ["-S", "0xb8"]),
        ({"congestion_control": "reno", "no_delay": True}, ["-Z", "reno", "-N"]),
        ({"protocol": "udp", "rate": "20Mbit"}, ["-b", "20000000", "-u", "-l", "1448"]),
        ({"trip_times": True}, ["--trip-times"]),
        ({"ip_version": 6, "address": "far.example"}, ["-V"]),
        ({"address": "2001:db8::1"}, ["-V"]),
        ({"source_address": "192.0.2.7"}, ["-B", "192.0.2.7"]),
        ({"source_device": "eth1"}, ["-c", "192.0.2.1%eth1"]),
        ({"compatible": True}, ["-C", "-f", "b"]),
        ({"owns_server": True}, ["--connect-retries", "5"]),
    ],
)  # fmt: skip
def test_a_parameter_reaches_the_client(parameters, words):
    argv = client(**parameters)
    at = argv.index(words[0])
    assert list(argv[at : at + len(words)]) == words


def test_enhanced_reports_and_the_compatible_mode_exclude_each_other():
    assert "-e" not in client(compatible=True)


def test_the_congestion_control_is_set_at_the_end_that_sends():
    reno = {"congestion_control": "reno", "owns_server": True}
    assert "-Z" in client("send", **reno)
    assert "-Z" not in client("receive", **reno)
    assert "-Z" not in server("send", congestion_control="reno")
    assert "-Z" in server("receive", congestion_control="reno")


def test_a_server_reads_datagrams_as_long_as_the_client_sends_them():
    argv = server(protocol="udp", length="8000B")
    assert "-u" in argv
    assert follows(argv, "-l") == "8000"


def test_a_server_for_others_runs_on_and_prints_for_people():
    assert server(lasting=True) == ("iperf", "-s", "-B", "192.0.2.1", "-p", "5001")
    assert server(lasting=True, address="::")[-1] == "-V"


@given(st.integers(10, 8_640_000))
def test_iperf_reads_a_duration_whole(ticks):
    """It takes the integer part of 100 times the value (-t in Settings.cpp)."""
    argv = client(duration=f"{ticks * 10}ms")
    assert int(float(follows(argv, "-t")) * 100.0) == ticks


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ({"duration": "1s", "bytes": "1M"}, "either duration or bytes"),
        ({"bytes": "1000B", "streams": 3}, "multiple of streams"),
        ({"duration": "1005ms"}, "hundredths of a second"),
        ({"protocol": "udp", "mss": "1400B"}, "mss is not for UDP"),
        ({"protocol": "udp", "rate": "unlimited"}, "give one"),
        ({"protocol": "udp", "length": "32B"}, "64 to 65507"),
        ({"protocol": "udp", "length": "65507B", "rate": "1kbit"}, "more than 60 s"),
        ({"rate": "1Mbit"}, "at most 125000 B"),
        ({"compatible": True, "trip_times": True}, "compatible has none"),
        ({"interval": "50ms"}, "greater than or equal to 0.1"),
    ],
)
def test_what_iperf_would_refuse_is_refused_before(parameters, why):
    with pytest.raises(ValidationError, match=why):
        BACKEND.parameters(**parameters)


@pytest.mark.parametrize(
    ("direction", "parameters", "why"),
    [
        ("receive", {"compatible": True}, "can only send"),
        ("send", {"dual_test": True}, "both directions"),
        ("receive", {"congestion_control": "reno"}, "server that runs already"),
    ],
)
def test_what_iperf_cannot_do_in_a_direction_is_said(direction, parameters, why):
    with pytest.raises(ValueError, match=why):
        BACKEND.client(flow(direction, **parameters))


def test_the_version_is_read_although_iperf_says_it_on_stderr_and_fails():
    said = "iperf version 2.1.8 (12 August 2022) pthreads\n"
    assert BACKEND.read_probe(Role.CLIENT, 1, said).version == "2.1.8"


@pytest.mark.parametrize(
    ("said", "why"),
    [("iperf version 2.0.5 (08 Jul 2010) pthreads", "too old"), ("iperf 3.12 (cJSON 1.7)", "says")],
)
def test_an_iperf_that_cannot_be_used_is_refused(said, why):
    with pytest.raises(ValueError, match=why):
        BACKEND.read_probe(Role.CLIENT, 1, said)


def test_tcp_has_segments_and_udp_has_datagrams():
    tcp, udp = (BACKEND.demand(BACKEND.parameters(protocol=name)) for name in ("tcp", "udp"))
    assert (tcp.protocol, tcp.payload_bytes) == ("tcp", None)
    assert (udp.protocol, udp.payload_bytes, udp.rate_bps) == ("udp", 1448, 1e6)


def test_directions_are_those_of_one_connection_and_of_two():
    assert BACKEND.capabilities.directions[0] is Direction.SEND
    assert set(BACKEND.capabilities.directions) == {
        Direction.SEND, Direction.RECEIVE, Direction.BOTH,
    }  # fmt: skip
