"""Hosts that SSH reaches: what a profile says of them, what is refused, where others find them."""

import os

import pytest
from msgspec.structs import replace

from benchctl.engine.checks.network import same_machines
from benchctl.engine.prepare.planning import check_file, planned
from benchctl.engine.prepare.ssh_hosts import reached
from benchctl.errors import MissingError, ProfileError
from benchctl.profile.load import load_profile
from benchctl.profile.places import check_destination, host_in
from benchctl.report.lines.plan import plan_lines
from benchctl.report.lines.spans import to_text
from benchctl.run.codec import from_json, to_json
from benchctl.run.planned import DeclaredNetwork, Host, HostInterface, SshTarget

FLOW = """\
[flows.main]
backend = "simpleperf"
from = "tokyo"
to = "paris"
"""
LAB = """\
local = "desk"
[hosts]
desk = {}
paris = { services = [{ ssh = 22 }] }
tokyo = {}
[switches.lan]
[links.one]
between = ["paris", "lan"]
[links.two]
between = ["tokyo", "lan"]
[links.three]
between = ["desk", "lan"]
"""


@pytest.fixture
def profile(tmp_path):
    def write(hosts, flow=FLOW):
        (tmp_path / "lab.toml").write_text(LAB)
        path = tmp_path / "p.toml"
        path.write_text(f"{hosts}{flow}")
        return str(path)

    return write


@pytest.fixture
def ssh(tmp_path, monkeypatch):
    """A program ``ssh`` that says what it was asked, and where ``paris`` is."""
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n'
        "for last; do :; done\n"
        "case $last in\n"
        'wrong) echo "config: line 3: bad" >&2; exit 255;;\n'
        'ssh://*:99999) printf "usage: ssh [-4]\\n  destination [command]\\n" >&2; exit 255;;\n'
        'paris) echo "hostname 192.0.2.10";;\n'
        '*) echo "hostname ${last#*@}";;\n'
        "esac\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return tmp_path / "asked"


def test_a_host_is_recorded_with_all_that_reaches_it(profile, ssh):
    hosts = """\
[hosts.paris]
ssh = "paris"
address6 = "2001:db8::10"
sudo = true
ports = "5300-5320"
interfaces = { wired = { device = "eth0" } }
[hosts.tokyo]
ssh = "ann@tokyo.test"
reachable = false
"""
    outside = reached(load_profile(profile(hosts)))
    assert outside.network.hosts["paris"] == Host(
        "paris", "192.0.2.10",
        interfaces={"wired": HostInterface("eth0")}, address6="2001:db8::10",
        reach=SshTarget("paris", sudo=True), ports=(5300, 5320),
    )  # fmt: skip
    tokyo = outside.network.hosts["tokyo"]
    assert (tokyo.address, tokyo.reachable, tokyo.reach.sudo) == ("tokyo.test", False, False)
    assert ssh.read_text().splitlines() == ["-G -- paris", "-G -- ann@tokyo.test"]
    assert from_json(to_json(outside), DeclaredNetwork) == outside


def test_an_address_of_the_measured_network_is_not_asked_for(profile, ssh):
    hosts = '[hosts.paris]\nssh = "paris"\naddress = "10.1.1.1"\n[hosts.tokyo]\naddress = "::1"\n'
    outside = reached(load_profile(profile(hosts)))
    assert outside.network.hosts["paris"].address == "10.1.1.1"
    assert not ssh.exists()


def test_a_store_of_before_has_addresses_only():
    outside = from_json('{"hosts": {"local": "127.0.0.1", "lan": "192.0.2.1"}}', DeclaredNetwork)
    assert outside.network.hosts["lan"] == Host("lan", "192.0.2.1")
    assert not outside.remote


def test_a_host_with_an_address_alone_is_written_as_before(profile):
    outside = reached(load_profile(profile('[hosts.lan]\naddress = "192.0.2.1"\n')))
    assert outside.hosts == {"local": "127.0.0.1", "lan": "192.0.2.1"}


DEST = '[hosts.tokyo]\nssh = "t"\n[hosts.paris]\n'
WRONG = {
    "ssh and on": ('on = "local"\nssh = "paris"', "4: hosts.paris.on: ssh takes the place of on"),
    "an option": (
        'ssh = "-oProxyCommand=x"',
        '4: hosts.paris.ssh: "-oProxyCommand=x" begins as an option does',
    ),
    "an option after a user": (
        'ssh = "ann@-oProxyCommand=x"',
        '4: hosts.paris.ssh: "ann@-oProxyCommand=x" begins as an option does',
    ),
    "a space": ('ssh = "paris -v"', '4: hosts.paris.ssh: "paris -v" must not contain " "'),
    "a line end": (r'ssh = "a\nb"', r'4: hosts.paris.ssh: "a\nb" must not contain "\n"'),
    "an escape": (r'ssh = "a\u001bb"', r'4: hosts.paris.ssh: "a\u001bb" must not contain "\u001b"'),
    "a command": ('ssh = "a;reboot"', '4: hosts.paris.ssh: "a;reboot" must not contain ";"'),
    "nothing": ('ssh = ""', '4: hosts.paris.ssh: "" names no host'),
    "a user only": ('ssh = "ann@"', '4: hosts.paris.ssh: "ann@" names no host'),
    "sudo here": ('address = "::1"\nsudo = true', "5: hosts.paris.sudo: is for a host with ssh"),
    "neither": ("ports = 5300", "3: hosts.paris.address: is missing"),
    "this machine": (
        'ssh = "paris"\n[hosts.local]\nssh = "x"', "6: hosts.local.ssh: local is this machine",
    ),
    "a lab": (
        'ssh = "paris"\n[lab]\ntopology = "pair"',
        "2: hosts.tokyo.ssh: no host of the lab serves SSH",
    ),
    "a host that the lab lacks": (
        'ssh = "paris"\n[hosts.oslo]\nssh = "oslo"\n[lab]\ntopology = "lab.toml"',
        '5: hosts.oslo.address: is missing, and the lab has no host "oslo" to take it from',
    ),
    "a range": ('ssh = "paris"\nports = "9-1"', "5: hosts.paris.ports: the range 9-1 is reversed"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG)
def test_what_does_not_fit_is_refused_with_its_line(profile, text, message):
    with pytest.raises(ProfileError) as error:
        check_file(profile(f"{DEST}{text}\n"))
    assert error.value.message.endswith(f"p.toml:{message}")


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("paris", "paris"),
        ("ann@paris.test", "paris.test"),
        ("CORP\\ann@paris", "paris"),
        ("ann@corp.test@paris", "paris"),
        ("ssh://ann@paris:2222", "paris"),
        ("ssh://[2001:db8::1]:22/", "2001:db8::1"),
        ("2001:db8::1", "2001:db8::1"),
        ("root@fe80::1%eth0", "fe80::1%eth0"),
    ],
)
def test_a_destination_is_what_ssh_takes(text, host):
    assert host_in(check_destination(text)) == host


