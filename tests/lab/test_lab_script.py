"""What ip and tc are asked to do, line by line."""

from pathlib import Path

from benchctl.lab import names, script
from benchctl.lab.model import Settings
from benchctl.lab.topology import build_topology
from benchctl.profile.source import parse_toml

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


def test_a_host_with_two_interfaces_has_a_table_of_routes_for_each():
    assert script.node(TOPOLOGY, TOPOLOGY.nodes["phone"]) == [
        "link set lo up",
        "link set wireless up",
        "addr add 10.0.0.1/24 dev wireless",
        "link set mobile up",
        "addr add 10.0.1.1/24 dev mobile",
        "neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev wireless nud permanent",
        "neigh add 10.0.1.2 lladdr 02:00:00:00:00:06 dev mobile nud permanent",
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


def test_a_switch_joins_its_ports():
    assert script.node(TOPOLOGY, TOPOLOGY.nodes["s"]) == [
        "link set lo up",
        "link add switch type bridge",
        "link set switch up",
        "link set eth0 master switch up",
        "link set eth1 master switch up",
    ]


def test_the_kernel_delays_and_loses_before_it_queues():
    settings = Settings(8e6, 0.005, 0.001, 0.025, 50)
    assert script.disciplines("eth0", settings, 1500) == [
        "qdisc replace dev eth0 root handle 1: netem limit 825000 delay 5000us 1000us "
        "loss 2.500000%",
        "qdisc replace dev eth0 parent 1:1 handle 2: tbf rate 8000000bit burst 2514 limit 75700",
        "qdisc replace dev eth0 parent 2:1 handle 3: pfifo limit 50",
    ]


def test_the_kernel_is_asked_for_nothing_that_a_link_does_not_do():
    assert script.disciplines("eth0", Settings(), 1500) == []
    assert [line.split()[5:8] for line in script.disciplines("eth0", Settings(1e6), 1500)] == [
        ["handle", "2:", "tbf"], ["2:1", "handle", "3:"],
    ]  # fmt: skip


def test_names_and_aliases_stand_at_the_first_address():
    assert names.hosts_file(TOPOLOGY) == (
        "127.0.0.1 localhost\n::1 localhost\n"
        "10.0.0.1 phone\n10.0.2.2 web speed.example.net www\n10.0.0.2 r\n"
    )


def test_host_names_come_from_files_alone_and_other_names_as_before():
    text = "passwd: files\nhosts:  files mdns4_minimal [NOTFOUND=return] dns\nshadow: files\n"
    assert names.nsswitch_file(text) == "passwd: files\nshadow: files\nhosts: files\n"
    assert names.nsswitch_file("") == "hosts: files\n"
