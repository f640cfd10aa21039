"""The packets of flows between hosts that SSH reaches, recorded there and sent when they ended."""

import os
import signal
import subprocess
import sys
from contextlib import ExitStack, closing, contextmanager
from itertools import takewhile
from pathlib import Path

import pytest
from remote import as_root
from remote.measured import MAIN, Measured
from remote_lab import NEEDS, remote_lab
from waiting import wait_until

from benchctl.packets.capture import Capture
from benchctl.packets.frames import names_of
from benchctl.packets.trace import read_trace
from benchctl.store.read import Reader

pytestmark = NEEDS

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
PORT = 2222
"""Of the servers of SSH whose logins are root's."""


@pytest.fixture
def lab(tmp_path):
    """Hosts on which who logs in is root."""
    with ExitStack() as ended, remote_lab(tmp_path, TOPOLOGY) as lab:
        for host in ("paris", "tokyo"):
            path = str(tmp_path / f"{host}.root")
            root = subprocess.Popen(
                [*lab.lab.nodes[host].prefix, sys.executable, as_root.__file__, "serve", path],
                stdout=subprocess.PIPE, start_new_session=True,
            )  # fmt: skip
            ended.callback(root.wait)
            ended.enter_context(root.stdout)
            assert root.stdout.readline() == b"ready\n"
            words = f'{sys.executable} {as_root.__file__} {path} "$SSH_ORIGINAL_COMMAND"'
            lab.serve(host, "-o", f"ForceCommand={words}")
        lab.configure(f"Host paris tokyo\nPort {PORT}")
        yield lab


@pytest.fixture
def measure(lab, tmp_path):
    runs = []

    def measure(text, *options):
        file = tmp_path / f"remote-{len(runs)}.toml"
        file.write_text(text)
        runs.append(Measured(lab, file, options))
        return runs[-1]

    yield measure
    for run in runs:
        run.end()


def ended(run):
    """Wait for its end; returns its flow, with the files of its packets by host, and its notes."""
    assert run.end() == 0, run.told()
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


def lost_on(lab):
    """Return how many packets the links of the measured way have lost, in both directions."""
    hops = [("west", "paris"), ("west", "middle"), ("east", "tokyo"), ("east", "middle")]
    return sum(one.dropped + one.lost for one in (lab.lab.counters(*hop) for hop in hops))


def test_losses_are_those_of_the_links_and_delays_those_of_the_way(lab, measure):
    before = lost_on(lab)
    flow, _, notes = ended(measure(CAPTURED))
    assert not notes
    lost = [way["lost"] for pair in flow.paired for way in pair["directions"]]
    assert sum(lost) == lost_on(lab) - before > 0
    largest = flow.paired[0]
    there, back = largest["directions"]
    assert (there["unseen"], back["unseen"], there["unknown"], back["unknown"]) == (0, 0, 0, 0)
    # The clocks of a lab are one, which the run does not know.
    error_s = largest["clock_error_s"]
    assert largest["one_clock"] is False
    assert error_s > 0
    # A full queue takes as long as its frames; the emulator may be late on a busy machine.
    assert back["owd_s"]["min"] >= PATH_S - error_s
    assert there["owd_s"]["max"] >= PATH_S + 15 * 1514 * 8 / 10e6 - error_s
    assert there["owd_s"]["min"] >= PATH_S - error_s


@pytest.mark.tool("tcpdump")
@pytest.mark.parametrize("most", ["200MiB", "100kB"])
def test_packets_are_those_of_tcpdump_at_the_same_host(most, lab, measure, tmp_path):
    text = CAPTURED.replace("true", f'{{ max = "{most}" }}')
    with ExitStack() as recording:
        for host in ("paris", "tokyo"):
            recording.enter_context(tcpdump(lab, host, tmp_path / f"{host}.pcap", "host " + TARGET))
        flow, files, notes = ended(measure(text))
        mark_the_end(lab)
    for one in flow.captures:
        ours, missing = packets_of(files[one.host])
        theirs, _ = packets_of(tmp_path / f"{one.host}.pcap", network_at=14)
        theirs = [*takewhile(lambda packet: MARK not in packet[1], theirs)]
        assert len(ours) == one.packets > 0
        assert ours == theirs[: len(ours)]
        assert one.packets + one.left_out == len(theirs)
        assert one.dropped == 0
        assert missing == one.left_out
    limited = most != "200MiB"
    assert [bool(one.left_out) for one in flow.captures] == [limited] * 2
    assert len(notes) == 2 * limited
    assert all("more than it was to keep" in note for note in notes)


def test_a_recorder_that_is_killed_costs_its_file_and_nothing_else(lab, measure):
    before = lab.left("paris").keys()
    run = measure(CAPTURED.replace("1s", "3s"))
    run.until("sample", 4)

    def recorders():
        found = lab.processes("paris")
        return [pid for pid, line in found.items() if "--snaplen" in line and "python" in line]

    for pid in wait_until(recorders, lambda: lab.processes("paris")):
        os.kill(pid, signal.SIGKILL)
    flow, files, notes = ended(run)
    assert flow.status == "ok"
    assert set(files) == {"tokyo"}
    assert notes == ["packets at paris: none: its recorder was killed"]
    wait_until(lambda: lab.left("paris").keys() == before, lambda: lab.left("paris"))


# --- where SSH goes the measured way ----------------------------------------------------------


@pytest.mark.parametrize("jump", [False, True], ids=["straight", "by a jump host"])
def test_the_connections_of_ssh_are_not_in_the_files(jump, lab, measure):
    """They reach the same address, also those that pass through the other host."""
    if jump:
        lab.configure("Host paris\nProxyJump tokyo")
    flow, files, notes = ended(measure(f"{MAIN}capture = true\n"))
    assert not notes
    for host, file in files.items():
        ends = [names_of(one.ends) for one in read_trace(file).connections]
        ports = {end.rpartition(":")[2] for both in ends for end in both}
        assert f"{flow.port}" in ports
        assert f"{PORT}" not in ports, host


def test_a_user_who_may_not_record_is_told_what_to_do_before_anything_is_sent(
    lab, measure, tmp_path
):
    lab.configure("Host paris tokyo\nPort 22")
    run = measure(CAPTURED)
    assert run.end() == 3
    errors = "".join(run.errors)
    assert "flow main: packets cannot be recorded on paris: packet socket: " in errors
    assert "Operation not permitted" in errors
    assert "set sudo=true for the host" in errors
    assert not run.of("sample")
    profile = tmp_path / "remote-0.toml"
    examined = lab.run(sys.executable, "-m", "benchctl", "doctor", "--hosts", str(profile)).stdout
    assert examined.count("note packets") == 2
    assert examined.count("Operation not permitted") == 2
