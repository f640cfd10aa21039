"""The plain protocol: where a stream ends, whatever it carries and however it is cut."""

import itertools
import socket
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simpleperf.simpleperf_harness import REPEATABLE, running_server

from benchctl_simpleperf.simpleperf.program import plain_peer
from benchctl_simpleperf.simpleperf.protocol.plain import ANSWER, GOODBYE, PlainStream
from benchctl_simpleperf.simpleperf.protocol.settings import Limits
from benchctl_standalone.errors import Problem

# Payloads made of the letters of BYE, so that most of them hold it somewhere.
TRICKY = st.lists(st.sampled_from([b"B", b"Y", b"E", b"BYE", b"x"]), max_size=40).map(b"".join)


def cut(data, offsets):
    bounds = sorted({0, len(data), *(offset % (len(data) + 1) for offset in offsets)})
    return [data[start:end] for start, end in itertools.pairwise(bounds)]


@REPEATABLE
@given(TRICKY, st.lists(st.integers(0, 200)))
def test_a_stream_that_ends_with_bye_counts_all_before_it_however_it_is_cut(payload, offsets):
    stream = PlainStream()
    for piece in cut(payload + GOODBYE, offsets):
        stream.feed(piece)
    assert stream.at_goodbye
    assert stream.payload_bytes == len(payload)


@REPEATABLE
@given(TRICKY.filter(lambda data: not data.endswith(GOODBYE)), st.lists(st.integers(0, 200)))
def test_a_bye_that_something_follows_is_payload(payload, offsets):
    stream = PlainStream()
    for piece in cut(payload, offsets):
        stream.feed(piece)
    assert not stream.at_goodbye
    assert stream.payload_bytes == len(payload)


@pytest.fixture(scope="module")
def server():
    with running_server() as running:
        yield running


def result_of(server, pieces, closes=False):
    """Send pieces as an old client does; returns its answer and what the server counted.

    A client that ``closes`` says so behind the last piece.
    """
    before = len(server.notes.results)
    with server.connect() as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            sock.sendall(piece)
        if closes:
            sock.shutdown(socket.SHUT_WR)
        answer = sock.recv(100)
    return answer, server.notes.wait_for_results(before + 1)[before]


def test_an_old_client_gets_its_answer(server):
    answer, result = result_of(server, [b"0" * 1000] * 100 + [GOODBYE])
    assert answer == ANSWER
    assert result["directions"]["send"]["bytes_received"] == 100_000
    assert result["complete"]


@pytest.mark.parametrize(
    "pieces",
    [
        [b"x" * 997 + b"BYE", b"y" * 1000, b"BYE"],
        [b"x" * 998 + b"B", b"YE" + b"y" * 998, b"BYE"],
        [b"x" * 1000, b"B", b"Y", b"E"],
        [b"x" * 1000 + b"BY", b"E"],
        [b"BYEBYE", b"BYE"],
    ],
    ids=["at a cut", "across a cut", "letter by letter", "glued to a chunk", "nothing but BYE"],
)
def test_a_bye_is_the_end_only_at_the_end(server, monkeypatch, pieces):
    # However late a piece is, the server has not answered before it.
    monkeypatch.setattr(plain_peer, "QUIET_S", 3600.0)
    answer, result = result_of(server, pieces, closes=True)
    assert answer == ANSWER
    assert result["directions"]["send"]["bytes_received"] == sum(map(len, pieces)) - 3


def test_a_client_that_goes_on_after_a_pause_behind_a_bye_is_counted_whole(server):
    before = len(server.notes.results)
    with server.connect() as sock:
        sock.sendall(b"x" * 500 + b"BYE")
        # Longer than the server waits for more, so it has to take its answer back.
        assert sock.recv(100) == ANSWER
        sock.sendall(b"y" * 500 + b"BYE")
        assert sock.recv(100) == ANSWER
    result = server.notes.wait_for_results(before + 1)[before]
    assert result["directions"]["send"]["bytes_received"] == 1003


def test_the_end_of_the_stream_behind_a_bye_is_answered_at_once(server, monkeypatch):
    monkeypatch.setattr(plain_peer, "QUIET_S", 3600.0)
    before = len(server.notes.results)
    with server.connect() as sock:
        sock.sendall(b"x" * 1000 + GOODBYE)
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(100) == ANSWER
    server.notes.wait_for_results(before + 1)


