"""simpleperf between two hosts: the commands as they are printed, and link-local addresses."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from simpleperf.simpleperf_harness import COMMAND, client_program, server_program
from simpleperf.simpleperf_hosts import two_hosts
from waiting import DEADLINE_S, wait_until

from benchctl.lab.emulate.link import Change
from benchctl.lab.lab import Lab
from benchctl.lab.topology.topology import build_topology
from benchctl.toml.source import parse_toml
from benchctl_simpleperf.simpleperf.measuring.datagrams import SECOND_0

pytestmark = [pytest.mark.netns, pytest.mark.once]

PAGE = Path(__file__).parents[2] / "docs" / "simpleperf-protocol.md"


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    with two_hosts(tmp_path_factory.mktemp("hosts")) as both:
        yield both


def printed_commands():
    """Return the page's first commands: the server's, the client's, and the server's by ssh."""
    block = re.search(r"^```\n(.*?)^```$", PAGE.read_text(), re.M | re.S)[1]
    return [line.partition("#")[0].strip() for line in block.splitlines()]


@contextmanager
def shell(host, command, path):
    """Run a line in a shell on a host until the end of the block."""
    process = subprocess.Popen(
        [*host.prefix, "bash", "-c", f"exec {command}" if "|" not in command else command],
        stdout=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "PATH": path, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    try:
        yield process
    finally:
        os.killpg(process.pid, 15)
        process.communicate(timeout=DEADLINE_S)


@pytest.mark.parametrize("by_ssh", [False, True], ids=["by hand", "by ssh"])
def test_the_printed_commands_measure_between_two_hosts(hosts, tmp_path, by_ssh):
    server, client = hosts
    serve, measure, send = printed_commands()
    bin_directory = tmp_path / "bin"
    bin_directory.mkdir()
    simpleperf = bin_directory / "simpleperf"
    simpleperf.write_text(f'#!/bin/sh\nexec {" ".join(COMMAND)} "$@"\n')
    ssh = bin_directory / "ssh"
    ssh.write_text(
        f'#!/bin/sh\n[ "$1" = server ] && shift && exec nsenter --target={server.pid} --net "$@"\n'
    )
    for program in (simpleperf, ssh):
        program.chmod(0o755)
    (bin_directory / "python3").symlink_to(sys.executable)
    path = f"{bin_directory}:{os.environ['PATH']}"
    with shell(client if by_ssh else server, send if by_ssh else serve, path) as process:
        assert "listening on 0.0.0.0" in process.stdout.readline()
        done = client.run(
            "bash", "-c", measure.replace("-t 5", "-t 0.5").replace("-i 1", "-i 0.1"),
            env={**os.environ, "PATH": path},
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "bit/s" in done.stdout


@pytest.mark.parametrize("protocol", [(), ("-u",)], ids=["tcp", "udp"])
@pytest.mark.parametrize("direction", [(), ("-R",)], ids=["send", "receive"])
def test_link_local_addresses_measure_and_their_scope_counts(hosts, protocol, direction):
    server, client = hosts
    command = (*server.prefix, *COMMAND)
    with server_program("-b", "::", command=command) as (_, port):
        done = client_program(
            port, "-I", f"{server.link_local}%eth0", "-n", "10KB", *protocol, *direction, "--json",
            command=(*client.prefix, *COMMAND),
        )  # fmt: skip
    assert done.returncode == 0, done.stdout
    [figures] = json.loads(done.stdout)["directions"].values()
    assert figures["bytes_received"] >= 10_000


def test_a_server_stops_sending_to_a_host_that_has_gone_without_a_word(hosts):
    server, client = hosts
    command = (*server.prefix, *COMMAND)
    flags = ("--one-off", "-b", "0.0.0.0", "--idle", "1", "-4")
    with server_program(*flags, command=command) as (serving, port):
        asked = ("-I", server.address, "-p", str(port), "-u", "-R", "-t", "3600", "-i", "0.1")
        measuring = subprocess.Popen(
            [*client.prefix, *COMMAND, "-c", *asked, "--events"], stdout=subprocess.PIPE, text=True
        )
        with measuring:
            try:
                assert any('"interval"' in line for line in measuring.stdout)
                # From now on no frame reaches the client, and no answer comes from it.
                gone = f"neighbour replace {client.address} lladdr 02:00:00:00:00:99 dev eth0"
                server.configure(f"{gone} nud permanent")
                assert serving.wait(DEADLINE_S) == 0
            finally:
                server.run("ip", "neighbour", "del", client.address, "dev", "eth0")
                measuring.kill()


# Prints how many datagrams of the measured part leave a host and come to it, each counted once,
# when its input closes. A packet socket for all protocols (ETH_P_ALL) sees both.
COUNT = f"""
import select, socket, struct, sys
eye = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
eye.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
eye.bind(("eth0", 3))
print("ready", flush=True)
seen = {{True: set(), False: set()}}
while True:
    ready, _, _ = select.select([eye, sys.stdin], [], [])
    if eye not in ready:
        break
    packet, address = eye.recvfrom(65535)
    number, stamp = struct.unpack_from("!QQ", packet + bytes(44), 28)
    if address[1] == 0x0800 and packet[9] == 17 and len(packet) > 100 and stamp >= {SECOND_0}:
        seen[address[2] == socket.PACKET_OUTGOING].add((packet[20:24], number))
