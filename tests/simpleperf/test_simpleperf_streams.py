"""When a stream's figures are read, and what a late reading reports."""

import itertools
import os
import socket
import threading
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simpleperf.simpleperf_harness import FEWER, running_server
from waiting import DEADLINE_S, wait_until

from benchctl_simpleperf.simpleperf.measuring import measurement as measurement_module
from benchctl_simpleperf.simpleperf.measuring import stream as stream_module
from benchctl_simpleperf.simpleperf.measuring.measurement import Measurement
from benchctl_simpleperf.simpleperf.measuring.pacing import Pacer
from benchctl_simpleperf.simpleperf.measuring.stream import Reading, Stream, Timeline
from benchctl_simpleperf.simpleperf.measuring.tcp import TcpSender
from benchctl_simpleperf.simpleperf.measuring.tcp_info import TCP_INFO_BYTES, read_tcp_info
from benchctl_simpleperf.simpleperf.measuring.udp import UdpSender
from benchctl_simpleperf.simpleperf.program import control_client
from benchctl_simpleperf.simpleperf.protocol.intervals import Schedule
from benchctl_simpleperf.simpleperf.protocol.settings import MeasurementSettings
from benchctl_standalone import priority
from benchctl_standalone.kernel import Kernel

MS = 1_000_000


class Counting(Stream):
    """A stream that numbers its readings, and moves until it is stopped."""

    def __init__(self, schedule, asks_the_kernel):
        super().__init__(0, Timeline(schedule), None)
        self.asks_the_kernel = asks_the_kernel
        self.timeline = self._timeline
        self._readings = itertools.count(1)
        self._end = threading.Event()

    def move(self):
        self.begin()
        self._end.wait(DEADLINE_S)

    def stop(self):
        super().stop()
        self._end.set()

    def reading(self):
        return Reading({"reading": next(self._readings)}, {})


class Idle(Stream):
    """A stream that counts nothing and never moves."""

    def reading(self):
        return Reading({}, {})


@pytest.fixture
def clock(monkeypatch):
    """A clock that shows what one sets, to whoever asks the time after reading."""
    now = [0]
    monkeypatch.setattr(stream_module.time, "monotonic_ns", lambda: now[0])
    return now


