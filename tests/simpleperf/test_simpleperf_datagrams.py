"""UDP streams by themselves: what they count of the datagrams that really went or came."""

import socket
import struct
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from waiting import DEADLINE_S, wait_until

from benchctl_simpleperf.simpleperf.measuring import udp
from benchctl_simpleperf.simpleperf.measuring.datagrams import HEADER, SECOND_0
from benchctl_simpleperf.simpleperf.measuring.measurement import Measurement
from benchctl_simpleperf.simpleperf.measuring.pacing import Pacer
from benchctl_simpleperf.simpleperf.measuring.side import Side
from benchctl_simpleperf.simpleperf.measuring.stream import Timeline
from benchctl_simpleperf.simpleperf.measuring.udp import UdpSender
from benchctl_simpleperf.simpleperf.protocol.intervals import SECOND_NS
from benchctl_simpleperf.simpleperf.protocol.settings import MeasurementSettings

LENGTH = 100
UDP = MeasurementSettings()._replace(
    protocol="udp", length_bytes=LENGTH, rate_bps=8e5, interval_s=0.1
)


@contextmanager
def connected():
    """Yield two UDP sockets of loopback that are connected to each other."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as near,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as far,
    ):
        near.bind(("127.0.0.1", 0))
        far.bind(("127.0.0.1", 0))
        near.connect(far.getsockname())
        far.connect(near.getsockname())
        yield near, far


@pytest.fixture
def pair():
    with connected() as both:
        yield both


def datagram(number, stamp_ns):
    return HEADER.pack(number, stamp_ns) + bytes(LENGTH - HEADER.size)


def received(pair, datagrams, packets, omitted, lasted_s=None, **asked):
    """Let a receiver have datagrams and then the sender's counts; returns its rows and figures."""
    near, far = pair
    with receiving([near], asked) as (side, end):
        for data in datagrams:
            far.send(data)
        figures = end([packets], None if omitted is None else [omitted], lasted_s)
    return list(side.rows), {**figures, **figures["streams"][0]}


@contextmanager
def receiving(socks, asked):
    """Yield a receiver, and what ends it with the sender's counts and returns its figures."""
    over = threading.Event()
    settings = UDP._replace(**{"duration_s": 30.0, "omit_s": 10.0, **asked})
    streams = [sock.dup() for sock in socks]
    side = Side(False, streams, settings, 30.0, lambda: over.set() if side.over else None)
    for stream in side._streams:
        stream._made_ns -= 100 * SECOND_NS  # Its sender had time to send all of this.

    def end(packets, omitted, lasted_s):
        side.expect(packets, omitted, lasted_s)
        assert over.wait(DEADLINE_S)
        return side.figures()

    side.start()
    yield side, end
    side.close()


def at(second):
    """Return the stamp of what leaves at a second."""
    return SECOND_0 + round(second * SECOND_NS)


def assert_covered(rows, until_s):
    """Check that a stream's measured intervals cover its time, without a gap."""
    measured = [row for row in rows if row.start_s >= 0]
    ends = [row.end_s for row in measured]
    assert [row.start_s for row in measured] == [0, *ends[:-1]]
    assert ends == sorted(set(ends))
    assert ends[-1] == until_s


def test_a_receiver_measures_what_was_sent_from_the_senders_second_0_on(pair):
    # Of 100 datagrams 40 are of the omitted part; every third is lost, one comes twice, two swap.
    numbers = [number for number in range(100) if number % 3]
    numbers[40], numbers[41] = numbers[41], numbers[40]
    stamped = [datagram(number, SECOND_0 + (number - 40) * 10**6) for number in numbers]
    rows, figures = received(pair, [*stamped, stamped[50]], 100, 40, 0.06)
    measured = [number for number in numbers if number >= 40]
    assert figures["packets_received"] == len(measured) == 40
    assert figures["packets_lost"] == 60 - len(measured)
    assert figures["packets_duplicated"] == 1
    assert figures["packets_reordered"] == 1
    assert figures["bytes_received"] == len(measured) * LENGTH
    counted = [row.metrics for row in rows if row.start_s >= 0]
    for name in ("packets_received", "packets_lost", "packets_duplicated"):
        assert sum(row[name] for row in counted) == figures[name]


def test_a_late_datagram_of_the_omitted_part_counts_nowhere(pair):
    stamps = {number: SECOND_0 + (number - 2) * 10**6 for number in range(5)}
    order = [0, 2, 1, 3, 4]
    _, figures = received(pair, [datagram(number, stamps[number]) for number in order], 5, 2, 0.003)
    assert (figures["packets_received"], figures["packets_lost"]) == (3, 0)
    assert (figures["packets_reordered"], figures["packets_duplicated"]) == (0, 0)


def test_when_nothing_of_the_measured_part_comes_all_of_it_is_lost(pair):
    _, figures = received(pair, [datagram(0, SECOND_0 - 10**6)], 5, 1, 0.004)
    assert (figures["packets_received"], figures["packets_lost"]) == (0, 4)


