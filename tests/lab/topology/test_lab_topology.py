"""A valid topology file is read correctly; an invalid one is rejected with file and line."""

import sys
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.errors import ProfileError
from benchctl.lab.topology.doubts import doubts
from benchctl.lab.topology.expect import path
from benchctl.lab.topology.model import Emulator, Kind, LinkSettings
from benchctl.lab.topology.routing import Forwarding
from benchctl.lab.topology.topology import build_topology, load_topology
from benchctl.toml.source import parse_toml

LABS = Path(__file__).parents[3] / "profiles/labs"

TWO_HOSTS = """
[hosts]
h1 = {}
h2 = {}
[links]
core = { between = ["h1", "h2"], rate = "10Mbit", delay = "5ms", queue = 20 }
"""

TWO_WAYS = """
[hosts]
laptop = {}
server = { aliases = ["speed.example.net"] }
[routers]
near = {}
far = {}
[links]
wire = { between = ["laptop:wired", "near"], delay = "2ms" }
radio = { between = ["laptop:wireless", "far"], delay = "1ms" }
core = { between = ["near", "far"] }
access = { between = ["near", "server"] }
"""


def build(text, settings=None):
    return build_topology(parse_toml(text, Path("lab.toml")), settings or {})


def refusal(text, settings=None):
    with pytest.raises(ProfileError) as caught:
        build(text, settings)
    return caught.value


def test_a_link_has_the_same_settings_in_both_directions_unless_told_otherwise():
    link = build(TWO_HOSTS).links["core"]
    assert link.settings == (LinkSettings(10e6, 0.005, queue_packets=20),) * 2
    asymmetric = TWO_HOSTS.replace("queue = 20", 'queue = 20, toward = { h1 = { rate = "1Mbit" } }')
    there, back = build(asymmetric).links["core"].settings
    assert (there.rate_bps, back.rate_bps) == (10e6, 1e6)
    assert there.delay_s == back.delay_s == 0.005


def test_nodes_know_what_the_file_says_of_them():
    topology = build("""
title = "A lab"
emulator = "user"
seed = 7
sysctl = { tcp_sack = 1 }
[hosts.h1]
sysctl = { tcp_sack = 0, "net.core.somaxconn" = 7 }
initcwnd = 4
services = [{ iperf3 = "5201-5202" }, { command = ["httpd", "-f"], ports = 80 }]
[hosts.h2]
[links]
a = { between = ["h1", "h2"] }
""")
    h1, h2 = topology.nodes.values()
    assert topology.local == "h1"
    assert (topology.title, topology.emulator, topology.seed) == ("A lab", Emulator.USER, 7)
    assert h1.sysctl == {"net.ipv4.tcp_sack": "0", "net.core.somaxconn": "7"}
    assert h2.sysctl == {"net.ipv4.tcp_sack": "1"}
    assert [service.argv for service in h1.services] == [
        ("iperf3", "--server", "--port", "5201"), ("iperf3", "--server", "--port", "5202"),
        ("httpd", "-f"),
    ]  # fmt: skip
    assert [service.ports for service in h1.services] == [(5201,), (5202,), (80,)]
    assert [(str(r.network), r.via, r.initcwnd) for r in h1.routes] == [("10.0.0.0/24", None, 4)]


def test_a_host_that_serves_ssh_lets_an_ordinary_user_ping_and_listen_unless_the_file_says_no():
    h1 = build("""
[hosts.h1]
services = [{ ssh = "22-23" }]
sysctl = { ip_unprivileged_port_start = 1024 }
[hosts.h2]
[links]
a = { between = ["h1", "h2"] }
""").nodes["h1"]
    assert [service.ports for service in h1.services] == [(22,), (23,)]
    assert all(service.ordinary for service in h1.services)
    assert h1.sysctl == {
        "net.ipv4.ping_group_range": "0 0", "net.ipv4.ip_unprivileged_port_start": "1024",
    }  # fmt: skip


