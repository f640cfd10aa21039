"""The command of a flow by version, and the parameters that are accepted."""

from dataclasses import replace

import pytest
from iperf3.iperf3_support import flow, tool
from pydantic import ValidationError

from benchctl.api import Direction, Flow, Role, Tool
from benchctl_iperf3 import BACKEND
from benchctl_iperf3.stream import JsonStream
from benchctl_iperf3.text import TextClient, TextServer


def client(*args, **kwargs):
    return " ".join(BACKEND.client(flow(*args, **kwargs)).argv)


def parameters(**values):
    return BACKEND.parameters.model_validate(values)


def test_an_old_client_speaks_text_and_a_new_one_json():
    assert client() == (
        "iperf3 -c 192.0.2.1 -p 5201 -i 1 -t 10 --connect-timeout 5000"
        " -V -f k --forceflush --debug=1"
    )
    assert client(version="3.21") == (
        "iperf3 -c 192.0.2.1 -p 5201 -i 1 -t 10 --connect-timeout 5000 --json-stream"
    )
    assert isinstance(BACKEND.client(flow()).parser, TextClient)
    assert isinstance(BACKEND.client(flow(version="3.21")).parser, JsonStream)


def test_a_server_speaks_text_in_every_version_to_say_when_it_listens():
    for version in ("3.12", "3.21"):
        command = BACKEND.server(flow("receive", version, interval="500ms"))
        assert " ".join(command.argv) == (
            "iperf3 -s -1 -B 192.0.2.1 -p 5201 -i 0.5 -V -f k --forceflush --debug=1"
        )
        assert isinstance(command.parser, TextServer)
        assert command.stop_signal == "SIGTERM"


def test_details_are_not_asked_for_where_they_would_flood_or_are_unknown():
    assert "--debug" not in client(protocol="udp")
    assert "--debug" not in " ".join(BACKEND.server(flow(protocol="udp")).argv)
    old = Flow(parameters(), Direction.SEND, "192.0.2.1", 5201, Tool("3.9"))
    assert BACKEND.client(old).argv[-4:] == ("-V", "-f", "k", "--forceflush")


def test_every_tcp_parameter_reaches_the_command():
    assert client(
        "receive",
        "3.21",
        source_address="192.0.2.9",
        source_device="eth1",
        duration="1min",
        omit="2s",
        interval="250ms",
        streams=8,
        rate="1.5Gbit",
        length="64K",
        window="4M",
        mss="1400B",
        congestion_control="bbr",
        dscp="AF41",
        ip_version=6,
        no_delay=True,
        zero_copy=True,
        connect_timeout="250ms",
    ) == (
        "iperf3 -c 192.0.2.1 -p 5201 -R -i 0.25 -t 60 -O 2 -P 8 -b 1500000000 -l 65536"
        " --connect-timeout 250 -w 4194304 -M 1400 -C bbr -S 136 -6 -N -Z"
        " -B 192.0.2.9 --bind-dev eth1 --json-stream"
    )


def test_udp_always_has_a_length_a_rate_and_wide_counters():
    assert client("both", protocol="udp") == (
        "iperf3 -c 192.0.2.1 -p 5201 --bidir -i 1 -t 10 -u --udp-counters-64bit"
        " -b 1000000 -l 1448 --connect-timeout 5000 -V -f k --forceflush"
    )
    assert " -b 0 " in client(protocol="udp", rate="unlimited")


@pytest.mark.parametrize(
    ("expected_bps", "parameters", "length"),
    [
        (956e3, {}, "-l 1195"),
        (9.56e6, {"streams": 4}, "-l 2987"),
        (95.6e6, {}, "-l 119500"),
        (0.5, {}, "-l 1"),
        (106e6, {}, ""),  # iperf3's own arrives in time
        (None, {}, ""),
        (956e3, {"length": "64K"}, "-l 65536"),
        (956e3, {"rate": "1Mbit"}, ""),  # it would change the bursts
        (956e3, {"protocol": "mptcp"}, ""),
    ],
)
def test_blocks_are_short_where_a_lab_is_slow(expected_bps, parameters, length):
    of = replace(flow(version="3.21", **parameters), expected_bps=expected_bps)
    of = replace(of, tool=replace(of.tool, features=of.tool.features | {"mptcp"}))
    words = " ".join(BACKEND.client(of).argv)
    assert f" {length} " in words if length else " -l " not in words


def test_blocks_are_short_unless_both_ends_count_what_they_read():
    for version, owns_server, is_short in (("3.12", True, False), ("3.12", False, True)):
        of = replace(flow(version=version, owns_server=owns_server), expected_bps=1e6)
        assert ("-l" in BACKEND.client(of).argv) is is_short


