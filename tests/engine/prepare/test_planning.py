"""Errors that need both profile and topology are reported before anything runs."""

import pytest
from engine.fakes import FakeBackend

from benchctl.api import Capabilities, Direction, Role, Tool
from benchctl.backends import Registry
from benchctl.engine.prepare.planning import planned
from benchctl.engine.site.lab_site import planned_promises
from benchctl.errors import MissingError, ProfileError
from benchctl.plan.plan import lab_settings
from benchctl.plugins import Candidate
from benchctl.profile.find import packaged_profiles

LAB = """
local = "phone"
[hosts]
phone = {}
web = { aliases = ["web.example.net"] }
spare = {}
[routers]
r = {}
[links]
wifi = { between = ["phone:wireless", "r"], rate = "8Mbit" }
r-web = { between = ["r", "web"] }
r-spare = { between = ["r", "spare"] }
cell = { between = ["phone:mobile", "spare"] }
"""
PROFILE = """
[lab]
topology = {topology}
[servers.web]
{server}
[flows.main]
backend = "simpleperf"
"""


@pytest.fixture
def plan(tmp_path):
    def make(
        text, topology='"lab.toml"', server='host = "web.example.net"', settings=None, lab=None
    ):
        (tmp_path / "lab.toml").write_text(LAB)
        profile = tmp_path / "p.toml"
        profile.write_text(PROFILE.format(topology=topology, server=server) + text)
        return planned(str(profile), settings, None, None, yes=False, lab=lab)

    return make


def test_a_server_of_the_profile_is_a_host_of_the_lab_by_its_alias(plan):
    [flow] = plan('to = "web"\n').plan.routes
    assert (flow.source, flow.to, flow.interface) == ("local", "web", None)


@pytest.mark.parametrize("name", ["pair", "labs/pair.toml"])
def test_a_topology_may_be_one_that_comes_with_benchctl(plan, name):
    made = plan('to = "web"\n', f'"{name}"', 'host = "receiver"')
    assert made.topology.path == packaged_profiles() / "labs" / "pair.toml"


def test_a_topology_that_is_not_there_is_told_with_those_that_are(plan):
    with pytest.raises(ProfileError) as error:
        plan('to = "web"\n', '"../far/away.toml"')
    assert "p.toml:3: lab.topology: ../far/away.toml: no such topology" in error.value.message
    assert "public-internet" in error.value.hint


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ('from = "away"\nto = "web"\n', 8, 'flows.main.from: no host "away"'),
        (
            'to = "paris"\n[servers.paris]\nhost = "paris.example.net"\n', 10,
            'servers.paris.host: the lab has no host "paris.example.net", and no way out',
        ),
        (
            'to = "web"\ninterface = "mobile"\n', 9,
            "flows.main.interface: there is no path from phone to web by mobile",
        ),
        (
            'to = "web"\n[[lab.changes]]\nat = "1s"\nlink = "lan"\nrate = "1Mbit"\n', 11,
            'lab.changes[0].link: no link "lan"',
        ),
    ],
)  # fmt: skip
def test_what_the_lab_does_not_have_is_told_with_its_line(plan, text, line, told):
    with pytest.raises(ProfileError) as error:
        plan(text)
    assert error.value.message.endswith(f"p.toml:{line}: {told}")
    assert error.value.hint or "path" in told


def test_a_profile_with_a_lab_runs_in_the_real_network_if_asked(plan):
    made = plan('to = "web"\n', lab="none")
    assert made.topology is None
    assert made.network.peers["web"].host == "web.example.net"
    assert "# --lab none" in made.plan.document.text


def test_a_profile_that_names_hosts_of_its_lab_says_how_it_runs_without(plan):
    with pytest.raises(ProfileError) as error:
        plan('from = "phone"\nto = "web"\n', lab="none")
    assert 'flows.main.from: no host "phone"' in error.value.message
    assert "--set from=local --set to=server --set servers.server.host=HOST" in error.value.hint


def test_a_flow_over_ipv6_needs_a_lab_that_has_it(plan):
    over_6 = 'to = "web"\n[axes]\nip_version = [4, 6]\n'
    with pytest.raises(ProfileError) as error:
        plan(over_6)
    assert error.value.message.endswith("p.toml:6: flows.main: the lab has no IPv6")
    assert "--set lab.ipv6=true" in error.value.hint
    both = "[[include]]\nipv6 = false\nip_version = 4\n"
    axis = f'{over_6}ipv6 = {{ sets = "lab.ipv6", values = [true] }}\n{both}'
    assert len(plan(axis).plan) == 3


