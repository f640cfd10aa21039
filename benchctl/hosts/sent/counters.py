"""What the kernel of a host has counted since its start: interfaces, TCP, UDP, processors.

From /proc of Linux; a counter that a kernel lacks is left out. Remote hosts run this file, too,
with Python 3.9 and nothing of benchctl.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

_DEVICES, _SOFTNET, STAT = "/proc/net/dev", "/proc/net/softnet_stat", "/proc/stat"
_SNMP, _SNMP6, _NETSTAT = "/proc/net/snmp", "/proc/net/snmp6", "/proc/net/netstat"
FILES = (_DEVICES, _SNMP, _SNMP6, _NETSTAT, _SOFTNET)
"""All but that of the processors, `STAT`, which has many more lines."""
SUMS = {
    "tcp_segments_sent": ("Tcp OutSegs",),
    "tcp_segments_received": ("Tcp InSegs",),
    "tcp_segments_retransmitted": ("Tcp RetransSegs",),
    "tcp_recoveries": (
        "TcpExt TCPSackRecovery",
        "TcpExt TCPRenoRecovery",
        "TcpExt TCPLossProbeRecovery",
    ),
    "tcp_timeouts": ("TcpExt TCPTimeouts",),
    "tcp_spurious_timeouts": ("TcpExt TCPSpuriousRTOs",),
    "tcp_segments_dropped": ("TcpExt TCPRcvQDrop", "TcpExt TCPOFODrop", "TcpExt TCPBacklogDrop"),
    "tcp_connections_dropped": ("TcpExt ListenDrops",),
    "udp_datagrams_sent": ("Udp OutDatagrams", "Udp6OutDatagrams"),
    "udp_datagrams_received": ("Udp InDatagrams", "Udp6InDatagrams"),
    "udp_receive_errors": ("Udp InErrors", "Udp6InErrors"),
    "udp_receive_buffer_errors": ("Udp RcvbufErrors", "Udp6RcvbufErrors"),
    "udp_send_buffer_errors": ("Udp SndbufErrors", "Udp6SndbufErrors"),
    "udp_no_port": ("Udp NoPorts", "Udp6NoPorts"),
    "ip_reassembly_failures": ("Ip ReasmFails", "Ip6ReasmFails"),
}
"""Our counts, and those of the kernel that each is the sum of (net/ipv4/proc.c, net/ipv6/proc.c).

A recovery is entered once for all that is lost of one flight (net/ipv4/tcp_input.c,
tcp_enter_recovery). What a tail loss probe repairs enters none, and counts by itself
(tcp_process_tlp_ack). A segment that TCP drops at its receiver is in one of three counts: dropped
in order, out of order, or while the program held the socket (net/ipv4/tcp_input.c, tcp_ipv4.c).
"""
# Columns of net-procfs.c: 8 of what was received (bytes, packets, errs, drop, ...), then 8 sent.
_TOLD = (0, 1, 2, 3, 8, 9, 10, 11)
# Those of softnet_stat have 32 bits each.
_WORD = 1 << 32


def read() -> dict[str, Any]:
    """Return the counters of this host, as `parsed`; empty on other systems than Linux."""
    if sys.platform != "linux":
        return {}
    files = {}
    for path in (*FILES, STAT):
        with suppress(OSError):
            files[path] = Path(path).read_text()
    return parsed(files, time.monotonic())


def parsed(files: Mapping[str, str], time_s: float) -> dict[str, Any]:
    """Return what files of these paths say, as JSON-like data; ``time_s`` is when they were read.

    ``interfaces`` have eight counts each: bytes, packets, errors and drops, received and sent.
    ``cores`` have clock ticks, by number: busy, idle, those of software interrupts, and those that
    the hypervisor took, which both are within the busy ones (proc(5)).
    """
    interfaces = {}
    for line in files.get(_DEVICES, "").splitlines()[2:]:
        name, _, numbers = line.rpartition(":")
        words = numbers.split()
        interfaces[name.strip()] = [int(words[place]) for place in _TOLD]
    known = _named(files)
    counts = {
        name: sum(known[source] for source in sources if source in known)
        for name, sources in SUMS.items()
        if any(source in known for source in sources)
    }
    # A line for each processor; hexadecimal (net-procfs.c): processed, dropped, out of time, ...
    softnet = [line.split() for line in files.get(_SOFTNET, "").splitlines()]
    if softnet:
        counts["softnet_dropped"] = sum(int(words[1], 16) for words in softnet) % _WORD
        counts["softnet_squeezed"] = sum(int(words[2], 16) for words in softnet) % _WORD
    cores = {}
    for line in files.get(STAT, "").splitlines():
        name, *words = line.split()
        if name.startswith("cpu") and name != "cpu":
            # user, nice, system, idle, iowait, irq, softirq, steal; guests are within user and nice
            ticks = [*map(int, words[:8]), *[0] * (8 - len(words))]
            idle = ticks[3] + ticks[4]
            cores[name[3:]] = [sum(ticks) - idle, idle, ticks[6], ticks[7]]
    return {"time_s": time_s, "interfaces": interfaces, "counts": counts, "cores": cores}


def _named(files: Mapping[str, str]) -> dict[str, int]:
    """Return each counter of the protocols: ``Tcp RetransSegs``, ``Udp6InErrors``."""
    known = {}
    for path in (_SNMP, _NETSTAT):
        lines = files.get(path, "").splitlines()
        for heads, numbers in zip(lines[::2], lines[1::2]):  # noqa: B905 (Python 3.9)
            protocol, _, names = heads.partition(":")
            for name, number in zip(names.split(), numbers.split()[1:]):  # noqa: B905
                known[f"{protocol} {name}"] = int(number)
    for line in files.get(_SNMP6, "").splitlines():
        name, number = line.split()
        known[name] = int(number)
    return known
