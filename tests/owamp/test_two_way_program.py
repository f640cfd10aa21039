"""`simpleowamp serve` and `simpleowamp ping` with the two-way protocols, on loopback."""

import os
import socket

import pytest
from owamp.two_way_programs import measured, of, ping, serving

PROTOCOLS = ("twamp", "twamp-light", "stamp")


@pytest.fixture(scope="module", params=PROTOCOLS)
def served(request):
    """A protocol, and the port of its server."""
    with serving(request.param) as port:
        yield request.param, port


FEW = ("-c", 5, "-i", 0.01, "-L", 20)


def test_every_probe_comes_back_with_its_four_times(served):
    protocol, port = served
    code, events = ping("127.0.0.1", port, protocol, *FEW)
    assert code == 0
    [start], [end] = of(events, "start"), of(events, "end")
    assert (start["protocol"], start["server"], start["port"]) == (protocol, "127.0.0.1", port)
    assert (end["sent"], end["received"], end["lost"], end["lost_send"]) == (5, 5, 0, 0)
    back = of(events, "reflected")
    assert [each["seq"] for each in back] == [each["reflector_seq"] for each in back] == [*range(5)]
    for each in back:
        assert each["sent_ns"] <= each["reflector_received_ns"] <= each["reflector_sent_ns"]
        assert each["reflector_sent_ns"] <= each["received_ns"]
        assert (each["ttl"], each["reflector_ttl"], each["duplicate"]) == (255, 255, False)


def test_a_reflector_goes_on_after_random_octets(served):
    protocol, port = served
    kind = socket.SOCK_STREAM if protocol == "twamp" else socket.SOCK_DGRAM
    for size in (1, 14, 41, 200):
        with socket.socket(socket.AF_INET, kind) as sock:
            sock.connect(("127.0.0.1", port))
            sock.send(os.urandom(size))
    code, events = ping("127.0.0.1", port, protocol, *FEW)
    assert (code, of(events, "end")[0]["received"]) == (0, 5)


def test_a_wrong_clock_moves_the_halves_and_not_the_round_trip(served):
    protocol, port = served
    _, events = ping("127.0.0.1", port, protocol, *FEW, "--clock-offset", "55s")
    for each in of(events, "reflected"):
        send_ns = each["reflector_received_ns"] - each["sent_ns"]
        receive_ns = each["received_ns"] - each["reflector_sent_ns"]
        assert send_ns < -50e9
        assert receive_ns > 50e9
        assert 0 <= send_ns + receive_ns < 5e9


@pytest.mark.parametrize("protocol", ["twamp-light", "stamp"])
def test_a_reflector_on_all_addresses_answers_from_the_one_that_was_asked(protocol):
    with serving(protocol, "-b", "0.0.0.0") as port:
        code, _ = ping("127.0.0.2", port, protocol, "-c", 1, "-L", 20)
    assert code == 0


@pytest.mark.ipv6
def test_all_addresses_are_those_of_both_versions():
    with serving("stamp", "-b", "::") as port:
        for address in ("::1", "127.0.0.2"):
            code, events = ping(address, port, "stamp", "-c", 1, "-L", 20)
            assert code == 0
            assert of(events, "reflected")[0]["ttl"] == 255


@pytest.mark.ipv6
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_ipv6(protocol):
    with serving(protocol, "-6") as port:
        code, events = ping("::1", port, protocol, *FEW)
    assert code == 0
    assert {each["reflector_ttl"] for each in of(events, "reflected")} == {255}


def test_people_read_the_round_trip_each_way_and_the_clocks(served):
    protocol, port = served
    done = measured("127.0.0.1", port, protocol, *FEW)
    lines = {line.split("  ")[1].strip() for line in done.stdout.splitlines() if line[:2] == "  "}
    assert {"round trip", "there", "back", "reflector", "hops"} <= lines
    assert "5 sent, 0 lost" in done.stdout
    assert "synchronized" in done.stdout


@pytest.mark.parametrize(("key", "code"), [("the key", 0), ("another", 1)])
def test_a_signed_stamp_reflector_answers_who_has_its_key(tmp_path, key, code):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ours.write_text(key)
    theirs.write_text("the key\n")
    with serving("stamp", "--key-file", theirs) as port:
        signed = ("--mode", "authenticated", "--key-file", ours)
        found, events = ping("127.0.0.1", port, "stamp", *signed, "-c", 1, "-L", 1)
    assert found == code
    assert len(of(events, "reflected")) == 1 - code


@pytest.mark.parametrize("mode", ["authenticated", "encrypted"])
def test_twamp_with_a_user(tmp_path, mode):
    pytest.importorskip("cryptography", reason="needs cryptography: pip install cryptography")
    users, key = tmp_path / "users", tmp_path / "key"
    users.write_text("alice a passphrase\n")
    key.write_text("a passphrase\n")
    with serving("twamp", "--users", users) as port:
        who = ("--mode", mode, "--user", "alice", "--key-file", key)
        code, events = ping("127.0.0.1", port, "twamp", *who, *FEW)
        assert (code, of(events, "end")[0]["received"]) == (0, 5)
        key.write_text("a wrong one")
        code, events = ping("127.0.0.1", port, "twamp", *who, *FEW)
        assert (code, of(events, "error")[0]["kind"]) == (1, "refused")


def test_without_a_reflector_it_says_so():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        code, events = ping("127.0.0.1", port, "stamp", "-c", 2, "-i", 0.01, "-L", 0.1)
    assert code == 1
    assert [event["seq"] for event in of(events, "lost")] == [0, 1]
    [error] = of(events, "error")
    assert error["kind"] == "unreachable"
    assert error["message"] == f"no answer from 127.0.0.1:{port}"


def test_modes_that_a_protocol_lacks_are_refused():
    done = measured("127.0.0.1", 0, "twamp-light", "--mode", "encrypted")
    assert done.returncode == 2
    assert "twamp-light has the modes open only" in done.stderr
