import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ping.ping_samples import REPEATABLE
from pydantic import ValidationError

from benchctl.api import Direction, Flow, Role, Tool
from benchctl_ping import BACKEND

Parameters = BACKEND.parameters

IPUTILS = Tool("20221126", frozenset({"iputils"}))
NEW_IPUTILS = Tool("20250605", frozenset({"iputils", "exact"}))
MACOS = Tool("macOS", frozenset({"bsd", "device"}))
FREEBSD = Tool("BSD", frozenset({"bsd"}))

MACOS_USAGE = """\
ping: invalid option -- V
usage: ping [-AaDdfnoQqRrv] [-c count] [-G sweepmaxsize]
            [-S src_addr] [-s packetsize] [-t timeout][-W waittime]
            [-z tos] host
Apple specific options (to be specified before mcast-group or host like all options)
            -b boundif           # bind the socket to the interface
"""
FREEBSD_USAGE = """\
usage:
\tping [-4AaDdfHnoQqRrv] [-C pcp] [-c count] [-G sweepmaxsize]
\t    [-M mask | time] [-m ttl] [-p pattern] [-S src_addr]
\t    [-s packetsize] [-t timeout] [-W waittime] [-z tos] IPv4-host
"""


def argv(tool, address="192.0.2.1", source_address=None, source_device=None, **values):
    flow = Flow(
        Parameters(**values),
        Direction.ROUND_TRIP,
        address,
        None,
        tool,
        source_address=source_address,
        source_device=source_device,
    )
    command = BACKEND.client(flow)
    assert command.env == {"LC_ALL": "C"}
    assert command.stop_signal == "SIGINT"
    return shlex.join(command.argv)


def test_the_command_for_iputils():
    assert argv(IPUTILS, count=5) == ("ping -D -O -n -c 5 -i 0.200 -s 56 -W 2.000 192.0.2.1")
    assert argv(
        NEW_IPUTILS, address="fe80::1%eth0", count=1, interval="10ms", length="1400B", dscp=46,
        ttl=3, dont_fragment=True, ip_version=6, timeout="500ms",
        source_address="fe80::2", source_device="eth0",
    ) == (
        "ping -D -O -n -c 1 -i 0.010 -s 1400 -W 0.500 -3 -Q 184 -t 3 -M do -6 -I fe80::2 -I eth0 "
        "fe80::1%eth0"
    )  # fmt: skip


def test_the_command_for_macos_and_freebsd():
    assert argv(
        MACOS, count=5, dscp=46, ttl=3, dont_fragment=True, ip_version=4,
        source_address="192.0.2.7", source_device="en0",
    ) == (
        "ping -n -c 5 -i 0.200 -s 56 -W 2000 -z 184 -m 3 -D -S 192.0.2.7 -b en0 192.0.2.1"
    )  # fmt: skip
    assert argv(FREEBSD, count=5) == "ping -n -c 5 -i 0.200 -s 56 -W 2000 192.0.2.1"
    with pytest.raises(ValueError, match="device"):
        argv(FREEBSD, source_device="em0")
    for values in ({"ip_version": 6}, {"address": "::1"}):
        with pytest.raises(ValueError, match="IPv4 only"):
            argv(MACOS, **values)


@REPEATABLE
@given(st.integers(1, 3_600_000))
def test_ping_reads_the_interval_that_was_asked_for(milliseconds):
    words = argv(IPUTILS, count=1, interval=f"{milliseconds}ms").split()
    # (int)(strtod(text) * 1000), as every ping does it.
    assert int(float(words[words.index("-i") + 1]) * 1000) == milliseconds


@pytest.mark.parametrize(
    ("values", "probes"),
    [
        ({}, 50),
        ({"count": 7}, 7),
        ({"count": 7, "interval": "1s"}, 7),
        ({"duration": "10s", "interval": "1s"}, 10),
        ({"duration": "1500ms", "interval": "1s"}, 2),
        ({"duration": "10ms", "interval": "1s"}, 1),
        ({"duration": "2.1s", "interval": "300ms"}, 7),
        ({"duration": "300ms", "interval": "100ms"}, 3),
        ({"count": 25, "duration": "5s", "interval": "1s"}, 5),
        ({"count": 25, "duration": "60s", "interval": "1s"}, 25),
    ],
)
def test_count_and_duration_are_bounds_and_the_first_one_reached_ends_it(values, probes):
    params = Parameters(**values)
    assert params.probes == probes
    assert BACKEND.duration_s(params) == pytest.approx(probes * params.interval)
    assert BACKEND.traffic_bytes(params) == probes * 56