def test_bytes_replace_the_default_duration_but_not_a_given_one():
    assert " -n 10485760 " in client(bytes="10M")
    assert "-t" not in client(bytes="10M").split()
    assert parameters(bytes="10M").duration is None
    assert parameters().duration == 10
    with pytest.raises(ValidationError, match="give either duration or bytes, not both"):
        parameters(bytes="10M", duration="10s")
    with pytest.raises(ValidationError, match="give either duration or bytes"):
        parameters(duration=None)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("duration", ("1s", "24h"), ("0s", "25h", "1500ms", "10")),
        ("omit", ("0s", "10min"), ("11min", "500ms")),
        ("interval", ("100ms", "1min"), ("99ms", "61s")),
        ("streams", (1, 128), (0, 129, 1.5)),
        ("window", ("1K", "512M"), ("0B", "513M", "64KB")),
        ("mss", ("88B", "32767B"), ("87B", "32768B")),
        ("rate", ("1bit", "unlimited"), ("0bit", "10Mbps")),
        ("bytes", ("1B", "100G"), ("0B",)),
        ("length", ("1B", "1M"), ("0B", "2M")),
        ("dscp", (0, 63, "ef", "CS6", "af13"), (64, -1, "af44", True)),
        ("ip_version", ("auto", 4, 6), (5, "ipv4")),
        ("congestion_control", ("cubic",), ("", "-x", "a b")),
        ("connect_timeout", ("1ms", "1h"), ("0s", "2h")),
        ("protocol", ("tcp", "udp", "sctp", "mptcp"), ("quic",)),
        ("source_port", (1, 65534), (0, 65535, 65536)),
        ("options", ([], ["--fq-rate", "1G"]), ("--fq-rate", [1], ["-Z"])),
        ("no_such_parameter", (), (1,)),
    ],
)
def test_limits_are_those_of_the_tool(name, good, bad):
    for value in good:
        parameters(**{name: value})
    for value in bad:
        with pytest.raises(ValidationError):
            parameters(**{name: value})


def test_udp_has_its_own_lengths_and_refuses_what_is_tcp_only():
    parameters(protocol="udp", length="16B", window="1M")
    parameters(protocol="udp", length="65507B")
    for wrong in (
        {"length": "15B"},
        {"length": "65508B"},
        {"mss": "1400B"},
        {"congestion_control": "reno"},
        {"no_delay": True},
        {"zero_copy": True},
    ):
        with pytest.raises(ValidationError):
            parameters(protocol="udp", **wrong)


def test_a_burst_leaves_at_a_given_rate_only():
    assert " -b 10000000/20 " in client(rate="10Mbit", burst=20)
    assert " -b 1000000/2 " in client(protocol="udp", burst=2)
    with pytest.raises(ValidationError, match="burst needs a rate"):
        parameters(burst=20)


def test_the_source_ports_of_all_streams_exist():
    assert " --cport 40000 " in client(source_port=40000)
    parameters(source_port=65532, streams=2)
    with pytest.raises(ValidationError, match="would exceed 65535"):
        parameters(source_port=65533, streams=2)


def test_fragmentation_is_forbidden_for_datagrams_over_ipv4():
    assert " --dont-fragment " in client(protocol="udp", dont_fragment=True)
    with pytest.raises(ValidationError, match="dont_fragment is not for TCP"):
        parameters(dont_fragment=True)
    with pytest.raises(ValidationError, match="IPv4 only"):
        parameters(protocol="udp", dont_fragment=True, ip_version=6)


def test_sctp_and_multipath_tcp_are_protocols_where_iperf3_has_them():
    assert " --sctp " in client(protocol="sctp", mss="1400B")
    assert " --mptcp " in client(version="3.21", protocol="mptcp", congestion_control="reno")
    with pytest.raises(ValidationError, match="congestion_control is not for SCTP"):
        parameters(protocol="sctp", congestion_control="reno")


@pytest.mark.parametrize(
    ("protocol", "expected"), [("tcp", None), ("sctp", None), ("mptcp", None), ("udp", 1000)]
)
def test_only_a_datagram_has_the_length_of_a_packet(protocol, expected):
    demand = BACKEND.demand(parameters(protocol=protocol, length="1000B"))
    assert (demand.protocol, demand.payload_bytes) == (protocol, expected)


LOGIN = {"username": "ann", "public_key": "/etc/server.pem"}


def test_the_password_is_in_no_command_line():
    command = BACKEND.client(flow(**LOGIN, password_file="/etc/password"))
    assert " --username ann --rsa-public-key-path /etc/server.pem " in " ".join(command.argv)
    assert "/etc/password" not in command.argv
    assert command.secrets == {"IPERF3_PASSWORD": "/etc/password"}
    # Otherwise it is in the environment, which iperf3 inherits.
    assert BACKEND.client(flow(**LOGIN)).secrets == {}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"username": "ann"}, "username needs both username and public_key"),
        ({"password_file": "/p"}, "password_file needs both username and public_key"),
        ({**LOGIN, "public_key": "server.pem"}, "'server.pem' is not the whole path of a file"),
        ({**LOGIN, "password_file": "~/p"}, "'~/p' is not the whole path of a file"),
    ],
)
def test_a_login_is_complete_and_found_from_everywhere(given, says):
    with pytest.raises(ValidationError, match=says):
        parameters(**given)


