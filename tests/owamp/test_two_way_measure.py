"""Both ends of the two-way protocols, on loopback."""

import socket
import threading
from random import Random

import pytest
from owamp.owamp_harness import without_delay
from owamp.two_way_harness import (
    PROTOCOLS,
    Notes,
    measure,
    measured,
    reflecting,
    serving,
)
from waiting import DEADLINE_S

from benchctl_owamp.simpleowamp.measuring.clock import Clock
from benchctl_owamp.simpleowamp.measuring.round_trip import LostWays
from benchctl_standalone.errors import Problem

USERS = {"ann": b"a passphrase"}


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    without_delay(monkeypatch)


@pytest.fixture(scope="module", params=PROTOCOLS)
def served(request):
    """A protocol, and the port of its server."""
    with reflecting(request.param) as port:
        yield request.param, port


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_probe_comes_back_with_its_four_times(protocol):
    # A server of its own: another would go on counting if a client's port came again.
    with reflecting(protocol) as port:
        notes = measure(protocol, port)
    assert notes.address[:2] == ("127.0.0.1", port)
    assert [(back.seq, back.reflector_seq) for back in notes.back] == [(n, n) for n in range(5)]
    for back in notes.back:
        assert back.sent_ns <= back.reflector_received_ns <= back.reflector_sent_ns
        assert back.reflector_sent_ns <= back.received_ns
        assert (back.ttl, back.reflector_ttl, back.duplicate) == (255, 255, False)
    session = notes.session
    assert (session.sent, session.received, session.lost, notes.missing) == (5, 5, 0, [])
    assert session.lost_ways == LostWays(0, 0)


def test_a_reflector_goes_on_after_random_octets(served):
    protocol, port = served
    kind = socket.SOCK_STREAM if protocol == "twamp" else socket.SOCK_DGRAM
    for size in (1, 14, 41, 200, 1400):
        with socket.socket(socket.AF_INET, kind) as sock:
            sock.connect(("127.0.0.1", port))
            sock.send(Random(size).randbytes(size))
    assert measure(protocol, port).session.received == 5


@pytest.mark.parametrize("offset_s", [55.0, -55.0])
def test_a_wrong_clock_moves_the_halves_and_not_the_round_trip(served, offset_s):
    protocol, port = served
    for back in measure(protocol, port, clock=Clock(offset_s)).back:
        assert back.send_ns * offset_s < 0 < back.receive_ns * offset_s
        assert 0 <= back.rtt_ns < 50e9


def test_padding_does_not_change_what_is_measured(served):
    protocol, port = served
    assert measure(protocol, port, padding_bytes=1000).session.received == 5


@pytest.mark.ipv6
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_ipv6(protocol):
    with reflecting(protocol, "::1") as port:
        notes = measure(protocol, port, "::1")
    assert {back.reflector_ttl for back in notes.back} == {255}


@pytest.mark.parametrize("protocol", ["twamp-light", "stamp"])
def test_a_reflector_on_all_addresses_answers_from_the_one_that_was_asked(protocol):
    with reflecting(protocol, "0.0.0.0") as port:
        assert measure(protocol, port, "127.0.0.2").session.received == 5


@pytest.mark.ipv6
def test_all_addresses_are_those_of_both_versions():
    with serving("stamp", "-b", "::") as port:
        for address in ("::1", "127.0.0.2"):
            assert measure("stamp", port, address).back[0].ttl == 255


def unanswered(port, **asked):
    """Measure in vain; returns the problem and what was noted."""
    notes = Notes()
    with pytest.raises(Problem) as raised:
        measure("stamp", port, notes=notes, packet_count=2, timeout_s=0.02, **asked)
    session = notes.session
    assert not session.received
    # A machine that is busy enough leaves some unsent.
    assert len(notes.missing) == session.lost == notes.outcome.sent <= 2
    return raised.value


def test_a_signed_stamp_reflector_answers_only_who_has_its_key():
    signed = {"mode": "authenticated"}
    with reflecting("stamp", key=b"the key") as port:
        assert measure("stamp", port, passphrase=b"the key", **signed).session.received == 5
        assert unanswered(port, passphrase=b"another", **signed).kind == "unreachable"
        assert unanswered(port).kind == "unreachable"


@pytest.mark.parametrize("mode", ["authenticated", "encrypted"])
def test_twamp_protects_packets_with_a_users_passphrase(mode):
    pytest.importorskip("cryptography", reason="needs cryptography: pip install cryptography")
    who = {"mode": mode, "user": "ann"}
    with reflecting("twamp", users=USERS) as port:
        assert measure("twamp", port, passphrase=USERS["ann"], **who).session.received == 5
        with pytest.raises(Problem, match="does not accept this client"):
            measure("twamp", port, passphrase=b"a wrong one", **who)


def test_without_a_reflector_it_says_so():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        assert unanswered(port).message == f"no answer from 127.0.0.1:{port}"


def test_answers_of_a_wrong_length_are_named():
    """twampy's responder answers with 38 octets, where 41 are due."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wrong:
        wrong.bind(("127.0.0.1", 0))
        wrong.settimeout(DEADLINE_S)

        def answer():
            packet, source = wrong.recvfrom(2048)
            wrong.sendto(packet[:38].ljust(38), source)

        thread = threading.Thread(target=answer)
        thread.start()
        port = wrong.getsockname()[1]
        with pytest.raises(Problem) as raised:
            measure("twamp-light", port, notes=Notes(), packet_count=2, timeout_s=0.3)
        thread.join()
    said = "packets of 38 octets came back, and an answer has 41 or more"
    assert raised.value.message.endswith(said)
    assert "RFC 5357" in raised.value.hint


def test_people_read_the_round_trip_each_way_and_the_clocks():
    with serving("stamp") as port:
        done = measured("127.0.0.1", port, "stamp", "-c", 5, "-i", 0.001, "-L", 20)
    assert "5 sent, 0 lost" in done.stdout
    assert "round trip" in done.stdout
    assert "synchronized" in done.stdout


def test_modes_that_a_protocol_lacks_are_refused():
    done = measured("127.0.0.1", 0, "twamp-light", "--mode", "encrypted")
    assert done.returncode == 2
    assert "twamp-light has the modes open only" in done.stderr
