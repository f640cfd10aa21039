"""What the hosts of a lab count, beside what the links, the tools, and their own sockets say."""

import json
import os
import re
import subprocess
import sys

import pytest
from lab.lab_support import EMULATORS, topology
from waiting import COMMAND_S, wait_until

from benchctl.lab.lab import Lab

pytestmark = pytest.mark.netns

TOPOLOGY = """
[hosts]
a = {}
b = {}
[links]
wire = { between = ["a", "b"], rate = "20Mbit", delay = "5ms", queue = 20 }
"""
PROFILE = """
[lab]
topology = "topology.toml"
verify = false
[flows.main]
backend = "simpleperf"
from = "a"
to = "b"
duration = "1s"
[hosts.a]
cleanup = "nstat -asz TcpRetransSegs TcpOutSegs"
"""
SENT = 300
TRIES = 10
# It reads nothing until it is told to, then all that its buffer took.
DEAF = """
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as deaf:
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    deaf.bind(("0.0.0.0", 5000))
    print("bound", flush=True)
    sys.stdin.readline()
    deaf.setblocking(False)
    count = 0
    try:
        while deaf.recv(2000):
            count += 1
    except BlockingIOError:
        print(count)
"""
SEND = f"""
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
    for _ in range({SENT}):
        sender.sendto(bytes(100), ("10.0.0.2", 5000))
"""


@pytest.fixture(scope="module", params=EMULATORS)
def lab(request):
    text = TOPOLOGY.replace("20Mbit", "unlimited").replace("queue = 20", "queue = 1000")
    with Lab.build(topology(text), request.param) as lab:
        yield lab


def test_datagrams_that_a_full_buffer_drops_are_those_that_its_program_misses(lab):
    deaf = subprocess.Popen(
        [*lab.nodes["b"].prefix, sys.executable, "-c", DEAF],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    with deaf:
        assert deaf.stdout.readline() == "bound\n"
        before = {node: lab.node_counters(node)["counts"] for node in "ab"}
        subprocess.run(
            [*lab.nodes["a"].prefix, sys.executable, "-c", SEND],
            check=True, timeout=COMMAND_S, start_new_session=True,
        )  # fmt: skip

        def grown(node, name):
            return lab.node_counters(node)["counts"][name] - before[node][name]

        # The kernel counts a datagram as received when a program reads it.
        wait_until(lambda: lab.node_counters("b")["interfaces"]["eth0"][1] == SENT)
        got, _ = deaf.communicate("now\n", timeout=COMMAND_S)
    assert 0 < int(got) < SENT
    assert grown("a", "udp_datagrams_sent") == SENT
    assert grown("b", "udp_datagrams_received") == int(got)
    assert grown("b", "udp_receive_buffer_errors") == SENT - int(got)
    assert grown("b", "udp_receive_errors") == SENT - int(got)
    # A host of a lab has its own network.
    assert grown("a", "udp_receive_buffer_errors") == 0


def test_every_node_sees_the_processors_of_the_machine(lab):
    for node in "ab":
        cores = lab.node_counters(node)["cores"]
        assert len(cores) == os.cpu_count()
        assert set(lab.node_counters(node)["interfaces"]) == {"lo", "eth0"}


def measured(tmp_path, fork_server, emulator):
    """Measure once; returns the trial, and what nstat counted after it in a new lab."""
    (tmp_path / "topology.toml").write_text(TOPOLOGY)
    profile = tmp_path / "p.toml"
    profile.write_text(PROFILE.replace("[lab]", f'[lab]\nemulator = "{emulator}"'))
    words = ["benchctl", "run", profile.name, "-q", "--trust", "--format", "json"]
    environment = {**os.environ, "BENCHCTL_STORE": str(tmp_path / "runs.sqlite")}
    done = fork_server.run(words, tmp_path, environment)
    assert done.returncode == 0, done.stderr
    (trial,) = json.loads(done.stdout)["trials"]
    (hook,) = trial["hooks"]
    found = re.findall(r"(\w+) +(\d+) ", hook["output"])
    return trial, {name: int(count) for name, count in found}


@pytest.mark.tool("nstat")
@pytest.mark.parametrize("emulator", EMULATORS)
def test_a_trial_counts_what_its_links_its_tool_and_nstat_count(tmp_path, fork_server, emulator):
    for _ in range(TRIES):
        trial, by_nstat = measured(tmp_path, fork_server, emulator)
        there, back = trial["links"]
        a, b = (trial["counters"][host] for host in "ab")
        sent, received = a["interfaces"]["eth0"], b["interfaces"]["eth0"]
        retransmits = trial["flows"][0]["metrics"]["retransmits"]
        # The queue of the link is short.
        assert there["dropped"] > 0
        assert trial["flows"][0]["metrics"]["bytes_received"] < received["rx_bytes"]
        assert all(one["cpu"]["cores"] == os.cpu_count() for one in (a, b))
        assert retransmits <= by_nstat["TcpRetransSegs"]
        same = {
            "sent": (a["counts"]["tcp_segments_sent"], by_nstat["TcpOutSegs"]),
            "sent again": (a["counts"]["tcp_segments_retransmitted"], by_nstat["TcpRetransSegs"]),
            "sent again by the tool": (retransmits, by_nstat["TcpRetransSegs"]),
            "to the link": (sent["tx_packets"], there["arrived"]),
            "from the link": (received["rx_packets"], there["delivered"]),
            "to the link back": (received["tx_packets"], back["arrived"]),
            "from the link back": (sent["rx_packets"], back["delivered"]),
        }
        if all(ours == theirs for ours, theirs in same.values()):
            return
        # A machine that stood still sends a last segment again after we looked, as nstat sees.
    pytest.fail(f"other counts in each of {TRIES} trials; of the last: {same}")
