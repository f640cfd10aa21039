"""In a running lab, names, routes, settings, links and services are as in the file."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from lab.lab_support import EMULATORS, topology, verified
from waiting import wait_until

from benchctl.errors import LabError
from benchctl.lab.capability import examine, launcher
from benchctl.lab.emulate.kernel import unpunctual
from benchctl.lab.emulate.link import Change
from benchctl.lab.lab import Lab
from benchctl.lab.topology.model import Emulator
from benchctl.lab.verify.judgement import Promise
from benchctl.lab.verify.verify import verify

pytestmark = pytest.mark.netns

SERVER = """
import socket, sys
with socket.create_server(("", int(sys.argv[1]))) as server:
    while True:
        with server.accept()[0] as connection:
            connection.sendall(b"hello")
"""

TEXT = f"""
[hosts.phone]
sysctl = {{ tcp_sack = 0 }}
initcwnd = 4
[hosts.web]
aliases = ["speed.example.net"]
services = [{{ command = [{sys.executable!r}, "-c", '''{SERVER}''', "8080"], ports = 8080 }}]
[routers]
r = {{}}
[switches]
s = {{}}
[links]
wifi = {{ between = ["phone:wireless", "r"], rate = "8Mbit", delay = "5ms", queue = 3 }}
cell = {{ between = ["phone:mobile", "s"] }}
s-r = {{ between = ["s", "r"] }}
far = {{ between = ["r", "web"], rate = "20Mbit", delay = "10ms", queue = 50 }}
"""


@pytest.fixture(scope="module", params=EMULATORS)
def lab(request):
    with Lab.build(topology(TEXT), request.param) as lab:
        yield lab


def run(lab, node, *argv, **kwargs):
    return subprocess.run(
        [*lab.nodes[node].prefix, *argv],
        capture_output=True, text=True, check=False, start_new_session=True, **kwargs,
    )  # fmt: skip


def test_names_and_aliases_resolve_inside_and_only_there(lab):
    found = run(lab, "phone", "getent", "hosts", "speed.example.net")
    assert found.stdout.split() == [lab.nodes["web"].address, "web", "speed.example.net"]
    assert run(lab, "phone", "getent", "hosts", "other.example.net").returncode == 2
    assert "speed.example.net" not in Path("/etc/hosts").read_text()


def test_a_command_starts_in_the_current_directory_as_its_host_has_it(lab, tmp_path):
    assert run(lab, "phone", "pwd", "-P", cwd=tmp_path).stdout == f"{tmp_path}\n"
    run(lab, "phone", "sh", "-c", "echo kept > after.txt", cwd=tmp_path)
    assert (tmp_path / "after.txt").read_text() == "kept\n"
    assert "speed.example.net" in run(lab, "phone", "cat", "hosts", cwd="/etc").stdout
    devices = run(lab, "phone", "ls", cwd="/sys/class/net").stdout.split()
    assert set(devices) == {"lo", "wireless", "mobile"}


def test_a_node_knows_its_address_and_its_ways_out(lab):
    phone = lab.nodes["phone"]
    ways = {name: (way.device, way.address) for name, way in phone.interfaces.items()}
    assert ways == {"wireless": ("wireless", "10.0.0.1"), "mobile": ("mobile", "10.0.1.1")}
    assert (phone.address, lab.nodes["s"].address) == ("10.0.0.1", "")
    assert not phone.shares_ports
    assert phone.address6 == ""
    assert run(lab, "phone", "ip", "-6", "address").stdout == ""


def test_settings_hold_on_their_host_and_nowhere_else(lab):
    path = "/proc/sys/net/ipv4/tcp_sack"
    here = Path(path).read_text()
    assert run(lab, "phone", "cat", path).stdout == "0\n"
    assert run(lab, "web", "cat", path).stdout == here
    assert Path(path).read_text() == here
    assert "initcwnd 4" in run(lab, "phone", "ip", "route", "get", "10.0.2.2").stdout


def test_what_is_bound_to_an_interface_leaves_by_it(lab):
    def device(*words):
        return run(lab, "phone", "ip", "route", "get", "10.0.2.2", *words).stdout.split("dev ")[1]

    assert device().startswith("mobile")
    assert device("from", "10.0.0.1").startswith("wireless")
    assert device("oif", "wireless").startswith("wireless")


def test_a_lab_has_no_way_out(lab):
    devices = {line.split()[0] for line in run(lab, "r", "ip", "-br", "link").stdout.splitlines()}
    assert {name.partition("@")[0] for name in devices} == {"lo", "eth0", "eth1", "eth2"}
    code = "import socket; socket.create_connection(('192.0.2.1', 80), 5)"
    refused = run(lab, "phone", sys.executable, "-c", code)
    assert "Network is unreachable" in refused.stderr


def test_services_listen_before_the_lab_is_handed_over(lab):
    code = "import socket; print(socket.create_connection(('web', 8080)).recv(10))"
    assert run(lab, "phone", sys.executable, "-c", code).stdout == "b'hello'\n"


def test_links_keep_their_promises(lab):
    looks = verified(lab, lab.topology.links)
    ways = [(*look.leg.links, look.leg.source.node, look.leg.target.node) for look in looks]
    assert ways == [
        ("wifi", "phone", "r"), ("wifi", "r", "phone"), ("far", "r", "web"), ("far", "web", "r"),
    ]  # fmt: skip
    assert [look.problem for look in looks] == [""] * 4
    assert all(set(look.findings) == set(Promise) for look in looks)
    delays = [look.findings[Promise.DELAY] for look in looks]
    assert all(delay.measured >= delay.promised for delay in delays)
    assert [lab.counters(link, start).queued for link, start, _ in ways] == [0] * 4


def test_a_changed_link_changes_at_once_and_in_one_direction_where_asked(lab):
    there, back = (lab.counters("far", node) for node in ("r", "web"))
    lab.change("far", Change(loss_ratio=1.0), "web")
    code = "import socket; socket.create_connection(('web', 8080), 0.5)"
    assert "timed out" in run(lab, "phone", sys.executable, "-c", code).stderr
    lab.change("far", Change(loss_ratio=0.0))
    assert lab.counters("far", "web").lost > back.lost
    assert lab.counters("far", "r").lost == there.lost


def test_the_longest_queue_is_that_since_it_was_last_asked(lab):
    """Of seven frames at once one is sent, three wait, and the others find the queue full."""
    flood = """
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
    for _ in range(7):
        sock.sendto(bytes(1400), ("r", 9))
