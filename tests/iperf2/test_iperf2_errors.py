"""How iperf fails, by transcripts: it ends with code 0 nearly always."""

import pytest
from iperf2.iperf2_support import TRANSCRIPTS, events, only, samples

from benchctl.api import Failure, FailureKind, Ready, Role, Summary, Warn
from benchctl.testing.transcript import Transcript

KINDS = FailureKind


@pytest.mark.parametrize(
    ("case", "kind", "words"),
    [
        ("refused", KINDS.UNREACHABLE, "Connection refused"),
        ("refused_streams", KINDS.UNREACHABLE, "Connection refused"),
        ("refused_udp", KINDS.UNREACHABLE, "Connection refused"),
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
        ("dual_test_unreachable", KINDS.UNREACHABLE, "reverse connect did not occur"),
    ],
)
def test_a_failure_has_its_cause_and_no_result(case, kind, words):
    told = events(case)
    failure = only(Failure, told)[0]
    assert failure.kind is kind
    assert words in failure.message
    assert not only(Summary, told)


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
