"""Labs of one link, and what crosses them."""

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from benchctl.lab.lab import Lab
from benchctl.lab.topology.model import Emulator
from benchctl.lab.topology.topology import build_topology
from benchctl.toml.source import parse_toml

# Some more than CPython 3.11 runs code before it specializes it.
_COLD_FRAMES = 20
DATAGRAMS = [sys.executable, str(Path(__file__).with_name("datagrams.py"))]


def pair(emulator, link, routed=False):
    """Build a lab of two hosts, with a router on the link's near side if asked.

    Some frames have crossed benchctl's own emulator from a to b, as before the trials of a run,
    whose links are verified. It takes up to 0.1 ms more for each of its first frames: it copies
    the pages that it shares with its parent process, and Python specializes its code.
    """
    router = "[routers]\nr = {}\n" if routed else ""
    cable = 'c = { between = ["a", "r"] }\n' if routed else ""
    near = "r" if routed else "a"
    text = (
        f"[hosts]\na = {{}}\nb = {{}}\n{router}[links]\n{cable}"
        f'L = {{ between = ["{near}", "b"], {link} }}\n'
    )
    lab = Lab.build(build_topology(parse_toml(text, Path("lab.toml")), {}), emulator)
    if emulator is Emulator.USER:
        flood(lab, _COLD_FRAMES, 56, 1e-2, quiet_s=0.3)
    return lab


def start(lab, node, *argv):
    return subprocess.Popen(
        [*lab.nodes[node].prefix, *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip


@dataclass
class Arrived:
    """The datagrams that arrived, in the order they did."""

    sent: int
    rows: list

    @cached_property
    def numbers(self):
        return [row[0] for row in self.rows]

    @cached_property
    def delays_s(self):
        return [row[2] - row[1] for row in self.rows]

    @property
    def gaps_s(self):
        return [b[2] - a[2] for a, b in pairwise(self.rows)]

    @property
    def overtaken(self):
        return sum(b < a for a, b in pairwise(self.numbers))

    @property
    def rate_bps(self):
        return sum(row[3] for row in self.rows[1:]) * 8 / (self.rows[-1][2] - self.rows[0][2])

    def took(self, since_s, until_s, expected_s):
        """Compare the time that frames took with the time that they should.

        Returns the ratio over the frames that arrived between two times. ``expected_s`` is a
        function of a frame's bytes and of the time when the one before it arrived.
        """
        rows = [row for row in self.rows if since_s <= row[2] <= until_s]
        pairs = pairwise(rows)
        return (rows[-1][2] - rows[0][2]) / sum(expected_s(b[3], a[2]) for a, b in pairs)


def outside(values_s, expected_s):
    """Return how many values are off by more than a hundredth and by more than 0.1 ms.

    One in a hundred may be: the sender itself may be held up between its clock and its sending.
    """
    bound_s = max(0.01 * expected_s, 1e-4)
    off = [value for value in values_s if abs(value - expected_s) > bound_s]
    return len(off[len(values_s) // 100 :])


def flood(lab, count, payload=1472, gap_s=0.0, batch=1, meanwhile=None, quiet_s=1.5):
    """Send datagrams from a to b; returns those that arrived."""
    with start(lab, "b", *DATAGRAMS, "receive", str(quiet_s)) as receiver:
        assert receiver.stdout.readline() == "ready\n"
        words = map(str, (lab.nodes["b"].address, count, payload, gap_s, batch))
        with start(lab, "a", *DATAGRAMS, "send", *words) as sender:
            if meanwhile:
                meanwhile()
            rows = json.loads(receiver.stdout.read())
            sender.communicate()
            if sender.returncode:
                raise OSError("the sender could not send")
        return Arrived(count, rows)


@dataclass
class Transfer:
    """What iperf3 and the sender's kernel said of a TCP transfer.

    ``needless`` retransmissions are those whose segment had arrived (D-SACK, RFC 2883).
    """

    received_bps: float
    rtt_max_s: float
    retransmits: int
    needless: int
    reordered: int


def transfer(lab, duration_s, algorithm="reno", streams=1):
    """Send by TCP from a to b."""
    before = _tcp_counts(lab)
    with start(lab, "b", "iperf3", "-s", "-1") as server:
        until_s = time.monotonic() + 20
        while "5201" not in _output(lab, "b", "ss", "-Hltn"):
            assert time.monotonic() < until_s, "iperf3 does not listen"
        words = f"-t {duration_s} -i 0.1 -C {algorithm} -P {streams} -J".split()
        with start(lab, "a", "iperf3", "-c", lab.nodes["b"].address, *words) as client:
            told = json.loads(client.stdout.read())
        server.wait()
    after = _tcp_counts(lab)
    grown = {name: after[name] - before[name] for name in after}
    rtts = [interval["streams"][0]["rtt"] for interval in told["intervals"]]
    return Transfer(
        told["end"]["sum_received"]["bits_per_second"], max(rtts) / 1e6, grown["RetransSegs"],
        grown["TCPDSACKRecv"] + grown["TCPDSACKOfoRecv"],
        grown["TCPSACKReorder"] + grown["TCPTSReorder"],
    )  # fmt: skip


def _tcp_counts(lab):
    """Return the counts of the sender's kernel: of this network namespace alone."""
    counts = {}
    for name in ("snmp", "netstat"):
        lines = _output(lab, "a", "cat", f"/proc/net/{name}").splitlines()
        for names, values in zip(lines[::2], lines[1::2], strict=True):
            counts |= dict(zip(names.split()[1:], map(int, values.split()[1:]), strict=True))
    return counts


def _output(lab, node, *argv):
    return subprocess.run(
        [*lab.nodes[node].prefix, *argv], stdout=subprocess.PIPE, text=True,
        start_new_session=True, check=True,
    ).stdout  # fmt: skip