"""

    def longest():
        """Return the longest queue that was seen until it was empty again."""
        run(lab, "phone", sys.executable, "-c", flood)
        asked = []
        wait_until(lambda: asked.append(lab.counters("wifi", "phone")) or not asked[-1].queued)
        return {counters.queue_max for counters in asked}

    lab.counters("wifi", "phone")
    if lab.emulator is Emulator.KERNEL:
        assert longest() == {None}
        return
    # A sender that is interrupted may find that the queue has become shorter.
    assert max(wait_until(lambda: 3 in (found := longest()) and found)) == 3
    assert lab.counters("wifi", "phone").queue_max == 0


def test_a_bare_cable_cannot_change(lab):
    with pytest.raises(LabError, match="link cell is not emulated"):
        lab.change("cell", Change(loss_ratio=1.0))


def test_a_change_comes_at_its_time_and_not_before(lab):
    code = """
import socket, time
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    sock.sendto(b"x", ("web", 9))
    time.sleep(0.005)
"""
    before = lab.counters("far", "r")
    argv = [*lab.nodes["phone"].prefix, sys.executable, "-c", code]
    with subprocess.Popen(argv, start_new_session=True) as sender:
        try:
            wait_until(lambda: lab.counters("far", "r").delivered > before.delivered)
            at_ns = time.monotonic_ns() + 300_000_000
            lab.change("far", Change(at_ns=at_ns, loss_ratio=1.0))
            wait_until(lambda: lab.counters("far", "r").lost > before.lost)
            seen_ns = time.monotonic_ns()
        finally:
            os.killpg(sender.pid, signal.SIGKILL)
    lab.change("far", Change(loss_ratio=0.0))
    assert seen_ns >= at_ns


def test_frames_are_all_accounted_for(lab):
    wait_until(lambda: lab.counters("far", "r").queued == 0)
    for link in ("wifi", "far"):
        for end in lab.topology.links[link].ends:
            counters = lab.counters(link, end.node)
            ended = counters.delivered + counters.dropped + counters.lost
            assert ended <= counters.arrived <= ended + 10
            assert (counters.missed, counters.refused) == (0, 0)


def test_frames_that_a_device_could_not_hand_over_are_counted():
    code = """
