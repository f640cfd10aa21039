"""Which kind of failure each message of iperf3 is."""

import signal

import pytest
from iperf3.iperf3_support import events, flow, only, transcript

from benchctl.api import Failure, FailureKind, replay
from benchctl_iperf3.errors import classify, ended
from benchctl_iperf3.text import TextClient


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("3.12/fail_busy_text", FailureKind.BUSY),
        ("3.12/fail_bind_nonlocal_text", FailureKind.PARAMETER),
        ("3.12/fail_connect_timeout_blackhole_text", FailureKind.UNREACHABLE),
        ("3.12/fail_badflag_text", FailureKind.PARAMETER),
        ("3.12/fail_bigP_text", FailureKind.PARAMETER),
        ("3.12/bad_congestion.client", FailureKind.PARAMETER),
        ("3.12/fail_server_port_in_use_text", FailureKind.BUSY),
        ("3.12/fail_server_bind_nonlocal_text", FailureKind.PARAMETER),
        ("3.21/json_stream_busy", FailureKind.BUSY),
        ("3.21/json_stream_refused", FailureKind.UNREACHABLE),
        ("3.21/json_stream_C_bad", FailureKind.PARAMETER),
        ("3.21/fail_not_iperf_server_text", FailureKind.PEER),
        ("3.21/fail_unknown_host_text", FailureKind.UNREACHABLE),
        ("3.21/fail_unreachable_text", FailureKind.UNREACHABLE),
        ("3.12/ip_version.client", FailureKind.PARAMETER),
        ("3.21/ip_version.client", FailureKind.PARAMETER),
        ("3.12/authentication.client", FailureKind.REFUSED),
        ("3.21/authentication.client", FailureKind.REFUSED),
        ("3.12/max_duration.client", FailureKind.REFUSED),
        ("3.21/max_duration.client", FailureKind.REFUSED),
        ("3.12/http_server.client", FailureKind.PEER),
        ("3.21/http_server.client", FailureKind.PEER),
    ],
)
def test_each_real_failure_has_its_kind(name, kind):
    [failure] = only(Failure, events(name))
    assert failure.kind is kind
    assert failure.message
    assert "int_errno" not in failure.message
    assert "Unknown error" not in failure.message
    assert not failure.message.startswith(("iperf3", "error"))


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("error - unable to connect to server: Resource temporarily unavailable", "unreachable"),
        ("error - unable to send control message: Bad file descriptor", "unreachable"),
        ("error - unable to connect stream: Connection timed out", "unreachable"),
        ("error - unable to read from stream socket: Connection refused", "unreachable"),
        ("error - unable to read from stream socket: Connection reset by peer", "peer"),
        ("error - unable to write to stream socket: Broken pipe", "peer"),
        ("error - unable to write to stream socket: Message too long", "parameter"),
        ("error - socket buffer size not set correctly", "parameter"),
        ("error - unable to set TCP/SCTP MSS: Invalid argument", "parameter"),
        ("error - Unable to bind-to-device (check perror, maybe permissions?)", "parameter"),
        ("error - int_errno=37: ", "refused"),
        ("error - int_errno=137: ", "tool"),
        ("error - total required bandwidth is larger than server limit", "refused"),
        ("error - test authorization failed", "refused"),
        ("error - unable to receive control message - port may not be available", "peer"),
        ("error - idle timeout for receiving data", "peer"),
        ("error - unable to create a new stream: No space left on device", "tool"),
        ("interrupt - the client has terminated by signal Terminated(15)", "tool"),
        ("option '--debug' doesn't allow an argument", "tool"),
        ("something that no version says", "tool"),
    ],
)
def test_the_particular_message_wins_over_the_general(message, kind):
    assert classify(message).kind == FailureKind(kind)


def test_a_congestion_control_that_is_not_there_is_hinted_at_with_the_command_that_lists_them():
    [failure] = only(Failure, events("3.12/bad_congestion.client"))
    assert "tcp_available_congestion_control" in failure.hint
    assert not failure.kind.retryable


@pytest.mark.parametrize("version", ["3.12", "3.21"])
@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("ip_version", "ip_version"),
        ("authentication", "username, public_key and a password"),
        ("max_duration", "limits the duration"),
        ("http_server", "web server"),
    ],
)
def test_what_helps_is_said(version, name, hint):
    [failure] = only(Failure, events(f"{version}/{name}.client"))
    assert hint in failure.hint


def test_a_server_that_does_not_answer_may_be_behind_a_firewall():
    [failure] = only(Failure, events("3.12/fail_connect_timeout_blackhole_text"))
    assert "check the address and the port; a firewall" in failure.hint


def test_a_client_whose_datagrams_get_no_answer_looks_for_a_firewall_first():
    waiting = b"iperf3: interrupt - the client has terminated\n"
    for protocol, told in (("udp", True), ("tcp", False)):
        [failure] = only(Failure, replay(TextClient(flow(protocol=protocol)), b"", waiting, 1))
        assert ("firewall" in failure.hint) is told
        assert "web server" in failure.hint
    ours = flow(protocol="udp", owns_server=True)
    [failure] = only(Failure, replay(TextClient(ours), b"", waiting, 1))
    assert "firewall" in failure.hint
    assert "web server" not in failure.hint


@pytest.mark.parametrize("version", ["3.12", "3.21"])
def test_a_server_too_old_for_both_directions_is_named_as_the_cause(version):
    [failure] = only(Failure, events(f"{version}/both_31_server.client", "both"))
    assert "older than 3.7" in failure.hint
    assert not failure.kind.retryable


def test_a_server_that_has_sent_is_not_too_old_for_both_directions():
    told = transcript("3.12/tcp_both_P2.client").stdout
    until = told.index(b"\n[  5][TX-C]   0.00-1.00")
    died = b"iperf3: error - control socket has closed unexpectedly\n"
    parser = TextClient(flow("both", streams=2, interval="500ms"))
    [failure] = only(Failure, replay(parser, told[:until], died, 1))
    assert failure.kind is FailureKind.PEER
    assert not failure.hint


def test_an_interrupted_flow_whose_server_had_answered_is_not_called_silent():
    [failure] = only(Failure, events("3.12/interrupted.client"))
    assert failure.kind is FailureKind.TOOL


def test_an_error_without_words_gets_some():
    assert classify("error - ").message == "an error that this version of iperf3 does not know"


def test_the_ways_to_end_have_words():
    assert ended(3) == "exit code 3"
    assert ended(-signal.SIGSEGV) == "SIGSEGV"
    assert ended(-200) == "signal 200"
