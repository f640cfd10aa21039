"""On systems that lack features of Linux, the rest works, and what is missing is reported."""

import errno

import pytest
from simpleperf.simpleperf_harness import running_server

from benchctl_simpleperf.simpleperf.measuring import cpu
from benchctl_simpleperf.simpleperf.measuring.udp import UdpSender
from benchctl_standalone import priority
from benchctl_standalone.errors import Problem
from benchctl_standalone.kernel import Kernel
from benchctl_standalone.sockets import Target, connect

EVERYTHING = [name for name in vars(Kernel) if name.isupper()]


@pytest.fixture
def without(monkeypatch):
    """Return a function that takes features away."""

    def take(*names):
        for name in names:
            assert getattr(Kernel, name) is not None, "nothing to take away here"
            monkeypatch.setattr(Kernel, name, None)

    return take


def measure(**asked):
    with running_server() as server:
        [result] = server.measure(total_bytes=200_000, length_bytes=1000, **asked).results
    [figures] = result["directions"].values()
    assert figures["bytes_received"] == 200_000
    missing = {**result["unavailable"]["client"], **result["unavailable"]["server"]}
    return figures, missing


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
@pytest.mark.parametrize("directions", [("send",), ("receive",)])
def test_a_system_with_nothing_but_sockets_measures(without, protocol, directions):
    without(*EVERYTHING)
    figures, missing = measure(protocol=protocol, directions=directions, rate_bps=50e6,
                               zero_copy=protocol == "tcp")  # fmt: skip
    assert figures["throughput_bps"] > 0
    assert "cwnd_bytes" not in figures
    expected = {
        "tcp": {"zero_copy_receive", "kernel_pacing"},
        "udp": {"kernel_timestamps"},
    }
    assert missing.keys() == expected[protocol]


def test_without_tcp_info_there_are_rates_and_no_figures_of_tcp(without):
    without("TCP_INFO")
    figures, missing = measure()
    assert "retransmits" not in figures
    assert figures["throughput_bps"] > 0
    assert missing == {}


def test_without_a_choice_of_congestion_control_the_systems_own_is_used_and_that_is_told(without):
    without("TCP_CONGESTION")
    figures, missing = measure(congestion_control="reno")
    assert "congestion_control" in missing
    assert "congestion_control" not in figures["effective"]


def test_without_sendfile_zero_copy_receives_that_way_only(without):
    without("SENDFILE")
    figures, missing = measure(zero_copy=True)
    assert missing.keys() == {"zero_copy_send"}
    assert figures["effective"]["send"] == "copy"
    assert figures["effective"]["receive"] == "discard"


def test_without_memfd_sendfile_takes_a_file(without):
    without("MEMFD")
    figures, missing = measure(zero_copy=True)
    assert figures["effective"]["send"] == "sendfile"
    assert missing == {}


def test_without_the_kernels_pacing_a_timer_paces_tcp(without):
    without("PACING_RATE")
    figures, missing = measure(rate_bps=16e6)
    assert figures["effective"]["pacing"] == "timer"
    assert "kernel_pacing" in missing
    # The first of 200 packets leaves at once, and none before its time. A receiver that was not
    # run at once finds some together, so only the sender's rate is known.
    assert figures["sent_bps"] <= 16e6 * 200 / 199 + 1


def test_without_segmentation_datagrams_go_one_by_one(without):
    without("UDP_SEGMENT", "UDP_GRO", "TIMESTAMP_NS", "MEMINFO")
    figures, missing = measure(protocol="udp", rate_bps=200e6)
    assert figures["effective"]["udp_segment"] is False
    assert figures["effective"]["timestamps"] == "program"
    assert "receiver_drops" not in figures
    assert missing.keys() == {"udp_segment", "udp_gro", "kernel_timestamps"}


def test_a_path_that_refuses_trains_gets_datagrams(monkeypatch):
    real = UdpSender._send
    refused = []

    class Refusing:
        """A socket that lets no train pass, as a device without checksum offload does."""

        def __init__(self, sock):
            self._sock = sock

        def send(self, data):
            if len(data) > 1000:
                refused.append(len(data))
                raise OSError(errno.EIO, "Input/output error")
            return self._sock.send(data)

        def __getattr__(self, name):
            return getattr(self._sock, name)

    def send(self, train):
        if not isinstance(self._sock, Refusing):
            self._sock = Refusing(self._sock)
        real(self, train)

    monkeypatch.setattr(UdpSender, "_send", send)
    figures, missing = measure(protocol="udp", rate_bps=200e6)
    assert figures["effective"]["udp_segment"] is False
    assert "Input/output error" in missing["udp_segment"]
    assert len(refused) == 1


def test_without_device_binding_who_asks_for_it_is_told(without):
    without("BIND_DEVICE")
    with pytest.raises(Problem, match="cannot bind to a device") as raised:
        connect(Target("127.0.0.1", 9, device="lo"))
    assert raised.value.kind == "parameter"


def test_without_proc_the_hosts_cpu_is_unknown_and_the_process_own_is_not(monkeypatch):
    monkeypatch.setattr(cpu, "_STAT", "/nonexistent")
    read = cpu.CpuMeter().read()
    assert read["host_ratio"] is None
    assert read["process_ratio"] >= 0


def test_timers_that_cannot_be_sharpened_are_left_alone(monkeypatch):
    monkeypatch.setattr(priority.threading, "get_native_id", lambda: 1 << 30)
    priority.sharpen_timers()