def test_a_sender_that_ends_within_the_omitted_part_has_lost_nothing(pair):
    _, figures = received(pair, [datagram(0, SECOND_0 - 10**6)], 3, 3, 0.0)
    assert (figures["packets_received"], figures["packets_lost"]) == (0, 0)


@pytest.mark.parametrize("omit_s", [0.0, 0.5])
def test_a_receiver_measures_for_as_long_as_its_sender_however_few_datagrams_come(pair, omit_s):
    stamps = [at(second) for second in (-0.4, 0.2, 0.7)[omit_s == 0 :]]
    rows, figures = received(
        pair, [datagram(*one) for one in enumerate(stamps)], len(stamps), int(omit_s > 0), 1.0,
        omit_s=omit_s, duration_s=1.0,
    )  # fmt: skip
    assert figures["duration_s"] == 1.0
    assert figures["packets_received"] == 2
    assert figures["effective"]["timed_by"] == "sender"
    assert_covered(rows, 1.0)


def test_a_path_that_comes_back_late_was_lossy_and_not_fast(pair):
    datagrams = [datagram(number, at(second)) for number, second in ((0, -1.5), (9, 2.2))]
    rows, figures = received(pair, datagrams, 12, 3, 4.0, omit_s=2.0, duration_s=4.0)
    assert figures["duration_s"] == 4.0
    assert (figures["packets_received"], figures["packets_lost"]) == (1, 8)
    assert_covered(rows, 4.0)


@pytest.mark.parametrize("omit_s", [0.0, 2.0])
@pytest.mark.parametrize("before", [0, 1])
def test_a_path_that_loses_all_of_it_has_a_rate_of_0_for_the_whole_time(pair, omit_s, before):
    before = before if omit_s else 0
    datagrams = [datagram(number, at(-0.7)) for number in range(before)]
    omitted = 3 if omit_s else 0
    rows, figures = received(pair, datagrams, 8, omitted, 4.0, omit_s=omit_s, duration_s=4.0)
    assert figures["duration_s"] == 4.0
    assert (figures["packets_received"], figures["packets_lost"]) == (0, 8 - omitted)
    assert_covered(rows, 4.0)
    assert rows[-1].metrics["packets_lost"] == 8 - omitted
    assert not {"jitter_rfc3550_s", "pdv_p95_p50_s"} & figures.keys()


def test_what_a_queue_holds_at_the_end_takes_its_time(pair):
    # One of second 0.1 arrives with one of second 0.9: the queue was shorter by 0.8 s before.
    datagrams = [datagram(0, at(0.9)), datagram(1, at(0.1))]
    _, figures = received(pair, datagrams, 2, 0, 1.0, omit_s=0.0, duration_s=1.0)
    assert figures["duration_s"] == 1.0
    datagrams = [datagram(0, at(0.9)), datagram(1, at(0.1))]
    _, figures = received(pair, datagrams, 2, 0, 0.1, omit_s=0.0, duration_s=1.0)
    assert figures["duration_s"] == pytest.approx(0.9, abs=0.1)


def test_a_receiver_that_is_stopped_between_two_clocks_measures_no_longer_for_that(
    pair, monkeypatch
):
    # Both clocks go on by 10 s while it reads them for the second datagram.
    stopped_ns = iter([0, 10 * SECOND_NS])
    clock = SimpleNamespace(ahead_ns=0)

    def time_ns():
        clock.ahead_ns += next(stopped_ns, 0)
        return time.time_ns() + clock.ahead_ns

    clock.monotonic_ns = lambda: time.monotonic_ns() + clock.ahead_ns
    clock.time_ns = time_ns
    monkeypatch.setattr(udp, "time", clock)
    datagrams = [datagram(number, at(number / 1000)) for number in range(3)]
    _, figures = received(pair, datagrams, 3, 0, 0.003, omit_s=0.0)
    assert figures["packets_received"] == 3
    assert figures["duration_s"] < 5


def test_what_comes_while_a_busy_machine_lets_the_receiver_wait_is_counted(pair, monkeypatch):
    near, far = pair
    clock = SimpleNamespace(ahead_ns=0)
    clock.monotonic_ns = lambda: time.monotonic_ns() + clock.ahead_ns
    clock.time_ns = lambda: time.time_ns() + clock.ahead_ns
    monkeypatch.setattr(udp, "time", clock)

    class Late(socket.socket):
        """Lets its reader learn only 10 s later that nothing was there, when something is."""

        def recvmsg_into(self, *args):
            try:
                return super().recvmsg_into(*args)
            except BlockingIOError:
                if side._streams[0]._sent is not None and not clock.ahead_ns:
                    far.send(datagram(1, at(0.001)))
                    clock.ahead_ns = 10 * SECOND_NS
                raise

    with Late(fileno=near.detach()) as late, receiving([late], {"omit_s": 0.0}) as (side, end):
        far.send(datagram(0, at(0)))
        (stream,) = end([2], [0], 0.002)["streams"]
    assert (stream["packets_received"], stream["packets_lost"]) == (2, 0)