import socket, subprocess
from benchctl.lab.build.devices import await_running
from benchctl.lab.emulate.kernel import _undelivered
lines = "link add near type veth peer far mtu 100\\nlink set near up\\nlink set far up\\n"
subprocess.run(["ip", "-batch", "-"], input=lines, text=True, check=True)
await_running(["near"])
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sock:
    sock.bind(("near", 0x88B5))
    before = _undelivered("near")
    for size in (60, 1000, 1000, 60, 1000):
        try:
            sock.send(bytes(size))
        except OSError:
            pass
print(_undelivered("near", "far", "none") - before)
"""
    argv = [*launcher().argv, "unshare", "--net", "--", sys.executable, "-c", code]
    result = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert result.stdout == "3\n"


def test_one_tc_makes_many_changes_and_its_words_are_the_error_of_a_wrong_one():
    code = """
from benchctl.lab.build.devices import BuildError, Tc, run_ip
run_ip(["link add near type veth peer far"])
tc = Tc()
for limit in (5, 7):
    tc.run([f"qdisc replace dev {end} root pfifo limit {limit}" for end in ("near", "far")])
    print(sorted((one["dev"], one["options"]["limit"]) for one in tc.qdiscs()))
for line in ("qdisc add dev none root pfifo", "qdisc show"):
    try:
        tc.run([line])
    except BuildError as error:
        print(error)
tc.close()
"""
    argv = [*launcher().argv, "unshare", "--net", "--", sys.executable, "-c", code]
    result = subprocess.run(argv, capture_output=True, text=True, check=True)
    *limits, first, second = result.stdout.splitlines()
    assert limits == [f"[('far', {limit}), ('near', {limit})]" for limit in (5, 7)]
    assert first.startswith('tc: Cannot find device "none"')
    assert second == "tc: it does not answer"


def test_a_command_ends_as_it_would_end_without_a_lab(lab):
    assert run(lab, "web", "sh", "-c", "echo out; echo err >&2; exit 7").returncode == 7
    result = run(lab, "web", "sh", "-c", "echo out; echo err >&2; kill -SEGV $$")
    assert (result.stdout, result.stderr) == ("out\n", "err\n")
    assert result.returncode == -signal.SIGSEGV
    missing = run(lab, "web", "no-such-program")
    assert missing.returncode == 127
    assert "no-such-program" in missing.stderr


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_a_signal_to_the_group_reaches_the_command(name, lab):
    number = signal.Signals[name]
    argv = [*lab.nodes["web"].prefix, "sh", "-c", "echo ready; exec sleep 100"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout.readline() == b"ready\n"
        os.killpg(process.pid, number)
        assert process.wait() == -number


def test_a_command_that_handles_its_signal_decides_how_it_ends(lab):
    script = "trap 'echo told; exit 3' INT; echo ready; while :; do sleep 0.01; done"
    argv = [*lab.nodes["web"].prefix, "sh", "-c", script]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout.readline() == b"ready\n"
        os.killpg(process.pid, signal.SIGINT)
        assert process.stdout.read() == b"told\n"
        assert process.wait() == 3


def test_two_interfaces_on_one_switch_have_routes_and_an_initial_window():
    text = """
[hosts]
a = { initcwnd = 3 }
b = {}
[routers]
r = {}
[switches]
s = {}
[links]
a1 = { between = ["a:one", "s"] }
a2 = { between = ["a:two", "s"] }
s-r = { between = ["s", "r"] }
r-b = { between = ["r", "b"] }
"""
    with Lab.build(topology(text)) as lab:
        goal = lab.nodes["b"].address
        for device in ("one", "two"):
            found = run(lab, "a", "ip", "route", "get", goal, "oif", device).stdout
            assert f"dev {device}" in found
            assert "initcwnd 3" in found
            assert run(lab, "a", "ping", "-c", "1", "-W", "30", "-I", device, goal).returncode == 0


def test_the_kernel_emulates_links_when_asked_to_or_says_why_not():
    text = """
