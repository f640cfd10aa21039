"""Test packets leave when they are due, and what the kernel says of them is kept."""

import errno
import os
import socket
import time
from contextlib import contextmanager, suppress

import pytest
from owamp.owamp_harness import MILLISECOND, UNSYNCHRONIZED, sending
from waiting import DEADLINE_S, wait_until

from benchctl_owamp.simpleowamp.measuring import sender as sender_module
from benchctl_owamp.simpleowamp.measuring.channel import fork
from benchctl_owamp.simpleowamp.measuring.clock import SECOND_NS, Clock
from benchctl_owamp.simpleowamp.measuring.endpoint import (
    PACKET_LIMIT,
    at_port,
    drop_hosts,
    open_endpoint,
    receive,
    stamp_transmissions,
    transmission,
)
from benchctl_owamp.simpleowamp.measuring.rehearsal import Stage
from benchctl_owamp.simpleowamp.measuring.sender import Order, Sending
from benchctl_owamp.simpleowamp.protocol.packets import owamp_format
from benchctl_owamp.simpleowamp.protocol.schedule import offsets
from benchctl_owamp.simpleowamp.protocol.timestamps import from_interval, from_timestamp
from benchctl_standalone.kernel import Kernel

SID = bytes(range(16))
LINUX = pytest.mark.skipif(Kernel.TIMESTAMPING is None, reason="needs Linux")


@contextmanager
def pair(host="127.0.0.1", dscp=0):
    """Two sockets that are connected to each other."""
    one, other = open_endpoint((host, 0), dscp=dscp), open_endpoint((host, 0))
    one.connect(other.getsockname())
    other.connect(one.getsockname())
    with one, other:
        yield one, other


def order(packets=5, start_ns=None, timeout_s=DEADLINE_S, **more):
    start_ns = time.time_ns() if start_ns is None else start_ns
    return Order(0, SID, (MILLISECOND,), packets, start_ns, round(timeout_s * SECOND_NS), **more)


def arrival(sock):
    def look():
        try:
            return receive(sock, memoryview(bytearray(PACKET_LIMIT)))
        except BlockingIOError:
            return None

    return wait_until(look)


def outcome_of(channel):
    [(outcome, _)] = channel.receive()
    return outcome


@pytest.mark.parametrize("host", ["127.0.0.1", pytest.param("::1", marks=pytest.mark.ipv6)])
def test_packets_carry_their_numbers_their_times_and_a_ttl_of_255(host):
    with pair(host) as (near, far), sending(Clock()) as channel:
        start_ns = time.time_ns()
        channel.send(order(start_ns=start_ns, padding_bytes=20), near.fileno())
        outcome = outcome_of(channel)
        assert (outcome.next_seq, outcome.sent, outcome.skipped) == (5, 5, ())
        due = [start_ns + from_interval(each) for each in offsets(SID, (MILLISECOND,), 5)]
        for seq in range(5):
            taken = arrival(far)
            packet = owamp_format().read(taken.data)
            assert (packet.seq, len(taken.data), taken.ttl) == (seq, 14 + 20, 255)
            sent_ns = from_timestamp(packet.time)
            assert due[seq] <= sent_ns <= taken.received_ns


def test_a_dscp_is_on_every_packet():
    with pair(dscp=46) as (near, _):
        assert near.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) == 46 << 2


@LINUX
def test_the_kernel_says_when_each_packet_left_and_rehearsals_do_not_count():
    with pair() as (near, far):
        assert stamp_transmissions(near)
        for number in range(3):
            near.send(b"nothing leaves", Kernel.PROBE)
            before_ns = time.time_ns()
            near.send(b"packet")
            found, left_ns = wait_until(lambda: told(near))
            assert found == number
            assert before_ns <= left_ns <= arrival(far).received_ns
        with pytest.raises(BlockingIOError):
            receive(far, memoryview(bytearray(100)))


def told(sock):
    try:
        return transmission(sock)
    except BlockingIOError:
        return None


@LINUX
def test_the_outcome_says_how_late_packets_were_and_how_long_the_kernel_took():
    with pair() as (near, _), sending(Clock()) as channel:
        channel.send(order(), near.fileno())
        outcome = outcome_of(channel)
        assert outcome.late_s["p99"] >= 0
        assert outcome.kernel_s["median"] > 0