def test_second_0_stays_where_it_is_when_a_stream_has_ended_by_it(monkeypatch):
    asked = {"omit_s": 10.0, "duration_s": 5.0}
    with (
        connected() as (near, far),
        connected() as (other_near, other_far),
        receiving([near, other_near], asked) as (side, end),
    ):
        far.send(datagram(0, at(-5)))
        first = side._streams[0]
        wait_until(lambda: first.ended_ns)
        # The other one is behind: what it has is read when this one has ended, and notes that.
        monkeypatch.setattr(first, "note", lambda now_ns: None)
        first.expect(1, 0, 1.0)
        wait_until(lambda: first.ended_ns > first._timeline.zero_ns)
        other_far.send(datagram(0, at(0)))
        figures = end([1, 1], [0, 0], 1.0)
    assert figures["duration_s"] == 1.0


def test_a_stream_without_a_datagram_measures_no_longer_than_the_others():
    asked = {"omit_s": 0.0, "duration_s": 5.0}
    with (
        connected() as (near, far),
        connected() as (other_near, _),
        receiving([near, other_near], asked) as (side, end),
    ):
        far.send(datagram(0, at(0)))
        wait_until(lambda: side._streams[0].ended_ns)
        figures = end([1, 0], [0, 0], 0.003)
    assert figures["duration_s"] == 0.003


def test_no_stream_counts_what_another_has_not_omitted_yet():
    asked = {"omit_s": 1.0, "duration_s": 5.0}
    with (
        connected() as one,
        connected() as other,
        receiving([one[0], other[0]], asked) as (side, end),
    ):
        for number, second in enumerate((-0.5, 3.0)):
            one[1].send(datagram(number, at(second)))
        wait_until(lambda: side.moved_bytes == 2 * LENGTH)
        for number, second in enumerate((-0.9, -0.6, -0.3, 0.0, 0.3)):
            other[1].send(datagram(number, at(second)))
        figures = end([2, 8], [1, 3], 5.0)
    counts = [(one["packets_received"], one["packets_lost"]) for one in figures["streams"]]
    assert counts == [(1, 0), (2, 3)]


@pytest.mark.parametrize("second", [-(10**9), 10**9])
def test_impossible_times_of_a_sender_are_limited_to_what_is_possible(pair, second):
    rows, figures = received(
        pair, [datagram(0, at(second))], 1, 0, 1e18, omit_s=0.0, duration_s=None,
        total_bytes=1 << 50,
    )  # fmt: skip
    assert figures["duration_s"] <= 101
    assert len(rows) <= 1020


def test_an_older_sender_is_measured_by_the_receivers_clock(pair):
    _, figures = received(pair, [datagram(number, number) for number in (0, 1, 3)], 4, None,
                          omit_s=0.0)  # fmt: skip
    assert (figures["packets_received"], figures["packets_lost"]) == (3, 1)
    assert figures["effective"]["timed_by"] == "arrivals"


class Wire:
    """A socket that keeps what was sent."""

    def __init__(self):
        self.sent = []

    def send(self, data):
        self.sent.append(bytes(data))

    def setsockopt(self, *_):
        pass


@pytest.mark.parametrize("sent_before", [0, 1, 7])
def test_a_paced_sender_that_is_stopped_counts_no_datagram_that_it_did_not_send(
    monkeypatch, sent_before
):
    wire = Wire()
    settings = UDP._replace(duration_s=1.0)
    sender = UdpSender(0, Timeline(settings.schedule()), wire, settings, {})

    def wait(pacer, packets, stopped):
        if packets == sent_before:
            sender.stop()  # As the measurement does when a sender is late at the end.

    monkeypatch.setattr(Pacer, "wait", wait)
    sender.move()
    assert sender.packets == len(wire.sent) == sent_before


def test_the_stamps_tell_the_omitted_part_as_the_sender_counts_it():
    wire = Wire()
    settings = UDP._replace(rate_bps=2e6, omit_s=0.05, duration_s=0.05, interval_s=0.02)
    timeline = Timeline(settings.schedule())
    sender = UdpSender(0, timeline, wire, settings, {})
    measurement = Measurement([sender], timeline, lambda: None)
    measurement.start()
    measurement.join(DEADLINE_S)
    heads = [HEADER.unpack_from(data) for data in wire.sent]
    assert [number for number, _ in heads] == list(range(sender.packets))
    omitted = [number for number, stamp_ns in heads if stamp_ns < SECOND_0]
    assert len(omitted) == sender.omitted_packets
    assert measurement.totals.streams[0]["packets_sent"] == len(heads) - len(omitted)


def test_a_slow_sender_measures_as_long_as_was_asked():
    # A datagram of 100 bytes each 0.8 s.
    settings = UDP._replace(rate_bps=1000, omit_s=0.05, duration_s=0.1)
    timeline = Timeline(settings.schedule())
    sender = UdpSender(0, timeline, Wire(), settings, {})
    measurement = Measurement([sender], timeline, lambda: None, drain_s=30.0)
    measurement.start()
    measurement.join(DEADLINE_S)
    assert measurement.totals.duration_s == 0.1
    assert measurement.totals.streams[0]["packets_sent"] == 0


def test_a_datagrams_head_is_its_number_and_its_stamp():
    assert HEADER.pack(1, SECOND_0) == struct.pack(">QQ", 1, 2**62)
