"""A lab with ``ipv6 = true``: its addresses, its routes, what theory expects, and the real one."""

import subprocess
import sys

import pytest
from lab.lab_support import EMULATORS, topology

from benchctl.errors import ProfileError
from benchctl.lab.build import script
from benchctl.lab.lab import Lab
from benchctl.lab.topology.expect import path, segment_bytes, tcp_payload_ratio, udp_payload_ratio
from benchctl.lab.topology.routing import Forwarding

TEXT = """
ipv6 = true
[hosts]
phone = { initcwnd = 4 }
web = { aliases = ["speed.example.net"] }
[routers]
near = {}
far = {}
[switches]
s = {}
[links]
cell = { between = ["phone:mobile", "s"] }
s-near = { between = ["s", "near"] }
wifi = { between = ["phone:wireless", "far"], delay = "5ms" }
core = { between = ["near", "far"], delay = "1ms", rate = "20Mbit" }
web = { between = ["far", "web"] }
"""
TOPOLOGY = topology(TEXT)


def routed(text):
    """Return the routes that the file gives of ``phone``, as network and next hop."""
    given = f"phone = {{ routes = [{text}] }}"
    nodes = topology(TEXT.replace("phone = { initcwnd = 4 }", given)).nodes
    return {(str(route.network), route.via) for route in nodes["phone"].routes}


def refusal(text):
    with pytest.raises(ProfileError) as caught:
        routed(text)
    return f"{caught.value.message}; {caught.value.hint}"


def test_addresses_of_both_versions_have_the_same_numbers():
    known = {node: [TOPOLOGY.known_at(node, v) for v in (4, 6)] for node in TOPOLOGY.nodes}
    assert known == {
        "phone": ["10.0.0.1", "fd62:656e:6368::1"],
        "web": ["10.0.3.2", "fd62:656e:6368:3::2"],
        "near": ["10.0.0.2", "fd62:656e:6368::2"],
        "far": ["10.0.1.2", "fd62:656e:6368:1::2"],
        "s": ["", ""],
    }


def test_addresses_of_ipv6_do_not_depend_on_given_ones_of_ipv4():
    given = TEXT.replace('"s"] }', '"s"], addresses = { phone = "192.0.2.77/24" } }', 1)
    assert topology(given).known_at("phone") == "192.0.2.77"
    assert topology(given).known_at("phone", 6) == TOPOLOGY.known_at("phone", 6)


def test_a_lab_has_ipv4_alone_unless_its_file_says_otherwise():
    without = topology(TEXT.replace("ipv6 = true", ""))
    assert without.ip_versions == (4,)
    assert without.known_at("phone", 6) == ""
    assert all(route.network.version == 4 for n in without.nodes.values() for route in n.routes)


def test_a_node_gets_addresses_rules_and_routes_of_ipv6():
    assert script.network(TOPOLOGY, TOPOLOGY.nodes["phone"], 6) == [
        "addr add fd62:656e:6368::1/64 dev mobile nodad",
        "addr add fd62:656e:6368:1::1/64 dev wireless nodad",
        "rule add from fd62:656e:6368::1 table 1001 priority 1001",
        "rule add oif mobile table 1001 priority 1001",
        "rule add from fd62:656e:6368:1::1 table 1002 priority 1002",
        "rule add oif wireless table 1002 priority 1002",
        "route replace fd62:656e:6368::/64 dev mobile metric 256 initcwnd 4",
        "route replace fd62:656e:6368:1::/64 dev wireless metric 256 initcwnd 4",
        "route replace fd62:656e:6368:2::/64 dev mobile via fd62:656e:6368::2 onlink initcwnd 4",
        "route replace fd62:656e:6368:3::/64 dev wireless via fd62:656e:6368:1::2 onlink "
        "initcwnd 4",
        "route replace fd62:656e:6368::/64 dev mobile metric 256 table 1001 initcwnd 4",
        "route replace fd62:656e:6368:2::/64 dev mobile via fd62:656e:6368::2 onlink table 1001 "
        "initcwnd 4",
        "route replace fd62:656e:6368:1::/64 dev mobile via fd62:656e:6368::2 onlink table 1001 "
        "initcwnd 4",
        "route replace fd62:656e:6368:3::/64 dev mobile via fd62:656e:6368::2 onlink table 1001 "
        "initcwnd 4",
        "route replace fd62:656e:6368:1::/64 dev wireless metric 256 table 1002 initcwnd 4",
        "route replace fd62:656e:6368:2::/64 dev wireless via fd62:656e:6368:1::2 onlink "
        "table 1002 initcwnd 4",
        "route replace fd62:656e:6368:3::/64 dev wireless via fd62:656e:6368:1::2 onlink "
        "table 1002 initcwnd 4",
        "route replace fd62:656e:6368::/64 dev wireless via fd62:656e:6368:1::2 onlink "
        "table 1002 initcwnd 4",
    ]
    assert "\nfd62:656e:6368:3::2 web speed.example.net\n" in script.hosts_file(TOPOLOGY)


