import shlex

import pytest
from pydantic import ValidationError

from benchctl.api import Direction, Flow, Role, Tool
from benchctl_traceroute import BACKEND

Parameters = BACKEND.parameters

MTR = Tool("mtr 0.95", frozenset({"mtr"}))
LINUX = Tool("traceroute 2.1.2", frozenset({"linux"}))
BSD = Tool("traceroute 1.4a12+Darwin", frozenset({"bsd"}))

# FreeBSD's and macOS's, which know no --version.
BSD_USAGE = """\
Version 1.4a12+Darwin
Usage: traceroute [-adDeFInrSvx] [-A as_server] [-f first_ttl] [-g gateway] [-i iface]
\t[-M first_ttl] [-m max_ttl] [-p port] [-P proto] [-q nqueries] [-s src_addr]
\t[-t tos] [-w waittime] [-z pausemsecs] host [packetlen]
"""
BUSYBOX_USAGE = "traceroute: unrecognized option '--version'\nBusyBox v1.36.1 multi-call binary.\n"


def command(tool, address="192.0.2.1", source_address=None, source_device=None, **values):
    flow = Flow(
        Parameters(**values), Direction.ROUND_TRIP, address, None, tool,
        source_address=source_address, source_device=source_device,
    )  # fmt: skip
    return BACKEND.client(flow)


def argv(tool, *address, **values):
    return shlex.join(command(tool, *address, **values).argv)


def test_a_command_wants_root_where_other_users_get_no_probes_out():
    assert not command(MTR, interval="1s").wants_root
    assert command(MTR, interval="100ms").wants_root
    assert not command(LINUX, protocol="udp").wants_root
    assert command(LINUX, protocol="icmp").wants_root


def test_the_command_for_mtr():
    assert argv(MTR) == ("mtr --raw -n -c 10 -i 1.000000 -m 30 -U 30 -Z 2 -G 2 -s 60 192.0.2.1")
    assert argv(
        MTR, "2001:db8::1", count=5, interval="100ms", protocol="udp", port=53, max_hops=12,
        dscp="ef", ip_version=6, timeout="5s", source_address="2001:db8::2", source_device="eth0",
    ) == (
        "mtr --raw -n -c 5 -i 0.100000 -m 12 -U 12 -Z 5 -G 5 -s 80 -u -6 -P 53 -Q 184"
        " -a 2001:db8::2 2001:db8::1"
    )  # fmt: skip
    assert argv(MTR, protocol="tcp", source_device="eth0").endswith(" -T -I eth0 192.0.2.1")
    assert command(MTR).env == {"MTR_OPTIONS": ""}


def test_the_command_for_linux_sends_one_probe_at_a_time():
    assert argv(LINUX) == "traceroute -n -q 10 -m 30 -N 1 -z 0.033333 -w 2,0,0 -I 192.0.2.1"
    assert argv(
        LINUX, count=3, protocol="udp", port=53, dscp=46, ip_version=4, interval="3600s",
        source_address="192.0.2.2", source_device="eth0",
    ) == (
        "traceroute -n -q 3 -m 30 -N 1 -z 120000 -w 2,0,0 -U -4 -p 53 -t 184 -s 192.0.2.2"
        " -i eth0 192.0.2.1"
    )  # fmt: skip
    assert " -w 2,0,0 192" in argv(LINUX, protocol="udp")
    assert argv(LINUX, protocol="tcp").endswith(" -T 192.0.2.1")


def test_the_command_for_macos_and_freebsd():
    assert argv(BSD, count=3, max_hops=10) == (
        "traceroute -n -q 3 -m 10 -z 100 -w 2 -P icmp 192.0.2.1"
    )
    assert argv(BSD, protocol="tcp", dscp=8, source_address="192.0.2.2", source_device="en0") == (
        "traceroute -n -q 10 -m 30 -z 33 -w 2 -P tcp -e -p 80 -t 32 -s 192.0.2.2 -i en0 192.0.2.1"
    )
    for values in ({"ip_version": 6}, {"address": "::1"}):
        with pytest.raises(ValueError, match="IPv4 only"):
            argv(BSD, **values)


@pytest.mark.parametrize("tool", [LINUX, BSD])
def test_more_probes_than_traceroute_sends_are_for_mtr(tool):
    with pytest.raises(ValueError, match="install mtr"):
        argv(tool, count=11)
    assert " -c 11 " in argv(MTR, count=11)


@pytest.mark.parametrize(
    ("output", "tool"),
    [
        ("mtr 0.95\n", MTR),
        ("Modern traceroute for Linux, version 2.1.2\nCopyright (c) 2016\n", LINUX),
        (BSD_USAGE, BSD),
    ],
)
def test_the_probe_tells_the_tool(output, tool):
    assert BACKEND.read_probe(Role.CLIENT, 0, output) == tool


@pytest.mark.parametrize(
    "output", ["", "mtr 0.85\n", BUSYBOX_USAGE, "traceroute (GNU inetutils) 2.4"]
)
def test_other_programs_of_these_names_are_refused(output):
    with pytest.raises(ValueError, match="mtr"):
        BACKEND.read_probe(Role.CLIENT, 0, output)


def test_traceroute_takes_the_place_of_mtr():
    probe = BACKEND.probe(Role.CLIENT)
    assert (probe.argv[0], probe.otherwise.argv[0]) == ("mtr", "traceroute")
    assert BACKEND.probe(Role.SERVER) is None


@pytest.mark.parametrize(
    "values",
    [
        {"count": 0}, {"interval": "1ms"}, {"timeout": "500ms"}, {"timeout": "1500ms"},
        {"port": 53}, {"protocol": "udp", "port": 0}, {"max_hops": 256}, {"max_hops": 0},
        {"count": 6_667}, {"protocol": "sctp"}, {"ip_version": 5}, {"dscp": 64},
    ],
)  # fmt: skip
def test_what_the_tools_would_take_and_get_wrong_is_refused(values):
    with pytest.raises(ValidationError):
        Parameters(**values)


def test_the_expected_time_and_what_it_asks_of_the_network():
    params = Parameters(count=20, interval="100ms")
    assert BACKEND.duration_s(params) == pytest.approx(4.0)
    demand = BACKEND.demand(params)
    assert (demand.rate_bps, demand.payload_bytes, demand.protocol) == (0, 32, "icmp")
