import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from owping.owping_samples import raw, transcript
from pydantic import ValidationError

from benchctl.api import (
    Channel,
    Direction,
    Failure,
    FailureKind,
    Flow,
    Ready,
    Role,
    Tool,
    replay,
)
from benchctl_owping import BACKEND, daemon
from benchctl_owping.complaints import Complaints
from benchctl_owping.machine import MachineParser
from benchctl_owping.raw import RawParser

Parameters = BACKEND.parameters
UNREACHABLE, REFUSED = FailureKind.UNREACHABLE, FailureKind.REFUSED
PARAMETER, PEER, TOOL = FailureKind.PARAMETER, FailureKind.PEER, FailureKind.TOOL


def flow(direction=Direction.BOTH, address="192.0.2.1", port=861, source=(None, None), **values):
    return Flow(
        Parameters(**values),
        direction,
        address,
        port,
        Tool("5.2.3-1"),
        source_address=source[0],
        source_device=source[1],
    )


def argv(*arguments, **values):
    command = BACKEND.client(flow(*arguments, **values))
    assert command.env == {"LC_ALL": "C"}
    return shlex.join(command.argv)


def test_both_directions_are_read_from_fine_summaries_and_one_from_its_packets():
    assert argv() == "owping -M -b 0.000001 -c 100 -i 0.1 -s 0 192.0.2.1:861"
    assert argv(Direction.SEND) == "owping -R -t -c 100 -i 0.1 -s 0 192.0.2.1:861"
    assert argv(Direction.RECEIVE) == "owping -R -f -c 100 -i 0.1 -s 0 192.0.2.1:861"
    assert isinstance(BACKEND.client(flow()).parser, MachineParser)
    assert isinstance(BACKEND.client(flow(Direction.SEND)).parser, RawParser)


def test_every_parameter_reaches_the_command():
    assert argv(
        Direction.BOTH, "2001:db8::1", 8861, ("2001:db8::7", "eth0"),
        count=5, interval="100us", schedule="fixed", timeout="500ms", length="1400B", dscp=46,
        ip_version=6, test_ports="8760-9960", bucket_width="10us",
    ) == (
        "owping -M -b 0.00001 -c 5 -i 0.0001f -s 1386 -L 0.5 -D 46 -P 8760-9960 -6 "
        "-S 2001:db8::7 -B eth0 '[2001:db8::1]:8861'"
    )  # fmt: skip
    assert argv(interval="20s", count=1) == "owping -M -b 0.000001 -c 1 -i 20 -s 0 192.0.2.1:861"


@pytest.mark.parametrize(
    ("values", "packets"),
    [
        ({}, 100),
        ({"count": 300}, 300),
        ({"duration": "5s"}, 50),
        ({"duration": "2.1s", "interval": "300ms"}, 7),
        ({"count": 300, "duration": "5s"}, 50),
        ({"count": 10, "duration": "5s"}, 10),
    ],
)
def test_count_and_duration_are_bounds_and_the_first_one_reached_ends_it(values, packets):
    assert Parameters(**values).packets == packets
    assert BACKEND.traffic_bytes(Parameters(**values)) == packets * 14


def test_the_expected_time_is_set_up_sending_and_the_timeout():
    # Seen: 5.0 s with the timeout of 2 s in both directions, 3.1 s with 0.1 s.
    assert BACKEND.duration_s(Parameters(count=100, interval="10ms")) == pytest.approx(5.0)
    assert BACKEND.duration_s(
        Parameters(count=100, interval="10ms", timeout="100ms")
    ) == pytest.approx(3.1)