@pytest.mark.parametrize(
    "values",
    [
        {"length": "15B"}, {"length": "65508B"}, {"interval": "500us"}, {"interval": "1500us"},
        {"interval": "0s"}, {"count": 0}, {"dscp": 64}, {"ip_version": 5}, {"ttl": 0},
        {"ttl": 256}, {"timeout": "0s"}, {"duration": "0s"}, {"count": 10_000_001},
        {"duration": "24h", "interval": "1ms"}, {"counts": 3},
    ],
)  # fmt: skip
def test_what_ping_would_take_and_get_wrong_is_refused(values):
    with pytest.raises(ValidationError):
        Parameters(**values)


def test_the_limits_themselves_are_accepted():
    Parameters(length="16B", interval="1ms", count=10_000_000, ttl=255, dscp=63)
    Parameters(length="65507B", dscp=0, ttl=1)


def test_only_the_client_needs_a_program():
    assert BACKEND.probe(Role.SERVER) is None
    assert BACKEND.probe(Role.CLIENT).argv == ("ping", "-V")
    assert not BACKEND.capabilities.needs_server


@pytest.mark.parametrize(
    ("code", "output", "tool"),
    [
        (0, "ping from iputils 20221126\nlibcap: yes, IDN: yes\n", IPUTILS),
        (0, "ping from iputils 20250605\n", NEW_IPUTILS),
        (0, "ping utility, iputils-s20161105\n", Tool("20161105", frozenset({"iputils"}))),
        (64, MACOS_USAGE, MACOS),
        (1, FREEBSD_USAGE, FREEBSD),
    ],
)
def test_the_probe_tells_the_family(code, output, tool):
    assert BACKEND.read_probe(Role.CLIENT, code, output) == tool


@pytest.mark.parametrize(
    "output",
    [
        "ping: invalid option -- 'V'\nBusyBox v1.36.1 () multi-call binary.\n\nUsage: ping HOST\n",
        "ping (GNU inetutils) 2.4\n",
        "usage: ping [-DdEefHLnqRv] [-c count] [-I sourceaddr] [-T toskeyword] [-t ttl]\n",
        "",
    ],
)
def test_another_ping_is_refused_with_its_own_words(output):
    with pytest.raises(ValueError, match="not the ping of") as error:
        BACKEND.read_probe(Role.CLIENT, 1, output)
    assert (output.partition("\n")[0] or "nothing") in str(error.value)


def test_a_flood_is_for_labs_and_bounded_by_its_count():
    assert (
        argv(IPUTILS, count=500, flood=True)
        == "ping -D -O -n -c 500 -f -q -s 56 -W 2.000 192.0.2.1"
    )
    assert BACKEND.demand(Parameters(count=500, flood=True)).lab_only
    assert not BACKEND.demand(Parameters(count=500)).lab_only
    # At most: a hundred a second without any reply.
    assert BACKEND.duration_s(Parameters(count=500, flood=True)) == 5
    for wrong in ({}, {"duration": "5s"}, {"count": 500, "duration": "5s"}):
        with pytest.raises(ValidationError, match="bounded by count"):
            Parameters(flood=True, **wrong)


def test_our_own_ping_takes_the_place_of_a_missing_one_with_the_same_options():
    probe = BACKEND.probe(Role.CLIENT)
    assert probe.argv == ("ping", "-V")
    own = BACKEND.read_probe(Role.CLIENT, 0, "echo 1.0\n")
    assert own.version == "1.0, benchctl's own"
    command = argv(own, count=5)
    assert command.startswith(shlex.join(probe.otherwise.argv[:-1]))
    assert command.endswith(argv(IPUTILS, count=5).removeprefix("ping"))