def test_subnets_and_addresses_are_worked_out_in_the_order_of_the_file():
    topology = load_topology(LABS / "portfolio.toml")
    addresses = {
        name: [str(end.address) for end in topology.interfaces(name) if end.address]
        for name in topology.nodes
    }
    assert addresses["h3"] == ["10.0.0.3/24"]
    assert addresses["R1"] == ["10.0.0.4/24", "10.0.5.1/24"]
    assert addresses["s1"] == []
    subnets = {
        end.address.network for link in topology.links.values() for end in link.ends if end.address
    }
    assert len(subnets) == 8


def test_given_addresses_are_kept_and_the_rest_go_round_them():
    topology = build("""
[hosts]
h1 = {}
h3 = {}
[routers]
h2 = {}
[switches]
s = {}
[links]
a = { between = ["h1", "s"], addresses = { h1 = "10.0.0.1/29" } }
b = { between = ["h2", "s"] }
c = { between = ["h2", "h3"] }
""")
    ends = [end for name in ("h1", "h2", "h3") for end in topology.interfaces(name)]
    assert [str(end.address) for end in ends] == [
        "10.0.0.1/29", "10.0.0.2/29", "10.0.1.1/24", "10.0.1.2/24",
    ]  # fmt: skip


def test_routes_take_the_fewest_hops_and_then_the_least_delay():
    topology = build("""
[hosts]
a = {}
b = {}
[routers]
slow = {}
quick = {}
[links]
a-slow = { between = ["a", "slow"], delay = "20ms" }
a-quick = { between = ["a", "quick"], delay = "1ms" }
slow-b = { between = ["slow", "b"] }
quick-b = { between = ["quick", "b"] }
""")
    hops = Forwarding(topology).walk("a", topology.interfaces("b")[0])
    assert [hop.link.name for hop in hops] == ["a-slow", "slow-b"]  # b's first address is on it
    hops = Forwarding(topology).walk("a", topology.interfaces("b")[1])
    assert [hop.link.name for hop in hops] == ["a-quick", "quick-b"]


def test_what_is_bound_to_an_interface_leaves_by_it():
    topology = build(TWO_WAYS)
    server = topology.interfaces("server")[0]
    wired, wireless = topology.interfaces("laptop")
    ways = {
        label: [hop.link.name for hop in Forwarding(topology).walk("laptop", server, out)]
        for label, out in [("", None), ("wired", wired), ("wireless", wireless)]
    }
    assert ways == {
        "": ["wire", "access"],
        "wired": ["wire", "access"],
        "wireless": ["radio", "core", "access"],
    }
    back = Forwarding(topology).walk("server", wireless)
    assert [hop.link.name for hop in back] == ["access", "core", "radio"]


def test_a_given_route_replaces_the_one_worked_out():
    text = TWO_WAYS.replace(
        "laptop = {}", 'laptop = { routes = [{ to = "server", via = "far", initcwnd = 2 }] }'
    )
    topology = build(text)
    server = topology.interfaces("server")[0]
    hops = Forwarding(topology).walk("laptop", server)
    assert [hop.link.name for hop in hops] == ["radio", "core", "access"]
    given = [route for route in topology.nodes["laptop"].routes if route.initcwnd == 2]
    assert [(str(route.network), route.table) for route in given] == [
        ("10.0.3.2/32", 0), ("10.0.3.2/32", 1002),
    ]  # fmt: skip


ISLANDS = """
[hosts]
a = {}
b = {}
c = {}
d = {}
e = {}
[links]
one = { between = ["a", "b"] }
two = { between = ["b", "c"] }
three = { between = ["d", "e"] }
"""


@pytest.mark.parametrize(
    ("pair", "joined"),
    [("a b", True), ("b c", True), ("a c", False), ("d e", True), ("a d", False), ("e c", False)],
)
def test_hosts_do_not_forward_and_islands_are_apart(pair, joined):
    source, goal = pair.split()
    topology = build(ISLANDS)
    if joined:
        assert len(path(topology, source, goal).there) == 1
        return
    with pytest.raises(LookupError, match=f"there is no path from {source} to {goal}"):
        path(topology, source, goal)


def test_settings_replace_values_by_their_dotted_names():
    topology = build(
        TWO_HOSTS,
        {
            "links.core.loss": "2%",
            "links.core.toward.h2.rate": "1Mbit",
            "hosts.h1.sysctl.tcp_sack": 0,
        },
    )
    there, back = topology.links["core"].settings
    assert (there.rate_bps, back.rate_bps, there.loss_ratio) == (1e6, 10e6, 0.02)
    assert topology.nodes["h1"].sysctl == {"net.ipv4.tcp_sack": "0"}