@pytest.mark.parametrize(
    "values",
    [
        {"interval": "0s"}, {"interval": "10us"}, {"length": "13B"}, {"length": "65015B"},
        {"count": 0}, {"count": 1_000_001}, {"duration": "0s"}, {"timeout": "0s"},
        {"dscp": 64}, {"ip_version": 5}, {"schedule": "poisson"}, {"bucket_width": "100ns"},
        {"test_ports": "9000"}, {"test_ports": "9000-9000"}, {"test_ports": "9001-9000"},
        {"test_ports": "0-9000"}, {"test_ports": "9000-70000"}, {"padding": "1B"},
        {"duration": "24h", "interval": "10ms"},
    ],
)  # fmt: skip
def test_what_owping_would_take_and_get_wrong_is_refused(values):
    with pytest.raises(ValidationError):
        Parameters(**values)


def test_the_limits_themselves_are_accepted():
    Parameters(length="14B", interval="100us", count=1_000_000, dscp=0, timeout="10ms")
    Parameters(length="65014B", dscp=63, test_ports="1-65535", bucket_width="10ms")


def test_benchctl_starts_owampd_on_its_own_hosts():
    assert BACKEND.capabilities.needs_server
    assert BACKEND.capabilities.default_port == 861
    assert BACKEND.probe(Role.SERVER).argv == ("owampd", "-h")
    command = BACKEND.server(flow(address="2001:db8::1", port=8861))
    assert command.argv[-3:] == (str(Path(daemon.__file__)), "2001:db8::1", "8861")
    assert command.stop_signal == "SIGTERM"
    with pytest.raises(ValueError, match="mode encrypted"):
        BACKEND.server(flow(mode="encrypted", username="jo", key_file="/etc/pfs"))


def test_test_packets_keep_to_the_ports_of_each_host_unless_the_flow_has_its_own():
    both = replace(flow(), client_ports=(5301, 5304), server_ports=(5401, 5401))
    assert "-P 5301-5304" in shlex.join(BACKEND.client(both).argv)
    assert BACKEND.server(both).argv[-1] == "5401-5401"
    own = replace(flow(test_ports="8760-9960"), client_ports=(5301, 5304))
    assert "-P 8760-9960" in shlex.join(BACKEND.client(own).argv)


def test_owampd_says_when_it_listens_or_why_it_does_not():
    parser = BACKEND.server(flow()).parser
    noise = b"owampd[7]: NTP: Status UNSYNC (clock offset issues likely)\n"
    assert parser.feed(noise, Channel.STDERR) == []
    assert parser.feed(b"owampd listens on 192.0.2.1 port 861\n") == [Ready()]
    assert parser.close(0) == []
    parser = BACKEND.server(flow()).parser
    parser.feed(noise + b"owampd[7]: OWPServerSockCreate: Permission denied\n", Channel.STDERR)
    (failure,) = parser.close(1)
    assert failure.kind is TOOL
    assert failure.message == ("owampd does not listen: OWPServerSockCreate: Permission denied")


