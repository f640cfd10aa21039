"""UDP streams by themselves: what they count of the datagrams that really went or came."""

import socket
import struct
import threading

import pytest
from waiting import DEADLINE_S

from benchctl_simpleperf.simpleperf.datagrams import HEADER, SECOND_0
from benchctl_simpleperf.simpleperf.measurement import Measurement
from benchctl_simpleperf.simpleperf.pacing import Pacer
from benchctl_simpleperf.simpleperf.settings import MeasurementSettings
from benchctl_simpleperf.simpleperf.side import Side
from benchctl_simpleperf.simpleperf.stream import Timeline
from benchctl_simpleperf.simpleperf.udp import UdpSender

LENGTH = 100
UDP = MeasurementSettings()._replace(
    protocol="udp", length_bytes=LENGTH, rate_bps=8e5, interval_s=0.1
)


@pytest.fixture
def pair():
    """Two UDP sockets of loopback that are connected to each other."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as near,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as far,
    ):
        near.bind(("127.0.0.1", 0))
        far.bind(("127.0.0.1", 0))
        near.connect(far.getsockname())
        far.connect(near.getsockname())
        yield near, far


def datagram(number, stamp_ns):
    return HEADER.pack(number, stamp_ns) + bytes(LENGTH - HEADER.size)


def received(pair, datagrams, packets, omitted, **asked):
    """Let a receiver have datagrams and then the sender's counts; returns its rows and figures."""
    near, far = pair
    over = threading.Event()
    settings = UDP._replace(**{"duration_s": 30.0, "omit_s": 10.0, **asked})
    side = Side(False, [near.dup()], settings, 30.0, lambda: over.set() if side.over else None)
    side.start()
    for data in datagrams:
        far.send(data)
    side.expect([packets], None if omitted is None else [omitted])
    assert over.wait(DEADLINE_S)
    figures = side.figures()
    side.close()
    return list(side.rows), figures["streams"][0]


def test_a_receiver_measures_what_was_sent_from_the_senders_second_0_on(pair):
    # Of 100 datagrams 40 are of the omitted part; every third is lost, one comes twice, two swap.
    numbers = [number for number in range(100) if number % 3]
    numbers[40], numbers[41] = numbers[41], numbers[40]
    stamped = [datagram(number, SECOND_0 + (number - 40) * 10**6) for number in numbers]
    rows, figures = received(pair, [*stamped, stamped[50]], 100, 40)
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
    _, figures = received(pair, [datagram(number, stamps[number]) for number in order], 5, 2)
    assert (figures["packets_received"], figures["packets_lost"]) == (3, 0)
    assert (figures["packets_reordered"], figures["packets_duplicated"]) == (0, 0)


def test_when_nothing_of_the_measured_part_comes_all_of_it_is_lost(pair):
    _, figures = received(pair, [datagram(0, SECOND_0 - 10**6)], 5, 1)
    assert (figures["packets_received"], figures["packets_lost"]) == (0, 4)


def test_a_sender_that_ends_within_the_omitted_part_has_lost_nothing(pair):
    _, figures = received(pair, [datagram(0, SECOND_0 - 10**6)], 3, 3)
    assert (figures["packets_received"], figures["packets_lost"]) == (0, 0)


def test_an_older_sender_is_measured_by_the_receivers_clock(pair):
    _, figures = received(pair, [datagram(number, number) for number in (0, 1, 3)], 4, None,
                          omit_s=0.0)  # fmt: skip
    assert (figures["packets_received"], figures["packets_lost"]) == (3, 1)


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


def test_a_datagrams_head_is_its_number_and_its_stamp():
    assert HEADER.pack(1, SECOND_0) == struct.pack(">QQ", 1, 2**62)
