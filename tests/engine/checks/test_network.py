"""Names of a profile become hosts, peers, ways out and ports."""

import asyncio
import dataclasses
import errno
import socket
from contextlib import ExitStack

import pytest
from engine.fakes import FakeBackend
from engine.virtual import flow
from msgspec.structs import replace

from benchctl.api import Capabilities, Direction, Duration, Field, Parameters, Role, Tool
from benchctl.engine.checks import network as network_module
from benchctl.engine.checks.network import (
    check_interfaces,
    unanswered,
    with_address,
    with_own_address,
)
from benchctl.errors import HostError, MissingError
from benchctl.hosts.local.spawn import LocalSpawner
from benchctl.hosts.sent import ports as ports_module
from benchctl.plan.bound import bind_flow
from benchctl.run.planned import LOCAL, ExternalServer, Host, HostInterface, Network, SshTarget


class VersionedParameters(Parameters):
    duration: Duration = Field(1.0, description="time to measure")
    ip_version: int | None = Field(None, description="IP version")
    label: str = Field("x", description="a word of the command")


class VersionedBackend(FakeBackend):
    parameters = VersionedParameters
    capabilities = Capabilities((Direction.SEND,), default_port=5201, needs_server=True)


class PeerRunsBackend(FakeBackend):
    """A tool whose peer runs already, on the tool's own port."""

    capabilities = Capabilities((Direction.SEND,), default_port=861)


class PortlessBackend(FakeBackend):
    capabilities = Capabilities((Direction.ROUND_TRIP,))


HERE = Network({"local": LOCAL}, {"public": ExternalServer("203.0.113.1", (9200, 9203))})
TOOLS = {role: Tool("1") for role in Role}


def ports_of(flow, network, taken):
    return [first for first, _ in pairs_of(flow, network, taken)]


def pairs_of(flow, network, taken):
    return asyncio.run(network_module.ports_of(flow, network, taken, LocalSpawner(), {}))


