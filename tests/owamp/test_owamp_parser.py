"""What simpleowamp prints, as events: each packet is a sample."""

import json

import pytest
from contract import BundledContract, kept, said

from benchctl.api import (
    Channel,
    Direction,
    Failure,
    FailureKind,
    ParserError,
    Ready,
    Role,
    Sample,
    Started,
    Summary,
    Warn,
    replay,
)
from benchctl_owamp import BACKEND
from benchctl_owamp.parser import ClientParser, ServerParser

SEND, RECEIVE, ROUND_TRIP = Direction.SEND, Direction.RECEIVE, Direction.ROUND_TRIP
BOTH = (SEND, RECEIVE)
# 2026-11-22 16:00 UTC; the server's clock is 55 ms ahead.
T = 1_795_363_200_000_000_000
MS = 1_000_000
AHEAD = 55 * MS


def packet(direction, seq, at_ms, delay_ms=0.5, clocks=(True, True), **more):
    """Return the event of a packet that was sent at a real time, by two clocks."""
    sent = T + round(at_ms * MS) + (AHEAD if direction == "receive" else 0)
    received = T + round((at_ms + delay_ms) * MS) + (AHEAD if direction == "send" else 0)
    return {
        "event": "packet", "direction": direction, "seq": seq, "sent_ns": sent,
        "received_ns": received, "sent_error_s": 2e-5, "received_error_s": 3e-5,
        "sent_synchronized": clocks[0], "received_synchronized": clocks[1], "ttl": 253, **more,
    }  # fmt: skip


def lost(direction, seq, at_ms):
    return {"event": "lost", "direction": direction, "seq": seq, "due_ns": T + round(at_ms * MS)}


def end(direction, sent, lost=0, **more):
    return {
        "event": "end", "direction": direction, "sent": sent, "received": sent - lost,
        "lost": lost, "duplicates": 0, "skipped": 0, "late_s_p99": 1e-4, **more,
    }  # fmt: skip


def reflected(seq, at_ms):
    sent, there = T + round(at_ms * MS), T + round((at_ms + 2) * MS) + AHEAD
    return {
        "event": "reflected", "seq": seq, "sent_ns": sent, "reflector_received_ns": there,
        "reflector_sent_ns": there + 5 * MS, "received_ns": sent + 10 * MS, "sent_error_s": 1e-5,
        "reflector_error_s": 2e-5, "sent_synchronized": True, "reflector_synchronized": True,
        "ttl": 250, "reflector_ttl": 251,
    }  # fmt: skip


START = {
    "event": "start", "protocol": "owamp", "version": "1.0.0", "server": "192.0.2.1", "port": 861,
    "count": 3, "interval_s": 0.1, "sessions": {"send": "00" * 16, "receive": "11" * 16},
}  # fmt: skip
WHOLE = [
    START,
    *(packet("receive", n, 100 * n) for n in range(3)),
    end("receive", 3),
    packet("send", 0, 0), lost("send", 1, 100), packet("send", 2, 200, 0.75),
    end("send", 3, 1),
]  # fmt: skip
REFUSED = {"event": "error", "kind": "refused", "message": "mode not offered", "hint": "use open"}
LISTENS = b"simpleowamp 1.0.0 listens on 127.0.0.1:861\n"


def text(events):
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def read(events, directions=BOTH, count=3, code=0, stderr=b""):
    return replay(ClientParser(count, directions), text(events), stderr, code)


def of(kind, events, direction=None):
    found = [event for event in events if isinstance(event, kind)]
    return [one for one in found if direction is None or one.direction is direction]


def test_each_packet_is_a_sample_at_its_sending_with_what_the_clocks_say():
    events = read(WHOLE)
    sent = of(Sample, events, SEND)
    assert [sample.start_s for sample in sent] == pytest.approx(
        [0, -AHEAD / 1e9 + 0.1 + 0.055, 0.2]
    )
    assert sent[0].metrics == {
        "packets_sent": 1, "packets_received": 1, "owd_s": pytest.approx(0.0555),
        "clock_synchronized": 1, "owd_error_s": pytest.approx(5e-5), "hops": 2,
    }  # fmt: skip
    assert sent[1].metrics == {"packets_sent": 1, "packets_lost": 1}
    back = of(Sample, events, RECEIVE)
    assert [sample.metrics["owd_s"] for sample in back] == pytest.approx([-0.0545] * 3)
    assert all(sample.start_s == sample.end_s for sample in (*sent, *back))


def test_the_start_is_by_the_clock_of_this_host():
    (started,) = of(Started, read(WHOLE))
    assert started.epoch_s == pytest.approx(T / 1e9 + 0.0005, abs=1e-6)
    (started,) = of(Started, read([packet("send", 0, 0), end("send", 1)], (SEND,), 1))
    assert started.epoch_s == pytest.approx(T / 1e9, abs=1e-6)
    # The server's time of a lost packet says nothing of this host's.
    alone = [lost("receive", 0, 0), packet("receive", 1, 155), end("receive", 2, 1)]
    (started,) = of(Started, read(alone, (RECEIVE,), 2))
    assert started.epoch_s == pytest.approx(T / 1e9 + 0.1555 - 0.21, abs=1e-6)


def test_the_tool_itself_says_how_late_it_sent():
    assert of(Summary, read(WHOLE)) == [
        Summary({"sending_late_p99_s": 1e-4}, direction) for direction in (RECEIVE, SEND)
    ]
    alone = [packet("send", 0, 0), end("send", 1, late_s_p99=None)]
    assert of(Summary, read(alone, (SEND,), 1)) == []


