"""How iperf fails, by transcripts: it ends with code 0 nearly always."""

import pytest
from iperf2.iperf2_support import TRANSCRIPTS, events, flow, only, samples, summary

from benchctl.api import Failure, FailureKind, Ready, Role, Summary, Warn, replay
from benchctl.testing.transcript import Transcript
from benchctl_iperf2 import BACKEND

KINDS = FailureKind


@pytest.mark.parametrize(
    ("case", "kind", "words"),
    [
        ("refused", KINDS.UNREACHABLE, "Connection refused"),
        ("refused_streams", KINDS.UNREACHABLE, "Connection refused"),
        ("refused_udp", KINDS.UNREACHABLE, "127.0.0.1:15388: read failed: Connection refused"),
        ("no_route", KINDS.UNREACHABLE, "Network is unreachable"),
        ("no_route_udp", KINDS.UNREACHABLE, "Network is unreachable"),
        ("black_hole", KINDS.UNREACHABLE, "no answer"),
        ("unknown_name", KINDS.UNREACHABLE, "Unknown host"),
        ("wrong_option", KINDS.PARAMETER, "unrecognized option"),
        ("bad_source", KINDS.PARAMETER, "bind failed"),
        ("bad_congestion_control", KINDS.PARAMETER, "congestion control failed"),
        ("garbage_peer", KINDS.PEER, "Broken pipe: ended after 0.0001 of 1 s"),
        ("server_dies", KINDS.PEER, "ended after 0.2738 of 3 s"),
        ("server_dies_receive", KINDS.PEER, "ended after 0.2625 of 3 s"),
        ("server_dies_udp", KINDS.UNREACHABLE, "Connection refused"),
        ("ctrl_c", KINDS.PEER, "ended after 0.29 of 3 s"),
        ("ctrl_c_receive", KINDS.PEER, "ended after 0.2617 of 3 s"),
        ("sink_receive", KINDS.REFUSED, "the server sent nothing"),
        ("sink_both", KINDS.REFUSED, "the server sent nothing"),
        ("sink_udp", KINDS.UNREACHABLE, "no answer of the server to any datagram"),
        ("dual_test_unreachable", KINDS.UNREACHABLE, "reverse connect did not occur"),
    ],
)
def test_a_failure_has_its_cause_and_no_result(case, kind, words):
    told = events(case)
    failure = only(Failure, told)[0]
    assert failure.kind is kind
    assert words in failure.message
    assert not only(Summary, told)


def read(fed, server=False, **parameters):
    """Return what a parser makes of output on stdout and stderr, over UDP."""
    made = BACKEND.server if server else BACKEND.client
    stdout, stderr = fed
    return replay(made(flow(protocol="udp", **parameters)).parser, stdout, stderr)


UNANSWERED = (
    b"[  1] 0.0000-1.0079 sec  254848 Bytes  2022722 bits/sec  175/0      176 pps\n",
    b"[  3] WARNING: did not receive ack of last datagram after 10 tries.\n",
)


def test_a_server_that_only_swallows_datagrams_is_one_that_the_profile_declares():
    told = read(UNANSWERED, duration="1s", compatible=True)
    assert "the server's report is missing" in only(Warn, told)[0].message
    assert summary(told).keys() == {"sent_bps", "bytes_sent", "packets_sent"}
    [failure] = only(Failure, read(UNANSWERED, duration="1s"))
    assert "compatible = true" in failure.hint


def test_our_own_server_tells_whether_anything_arrived_and_its_lost_answer_is_no_failure():
    assert not only(Failure, read(UNANSWERED, duration="1s", owns_server=True))
    arrived = b"[  1] 0.00-1.00 sec 254848 Bytes 2022513 bits/sec 0.002 ms 0/176 (0%)\n"
    listening = b"Server listening on UDP port 5001\n"
    assert not only(Failure, read((listening + arrived, b""), server=True, owns_server=True))
    [failure] = only(Failure, read((listening, b""), server=True, owns_server=True))
    assert failure.kind is KINDS.UNREACHABLE
    assert failure.message == "192.0.2.1:5001: no datagram reached the server"
    assert "UDP packets" in failure.hint


def test_a_receiver_of_nothing_over_udp_is_told_when_the_time_is_over():
    zeros = "".join(
        f"[  1] {end - 1}.0000-{end}.0000 sec  {size} Bytes  {8 * size} bits/sec  {sent}\n"
        for end in range(1, 6)
        for sent, size in (("1/0  1 pps", 1448), ("0.000 ms 0/0 (0%)", 0))
    )
    told = read((zeros.encode(), b""), duration="1s", direction="both", owns_server=True)
    failure = only(Failure, told)[0]
    assert failure.kind is KINDS.UNREACHABLE
    assert failure.message == "192.0.2.1:5001: no answer of the server to any datagram"


def test_where_our_server_listens_a_refusal_is_that_of_a_firewall():
    refused = (b"", b"read failed: Connection refused\n")
    [foreign] = only(Failure, read(refused))
    [own] = only(Failure, read(refused, owns_server=True))
    assert foreign.message == own.message == "192.0.2.1:5001: read failed: Connection refused"
    assert "check the port" in foreign.hint
    assert "firewall" in own.hint


@pytest.mark.parametrize(
    "case", ["server_dies", "server_dies_receive", "server_dies_udp", "ctrl_c", "ctrl_c_receive"]
)
def test_what_was_measured_before_a_failure_is_kept(case):
    assert samples(events(case))


@pytest.mark.parametrize("case", ["bad_source", "bad_congestion_control", "wrong_option"])
def test_a_setting_that_failed_is_a_failure_at_once_although_iperf_goes_on(case):
    told = events(case)
    assert Transcript.load(TRANSCRIPTS / f"{case}.client.json").exit_code == 0
    assert len(only(Failure, told)) >= 1


@pytest.mark.parametrize(
    ("case", "kind"), [("port_in_use", KINDS.BUSY), ("bad_address", KINDS.PARAMETER)]
)
def test_a_server_that_does_not_listen_says_why(case, kind):
    told = events(case, Role.SERVER)
    assert Ready() not in told
    assert only(Failure, told)[0].kind is kind


def test_a_transcript_that_succeeds_has_no_failure():
    for path in TRANSCRIPTS.glob("*_send*.json"):
        case, role, _ = path.name.split(".")
        told = events(case, Role(role))
        assert not only(Failure, told), case
        assert only(Summary, told), case
        assert not only(Warn, told), case
