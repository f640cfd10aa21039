"""Hosts of a fleet: what a profile says of them, and what is refused before anything runs."""

import pytest

from benchctl.engine.prepare.planning import check_file, planned
from benchctl.errors import ProfileError
from benchctl.run.codec import from_json, to_json
from benchctl.run.planned import DeclaredNetwork, FleetTarget

FLOW = """\
[flows.main]
backend = "simpleperf"
from = "tokyo"
to = "paris"
"""
PARIS = '[hosts.paris]\nfleet = true\naddress = "192.0.2.1"\n'
TOKYO = '[hosts.tokyo]\nfleet = "tokyo-2"\naddress = "192.0.2.2"\n'


@pytest.fixture
def profile(tmp_path):
    def write(hosts, flow=FLOW):
        path = tmp_path / "p.toml"
        path.write_text(f"{hosts}{flow}")
        return str(path)

    return write


def test_hosts_of_a_fleet_are_planned_and_kept_without_ssh(profile, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    found = planned(profile(PARIS + TOKYO), None, None, None, yes=True)
    hosts = found.network.hosts
    assert hosts["paris"].reach == FleetTarget("paris")
    assert hosts["tokyo"].reach == FleetTarget("tokyo-2")
    outside = found.outside
    assert from_json(to_json(outside), DeclaredNetwork) == outside


FAULTS = {
    "no address": ("fleet = true", "1: hosts.paris.address: is missing"),
    "ssh, too": ('fleet = true\nssh = "p"\naddress = "::1"', "3: hosts.paris.ssh: is not for a"),
    "sudo": ('fleet = true\nsudo = true\naddress = "::1"', "3: hosts.paris.sudo: is not for a"),
    "a command": ('fleet = true\nprepare = "x"\naddress = "::1"', "3: hosts.paris.prepare: is"),
    "not one": ("fleet = false", "2: hosts.paris.fleet: "),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_does_not_fit_a_host_of_a_fleet_has_its_line(profile, name):
    keys, fault = FAULTS[name]
    with pytest.raises(ProfileError) as error:
        check_file(profile(f"[hosts.paris]\n{keys}\n{TOKYO}"))
    assert f"p.toml:{fault}" in error.value.message


@pytest.mark.parametrize(
    ("hosts", "flow", "why"),
    [
        (PARIS + '[hosts.tokyo]\naddress = "192.0.2.2"\n', FLOW, "paris is a host of a fleet, and"),
        (PARIS, FLOW.replace("tokyo", "local"), "paris is a host of a fleet, and local is not"),
        (PARIS + TOKYO, f"{FLOW}capture = true\n", "no fleet records packets"),
    ],
)
def test_flows_that_no_fleet_measures_are_refused(profile, hosts, flow, why):
    with pytest.raises(ProfileError, match=why):
        check_file(profile(hosts, flow))


def test_a_flow_to_a_server_of_others_is_measured_by_a_host_of_a_fleet(profile):
    server = '[servers.public]\nhost = "192.0.2.9"\n'
    check_file(profile(TOKYO + server, FLOW.replace("paris", "public")))