LINK = 'core = { between = ["h1", "h2"], rate = "10Mbit", delay = "5ms", queue = 20 }'
REFUSALS = {
    "a link to nowhere": (
        ('"h2"]', '"h22"]'),
        "lab.toml:6: links.core.between: no node \"h22\"", 'did you mean "h2"?',
    ),
    "a rate of zero": (
        ("10Mbit", "0Mbit"),
        'lab.toml:6: links.core.rate: a rate must be above zero; for a link that carries nothing, '
        'set loss = "100%"', "",
    ),
    "a delay below zero": (
        ('"5ms"', '"-5ms"'), 'lab.toml:6: links.core.delay: "-5ms" is negative', "",
    ),
    "an unknown key": (
        ("delay", "dealy"), "lab.toml:6: links.core.dealy: unknown key", 'did you mean "delay"?',
    ),
    "a queue of nothing": (
        ("queue = 20", "queue = 0"), "lab.toml:6: links.core.queue: must be at least 1", "",
    ),
    "a loop to itself": (
        ('"h2"]', '"h1"]'), "lab.toml:6: links.core.between: joins h1 to itself", "",
    ),
    "three ends": (
        ('"h2"]', '"h2", "h1"]'),
        "lab.toml:6: links.core.between: a link joins exactly two nodes", "",
    ),
    "an interface of an impossible name": (
        ('"h2"]', '"h2:way-too-long-a-name"]'),
        'lab.toml:6: links.core.between: "way-too-long-a-name" is not a valid interface name',
        "use up to 15 letters, digits, - and _, beginning with a letter; not lo or switch",
    ),
    "a direction that the link does not have": (
        ("queue = 20", "queue = 20, toward = { h3 = {} }"),
        'lab.toml:6: links.core.toward.h3: the link does not go to "h3"', 'did you mean "h2"?',
    ),
    "more jitter than delay": (
        ("queue = 20", 'jitter = "6ms"'),
        "lab.toml:6: links.core.jitter: the jitter is greater than the delay",
        "a frame cannot arrive before it was sent",
    ),
    "an address of another subnet": (
        ("queue = 20", 'addresses = { h1 = "10.1.0.1/24", h2 = "10.2.0.1/24" }'),
        "lab.toml:6: links.core.addresses.h2: 10.2.0.1/24 is not in 10.1.0.0/24, the subnet of "
        "the same segment", "",
    ),
    "an address used twice": (
        ("queue = 20", 'addresses = { h1 = "10.1.0.1/24", h2 = "10.1.0.1/24" }'),
        "lab.toml:6: links.core.addresses.h2: 10.1.0.1 is used twice, first by h1", "",
    ),
    "the address of the subnet itself": (
        ("queue = 20", 'addresses = { h1 = "10.1.0.0/24" }'),
        "lab.toml:6: links.core.addresses.h1: 10.1.0.0/24 is not an address for a host",
        "",
    ),
    "a subnet too small": (
        ("queue = 20", 'addresses = { h1 = "10.1.0.1/32" }'),
        "lab.toml:6: links.core: no address is left in 10.1.0.1/32", "",
    ),
    "a host that no link leads to": (
        ("h2 = {}", "h2 = {}\nh3 = {}"), "lab.toml:5: hosts.h3: no link leads to it", "",
    ),
    "an alias that is a node": (
        ("h2 = {}", 'h2 = { aliases = ["h1"] }'),
        'lab.toml:4: hosts.h2.aliases: "h1" also names a node', "",
    ),
    "an alias that is no name": (
        ("h2 = {}", 'h2 = { aliases = ["a b"] }'),
        'lab.toml:4: hosts.h2.aliases: "a b" is not a host name', "",
    ),
    "a setting of the machine": (
        ("h2 = {}", 'h2 = { sysctl = { "kernel.hostname" = "x" } }'),
        'lab.toml:4: hosts.h2.sysctl."kernel.hostname": not a setting of a network namespace',
        "write tcp_sack, or in full net.ipv4.tcp_sack",
    ),
    "a setting of two lines": (
        ("h2 = {}", 'h2 = { sysctl = { tcp_sack = "0\\n1" } }'),
        "lab.toml:4: hosts.h2.sysctl.tcp_sack: has a line break or a control character", "",
    ),
    "a service without a program": (
        ("h2 = {}", "h2 = { services = [{ ports = 80 }] }"),
        "lab.toml:4: hosts.h2.services[0]: give one of iperf3, ssh and command", "",
    ),
    "a local host that is none": (
        ("[hosts]", 'local = "h4"\n[hosts]'),
        'lab.toml:2: local: no host "h4"',
        'did you mean "h2"?',
    ),
    "a route by nobody": (
        ("h2 = {}", 'h2 = { routes = [{ to = "default", via = "h9" }] }'),
        'lab.toml:4: hosts.h2.routes[0].via: "h9" is not a neighbour of h2', 'did you mean "h1"?',
    ),
    "a route to nothing": (
        ("h2 = {}", 'h2 = { routes = [{ to = "10.0.0.1/24", via = "h1" }] }'),
        "lab.toml:4: hosts.h2.routes[0].to: neither a node nor a network: 10.0.0.1/24 has host "
        "bits set", 'write a network as "10.0.3.0/24"',
    ),
    "a name with a sign": (
        ("h2 = {}", 'h2 = {}\n"h.3" = {}'),
        'lab.toml:5: hosts."h.3": names consist of letters, digits, - and _, and begin and end '
        "with a letter or digit", "",
    ),
    "two nodes of one name": (
        ("[links]", "[routers]\nh1 = {}\n[links]"),
        "lab.toml:6: routers.h1: this name is already used, in line 3", "",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("edit", "message", "hint"), REFUSALS.values(), ids=REFUSALS)
def test_a_wrong_file_is_refused_with_file_line_and_element(edit, message, hint):
    old, new = edit
    assert old in TWO_HOSTS
    error = refusal(TWO_HOSTS.replace(old, new))
    assert (error.message, error.hint) == (message, hint)


def test_a_loop_of_switches_is_refused():
    error = refusal("""
[hosts]
h1 = {}
[switches]
s1 = {}
s2 = {}
[links]
a = { between = ["h1", "s1"] }
b = { between = ["s1", "s2"] }
c = { between = ["s2", "s1"] }
""")
    assert error.message == "lab.toml:10: links.c: closes a loop of switches"


def test_a_route_that_leads_in_circles_is_an_unreachable_pair():
    text = """
[hosts]
a = {}
b = {}
[routers.r1]
routes = [{ to = "b", via = "r2" }]
[routers.r2]
routes = [{ to = "b", via = "r1" }]
[links]
one = { between = ["a", "r1"] }
two = { between = ["r1", "r2"] }
three = { between = ["r2", "b"] }
"""
    assert refusal(text).message == "lab.toml:3: hosts.a: there is no path from a to b"


def test_a_setting_of_an_element_that_is_not_there_is_refused():
    error = refusal(TWO_HOSTS, {"links.cor.loss": "2%"})
    assert error.message == "lab.toml:5: links.cor: no such element"
    assert error.hint == 'did you mean "core"?'


@pytest.mark.parametrize("path", sorted(LABS.glob("*.toml")), ids=lambda path: path.stem)
def test_every_lab_that_comes_with_benchctl_is_sound(path):
    topology = load_topology(path)
    assert topology.title
    assert topology.hosts


@settings(max_examples=40)
@given(st.data())
def test_any_tree_of_routers_is_addressed_and_routed(data):
    """Hosts hang off a random tree of routers; every pair gets the one path there is."""
    size = data.draw(st.integers(1, 6))
    parents = [data.draw(st.integers(0, max(0, i - 1))) for i in range(size)]
    lines = ["[hosts]", *(f"h{i} = {{}}" for i in range(size))]
    lines += ["[routers]", *(f"r{i} = {{}}" for i in range(size)), "[links]"]
    lines += [f'a{i} = {{ between = ["h{i}", "r{i}"] }}' for i in range(size)]
    lines += [f't{i} = {{ between = ["r{i}", "r{parents[i]}"] }}' for i in range(1, size)]
    topology = build("\n".join(lines))
    addresses = [
        end.address.ip for link in topology.links.values() for end in link.ends if end.address
    ]
    assert len(set(addresses)) == len(addresses)
    assert all(node.kind in (Kind.HOST, Kind.ROUTER) for node in topology.nodes.values())
    forwarding = Forwarding(topology)
    for one, other in permutations(topology.hosts, 2):
        there = forwarding.walk(one, topology.interfaces(other)[0])
        back = forwarding.walk(other, topology.interfaces(one)[0])
        assert [hop.link for hop in there] == [hop.link for hop in reversed(back)]
        assert len(there) == len({hop.link.name for hop in there})


@pytest.mark.parametrize("routers", [0, 2])
def test_a_topology_is_read_in_work_that_grows_with_its_hosts(routers):
    def calls(hosts):
        text = "[switches.s]\n" + "".join(f"[hosts.h{n}]\n" for n in range(hosts))
        text += "".join(f"[routers.r{n}]\n" for n in range(routers))
        ends = [f"h{n}" for n in range(hosts)] + [f"r{n}" for n in range(routers)]
        text += "".join(f'[links.l{n}]\nbetween = ["{n}", "s"]\n' for n in ends)
        source, count = parse_toml(text, Path("lab.toml")), 0

        def counted(_frame, event, _arg):
            nonlocal count
            count += event == "call"

        before = sys.getprofile()
        sys.setprofile(counted)
        try:
            build_topology(source, {})
        finally:
            sys.setprofile(before)
        return count

    few, some, many = (calls(hosts) for hosts in (20, 40, 80))
    # Equal steps: each further host costs what the one before did, unless the work is a square.
    assert (many - some) / 40 < 1.5 * (some - few) / 20


def test_given_routes_that_leave_one_of_many_hosts_without_a_path_are_refused():
    hosts = "".join(f"h{number} = {{}}\n" for number in range(1, 9))
    text = f"""[hosts]
{hosts}[switches]
s = {{}}
[routers]
r = {{ routes = [{{ to = "h8", via = "q" }}] }}
q = {{}}
[links]
far = {{ between = ["h1", "r"] }}
near = {{ between = ["r", "s"] }}
side = {{ between = ["r", "q"] }}
"""
    text += "".join(f'l{n} = {{ between = ["h{n}", "s"] }}\n' for n in range(2, 9))
    assert "there is no path from h1 to h8" in str(refusal(text))


def test_a_segment_of_a_thousand_hosts_has_a_subnet_that_holds_them():
    hosts = "".join(f"[hosts.h{number}]\n" for number in range(1000))
    links = "".join(f'[links.l{n}]\nbetween = ["h{n}", "s"]\n' for n in range(1000))
    topology = build(f"{hosts}[hosts.x]\n[hosts.y]\n[switches.s]\n{links}"
                     '[links.side]\nbetween = ["x", "y"]\n')  # fmt: skip
    many = {topology.interfaces(f"h{number}")[0].address for number in range(1000)}
    assert len({one.ip for one in many}) == 1000
    (network,) = {one.network for one in many}
    assert network.prefixlen == 22
    assert not network.overlaps(topology.interfaces("x")[0].address.network)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('rate = "1kbit"', "link core: at 1.00 kbit/s a full frame takes 12.1 s"),
        ('rate = "10Mbit", delay = "400s"', "link core: a delay of 6 min 40 s, one way"),
        (
            'rate = "100kbit"',
            "link core: at 100 kbit/s a queue of 1,000 full frames takes 2 min 01 s",
        ),
        ('rate = "9600bit", queue = 20, delay = "600ms"', None),
    ],
)  # fmt: skip
def test_values_that_are_hardly_meant_are_doubted_once(text, said):
    values = 'rate = "10Mbit", delay = "5ms", queue = 20'
    found = list(doubts(build(TWO_HOSTS.replace(values, text))))
    assert found == ([said] if said else [])


@pytest.mark.parametrize("name", sorted(LABS.glob("*.toml")), ids=lambda path: path.stem)
def test_no_lab_that_comes_with_benchctl_is_doubted(name):
    assert list(doubts(load_topology(name))) == []