def test_a_configuration_that_ssh_rejects_is_an_error_of_the_host(profile, ssh):
    hosts = '[hosts.tokyo]\nssh = "wrong"\n[hosts.paris]\nssh = "paris"\n'
    with pytest.raises(ProfileError, match=r":2: hosts.tokyo.ssh: config: line 3: bad$"):
        reached(load_profile(profile(hosts)))


def test_a_destination_that_ssh_does_not_understand_is_named(profile, ssh):
    hosts = '[hosts.tokyo]\nssh = "ssh://tokyo:99999"\n[hosts.paris]\nssh = "paris"\n'
    with pytest.raises(ProfileError, match=r':2: hosts.tokyo.ssh: ssh does not take "ssh://') as no:
        reached(load_profile(profile(hosts)))
    assert no.value.hint == "is its port one from 1 to 65535?"


def test_without_the_program_ssh_the_hint_says_how_to_get_it(profile, tmp_path, monkeypatch):
    hosts = '[hosts.tokyo]\nssh = "tokyo"\n[hosts.paris]\nssh = "paris"\n'
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingError, match="no program ssh") as error:
        planned(profile(hosts), None, None, None, yes=False)
    assert "openssh-client" in error.value.hint


def test_the_plan_names_a_host_that_no_flow_uses(profile, ssh):
    hosts = "".join(f'[hosts.{name}]\nssh = "{name}"\n' for name in ("paris", "tokyo", "lima"))
    made = planned(profile(hosts), None, None, None, yes=False)
    lines = [to_text([line]) for line in plan_lines(made)]
    place = lines.index("     lima: ssh lima, address lima, used by no flow")
    assert lines[place - 2 : place] == [
        "     paris: ssh paris, address 192.0.2.10", "     tokyo: ssh tokyo, address tokyo",
    ]  # fmt: skip


def test_this_machine_needs_an_address_that_remote_hosts_can_reach(profile, ssh):
    hosts = '[hosts.tokyo]\nssh = "tokyo"\n'
    flow = FLOW.replace('"paris"', '"local"')
    with pytest.raises(ProfileError, match=r"tokyo cannot reach this machine at 127\.0\.0\.1$"):
        planned(profile(hosts, flow), None, None, None, yes=False)
    for more in ('address = "192.0.2.5"', "reachable = false"):
        planned(profile(f"{hosts}[hosts.local]\n{more}\n", flow), None, None, None, yes=False)


def test_in_a_lab_ssh_reaches_hosts_by_what_the_lab_says_of_them(profile, ssh):
    hosts = """\
[lab]
topology = "lab.toml"
[hosts.paris]
ssh = "paris"
[hosts.tokyo]
ssh = "t"
address = "192.0.2.9"
"""
    made = planned(profile(hosts), None, None, None, yes=False)
    paris, tokyo = made.network.hosts["paris"], made.network.hosts["tokyo"]
    assert paris.reach == SshTarget("paris")
    assert paris.address == "10.0.0.1"
    assert tokyo.address == "192.0.2.9"
    assert made.network.hosts["desk"].reach is None
    assert not ssh.exists()


def test_the_same_profile_reaches_the_real_hosts_without_its_lab(profile, ssh):
    hosts = """\
[lab]
topology = "lab.toml"
[hosts.paris]
ssh = "paris"
[hosts.tokyo]
ssh = "tokyo"
"""
    made = planned(profile(hosts), None, None, None, yes=False, lab="none")
    assert made.network.hosts["paris"].address == "192.0.2.10"
    assert made.network.hosts["paris"].reach == SshTarget("paris")


def test_hosts_are_one_machine_if_both_have_the_address_as_their_own():
    one, two, far = (Host(name, "192.0.2.1", ()) for name in ("one", "two", "far"))
    nat = replace(far, translated=frozenset({"192.0.2.1"}))
    other = Host("other", "192.0.2.2", ())
    inside = [Host(name, "127.0.0.1", ()) for name in ("a", "b")]
    assert [*same_machines([one, nat, other, two, *inside])] == [(one, two)]
    assert [*same_machines([nat, one, other])] == []