print(len(seen[True]), len(seen[False]))
"""


@contextmanager
def counted(node):
    """Count a host's datagrams in the block; yields a list that has both counts after it."""
    counts = []
    with subprocess.Popen(
        [*node.prefix, sys.executable, "-I", "-c", COUNT],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as counting:  # fmt: skip
        assert counting.stdout.readline() == "ready\n"
        yield counts
        counts += map(int, counting.communicate(timeout=DEADLINE_S)[0].split())


@pytest.fixture(scope="module")
def lab():
    text = '[hosts]\na = {}\nb = {}\n[links]\nab = { between = ["a", "b"], rate = "10Mbit", '
    text += 'delay = "10ms", queue = 40 }'
    with Lab.build(build_topology(parse_toml(text, Path("lab.toml")), {})) as built:
        yield built


def measured(lab, *flags, lost_from_s=None, lost_until_s=None):
    """Measure from a to b; returns the directions' figures, the intervals, and both ends' counts.

    The way from a to b may lose all packets for a while, in seconds from the start.
    """
    client, server = lab.nodes["a"], lab.nodes["b"]
    # It ends by itself: what starts it on a host of a lab takes no signal for it.
    flags_there = ("--one-off", "-b", "0.0.0.0", "--max-rate", "unlimited")
    serving = server_program(*flags_there, command=(*server.prefix, *COMMAND))
    with serving as (_, port), counted(client) as at_client, counted(server) as at_server:
        if lost_from_s is not None:
            start_s = time.time() + 3.0
            flags += ("--start-at", f"{start_s:.6f}")
            start_ns = time.monotonic_ns() + round((start_s - time.time()) * 1e9)
            for at_s, loss_ratio in ((lost_from_s, 1.0), (lost_until_s, 0.0)):
                at_ns = start_ns + round(at_s * 1e9)
                lab.change("ab", Change(at_ns=at_ns, loss_ratio=loss_ratio), leaving="a")
        command = (*client.prefix, *COMMAND)
        done = client_program(
            port, "-I", server.address, "-u", "-l", "150", *flags, "--json", command=command
        )
    told = json.loads(done.stdout)
    assert done.returncode == 0, told["error"]
    assert told["warnings"] == []
    return told["directions"], told["intervals"], {"send": at_client, "receive": at_server}


def assert_true(figures, duration_s, sent, received, intervals):
    """Check a direction's figures by what packet sockets counted at both ends."""
    assert figures["packets_sent"] == sent
    assert figures["packets_received"] == received
    assert figures["packets_lost"] == sent - received
    for bits, name in ((received, "throughput_bps"), (sent, "sent_bps")):
        assert figures[name] == pytest.approx(bits * 150 * 8 / duration_s, rel=0.01)
    ends = [one["end_s"] for one in intervals if one["stream"] == 0 and one["start_s"] >= 0]
    assert [one["start_s"] for one in intervals if one["stream"] == 0][-len(ends) :] == [
        0, *ends[:-1],
    ]  # fmt: skip
    counted = sum(one.get("packets_received", 0) for one in intervals if not one["omitted"])
    assert counted == received


@pytest.mark.parametrize("back_s", [1.0, 0.85], ids=["at the end", "before it"])
def test_a_path_that_loses_the_measured_part_is_lossy(lab, back_s):
    flags = ("-r", "60000", "-O", "0.4", "-t", "0.6", "-i", "0.1")
    directions, intervals, counts = measured(
        lab, *flags, lost_from_s=0.3, lost_until_s=back_s + 0.01
    )
    sent, received = counts["send"][0], counts["receive"][1]
    assert received == 0 if back_s == 1.0 else 0 < received < sent / 2
    assert_true(directions["send"], 0.6, sent, received, intervals)
    assert directions["send"]["loss_ratio"] == (sent - received) / sent


@pytest.mark.parametrize(("streams", "omit"), [("1", "0"), ("3", "0.15")])
def test_few_datagrams_have_the_rate_that_was_sent(lab, streams, omit):
    # A datagram each 0.1 s.
    flags = ("-r", "12000", "-P", streams, "-O", omit, "-t", "0.5", "-i", "0.25")
    directions, intervals, counts = measured(lab, *flags)
    sent = counts["send"][0]
    assert sent == 5 * int(streams)
    assert_true(directions["send"], 0.5, sent, counts["receive"][1], intervals)


def test_many_streams_both_ways_over_a_short_queue_count_what_was_on_the_wire(lab):
    flags = ("-r", "60000", "-P", "128", "--both", "-O", "0.1", "-t", "0.2", "-i", "0.1")
    directions, _, counts = measured(lab, *flags)
    for near, far in (("send", "receive"), ("receive", "send")):
        figures = directions[near]
        assert figures["packets_sent"] == counts[near][0]
        assert figures["packets_received"] == counts[far][1] - figures["receiver_drops"]
        assert figures["packets_lost"] == figures["packets_sent"] - figures["packets_received"]
        assert figures["throughput_bps"] <= figures["sent_bps"]


def of_udp(host):
    """Return what the kernel of a host counts of UDP over IPv4 (/proc/net/snmp), by name."""
    lines = host.run("cat", "/proc/net/snmp").stdout.splitlines()
    names, values = (line.split()[1:] for line in lines if line.startswith("Udp: "))
    return dict(zip(names, map(int, values), strict=True))


def test_what_a_stopped_receivers_socket_dropped_is_counted_as_the_kernel_does(hosts):
    server, client = hosts
    flags = ("-u", "-r", "600000", "-l", "150", "-w", "4096", "-t", "2", "-i", "1", "--json")
    before = of_udp(server)

    def grown(name):
        return of_udp(server)[name] - before[name]

    serving = server_program("--one-off", "-b", "0.0.0.0", command=(*server.prefix, *COMMAND))
    with serving as (process, port), counted(client) as left, counted(server) as came:
        measuring = subprocess.Popen(
            [*client.prefix, *COMMAND, "-c", "-I", server.address, "-p", str(port), *flags],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        with measuring:
            wait_until(lambda: grown("InDatagrams") > 5)
            process.send_signal(signal.SIGSTOP)
            try:
                wait_until(lambda: grown("RcvbufErrors") > 20)
            finally:
                process.send_signal(signal.SIGCONT)
            told = json.loads(measuring.communicate(timeout=DEADLINE_S)[0])
        dropped = grown("RcvbufErrors")
    (figures,) = told["directions"].values()
    assert figures["packets_sent"] == left[0] == came[1]
    assert figures["receiver_drops"] == figures["packets_lost"] == dropped
    assert figures["packets_received"] == came[1] - dropped