def test_both_versions_take_the_same_way():
    for goal in ("web", "far"):
        ways = [
            Forwarding(TOPOLOGY, version).walk("phone", TOPOLOGY.interfaces(goal)[0])
            for version in (4, 6)
        ]
        assert ways[0] == ways[1]
        assert ways[0]


def test_a_given_route_to_a_node_or_to_all_is_one_of_both_versions():
    web = {("10.0.3.2/32", "10.0.0.2"), ("fd62:656e:6368:3::2/128", "fd62:656e:6368::2")}
    assert web <= routed('{ to = "web", via = "near" }')
    everywhere = {("0.0.0.0/0", "10.0.0.2"), ("::/0", "fd62:656e:6368::2")}
    assert everywhere <= routed('{ to = "default", via = "near" }')
    # A next hop that is an address decides.
    found = routed('{ to = "default", via = "fd62:656e:6368:0::2" }')
    assert ("::/0", "fd62:656e:6368::2") in found
    assert not [via for network, via in found if network == "0.0.0.0/0"]
    found = routed('{ to = "fd62:656e:6368:3::/64", via = "near" }')
    assert ("fd62:656e:6368:3::/64", "fd62:656e:6368::2") in found


def test_a_route_of_two_versions_or_of_a_version_that_is_off_is_rejected():
    mixed = refusal('{ to = "10.0.3.0/24", via = "fd62:656e:6368::2" }')
    assert '"10.0.3.0/24" is of another IP version than its next hop' in mixed
    with pytest.raises(ProfileError, match="this lab has no IPv6"):
        topology("""
[hosts]
a = { routes = [{ to = "fd00::/8", via = "b" }] }
b = {}
[links]
x = { between = ["a", "b"] }
""")


def test_headers_of_ipv6_are_longer():
    assert segment_bytes(1500, ip_version=6) == 1428
    assert tcp_payload_ratio(1500, ip_version=6) == 1428 / 1514
    assert udp_payload_ratio(1452, 1500, 6) == 1452 / 1514
    # 1461 bytes of datagram in fragments of 1448 and 13, each with 48 of headers (RFC 8200, 4.5).
    assert udp_payload_ratio(1453, 1500, 6) == 1453 / (1461 + 2 * (40 + 8 + 14))
    four, six = (path(TOPOLOGY, "phone", "web", "mobile", version) for version in (4, 6))
    assert six.one_way_s(14) - four.one_way_s(14) == pytest.approx(20 * 8 / 20e6)
    assert six.reverse.tcp_bps() == pytest.approx(20e6 * 1428 / 1514)


SERVER = """
import socket
with socket.create_server(("::", 8080), family=socket.AF_INET6) as server:
    while True:
        with server.accept()[0] as connection:
            connection.sendall(connection.getpeername()[0].encode())
"""
COMMAND = f"[{sys.executable!r}, '-c', '''{SERVER}''']"
SERVED = TEXT.replace(
    "web = {", f"web = {{ services = [{{ command = {COMMAND}, ports = 8080 }}],", 1
)
CLIENT = """
import socket, sys
address = socket.getaddrinfo("speed.example.net", 8080, socket.AF_INET6)[0][4]
with socket.create_connection(address[:2], 5, (sys.argv[1], 0)) as connection:
    print(connection.recv(99).decode())
"""


@pytest.mark.netns
@pytest.mark.parametrize("emulator", EMULATORS)
def test_a_lab_reaches_its_hosts_over_several_hops_by_ipv6_and_is_silent_itself(emulator):
    with Lab.build(topology(SERVED), emulator) as lab:

        def run(node, *argv):
            argv = [*lab.nodes[node].prefix, *argv]
            return subprocess.run(
                argv, capture_output=True, text=True, check=False, start_new_session=True
            ).stdout

        phone = lab.nodes["phone"]
        assert (phone.address, phone.address6) == ("10.0.0.1", "fd62:656e:6368::1")
        for own in ("fd62:656e:6368::1", "fd62:656e:6368:1::1"):
            assert run("phone", sys.executable, "-c", CLIENT, own).strip() == own
        left_by = run("phone", "ip", "route", "get", "fd62:656e:6368:3::2", "oif", "mobile")
        assert "via fd62:656e:6368::2 dev mobile" in left_by
        assert "initcwnd 4" in run("phone", "ip", "route", "get", "fd62:656e:6368::2")
        assert "fe80" not in run("phone", "ip", "-6", "address")
        before = lab.counters("wifi", "phone").arrived
        assert before < 20  # its connection, and the groups that its addresses join
        assert run("s", "ip", "-6", "address") == ""