@pytest.mark.parametrize("host", ["127.0.0.1", pytest.param("::1", marks=pytest.mark.ipv6)])
def test_a_system_without_the_kernels_features_sends_and_receives(monkeypatch, host):
    for name in ("TIMESTAMP_NS", "TIMESTAMPING", "RECEIVE_TTL", "RECEIVE_HOP_LIMIT", "PROBE"):
        monkeypatch.setattr(Kernel, name, None)
    with pair(host) as (near, far), sending(Clock()) as channel:
        before_ns = time.time_ns()
        channel.send(order(packets=1), near.fileno())
        assert outcome_of(channel).kernel_s is None
        taken = arrival(far)
        assert taken.ttl is None
        assert before_ns <= taken.received_ns <= time.time_ns()


def test_packets_that_are_later_than_the_timeout_are_skipped():
    with pair() as (near, _), sending(Clock()) as channel:
        late_ns = time.time_ns() - 3600 * SECOND_NS
        channel.send(order(start_ns=late_ns, timeout_s=1.0), near.fileno())
        outcome = outcome_of(channel)
        assert (outcome.next_seq, outcome.sent, outcome.skipped) == (5, 0, ((0, 4),))


def test_a_stopped_session_says_what_was_sent_so_far():
    with pair() as (near, _), sending(Clock()) as channel:
        channel.send(order(start_ns=time.time_ns() + 3600 * SECOND_NS), near.fileno())
        channel.send(0)
        outcome = outcome_of(channel)
        assert (outcome.next_seq, outcome.sent) == (0, 0)


def test_sessions_of_one_process_do_not_wait_for_each_other():
    with pair() as (slow, _), pair() as (fast, _), sending(Clock()) as channel:
        later_ns = time.time_ns() + 3600 * SECOND_NS
        channel.send(order(start_ns=later_ns)._replace(number=1), slow.fileno())
        channel.send(order()._replace(number=2), fast.fileno())
        assert outcome_of(channel).number == 2


def test_a_packet_that_a_broken_path_takes_is_lost_and_not_skipped():
    with pair() as (near, far), sending(Clock()) as channel:
        far.close()  # The next packet is answered by "port unreachable".
        channel.send(order(), near.fileno())
        outcome = outcome_of(channel)
        assert (outcome.sent, outcome.skipped, outcome.problem) == (5, (), "")


class Full:
    """A socket whose device queue is full for some time."""

    def __init__(self, sock, times):
        self._sock, self.times = sock, times

    def send(self, data, flags=0):
        if not flags and self.times:
            self.times -= 1
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return self._sock.send(data, flags)

    def __getattr__(self, name):
        return getattr(self._sock, name)


def test_a_packet_is_made_before_its_time_is_read():
    with pair() as (near, far):
        now_ns = [time.time_ns()]
        one = Sending(order(packets=1, start_ns=now_ns[0]), near, Clock(time_ns=lambda: now_ns[0]))
        prepare = one._format.prepare

        def slowly(seq, error):
            now_ns[0] += SECOND_NS
            return prepare(seq, error)

        one._format.prepare = slowly
        one.send()
        assert from_timestamp(owamp_format().read(arrival(far).data).time) == now_ns[0]


@pytest.mark.parametrize("host", ["127.0.0.1", pytest.param("::1", marks=pytest.mark.ipv6)])
def test_a_rehearsal_goes_through_the_kernel_and_reaches_nobody(host):
    with pair(host) as (near, far):
        one = Sending(order(packets=1), near, Clock())
        stage = Stage(near.family)
        taken = []
        stage._sock = Watched(stage._sock, taken)
        one.rehearse(stage)
        assert taken == [14]
        one.send()
        assert owamp_format().read(arrival(far).data).seq == 0
        assert one.outcome().sent == 1
        with pytest.raises(BlockingIOError):
            receive(far, memoryview(bytearray(100)))
        stage.close()


class Watched:
    """A socket that notes the size of what it receives."""

    def __init__(self, sock, taken):
        self._sock, self._taken = sock, taken

    def recv_into(self, buffer):
        self._sock.settimeout(DEADLINE_S)
        self._taken.append(self._sock.recv_into(buffer))
        self._sock.setblocking(False)

    def __getattr__(self, name):
        return getattr(self._sock, name)


def test_a_host_without_a_loopback_device_rehearses_what_it_can(monkeypatch):
    def bind(sock, address):
        raise OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")

    monkeypatch.setattr(socket.socket, "bind", bind)
    stage = Stage(socket.AF_INET)
    stage.send(b"packet")
    stage.close()