def noted(stream, clock, now_ms):
    clock[0] = 1000 * MS + now_ms * MS
    stream.note(clock[0])
    taken = [
        (note.boundary.number, note.due_ns // MS - 1000, note.at_ns // MS - 1000)
        for note in stream.notes
    ]
    stream.notes.clear()
    return taken


def test_a_late_reading_of_the_kernel_is_one_sample_with_its_own_time(clock):
    stream = Counting(Schedule(0, 1000 * MS, 100 * MS), asks_the_kernel=True)
    stream.begin(1000 * MS)
    assert noted(stream, clock, 103) == [(0, 100, 103)]
    assert noted(stream, clock, 420) == [(3, 400, 420)]
    assert noted(stream, clock, 450) == []


def test_a_reading_after_the_end_is_one_sample_too(clock):
    stream = Counting(Schedule(0, 1000 * MS, 100 * MS), asks_the_kernel=True)
    stream.begin(1000 * MS)
    assert noted(stream, clock, 103) == [(0, 100, 103)]
    assert noted(stream, clock, 1020) == []
    assert (stream.last.boundary.number, stream.last.at_ns) == (9, 2020 * MS)


def test_a_late_look_at_a_streams_own_counts_closes_every_interval_in_its_time(clock):
    stream = Counting(Schedule(0, 1000 * MS, 100 * MS), asks_the_kernel=False)
    stream.begin(1000 * MS)
    assert noted(stream, clock, 320) == [(0, 100, 100), (1, 200, 200), (2, 300, 300)]


def test_no_late_reading_lies_across_the_end_of_the_omitted_part(clock):
    stream = Counting(Schedule(200 * MS, 1000 * MS, 100 * MS), asks_the_kernel=True)
    stream.begin(1000 * MS)
    assert noted(stream, clock, 430) == [(1, 200, 430)]
    assert noted(stream, clock, 500) == [(4, 500, 500)]


def test_second_0_of_a_receiver_is_that_of_the_latest_datagram_before_it(clock):
    stream = Counting(Schedule(200 * MS, 400 * MS, 100 * MS), asks_the_kernel=False)
    stream.begin(1000 * MS)
    assert noted(stream, clock, 150) == [(0, 100, 100)]
    # A queue of 250 ms fills, and 20 ms of it are gone at the last datagram of the omitted part.
    assert stream.timeline.follow(1450 * MS, measured=False)
    assert stream.timeline.follow(1430 * MS, measured=False)
    assert noted(stream, clock, 420) == []
    # The first of the measured part had to wait longer, the second shorter.
    assert stream.timeline.follow(1440 * MS, measured=True)
    assert stream.timeline.follow(1425 * MS, measured=True)
    assert noted(stream, clock, 560) == [(1, 425, 425), (2, 525, 525)]
    assert not stream.timeline.follow(1400 * MS, measured=True)
    assert noted(stream, clock, 640) == [(3, 625, 625)]


def test_second_0_of_a_receiver_never_comes_before_what_has_ended(clock):
    stream = Counting(Schedule(200 * MS, 400 * MS, 100 * MS), asks_the_kernel=False)
    stream.begin(1000 * MS)
    assert noted(stream, clock, 150) == [(0, 100, 100)]
    assert stream.timeline.follow(1050 * MS, measured=True)
    assert stream.timeline.zero_ns == 1100 * MS
    assert noted(stream, clock, 210) == [(1, 100, 100), (2, 200, 200)]


def test_before_an_interval_has_ended_the_beginning_follows_second_0(clock):
    stream = Counting(Schedule(0, 400 * MS, 100 * MS), asks_the_kernel=False)
    stream.begin(1000 * MS)
    # The first datagram was 60 ms late.
    assert stream.timeline.follow(940 * MS, measured=True)
    assert (stream.timeline.start_ns, stream.timeline.end_ns) == (940 * MS, 1340 * MS)
    assert noted(stream, clock, 50) == [(0, 40, 40)]


@FEWER
@given(
    st.integers(0, 300),
    st.lists(st.tuples(st.integers(0, 120), st.integers(-400, 400), st.booleans()), max_size=40),
)
def test_whatever_datagrams_say_of_second_0_intervals_follow_each_other(omit, arrivals):
    timeline = Timeline(Schedule(omit * MS, 500 * MS, 100 * MS))
    stream = Idle(0, timeline, None)
    now_ns = 1000 * MS
    stream.begin(now_ns)
    ledger = measurement_module._Ledger([stream], timeline, now_ns)
    for pause, shift, measured in arrivals:
        now_ns += pause * MS
        timeline.follow(now_ns + shift * MS, measured)
        stream.note(now_ns)
    zero_ns = timeline.zero_ns
    rows = ledger.collect() + ledger.finish(max(now_ns, timeline.end_ns))
    counted = [row for row in rows if row.start_s >= 0]
    assert all(row.end_s > row.start_s for row in rows)
    assert counted[0].start_s == 0
    assert all(before.end_s == after.start_s for before, after in itertools.pairwise(counted))
    assert [row.end_s for row in counted[:-1]] == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert timeline.zero_ns == zero_ns


def test_every_sample_of_a_blocked_sender_is_a_reading_of_its_own():
    stream = Counting(Schedule(0, 200 * MS, 10 * MS), asks_the_kernel=True)
    measurement = Measurement([stream], stream.timeline, lambda: None)
    measurement.start()
    measurement.join(DEADLINE_S)
    rows = list(measurement.rows)
    assert all(row.metrics["reading"] > 0 for row in rows)
    assert all(before.end_s == after.start_s for before, after in itertools.pairwise(rows))
    for row in rows:
        due_s = 0.01 * (row.number + 1)
        assert row.end_s - row.metrics["reading_late_s"] == pytest.approx(due_s)
    assert measurement.totals.duration_s == rows[-1].end_s >= 0.2


@pytest.mark.skipif(Kernel.TCP_INFO is None, reason="Linux only")
def test_a_sender_counts_what_the_kernel_sent_and_not_what_it_took():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
    near.sendall(b"a preamble")
    settings = MeasurementSettings()._replace(duration_s=0.3, interval_s=0.05)
    timeline = Timeline(settings.schedule())
    sender = TcpSender(0, timeline, near, settings, {})
    measurement = Measurement([sender], timeline, lambda: None)
    measurement.start()
    measurement.join(DEADLINE_S)
    # Nobody read: what left is what the peer's window took.
    measurement.close()
    arrived = 0
    with far:
        far.settimeout(DEADLINE_S)
        try:
            while data := far.recv(1 << 20):
                arrived += len(data)
        except ConnectionResetError:
            pass
    [totals] = measurement.totals.streams
    assert 0 < totals["bytes_sent"] < sender.moved_bytes


@pytest.mark.skipif(Kernel.TCP_INFO is None, reason="Linux only")
def test_a_sender_of_bytes_ends_when_all_are_acknowledged():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
    # One buffer holds all of it, the other a part.
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
    far.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 15)
    total = 300_000
    settings = MeasurementSettings()._replace(
        duration_s=None, total_bytes=total, interval_s=0.0, length_bytes=10_000
    )
    timeline = Timeline(settings.schedule())
    sender = TcpSender(0, timeline, near, settings, {})
    measurement = Measurement([sender], timeline, lambda: None)
    measurement.start()
    wait_until(lambda: sender.moved_bytes == total)
    assert measurement.totals is None
    arrived = 0
    with far:
        while data := far.recv(1 << 16):
            arrived += len(data)
    measurement.join(DEADLINE_S)
    assert measurement.totals.streams[0]["bytes_sent"] == arrived == total
    measurement.close()