def test_an_error_estimate_counts_if_both_clocks_are_synchronized():
    for clocks in ((True, False), (False, True), (False, False)):
        events = read([packet("send", 0, 0, clocks=clocks), end("send", 1)], (SEND,), 1)
        (sample,) = of(Sample, events)
        assert sample.metrics["clock_synchronized"] == 0
        assert "owd_error_s" not in sample.metrics


def test_a_packet_that_arrives_again_is_a_duplicate_and_has_no_delay():
    once = packet("send", 0, 0)
    events = read([once, once, end("send", 1, duplicates=1)], (SEND,), 1)
    assert [sample.metrics for sample in of(Sample, events)][1] == {"packets_duplicated": 1}


def test_a_packet_without_its_time_to_live_has_no_hops():
    (sample,) = of(Sample, read([packet("send", 0, 0, ttl=None), end("send", 1)], (SEND,), 1))
    assert "hops" not in sample.metrics


def test_a_reflected_packet_is_a_round_trip_without_the_reflectors_time_and_two_ways():
    events = read([START, reflected(0, 0), reflected(1, 100), end("both", 2)], (ROUND_TRIP,), 2)
    trip, there, back = (of(Sample, events, way)[0].metrics for way in (ROUND_TRIP, SEND, RECEIVE))
    assert len({sample.start_s for sample in of(Sample, events)}) == 2
    assert trip == {
        "packets_sent": 1, "packets_received": 1, "rtt_s": pytest.approx(0.005),
        "reflector_s": pytest.approx(0.005),
    }  # fmt: skip
    assert (there["owd_s"], back["owd_s"]) == pytest.approx((0.057, -0.052))
    assert (there["hops"], back["hops"]) == (4, 5)
    assert there["owd_error_s"] == back["owd_error_s"] == pytest.approx(3e-5)
    assert [type(event) for event in events if isinstance(event, Failure)] == []


def failure(events, *arguments, **more):
    found = of(Failure, read(events, *arguments, **more))
    assert len(found) == 1
    return found[0]


def test_an_error_is_a_failure_of_its_kind():
    assert failure([REFUSED], code=1) == Failure(
        FailureKind.REFUSED, "mode not offered", "use open"
    )


def test_a_direction_that_is_missing_or_empty_is_a_failure():
    cut = failure(WHOLE[:5], code=1, stderr=b"simpleowamp: connection lost\n")
    assert cut.kind is FailureKind.TOOL
    assert "ended: 1 before it reported direction send: simpleowamp: connection lost" in cut.message
    assert "signal 9" in failure(WHOLE[:3], code=-9).message
    assert failure([end("send", 0)], (SEND,)).kind is FailureKind.PEER
    nothing = failure([lost("send", n, n) for n in range(3)] + [end("send", 3, 3)], (SEND,))
    assert nothing.kind is FailureKind.UNREACHABLE
    assert nothing.message == "none of 3 packets arrived in direction send"
    assert "longer timeout" in nothing.hint


def test_packets_that_were_not_sent_are_a_warning():
    events = read([packet("send", 0, 0), end("send", 1, skipped=2)], (SEND,))
    assert of(Warn, events) == [Warn("1 of 3 packets were sent in direction send")]


@pytest.mark.parametrize(
    "line",
    [
        b"hello", b"[1]", b'{"event": "dance"}', b'{"event": "lost", "direction": "up"}',
        b'{"event":"packet","direction":"send","seq":3}', b'{"event":"end","direction":"send"}',
        json.dumps(packet("send", 0, 0, sent_ns=0.5)).encode(),
        json.dumps(packet("send", 0, 0, sent_ns=1 << 80)).encode(),
        json.dumps(packet("send", 0, 0, ttl=256)).encode(),
        json.dumps(packet("send", 0, 0, sent_synchronized=1)).encode(),
        json.dumps(end("send", 4)).encode(), json.dumps(end("send", 1, 2)).encode(),
        b'{"event":"error","kind":"sad"}', b'{"event": NaN}',
    ],
)  # fmt: skip
def test_what_the_tool_does_not_print_is_rejected(line):
    with pytest.raises(ParserError):
        ClientParser(3, BOTH).feed(line + b"\n")


def test_a_packet_cannot_be_lost_and_there():
    with pytest.raises(ParserError, match="lost, and there already"):
        read([packet("send", 0, 0), lost("send", 0, 0)])


TRANSCRIPTS = {
    **kept("owamp"),
    "both": said((Channel.STDOUT, text(WHOLE)), count=3),
    "reflected": said(
        (Channel.STDOUT, text([START, reflected(0, 0), reflected(1, 100), end("both", 2)])),
        count=2, protocol="stamp",
    ),
    "refused": said(
        (Channel.STDOUT, text([REFUSED])), (Channel.STDERR, b"simpleowamp: refused\n"),
        exit_code=1,
    ),
    "server": said((Channel.STDOUT, LISTENS), role=Role.SERVER),
}  # fmt: skip


class TestOwamp(BundledContract):
    backend = BACKEND
    transcripts = TRANSCRIPTS


def test_the_server_says_when_it_listens_or_why_it_does_not():
    parser = ServerParser()
    assert parser.feed(LISTENS) == [Ready()]
    # Told to end, for example.
    assert parser.feed(b"simpleowamp: the sender has ended\n", Channel.STDERR) == []
    assert parser.close(0) == []
    refused = b"simpleowamp: 127.0.0.1:861: Address already in use\n"
    (failure,) = ServerParser().feed(refused, Channel.STDERR)
    assert failure.message == "127.0.0.1:861: Address already in use"
