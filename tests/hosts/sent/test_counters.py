"""What kernels have counted: read here, from their files, and asked for elsewhere."""

import json
import socket
import sys
from pathlib import Path

import pytest

from benchctl.hosts.sent import counters

DEVICES = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop
    lo: 1234567 890 0 0 0 0 0 0 1234567 890 0 0 0 0 0 0
eth0.5:1 2 3 4 91 92 93 94 5 6 7 8 95 96 97 98
"""
SNMP = """\
Ip: Forwarding ReasmFails
Ip: 2 11
Tcp: MaxConn InSegs OutSegs RetransSegs
Tcp: -1 100 90 7
Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors
Udp: 50 2 13 60 12
"""
SNMP6 = "Ip6ReasmFails \t3\nUdp6InDatagrams                 \t5\nUdp6RcvbufErrors\t1\n"
NETSTAT = """\
TcpExt: ListenDrops TCPTimeouts TCPBacklogDrop TCPRcvQDrop
TcpExt: 4 5 6 8
IpExt: InNoRoutes
IpExt: 0
"""
SOFTNET = "05111685 0000000a 00000002 00000000\n04cf54c6 00000001 ffffffff 00000000\n"
STAT = """\
cpu  11 22 33 44 55 66 77 88 99 11
cpu0 1 2 3 40 5 6 7 8 1 0
cpu11 10 20 30 400
intr 1 2 3
ctxt 5
"""


def test_each_file_of_the_kernel_is_read():
    texts = (DEVICES, SNMP, SNMP6, NETSTAT, SOFTNET, STAT)
    files = dict(zip((*counters.FILES, counters.STAT), texts, strict=True))
    assert counters.parsed(files, 7.5) == {
        "time_s": 7.5,
        "interfaces": {
            "lo": [1234567, 890, 0, 0, 1234567, 890, 0, 0],
            "eth0.5": [1, 2, 3, 4, 5, 6, 7, 8],
        },
        "counts": {
            "tcp_segments_sent": 90,
            "tcp_segments_received": 100,
            "tcp_segments_retransmitted": 7,
            "tcp_timeouts": 5,
            "tcp_segments_dropped": 14,
            "tcp_connections_dropped": 4,
            "udp_datagrams_sent": 60,
            "udp_datagrams_received": 55,
            "udp_receive_errors": 13,
            "udp_receive_buffer_errors": 13,
            "udp_no_port": 2,
            "ip_reassembly_failures": 14,
            "softnet_dropped": 11,
            "softnet_squeezed": 1,  # of 32 bits
        },
        "cores": {"0": [27, 45, 7, 8], "11": [60, 400, 0, 0]},
    }


def test_a_kernel_without_these_files_has_no_counters():
    assert counters.parsed({}, 0.0) == {
        "time_s": 0.0, "interfaces": {}, "counts": {}, "cores": {}
    }  # fmt: skip


def test_other_systems_have_none_at_all(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert counters.read() == {}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc of Linux")
def test_a_datagram_that_nobody_waits_for_is_counted(port):
    before = counters.read()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"?", ("127.0.0.1", port))
    after = json.loads(json.dumps(counters.read()))
    assert after["time_s"] >= before["time_s"]
    assert after["counts"]["udp_no_port"] > before["counts"]["udp_no_port"]
    assert after["interfaces"]["lo"][5] > before["interfaces"]["lo"][5]
    cores = [line for line in Path("/proc/stat").read_text().splitlines() if "cpu" in line]
    assert len(after["cores"]) == len(cores) - 1