def listening(stack, address="127.0.0.1", port=0, kind=socket.SOCK_STREAM):
    """Bind a socket as another program would; returns its port."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = stack.enter_context(socket.socket(family, kind))
    sock.bind((address, port))
    if kind == socket.SOCK_STREAM:
        sock.listen()
    return sock.getsockname()[1]


def backend_on(port, **abilities):
    backend = FakeBackend()
    backend.capabilities = dataclasses.replace(backend.capabilities, default_port=port, **abilities)
    return backend


def test_a_peers_ports_are_its_range_in_order():
    public = bind_flow(flow(to="public"), FakeBackend())
    assert ports_of(public, HERE, ()) == [9200, 9201, 9202, 9203]


def test_a_peer_without_ports_has_the_tools_own():
    network = Network({"local": LOCAL}, {"public": ExternalServer("203.0.113.1", None)})
    assert ports_of(bind_flow(flow(to="public"), FakeBackend()), network, ()) == [5201]


def test_a_tool_without_ports_gets_none():
    assert ports_of(bind_flow(flow(), PortlessBackend()), HERE, ()) == [None]


def test_a_tool_that_starts_no_server_finds_its_peer_on_the_tools_own_port():
    """Also where a service of the lab, or another program, listens there: that is the peer."""
    lab = Network({"h2": Host("h2", "10.0.0.2", shares_ports=False, taken_ports=frozenset({861}))})
    assert ports_of(bind_flow(flow(to="h2"), PeerRunsBackend()), lab, ()) == [861]
    with ExitStack() as stack:
        backend = PeerRunsBackend()
        port = listening(stack)
        backend.capabilities = dataclasses.replace(backend.capabilities, default_port=port)
        assert ports_of(bind_flow(flow(), backend), HERE, {port}) == [port]


def test_a_host_of_ours_gets_the_tools_own_port_where_it_is_free(port):
    assert ports_of(bind_flow(flow(), backend_on(port)), HERE, ())[0] == port


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM], ids=["tcp", "udp"])
def test_a_port_that_another_program_has_is_not_used(kind, port):
    with ExitStack() as stack:
        listening(stack, port=port, kind=kind)
        others = ports_of(bind_flow(flow(), backend_on(port)), HERE, ())
        assert port < others[0] < others[1] < others[2]


def test_a_port_that_only_root_may_use_is_followed_by_those_of_everybody(monkeypatch):
    monkeypatch.setattr(ports_module, "_is_free", lambda address, port: port >= 1024)
    assert ports_of(bind_flow(flow(), backend_on(861)), HERE, ()) == [1024, 1025, 1026]


def test_the_ports_end_at_the_last_that_there_is(monkeypatch):
    monkeypatch.setattr(ports_module, "_is_free", lambda address, port: True)
    assert ports_of(bind_flow(flow(), backend_on(65535)), HERE, ()) == [65535]


def test_flows_of_one_trial_get_a_port_each(port):
    assert port not in ports_of(bind_flow(flow(), backend_on(port)), HERE, {port})


def test_a_server_on_two_ports_gets_two_that_are_free_and_others_at_each_try(monkeypatch):
    two = bind_flow(flow(), backend_on(7000, second_port=True))
    monkeypatch.setattr(ports_module, "_is_free", lambda address, port: port not in (7001, 7005))
    assert pairs_of(two, HERE, ()) == [(7000, 7002), (7003, 7004), (7006, 7007)]
    assert pairs_of(two, HERE, (7000,))[0] == (7002, 7003)
    monkeypatch.setattr(ports_module, "_is_free", lambda address, port: port == 7000)
    with pytest.raises(MissingError, match="no two free ports"):
        pairs_of(two, HERE, ())


def test_the_second_port_is_the_next_where_no_free_one_is_looked_for():
    to_peer, to_lab = flow(to="public"), flow(to="h1")
    assert pairs_of(bind_flow(to_peer, backend_on(7, second_port=True)), HERE, ())[:2] == [
        (9200, 9201), (9201, 9202),
    ]  # fmt: skip
    lab = Host("h1", "10.0.0.1", shares_ports=False, taken_ports=frozenset({5202}))
    two = bind_flow(to_lab, backend_on(5201, second_port=True))
    assert pairs_of(two, Network({"h1": lab}), {5203}) == [(5201, 5204)]
    can = backend_on(65535, second_port=True).capabilities
    assert (can.port_beside(65535), can.port_beside(None)) == (65534, None)
    assert backend_on(7).capabilities.port_beside(7) is None


@pytest.mark.ipv6
def test_a_flow_over_ipv6_to_this_machine_looks_for_its_port_and_server_there(port):
    six = replace(flow(), parameters={"ip_version": 6})
    with ExitStack() as stack:
        listening(stack, "::1", port)
        backend = VersionedBackend()
        backend.capabilities = dataclasses.replace(backend.capabilities, default_port=port)
        assert port not in ports_of(bind_flow(six, backend), HERE, ())
        assert ports_of(bind_flow(flow(), backend), HERE, ())[0] == port
    described = bind_flow(six, backend).described(HERE, port, TOOLS, Role.CLIENT)
    assert described.address == "::1"
    assert (
        bind_flow(flow(), backend).described(HERE, port, TOOLS, Role.CLIENT).address == "127.0.0.1"
    )


def test_an_address_that_is_not_this_machines_has_no_port():
    network = Network({"local": LOCAL, "far": Host("far", "192.0.2.7")})
    with pytest.raises(MissingError, match=r"no free port at 192\.0\.2\.7, host far"):
        ports_of(bind_flow(flow(to="far"), FakeBackend()), network, ())


def test_a_machine_without_a_free_port_is_told_of(monkeypatch):
    monkeypatch.setattr(ports_module, "_is_free", lambda address, port: False)
    with pytest.raises(MissingError, match="no free port"):
        ports_of(bind_flow(flow(), FakeBackend()), HERE, ())


def test_a_host_of_a_lab_has_every_port_but_those_of_its_services_and_of_other_flows():
    lab = Host("h1", "10.0.0.1", shares_ports=False, taken_ports=frozenset({5201, 5203}))
    network = Network({"h1": lab})
    with ExitStack() as stack:
        listening(stack, port=0)
        assert ports_of(bind_flow(flow(to="h1"), FakeBackend()), network, {5202}) == [5204]


def test_a_profiles_server_goes_before_a_lab_host_of_its_name():
    network = Network(
        {"local": LOCAL, "paris": Host("paris", "10.0.0.9")},
        {"paris": ExternalServer("paris.test", None)},
    )
    assert network.target("paris") is None
    described = bind_flow(flow(to="paris"), FakeBackend()).described(network, 1, TOOLS, Role.CLIENT)
    assert (described.address, described.owns_server) == ("paris.test", False)


def test_a_server_that_benchctl_runs_is_known_to_the_backend():
    described = bind_flow(flow(), FakeBackend()).described(HERE, 7, TOOLS, Role.SERVER)
    assert (described.address, described.port, described.owns_server) == ("127.0.0.1", 7, True)
    assert (
        not bind_flow(flow(), PortlessBackend()).described(HERE, 7, TOOLS, Role.CLIENT).owns_server
    )


@pytest.mark.parametrize(
    ("peer", "one_clock"),
    [
        ("127.0.0.2", True), ("::1", True), ("localhost", True), ("lab-host", True),
        ("203.0.113.1", False), ("speedtest.example.net", False),
    ],
)  # fmt: skip
def test_a_backend_knows_where_both_ends_have_one_clock(peer, one_clock):
    network = replace(
        HERE, hosts={**HERE.hosts, "lab-host": LOCAL}, peers={"far": ExternalServer(peer, None)}
    )
    assert bind_flow(flow(), FakeBackend()).described(network, 7, TOOLS, Role.CLIENT).one_clock
    described = bind_flow(flow(to="far"), FakeBackend()).described(network, 7, TOOLS, Role.CLIENT)
    assert described.one_clock is one_clock


def test_an_interface_of_the_host_goes_before_the_profiles():
    host = Host("h1", "10.0.0.1", interfaces={"wired": HostInterface("eth1", "10.0.0.1")})
    network = Network(
        {"h1": host, "local": LOCAL}, interfaces={"wired": HostInterface("en0", None)}
    )
    wired = replace(flow(), interface="wired")
    assert network.interface(wired) == HostInterface("en0", None)
    assert network.interface(replace(wired, source="h1")) == HostInterface("eth1", "10.0.0.1")
    assert network.interface(flow()) == HostInterface()


def test_an_interface_that_only_another_host_has_is_missing():
    network = Network(
        {"local": LOCAL, "h1": Host("h1", "10.0.0.1", interfaces={"wired": HostInterface("eth1")})},
        interfaces={"wlan": HostInterface("wlan0")},
    )
    with pytest.raises(MissingError, match='host local has no interface "wired"') as caught:
        network.interface(replace(flow(), interface="wired"))
    assert caught.value.hint == "available: wlan"


def test_a_device_that_is_not_there_is_missing_and_an_address_needs_none():
    loopback = "lo" if "lo" in dict(map(reversed, socket.if_nameindex())) else "lo0"
    interfaces = {"here": HostInterface(loopback), "by address": HostInterface(None, "192.0.2.1")}
    check_interfaces(Network({}, interfaces=interfaces))
    with pytest.raises(MissingError, match='interface "there": this machine has no device "eth99"'):
        check_interfaces(Network({}, interfaces={**interfaces, "there": HostInterface("eth99")}))


def test_a_remote_host_has_the_addresses_that_its_name_has_here(monkeypatch):
    known = {
        "oslo": [(socket.AF_INET6, "2001:db8::1"), (socket.AF_INET, "192.0.2.1"),
                 (socket.AF_INET, "192.0.2.2")],
        "lima": [(socket.AF_INET6, "2001:db8::2")],
    }  # fmt: skip

    def look_up(name, *_, **__):
        if name not in known:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(family, socket.SOCK_STREAM, 6, "", (place, 0)) for family, place in known[name]]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)

    def found(address, **more):
        host = asyncio.run(with_address(Host("h", address, reach=SshTarget("h"), **more)))
        return host.address, host.address6

    assert found("oslo") == ("192.0.2.1", "2001:db8::1")
    assert found("oslo", address6="2001:db8::9") == ("192.0.2.1", "2001:db8::9")
    assert found("lima") == ("2001:db8::2", "2001:db8::2")
    assert found("198.51.100.1") == ("198.51.100.1", "")
    with pytest.raises(HostError, match='host h: no address of "bonn" is known here: Name or'):
        found("bonn")


def test_servers_behind_a_nat_listen_at_all_addresses_and_clients_find_them_at_the_one_outside():
    class Asked:
        async def ask(self, host, module, function, address):
            assert (module, function) == (ports_module, "is_own")
            return address != "192.0.2.1"

    notes = []
    oslo = Host("oslo", "192.0.2.1", reach=SshTarget("oslo"), address6="2001:db8::1")
    oslo = asyncio.run(with_own_address(oslo, Asked(), notes.append))
    network = Network({"local": LOCAL, "oslo": oslo})
    assert len(notes) == 1
    assert "oslo does not have the address 192.0.2.1 itself" in notes[0]
    bound = bind_flow(flow(to="oslo"), FakeBackend())
    tools = {role: Tool("") for role in Role}
    ends = {role: bound.described(network, 1, tools, role).address for role in Role}
    assert ends == {Role.CLIENT: "192.0.2.1", Role.SERVER: "0.0.0.0"}
    assert bound.listens_at(replace(network.hosts["oslo"], address="2001:db8::1")) == "2001:db8::1"


def test_what_does_not_answer_is_named_by_its_layer(monkeypatch):
    assert unanswered("127.0.0.1", "connect: Connection refused").startswith(
        "127.0.0.1 refuses the connection"
    )
    assert unanswered("127.0.0.1", "no reply to 10 probes").startswith("127.0.0.1 is silent")
    assert "is not known here" in unanswered("no-such-host.invalid", "")

    class Routeless(socket.socket):
        def connect(self, place):
            raise OSError(errno.ENETUNREACH, "Network is unreachable")

    monkeypatch.setattr(network_module.socket, "socket", Routeless)
    assert unanswered("127.0.0.1", "") == (
        "there is no route to 127.0.0.1 from here: Network is unreachable"
    )