def test_options_are_passed_on_word_by_word_after_all_others():
    words = ["--fq-rate=1G", "--extra-data", "two words", "--skip-rx-copy"]
    assert BACKEND.client(flow(version="3.21", options=words)).argv[-5:] == (
        "--json-stream", *words,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--json"], "it changes the output"),
        (["--tit", "x"], "it changes the output"),
        (["--logfile=/tmp/x"], "it changes the output"),
        (["--file", "/home/ann/.profile"], "it names a file"),
        (["--server"], "it is for servers"),
        (["--bitrate", "1M"], "use rate"),
        (["--bidir"], 'use direction = "both"'),
        (["--time=5"], "use duration"),
        (["--fq-rate", "1G", "-uJ"], "is not a long option"),
        (["1G"], "is not a long option"),
        (["--"], "is not a long option"),
        (["--extra-data", "\x1b[2J"], "is not printable"),
    ],
)
def test_an_option_that_would_change_what_is_read_or_has_a_parameter_is_refused(words, says):
    with pytest.raises(ValidationError, match=says):
        parameters(options=words)


def test_every_parameter_is_described():
    fields = BACKEND.parameters.model_fields
    assert all(field.description for field in fields.values())
    schema = BACKEND.parameters.model_json_schema()
    assert set(schema["properties"]) == set(fields)


def test_the_dscp_names_are_those_of_the_rfcs():
    values = {"cs0": 0, "cs7": 56, "af11": 10, "af22": 20, "af43": 38, "ef": 46, "va": 44, "le": 1}
    for name, value in values.items():
        assert parameters(dscp=name).dscp == value


@pytest.mark.parametrize(
    ("features", "asked", "says"),
    [
        ((), {"source_device": "eth0"}, "cannot bind to a device"),
        ((), {"congestion_control": "reno"}, "cannot set congestion_control"),
        ((), {"zero_copy": True}, "cannot do zero_copy"),
        ((), {"omit": "61s"}, "3.18 and later"),
        ((), {"mss": "9217B"}, "3.21 and later"),
        ((), {"protocol": "sctp"}, "cannot measure SCTP: built without it"),
        ((), {"protocol": "mptcp"}, "cannot measure MPTCP: that is for 3.19 and later"),
        ((), {"protocol": "udp", "dont_fragment": True}, "cannot set dont_fragment"),
        ((), {"username": "u", "public_key": "/k.pem"}, "cannot send a password"),
    ],
)
def test_what_a_version_cannot_do_is_refused_before_it_runs(features, asked, says):
    device = asked.pop("source_device", None)
    lacking = Flow(
        parameters(**asked),
        Direction.SEND,
        "192.0.2.1",
        5201,
        Tool("3.12", frozenset(features)),
        source_device=device,
    )
    with pytest.raises(ValueError, match=says):
        BACKEND.client(lacking)


def test_the_probe_tells_version_and_features():
    old, new = tool("3.12"), tool("3.21")
    assert (old.version, new.version) == ("3.12", "3.21")
    built_with = {
        "congestion-control", "zero-copy", "bind-device", "authentication", "sctp", "dont-fragment",
    }  # fmt: skip
    assert old.features == built_with | {"debug-levels", "prompt-start"}
    assert new.features == old.features - {"sctp"} | {
        "omitted-losses", "late-end", "whole-blocks", "json-stream", "long-omit", "large-mss",
        "mptcp",
    }  # fmt: skip
    assert BACKEND.probe(Role.CLIENT).argv == ("iperf3", "--version")


@pytest.mark.parametrize(
    ("exit_code", "output", "says"),
    [
        (0, "iperf version 2.1.8 (12 August 2022) pthreads", "says 'iperf version 2.1.8"),
        (0, "iperf 3.5 (cJSON 1.5.2)", "3.5 is too old; the minimum is 3.7"),
        (127, "", "exit code 127"),
        (1, "iperf 3.12 (cJSON 1.7.15)", "exit code 1"),
    ],
)
def test_a_probe_of_something_else_says_why_it_cannot_be_used(exit_code, output, says):
    with pytest.raises(ValueError, match=says):
        BACKEND.read_probe(Role.CLIENT, exit_code, output)


def test_patch_versions_are_kept():
    assert BACKEND.read_probe(Role.SERVER, 0, "iperf 3.17.1 (cJSON 1.7.15)\n").version == "3.17.1"


def test_the_expected_time_covers_what_is_omitted_and_what_is_sent():
    assert BACKEND.duration_s(parameters(duration="30s", omit="3s")) == 33
    # 100 MB at 2 x 50 Mbit/s, and up to an interval more before new versions stop.
    assert BACKEND.duration_s(parameters(bytes="100MB", rate="50Mbit", streams=2)) == 9
    assert BACKEND.duration_s(parameters(bytes="10MB")) == 9


def test_the_traffic_is_known_where_the_network_does_not_decide_it():
    assert BACKEND.traffic_bytes(parameters()) is None
    assert BACKEND.traffic_bytes(parameters(bytes="5MB")) == 5e6
    assert BACKEND.traffic_bytes(parameters(protocol="udp", duration="8s", streams=2)) == 2e6