def test_the_probe_reads_the_version_from_the_help():
    assert BACKEND.probe(Role.CLIENT).argv == ("owping", "-h")
    _, usage, _ = transcript("no_args")
    assert BACKEND.read_probe(Role.CLIENT, 0, usage.decode()) == Tool("5.2.3-1")
    with pytest.raises(ValueError, match="version"):
        BACKEND.read_probe(Role.CLIENT, 0, "owping: not found")


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("auth_wrong_user", REFUSED, "No Common Modes"),
        ("denied_by_limits_open_off", REFUSED, "No Common Modes"),
        ("denied_bandwidth", REFUSED, "Server denied test: 127.0.0.1"),
        ("denied_disk_t", REFUSED, "Server denied test: 127.0.0.1"),
        ("bad_count", PARAMETER, "Positive integer expected"),
        ("bad_interval", PARAMETER, "Invalid numeric value (xyz)"),
        ("dscp_64", PARAMETER, 'Invalid DSCP value (-D): "64"'),
        ("dscp_bad", PARAMETER, "Invalid DSCP value"),
        ("no_args", PARAMETER, "usage: owping"),
        ("src_S_nonlocal", PARAMETER, "Cannot assign requested address"),
        ("blackhole", UNREACHABLE, "Unable to open control connection to 10.80.0.1."),
        ("host_unreachable", UNREACHABLE, "Unable to open control connection"),
        ("refused", UNREACHABLE, "Unable to open control connection to 127.0.0.1:9."),
        ("unreachable", UNREACHABLE, "Unable to open control connection"),
        ("unknown_host", UNREACHABLE, "Name or service not known"),
        ("unknown_host_dns_down", UNREACHABLE, "Temporary failure in name resolution"),
        ("server_KILL_mid", PEER, "Test session(s) Failed..."),
        ("sigKILL_mid", TOOL, "ended by signal 9"),
        ("server_TERM_mid_R_t", PEER, "Unable to read from socket"),
    ],
)
@pytest.mark.parametrize("direction", BACKEND.capabilities.directions)
def test_a_failure_says_what_and_why_in_the_words_of_owping(direction, name, kind, words):
    told = replay(BACKEND.client(flow(direction)).parser, *transcript(name))
    (failure,) = told
    assert isinstance(failure, Failure)
    assert failure.kind is kind
    assert words in failure.message
    assert "NTP" not in failure.message
    assert failure.hint or kind is TOOL


@pytest.mark.parametrize(
    ("name", "direction", "words"),
    [
        ("server_TERM_mid_M", Direction.BOTH, "Unable to read from socket"),
        ("server_KILL_mid_M", Direction.BOTH, "Test session(s) Failed"),
        ("server_TERM_mid_R_t", Direction.SEND, "Unable to read from socket"),
        ("server_TERM_mid_R_f", Direction.RECEIVE, "no packet in direction receive"),
    ],
)
def test_an_owampd_that_is_ended_is_the_peers_fault_and_is_named(name, direction, words):
    told = replay(BACKEND.client(flow(direction)).parser, *transcript(name))
    [failure] = [event for event in told if isinstance(event, Failure)]
    assert failure.kind is PEER
    assert words in failure.message
    assert "owampd" in failure.hint


def test_a_session_that_cannot_be_fetched_because_its_process_is_gone_names_owampd():
    complaints = Complaints()
    complaints.add("owping: _OWPWriteFetchSession called in wrong state.")
    complaints.add("owping: Unable to fetch data for sid(7f000001eeacb6c908d26fa36ba6f5d9)")
    failure = complaints.failure(0)
    assert failure.kind is PEER
    assert failure.hint.startswith("owampd ended")


@pytest.mark.parametrize(("address", "version"), [("192.0.2.1", 6), ("2001:db8::1", 4)])
def test_an_address_of_another_ip_version_is_a_wrong_parameter(address, version):
    wrong = flow(ip_version=version, address=address)
    with pytest.raises(ValueError, match=f"not an IPv{version} address: remove ip_version"):
        BACKEND.client(wrong)
    assert BACKEND.client(flow(ip_version=version, address="name.example"))


@pytest.mark.parametrize(
    ("stderr", "kind"),
    [
        (b"owping: SO_BINDTODEVICE nosuch0: No such device\n"
         b"owping: Unable to open control connection to 127.0.0.1.\n", PARAMETER),
        (b"owping: Invalid test port range specified.\n", PARAMETER),
        (b"owping: Invalid test distribution parameters\nowping: Session Failed!\n", PARAMETER),
        (b"owping: invalid option -- 'K'\nusage: owping [arguments]\n -c count\n", PARAMETER),
        (b"owping: _OWPReadAcceptSession:Unable to read from socket.\n"
         b"owping: Session Failed!\n", PEER),
        (b"owping: something new\n", TOOL),
    ],
)  # fmt: skip
def test_other_complaints_are_understood(stderr, kind):
    for code in (0, 1):
        (failure,) = raw(b"", stderr, code)
        assert failure.kind is kind
        assert "count" not in failure.message
