"""Flows between hosts that SSH reaches, whose packets are recorded there, and by tcpdump."""

import os
import signal
import subprocess
import sys
from contextlib import ExitStack, closing, contextmanager
from itertools import takewhile
from pathlib import Path

from remote.measured import MAIN
from waiting import wait_until

from benchctl.packets.wire.capture import Capture
from benchctl.store.read import Reader

# The measured way is another than that of SSH, so that what its links count is the flow's.
TOPOLOGY = """
[hosts]
here = {}
paris = { services = [{ ssh = 22 }] }
tokyo = { services = [{ ssh = 22 }] }

[routers]
office = {}
middle = {}

[links]
desk = { between = ["here", "office"] }
office_paris = { between = ["paris", "office"] }
office_tokyo = { between = ["tokyo", "office"] }

[links.west]
between = ["paris", "middle"]
delay = "5ms"
addresses = { paris = "10.9.1.1/24", middle = "10.9.1.2/24" }

[links.east]
between = ["tokyo", "middle"]
rate = "10Mbit"
delay = "5ms"
queue = 20
addresses = { tokyo = "10.9.2.1/24", middle = "10.9.2.2/24" }
"""
PATH_S = 0.01
TARGET = "10.9.2.1"
CAPTURED = MAIN.replace('ssh = "tokyo"', f'ssh = "tokyo"\naddress = "{TARGET}"')
CAPTURED = CAPTURED.replace('rate = "2Mbit"\n', "capture = true\n")
HOSTS = ("paris", "tokyo")


def ended(run, code=0):
    """Wait for its end; returns its flow, with the files of its packets by host, and its notes."""
    assert run.end() == code, run.told()
    store = Path(run.store)
    with closing(Reader(store)) as reader:
        [trial] = reader.trials(reader.find("last").id)
        [flow] = reader.flows(trial.id)
        notes = [note.text for note in reader.notes(trial.run_id) if "packets at" in note.text]
    return flow, {one.host: store.parent / one.file for one in flow.captures}, notes


def packets_of(path, *, network_at=0):
    """Return each packet of a file: its time in nanoseconds, its first bytes from the IP head on,
    and its length there; and how many its recorder has counted as missing."""
    capture = Capture(path)
    found = [
        (round(time_s * 1e9), batch.data[start + network_at : end], length - network_at)
        for batch in capture
        for time_s, start, end, length in batch.packets
    ]
    assert not capture.faults
    found = [(capture.began_ns + at, data[:96], length) for at, data, length in found]
    return found, capture.dropped


def payload_bytes(packet):
    """Return how much data a packet of TCP over IPv4 carries, of those of `packets_of`."""
    _, data, _ = packet
    ip_bytes = 4 * (data[0] & 0xF)
    return int.from_bytes(data[2:4], "big") - ip_bytes - 4 * (data[ip_bytes + 12] >> 4)


MARK = b"the last packet"


@contextmanager
def tcpdump(lab, host, file, expression):
    """Record on a host with tcpdump, whose packets have an Ethernet head of 14 bytes.

    At a signal it ends without the packets that it has not read yet, so it is ended when it has
    written one that comes after all others, by `mark_the_end`.
    """
    prefix = lab.lab.nodes[host].prefix
    argv = ["tcpdump", "-n", "-i", "eth1", "-s", "110", "-B", "8192", "--nano", "-Z", "root", "-U"]
    with subprocess.Popen(
        [*prefix, *argv, "-w", str(file), *expression.split()],
        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True, text=True,
    ) as process:  # fmt: skip
        for line in process.stderr:
            if "listening on" in line:
                break
        try:
            yield
            wait_until(lambda: MARK in file.read_bytes(), file.stat)
        finally:
            os.killpg(process.pid, signal.SIGINT)
            said = process.stderr.read()
        assert "0 packets dropped by kernel" in said, said


def mark_the_end(lab):
    """Send a last packet on the measured way, through both hosts."""
    script = f"import socket; socket.socket(type=2).sendto({MARK}, ('{TARGET}', 9))"
    argv = [*lab.lab.nodes["paris"].prefix, sys.executable, "-c", script]
    subprocess.run(argv, check=True, start_new_session=True)


@contextmanager
def as_tcpdump_records(lab, directory):
    """Record on both hosts with tcpdump, and yield what checks the files of a flow against it."""
    files = {host: directory / f"{host}.pcap" for host in HOSTS}
    recording = ExitStack()

    def check(flow, ours_of):
        mark_the_end(lab)
        recording.close()
        for one in flow.captures:
            ours, missing = packets_of(ours_of[one.host])
            theirs, _ = packets_of(files[one.host], network_at=14)
            theirs = [*takewhile(lambda packet: MARK not in packet[1], theirs)]
            # Two processors may hand packets of the two ways to two recorders in another order.
            # Their times are the same.
            ours.sort()
            theirs.sort()
            assert len(ours) == one.packets > 0
            assert sum(map(payload_bytes, ours)) > 0
            assert ours == theirs[: len(ours)]
            # A late link may bring the last acknowledgment when the flow has ended.
            assert not any(map(payload_bytes, theirs[one.packets + one.left_out :]))
            assert one.dropped == 0
            assert missing == one.left_out

    with recording:
        for host, file in files.items():
            # Otherwise it records ARP, too, by which hosts look for each other again after a while.
            recording.enter_context(tcpdump(lab, host, file, f"ip host {TARGET}"))
        yield check
