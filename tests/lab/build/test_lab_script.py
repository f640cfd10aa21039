"""The input of ip and tc, line by line."""

from pathlib import Path

from benchctl.lab.build import script
from benchctl.lab.topology.topology import build_topology
from benchctl.toml.source import parse_toml

TEXT = """
[hosts]
phone = { initcwnd = 4 }
web = { aliases = ["speed.example.net", "www"] }
[routers]
r = {}
[switches]
s = {}
[links]
wifi = { between = ["phone:wireless", "r"], rate = "8Mbit", delay = "5ms" }
cell = { between = ["phone:mobile", "s"] }
s-r = { between = ["s", "r"], mtu = 1400 }
r-web = { between = ["r", "web"] }
"""
TOPOLOGY = build_topology(parse_toml(TEXT, Path("lab.toml")), {})


def place(node):
    return f"/ns/{node}"


def test_cables_are_laid_from_node_to_node_or_to_an_emulator():
    assert script.cables(TOPOLOGY, {"wifi": ("link0a", "link0b")}, place) == [
        "link add index 1003 name link0a mtu 1500 type veth peer index 1001 name wireless "
        "address 02:00:00:00:00:01 mtu 1500 netns /ns/phone",
        "link set link0a up",
        "link add index 1004 name link0b mtu 1500 type veth peer index 1002 name eth0 "
        "address 02:00:00:00:00:02 mtu 1500 netns /ns/r",
        "link set link0b up",
        "link add index 1005 name mobile address 02:00:00:00:00:03 mtu 1500 netns /ns/phone "
        "type veth peer index 1006 name eth0 address 02:00:00:00:00:04 mtu 1500 netns /ns/s",
        "link add index 1007 name eth1 address 02:00:00:00:00:05 mtu 1400 netns /ns/s "
        "type veth peer index 1008 name eth1 address 02:00:00:00:00:06 mtu 1400 netns /ns/r",
        "link add index 1009 name eth2 address 02:00:00:00:00:07 mtu 1500 netns /ns/r "
        "type veth peer index 1010 name eth0 address 02:00:00:00:00:08 mtu 1500 netns /ns/web",
    ]


def node(name):
    return script.node(TOPOLOGY.nodes[name], TOPOLOGY.interfaces(name))


def test_a_host_with_two_interfaces_has_a_table_of_routes_for_each():
    assert node("phone") == ["link set lo up", "link set wireless up", "link set mobile up"]
    assert script.network(TOPOLOGY, TOPOLOGY.nodes["phone"], 4) == [
        "addr add 10.0.0.1/24 dev wireless",
        "addr add 10.0.1.1/24 dev mobile",
        "rule add from 10.0.0.1 table 1001 priority 1001",
        "rule add oif wireless table 1001 priority 1001",
        "rule add from 10.0.1.1 table 1002 priority 1002",
        "rule add oif mobile table 1002 priority 1002",
        "route replace 10.0.0.0/24 dev wireless scope link initcwnd 4",
        "route replace 10.0.1.0/24 dev mobile scope link initcwnd 4",
        "route replace 10.0.2.0/24 dev mobile via 10.0.1.2 onlink initcwnd 4",
        "route replace 10.0.0.0/24 dev wireless scope link table 1001 initcwnd 4",
        "route replace 10.0.1.0/24 dev wireless via 10.0.0.2 onlink table 1001 initcwnd 4",
        "route replace 10.0.2.0/24 dev wireless via 10.0.0.2 onlink table 1001 initcwnd 4",
        "route replace 10.0.1.0/24 dev mobile scope link table 1002 initcwnd 4",
        "route replace 10.0.0.0/24 dev mobile via 10.0.1.2 onlink table 1002 initcwnd 4",
        "route replace 10.0.2.0/24 dev mobile via 10.0.1.2 onlink table 1002 initcwnd 4",
    ]


def test_the_neighbours_of_a_host_are_all_on_its_segments():
    found = script.neighbours(TOPOLOGY, TOPOLOGY.nodes["phone"])
    assert [(device, other.ip, other.mac) for device, other in found] == [
        ("wireless", "10.0.0.2", "02:00:00:00:00:02"),
        ("mobile", "10.0.1.2", "02:00:00:00:00:06"),
    ]


def test_a_switch_joins_its_ports():
    assert node("s") == [
        "link set lo up",
        "link add switch type bridge",
        "link set switch up",
        "link set eth0 master switch up",
        "link set eth1 master switch up",
    ]


def test_a_cable_that_shall_keep_order_merges_no_frames():
    lines = script.cables(TOPOLOGY, {"wifi": ("link0a", "link0b")}, place, ordered=True)
    assert lines[0] == (
        "link add index 1003 name link0a mtu 1500 gro_max_size 1 type veth peer gro_max_size 1 "
        "index 1001 name wireless address 02:00:00:00:00:01 mtu 1500 netns /ns/phone"
    )
    assert not any("gro" in line for line in lines[4:])


def test_names_and_aliases_stand_at_the_first_address():
    assert script.hosts_file(TOPOLOGY) == (
        "127.0.0.1 localhost\n::1 localhost\n"
        "10.0.0.1 phone\n10.0.2.2 web speed.example.net www\n10.0.0.2 r\n"
    )


def test_host_names_come_from_files_alone_and_other_names_as_before():
    text = "passwd: files\nhosts:  files mdns4_minimal [NOTFOUND=return] dns\nshadow: files\n"
    assert script.nsswitch_file(text) == "passwd: files\nshadow: files\nhosts: files\n"
    assert script.nsswitch_file("") == "hosts: files\n"