[hosts]
a = {}
b = {}
[links]
ab = { between = ["a", "b"], rate = "50Mbit", delay = "5ms", queue = 50 }
"""
    found = {ability.name: ability for ability in examine()}["lab kernel emulator"]
    if not found.there:
        if not unpunctual():
            with pytest.raises(LabError) as refused:
                Lab.build(topology(text), Emulator.KERNEL)
            assert f"the kernel cannot emulate links here: {found.text}" in str(refused.value)
        with Lab.build(topology(text), Emulator.AUTO) as lab:
            assert (lab.emulator, lab.why_not_kernel) == (Emulator.USER, found.text)
        return
    with Lab.build(topology(text), Emulator.AUTO) as lab:
        assert (lab.emulator, lab.why_not_kernel) == (Emulator.KERNEL, "")
        before = lab.counters("ab", "a").arrived
        run(lab, "a", "ping", "-c", "3", "-i", "0.2", lab.nodes["b"].address)
        assert lab.counters("ab", "a").arrived == before + 3


def test_frames_are_whole_and_one_by_one(lab):
    """Offloads would make frames longer than the MTU, and leave checksums to a network card."""
    code = """
import socket, sys
with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800)) as tap:
    tap.bind(("eth2", 0x0800))
    print("ready", flush=True)
    for _ in range(30):
        packet = tap.recv(65536)
        header = packet[: (packet[0] & 15) * 4]
        segment = packet[len(header) : int.from_bytes(packet[2:4])]
        pseudo = header[12:20] + bytes([0, header[9]]) + len(segment).to_bytes(2)
        whole = pseudo + segment + bytes(len(segment) % 2)
        total = sum(int.from_bytes(whole[i : i + 2]) for i in range(0, len(whole), 2))
        total = (total & 0xFFFF) + (total >> 16)
        print(len(packet), hex((total & 0xFFFF) + (total >> 16)))
"""
    argv = [*lab.nodes["r"].prefix, sys.executable, "-c", code]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True) as tap:
        assert tap.stdout.readline() == "ready\n"
        verify(lab, ["far"])
        found = [line.split() for line in tap.stdout]
    assert len(found) == 30
    assert max(int(length) for length, _ in found) <= 1500
    assert {checksum for _, checksum in found} == {"0xffff"}


@pytest.mark.parametrize("emulator", EMULATORS)
def test_a_lab_of_ipv6_alone_has_addresses_of_ones_own_and_keeps_its_promises(emulator):
    text = """
ipv4 = false
ipv6 = true
[hosts]
a = {}
b = {}
[routers]
r = {}
[links]
one = { between = ["a", "r"], rate = "10Mbit", delay = "5ms", addresses = { a = "2001:db8::5/64" } }
two = { between = ["r", "b"] }
"""
    with Lab.build(topology(text), emulator) as lab:
        shown = run(lab, "a", "ip", "-br", "address", "show", "dev", "eth0").stdout.split()
        assert shown[2:] == ["2001:db8::5/64"]
        assert lab.nodes["a"].address == "2001:db8::5"
        assert run(lab, "a", "ip", "-4", "route").stdout == ""
        assert "PERMANENT" in run(lab, "a", "ip", "-6", "neigh").stdout
        there = run(lab, "b", "ping", "-c", "1", "a")
        assert "from a (2001:db8::5)" in there.stdout, there.stderr
        assert [look.problem for look in verified(lab, ["one"])] == ["", ""]


def test_no_address_has_to_be_resolved(lab):
    for node in ("phone", "r", "web"):
        entries = run(lab, node, "ip", "neigh").stdout.splitlines()
        assert entries
        assert all("PERMANENT" in entry for entry in entries), entries


def test_islands_stand_side_by_side():
    text = """
[hosts]
a = {}
b = {}
c = {}
d = {}
[links]
one = { between = ["a", "b"] }
two = { between = ["c", "d"] }
"""
    with Lab.build(topology(text)) as lab:
        for source, goal, code in (("a", "b", 0), ("c", "d", 0), ("a", "c", 2)):
            done = run(lab, source, "ping", "-c", "1", "-W", "1", goal)
            assert done.returncode == code, done.stderr