def test_a_full_queue_is_left_to_drain_and_the_packet_has_the_time_when_it_left():
    with pair() as (near, far):
        due_ns = time.time_ns() - SECOND_NS
        one = Sending(order(packets=1, start_ns=due_ns), Full(near, 1), Clock())
        one.send()
        assert not one.done
        assert one.try_ns > one.due_ns
        before_ns = time.time_ns()
        one.send()
        assert one.done
        assert from_timestamp(owamp_format().read(arrival(far).data).time) >= before_ns


def test_a_sender_that_fell_behind_catches_up_at_twice_its_rate():
    with pair() as (near, _):
        one = Sending(order(start_ns=time.time_ns() - SECOND_NS), near, Clock())
        for _ in range(3):
            before_ns = time.monotonic_ns()
            one.send()
            assert one.try_ns >= before_ns + from_interval(MILLISECOND.parameter) // 2


def test_packets_that_are_left_out_do_not_hold_up_others():
    with pair() as (near, _):
        late_ns = time.time_ns() - 3600 * SECOND_NS
        one = Sending(order(start_ns=late_ns, timeout_s=1.0), near, Clock())
        before_ns = time.monotonic_ns()
        one.send()
        assert one.next_seq == 1
        assert one.try_ns >= before_ns


def test_the_error_estimate_is_the_clocks_own():
    with pair() as (near, far):
        state = UNSYNCHRONIZED._replace(synchronized=True, max_error_s=0.25)
        one = Sending(order(packets=1), near, Clock(state=lambda: state))
        one.send()
        estimate = owamp_format().read(arrival(far).data).error
        assert estimate >> 15 == 1
        seconds = (estimate & 255) * 2.0 ** (estimate >> 8 & 63) / (1 << 32)
        assert seconds == pytest.approx(0.25, rel=0.01)


def test_a_wrong_clock_stamps_and_schedules_in_its_own_time():
    with pair() as (near, far), sending(Clock(offset_s=-30.0)) as channel:
        start_ns = time.time_ns() - 30 * SECOND_NS
        channel.send(order(packets=1, start_ns=start_ns, timeout_s=10.0), near.fileno())
        assert outcome_of(channel).sent == 1
        taken = arrival(far)
        sent_ns = from_timestamp(owamp_format().read(taken.data).time)
        assert 20 < (taken.received_ns - sent_ns) / SECOND_NS < 40


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_the_process_ends_with_the_channel_and_answers_before():
    channel, pid = fork(lambda theirs: sender_module.run_sender(theirs, Clock()))
    with pair() as (near, far):
        channel.send(order(packets=2), near.fileno())
        assert outcome_of(channel).sent == 2
        assert owamp_format().read(arrival(far).data).seq == 0
    channel.close()
    assert os.waitpid(pid, 0) == (pid, 0)


def test_mapped_ipv4_is_measured_as_ipv4():
    assert at_port(("::ffff:192.0.2.1", 861, 0, 0), 7) == ("192.0.2.1", 7)
    assert at_port(("fe80::1%eth0", 861, 0, 3), 7) == ("fe80::1%eth0", 7, 0, 3)
    assert at_port(("192.0.2.1", 861), 7) == ("192.0.2.1", 7)


def test_a_range_of_ports_is_kept_and_its_end_is_reported(port):
    ports = range(port, port + 1)
    with open_endpoint(("127.0.0.1", 0), ports) as taken:
        assert taken.getsockname()[1] == port
        with pytest.raises(Exception, match="no UDP port"):
            open_endpoint(("127.0.0.1", 0), ports)


@LINUX
@pytest.mark.parametrize(
    ("here", "dropped", "others"),
    [
        ("127.0.0.1", ["127.0.0.2", "127.0.0.9"], ["127.0.0.3", "127.0.1.2"]),
        ("::1", ["::2"], []),  # of its /64, as all of this machine are
    ],
)
def test_the_kernel_drops_what_comes_from_some_hosts(here, dropped, others):
    with open_endpoint((here, 0)) as sock:
        senders = {host: open_endpoint((host, 0)) for host in [here, *dropped[:1], *others]
                   if ":" not in host or host == here}  # fmt: skip
        buffer = memoryview(bytearray(100))

        def arrived():
            for host, sender in senders.items():
                sender.sendto(host.encode(), sock.getsockname())
            found = []
            with suppress(BlockingIOError):
                while True:
                    found.append(receive(sock, buffer).data.decode())
            return found

        everyone = [*senders]
        assert arrived() == everyone
        drop_hosts(sock, dropped)
        lost = {here} if ":" in here else {dropped[0]}
        assert arrived() == [host for host in everyone if host not in lost]
        drop_hosts(sock, [])
        assert arrived() == everyone
        for sender in senders.values():
            sender.close()
