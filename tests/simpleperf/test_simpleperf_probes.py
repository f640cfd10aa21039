"""Response times of new connections beside a load, and the responsiveness that they give."""

import socket
import time

import pytest
from simpleperf.simpleperf_harness import Running
from waiting import wait_until

from benchctl_simpleperf.simpleperf.measuring.probes import (
    ResponseProbes,
    responsiveness,
    trimmed_mean,
)


@pytest.mark.parametrize(
    ("values", "mean"),
    [
        ([3.0], 3.0),
        ([1.0, 3.0], 1.0),
        # The highest of twenty, whatever it is, is more than 95 %.
        ([*[2.0] * 19, 900.0], 2.0),
        ([900.0, 800.0, *[2.0] * 38], 2.0),
    ],
)
def test_outliers_at_the_high_end_do_not_count(values, mean):
    assert trimmed_mean(values) == mean


def test_responsiveness_is_that_of_the_draft_without_tls():
    # Foreign: 60 / ((20 ms + 40 ms) / 2) = 2000; loaded: 60 / 60 ms = 1000 (section 4.4.2).
    probes = [{"connect_s": 0.02, "response_s": 0.04}] * 3
    assert responsiveness(probes, [0.06] * 5) == {"responsiveness_rpm": pytest.approx(1500)}


def test_without_answers_or_without_a_load_there_is_no_responsiveness():
    assert responsiveness([], [0.06]) == {}
    assert responsiveness([{"connect_s": 0.02, "response_s": 0.04}], []) == {}


@pytest.mark.parametrize("direction", ["send", "receive"])
def test_connections_beside_a_load_are_timed_and_are_no_measurements_of_their_own(direction):
    server = Running()
    try:
        noted = server.measure(directions=(direction,), probe_s=0.02)
        (result,) = noted.results
        assert result["responsiveness_rpm"] > 0
        assert len(noted.probes) > 2
        for probe in noted.probes:
            assert probe["direction"] == direction
            # The first may begin before the first byte of what the server sends.
            assert probe["omitted"] == (probe["start_s"] < 0)
            assert probe["start_s"] < 0.4
            assert 0 < probe["connect_s"] + probe["response_s"] <= probe["end_s"] - probe["start_s"]
        assert len(server.notes.wait_for_results(1)) == 1
        assert server.notes.warnings == []
    finally:
        server.stop()


def test_probes_before_second_0_are_omitted():
    server = Running()
    try:
        noted = server.measure(omit_s=0.2, probe_s=0.02)
    finally:
        server.stop()
    assert {probe["omitted"] for probe in noted.probes} == {True, False}
    assert all(probe["omitted"] == (probe["start_s"] < 0) for probe in noted.probes)


def test_a_server_that_does_not_answer_gives_no_figure_and_holds_nothing_up():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        remote = silent.getsockname()
        probes = ResponseProbes(lambda: socket.socket(), remote, b"hello", 0.001)
        probes.start()
        accepted = [silent.accept()[0] for _ in range(5)]
        probes.stop()
        for sock in accepted:
            with sock:
                while sock.recv(64):  # ends, since the probe's socket is closed
                    pass
        assert probes.take(0.0) == []


def test_a_server_that_refuses_gives_no_figure(port):
    tried = []

    def opened():
        tried.append(socket.socket())
        return tried[-1]

    probes = ResponseProbes(opened, ("127.0.0.1", port), b"hello", 0.001)
    probes.start()
    wait_until(lambda: len(tried) > 3)
    probes.stop()
    assert probes.take(time.time()) == []