@pytest.fixture
def sent_before(monkeypatch):
    """What TCP senders had sent on their connections when they began."""
    seen = []
    move = TcpSender.move

    def look(self):
        data = self._sock.getsockopt(socket.IPPROTO_TCP, Kernel.TCP_INFO, TCP_INFO_BYTES)
        seen.append(read_tcp_info(data)[0]["bytes_sent"])
        move(self)

    monkeypatch.setattr(TcpSender, "move", look)
    return seen


@pytest.mark.skipif(Kernel.TCP_INFO is None, reason="Linux only")
@pytest.mark.parametrize("host", ["127.0.0.1", "::"])
def test_a_connection_carries_nothing_before_the_start(sent_before, host):
    with running_server(host=host) as server:
        server.host = "127.0.0.1"
        notes = server.measure(directions=("send", "receive"), streams=2, total_bytes=10_000)
    assert sent_before == [0] * 4
    for figures in notes.results[0]["directions"].values():
        assert figures["bytes_sent"] == figures["bytes_received"] == 10_000


@pytest.mark.skipif(Kernel.TCP_INFO is None, reason="Linux only")
@pytest.mark.parametrize("control", ["192.168.1.2:4000", None])
def test_a_client_whose_address_is_changed_on_the_way_says_which_stream_each_is(
    monkeypatch, sent_before, control
):
    known_by = control and {"control": control, "ports": [4001, 4002]}
    monkeypatch.setattr(control_client._ControlClient, "_known_by", lambda self: known_by)
    with running_server() as server:
        notes = server.measure(streams=2, total_bytes=10_000)
    assert all(count > 40 for count in sent_before)
    assert notes.results[0]["directions"]["send"]["bytes_received"] == 10_000


def test_who_waits_for_the_first_byte_finds_it_sent(monkeypatch):
    monkeypatch.setattr(Kernel, "TCP_INFO", None)  # A pair of local sockets has none.
    near, far = socket.socketpair()
    settings = MeasurementSettings()._replace(duration_s=None, total_bytes=1000)
    timeline = Timeline(settings.schedule())
    sender = TcpSender(0, timeline, near, settings, {})
    came = []

    class Begun(threading.Event):
        def set(self):
            came.append(far.recv(2000, socket.MSG_DONTWAIT))
            super().set()

    timeline.begun = Begun()
    sender.stopped = True  # Nothing more than the beginning.
    with near, far:
        sender.move()
    assert came == [bytes(1000)]


def test_the_time_of_day_is_of_the_reading_that_nothing_interrupted(monkeypatch):
    # The monotonic clock before, the time of day, the monotonic clock after; the thread waits
    # in four of five readings, before or after it has read the time of day.
    moments = iter(
        [0, 1_000_050, 50, 100, 1_050_100, 50_100, 50_200, 1_050_201, 50_202,
         50_300, 1_090_300, 90_300, 90_400, 1_090_450, 99_000]
    )  # fmt: skip
    clocks = SimpleNamespace(monotonic_ns=lambda: next(moments), time_ns=lambda: next(moments))
    monkeypatch.setattr(measurement_module, "time", clocks)
    assert measurement_module.unix_time_s(50_000) == (1_000_000 + 50_000) / 1e9


@pytest.fixture
def scheduling(monkeypatch):
    """Return a function that gives a thread a policy, and answers what it asks; returns that.

    Threads of measurements that end meanwhile have nothing to do with it.
    """
    asked = []

    def scheduled(thread, policy, answer):
        def ask(_, policy, __):
            if threading.current_thread() is thread:
                asked.append(policy)
                answer()

        monkeypatch.setattr(os, "sched_getscheduler", lambda _: policy)
        monkeypatch.setattr(os, "sched_setscheduler", ask)
        return asked

    return scheduled