def test_a_client_that_vanishes_leaves_an_incomplete_result(server):
    before = len(server.notes.results)
    with server.connect() as sock:
        sock.sendall(b"x" * 5000)
    result = server.notes.wait_for_results(before + 1)[before]
    assert not result["complete"]
    assert result["directions"]["send"]["bytes_received"] == 5000


def test_first_bytes_that_look_like_a_preamble_and_are_none_are_payload(server):
    answer, result = result_of(server, [b"\0simple", b" things" * 10, GOODBYE])
    assert answer == ANSWER
    assert result["directions"]["send"]["bytes_received"] == 77


def test_hundreds_of_clients_at_once_are_all_answered(server):
    before = len(server.notes.results)
    clients = [server.connect() for _ in range(200)]
    for client in clients:
        client.sendall(b"0" * 10_000 + GOODBYE)
    assert [client.recv(100) for client in clients] == [ANSWER] * 200
    for client in clients:
        client.close()
    results = server.notes.wait_for_results(before + 200)[before:]
    assert {result["directions"]["send"]["bytes_received"] for result in results} == {10_000}


def test_a_plain_client_shares_bytes_between_its_connections(server):
    before = len(server.notes.results)
    notes = server.measure_plain(total_bytes=100_001, streams=3)
    [result] = notes.results
    assert [s["bytes_sent"] for s in result["directions"]["send"]["streams"]] == [
        33_334, 33_334, 33_333,
    ]  # fmt: skip
    counted = server.notes.wait_for_results(before + 3)[before:]
    assert sum(r["directions"]["send"]["bytes_received"] for r in counted) == 100_001


def test_a_plain_client_measures_for_its_time(server):
    notes = server.measure_plain(duration_s=0.3, interval_s=0.1)
    [result] = notes.results
    # A late reading counts for the last of the intervals that have ended.
    due_s = [interval["end_s"] - interval["reading_late_s"] for interval in notes.intervals]
    assert due_s == sorted(set(due_s))
    assert {round(each, 6) for each in due_s} <= {0.1, 0.2, 0.3}
    assert due_s[-1] == pytest.approx(0.3)
    sent = sum(interval["bytes_sent"] for interval in notes.intervals)
    assert result["directions"]["send"]["bytes_received"] >= sent > 0


def test_a_plain_client_speaks_to_a_server_that_reads_chunks_and_looks_for_bye():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        counted = []

        def serve():
            sock, _ = listener.accept()
            with sock:
                total = b""
                while not total.endswith(b"BYE"):
                    total += sock.recv(1000)
                counted.append(len(total) - 3)
                sock.sendall(b"ACK: BYE")

        thread = threading.Thread(target=serve)
        thread.start()
        with running_server() as other:
            other.port = listener.getsockname()[1]
            notes = other.measure_plain(total_bytes=25_000)
        thread.join()
    assert counted == [25_000]
    assert notes.results[0]["directions"]["send"]["bytes_received"] == 25_000


def test_a_server_that_closes_without_an_answer_is_a_failure():
    with socket.create_server(("127.0.0.1", 0)) as listener, running_server() as other:
        other.port = listener.getsockname()[1]

        def serve():
            sock, _ = listener.accept()
            with sock:
                while not sock.recv(1 << 16).endswith(b"BYE"):
                    pass

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(Problem, match="closed without 'ACK: BYE'"):
            other.measure_plain(total_bytes=25_000)
        thread.join()


def test_a_server_shows_intervals_of_plain_streams_by_the_order_they_came():
    with running_server(interval_s=0.1) as server:
        server.measure_plain(duration_s=0.25, streams=2)
        results = server.notes.wait_for_results(2)
    shown = dict.fromkeys((0, 1), 0)
    for interval in server.notes.intervals:
        shown[interval["stream"]] += interval["bytes_received"]
    told = {r["directions"]["send"]["stream"]: r["directions"]["send"] for r in results}
    assert shown == {stream: told[stream]["bytes_received"] for stream in (0, 1)}


def test_a_plain_client_faster_than_the_limit_is_cut_off():
    with running_server(limits=Limits(rate_bps=1e6)) as server:
        with pytest.raises(Problem):
            server.measure_plain(duration_s=3)
        [result] = server.notes.wait_for_results(1)
    assert not result["complete"]