def test_a_flow_of_a_lab_finds_its_server_by_the_version_that_it_asks_for(plan):
    with_ipv6 = ["lab.ipv6=true"]
    text = 'to = "{to}"\ninterface = "wireless"\n[axes]\nip_version = ["auto", 4, 6]\n'

    def ends(to, settings):
        made = plan(text.format(to=to), settings=settings)
        flows = [made.plan.trial(number).flows[0] for number in range(3)]
        tools = {role: Tool("") for role in Role}
        told = [flow.described(made.network, 1, tools, Role.CLIENT) for flow in flows]
        return [(flow.address, flow.source_address, flow.source_device) for flow in told]

    four, six = ("10.0.0.1", "wireless"), (None, "wireless")
    for to in ("spare", "web"):  # by the name of a host, and of a server
        address4, address6 = {
            "spare": ("10.0.2.2", "fd62:656e:6368:2::2"),
            "web": ("10.0.1.2", "fd62:656e:6368:1::2"),
        }[to]
        found = ends(to, with_ipv6)
        assert found == [(address4, *four), (address4, *four), (address6, *six)]


def test_a_bare_name_of_ours_is_no_topology_that_merely_lies_here(plan, tmp_path):
    (tmp_path / "pair").write_text("not TOML")
    made = plan('to = "web"\n', '"pair"', 'host = "receiver"')
    assert made.topology.path == packaged_profiles() / "labs" / "pair.toml"


def test_a_source_address_that_is_not_this_machines_is_refused_with_its_line(tmp_path):
    profile = tmp_path / "p.toml"
    for address in ("127.0.0.1", "127.9.9.9"):
        profile.write_text(SOURCE.format(address=address))
        planned(str(profile), None, None, None, yes=False)
    for address in ("192.0.2.1", "2001:db8::1"):
        profile.write_text(SOURCE.format(address=address))
        with pytest.raises(ProfileError) as error:
            planned(str(profile), None, None, None, yes=False)
        what = f"this machine does not have the address {address}"
        assert error.value.message == f"{profile}:2: interfaces.lan.address: {what}"


SOURCE = """[interfaces]
lan = {{ address = "{address}" }}
[flows.main]
backend = "simpleperf"
interface = "lan"
"""


class RootOnly(FakeBackend):
    capabilities = Capabilities((Direction.ROUND_TRIP,), headline="rtt_s", needs_root=True)

    def probe(self, role):
        return None


@pytest.fixture
def root_only(monkeypatch, tmp_path):
    """Plan a flow of a backend that needs root, as this user."""
    profile = tmp_path / "p.toml"
    registry = Registry({"fake": Candidate("fake", "", RootOnly)})
    monkeypatch.setattr("benchctl.engine.prepare.planning.installed", lambda: registry)

    def make(user, lab=None):
        monkeypatch.setattr("os.geteuid", lambda: user)
        to = 'to = "receiver"' if lab else ""
        profile.write_text(f'[flows.main]\nbackend = "fake"\n{to}\n')
        return planned(str(profile), None, None, None, yes=False, lab=lab)

    return make


def test_a_tool_that_needs_root_is_refused_to_others_before_anything_runs(root_only):
    with pytest.raises(MissingError) as error:
        root_only(1000)
    assert error.value.message == 'flow main: backend "fake" needs root'
    assert error.value.hint.startswith("run benchctl as root")


def test_root_may_run_it_and_so_may_everybody_in_a_lab(root_only):
    assert root_only(0).plan.routes
    assert root_only(1000, lab="pair").plan.routes


def test_a_search_in_a_lab_knows_how_long_an_excess_takes_to_overflow_the_slowest_queue():
    search = planned("portfolio/a1-rate-search", None, None, None, yes=False).plan.search
    # The queue of L2: 100 frames of 1490 bytes before 30 Mbit/s, at 1 % too much.
    assert search.overflow_s == pytest.approx(100 * 1490 * 8 / (0.01 * 30e6))
    narrow = ["search.precision=5%"], ["path=h7-h9"]
    search = planned("portfolio/a1-rate-search", *narrow, None, yes=False).plan.search
    assert search.overflow_s == pytest.approx(33 * 1490 * 8 / (0.05 * 20e6))


def test_a_flow_of_a_lab_is_told_the_throughput_that_theory_expects(plan):
    made = plan('to = "web"\ndirection = "both"\nprotocol = "udp"\nrate = "20Mbit"\n')
    trial = made.plan.trial(0)
    lab = lab_settings(made.topology, made.plan.document.model.lab)
    expected = planned_promises(made.outside, lab, trial)["main"]
    tools = {role: Tool("") for role in Role}
    [flow] = trial.flows
    told = flow.described(made.network, 1, tools, Role.CLIENT, expected=expected)
    # 8 Mbit/s of frames: 14 octets of Ethernet, 20 of IP and 8 of UDP beside the payload.
    assert told.expected_bps == pytest.approx(8e6 * 1448 / (1448 + 42))
    assert flow.described(made.network, 1, tools, Role.CLIENT).expected_bps is None