def test_the_measuring_thread_goes_first_where_it_may_and_only_for_so_long(scheduling):
    asked = scheduling(threading.current_thread(), os.SCHED_OTHER, lambda: None)
    with priority.woken_first():
        assert asked == [os.SCHED_RR]
    assert asked == [os.SCHED_RR, os.SCHED_OTHER]


def test_who_may_not_go_first_measures_all_the_same(scheduling):
    def refuse():
        raise PermissionError

    stream = Counting(Schedule(0, 20 * MS, 10 * MS), asks_the_kernel=True)
    measurement = Measurement([stream], stream.timeline, lambda: None)
    asked = scheduling(measurement, os.SCHED_OTHER, refuse)
    measurement.start()
    measurement.join(DEADLINE_S)
    assert asked == [os.SCHED_RR]
    assert measurement.totals.duration_s >= 0.02


def test_a_scheduling_that_the_user_chose_is_left_alone(scheduling):
    asked = scheduling(threading.current_thread(), os.SCHED_FIFO, lambda: None)
    with priority.woken_first():
        pass
    assert asked == []


@pytest.fixture
def connected():
    """Yield the two ends of a TCP connection with small segments."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as sender:
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1460)
        sender.connect(server.getsockname())
        receiver, _ = server.accept()
        with receiver:
            yield sender, receiver


@pytest.mark.parametrize("zero_copy", [False, True])
def test_a_send_is_whole_segments_unless_its_length_was_chosen(connected, monkeypatch, zero_copy):
    sock, receiver = connected
    reader = threading.Thread(
        target=lambda: [None for _ in iter(lambda: receiver.recv(1 << 16), b"")]
    )
    reader.start()
    segment = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
    asked = []
    monkeypatch.setattr(
        Kernel, "SENDFILE", lambda *args: asked.append(args[-1]) or os.sendfile(*args)
    )
    settings = MeasurementSettings(duration_s=None, total_bytes=200_000, zero_copy=zero_copy)
    sender = TcpSender(0, Timeline(Schedule(0, 1000 * MS, 100 * MS)), sock, settings, {})
    length = sender.facts["length_bytes"]
    assert length % segment == 0
    assert 128 * 1024 - segment < length <= 128 * 1024
    sender.move()
    assert sender.moved_bytes == 200_000
    # All but the last, which sends what is left.
    assert all(count == (1 << 16) // segment * segment for count in asked[:-1])
    assert bool(asked) is zero_copy
    reader.join()
    chosen = settings._replace(length_bytes=100_000)
    assert TcpSender(0, sender._timeline, sock, chosen, {}).facts["length_bytes"] == 100_000


@pytest.mark.parametrize(("rate_bps", "segments"), [(16e6, 1), (1e9, 17), (1e12, 90)])
def test_a_timer_paces_few_segments_at_a_time_unless_their_length_was_chosen(
    connected, monkeypatch, rate_bps, segments
):
    monkeypatch.setattr(Kernel, "PACING_RATE", None)
    sock, _ = connected
    segment = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
    assert segment == 1448
    settings = MeasurementSettings(rate_bps=rate_bps)
    timeline = Timeline(settings.schedule())
    of_the_rate = TcpSender(0, timeline, sock, settings, {})
    assert of_the_rate.facts["length_bytes"] == segments * segment
    chosen = TcpSender(0, timeline, sock, settings._replace(length_bytes=100_000), {})
    assert chosen.facts["length_bytes"] == 100_000


@pytest.mark.parametrize(
    ("sender", "kind"), [(TcpSender, socket.SOCK_STREAM), (UdpSender, socket.SOCK_DGRAM)]
)
def test_a_senders_rate_counts_from_the_start_of_its_time(monkeypatch, sender, kind):
    monkeypatch.setattr(Kernel, "PACING_RATE", None)
    monkeypatch.setattr(Kernel, "TCP_INFO", None)
    starts = []
    monkeypatch.setattr(Pacer, "start", lambda _, at_ns: starts.append(at_ns))
    monkeypatch.setattr(Pacer, "wait", lambda *_: None)
    settings = MeasurementSettings(
        rate_bps=8e6, length_bytes=1000, duration_s=None, total_bytes=2000
    )
    timeline = Timeline(settings.schedule())
    near, far = socket.socketpair(type=kind)
    with near, far:
        sender(0, timeline, near, settings, {}).move()
    assert starts == [timeline.start_ns]
