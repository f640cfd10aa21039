"""``benchctl doctor --hosts``: every host of a profile that SSH reaches, and what to mend there."""

import json
import subprocess
import sys

import pytest
from remote_lab import NEEDS, remote_lab

PROFILE = """\
[hosts.paris]
ssh = "paris"
[hosts.tokyo]
ssh = "tokyo"
ports = "5300-5301"
[hosts.moon]
ssh = "moon"
[flows.main]
backend = "simpleperf"
[axes]
pair = { mesh = ["paris", "tokyo"] }
"""
WITHOUT_THE_MOON = PROFILE.replace('[hosts.moon]\nssh = "moon"\n', "")

pytestmark = [*NEEDS]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    with remote_lab(tmp_path_factory.mktemp("lab")) as lab:
        yield lab


def doctor(lab, profile, *words):
    return lab.run(sys.executable, "-m", "benchctl", "doctor", "--hosts", profile, *words)


def test_each_host_is_checked_and_one_that_is_lost_changes_the_exit_code(lab, tmp_path):
    path = tmp_path / "p.toml"
    path.write_text(PROFILE)
    done = doctor(lab, str(path), "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 3, done.stderr
    levels = {(one["host"], one["subject"]): one["level"] for one in found}
    for host in ("paris", "tokyo"):
        assert {levels[host, name] for name in (
            "reach", "kernel", "clock offset", "address", "simpleperf client", "simpleperf server",
        )} == {"ok"}, found  # fmt: skip
        assert {"send buffer", "receive buffer", "clock"} <= {
            subject for at, subject in levels if at == host
        }
    lost, unused = [one for one in found if one["host"] == "moon"]
    assert (lost["subject"], lost["level"]) == ("reach", "note")
    assert "moon" in lost["text"]
    assert lost["remedy"]
    assert (unused["subject"], unused["level"], unused["text"]) == ("flows", "note", "none uses it")
    assert ("paris", "flows") not in levels


def test_the_text_has_a_section_for_each_host(lab, tmp_path):
    path = tmp_path / "p.toml"
    path.write_text(WITHOUT_THE_MOON)
    done = doctor(lab, str(path))
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line for line in lines if line and not line.startswith(("ok", "note", " "))] == [
        "paris", "tokyo",
    ]  # fmt: skip
    assert lines[1].startswith("ok   reach                ssh paris, round trip ")


def test_an_address_that_is_not_the_hosts_own_and_has_no_route_is_noted(lab, tmp_path):
    path = tmp_path / "p.toml"
    path.write_text(
        WITHOUT_THE_MOON.replace('ssh = "tokyo"', 'ssh = "tokyo"\naddress = "192.0.2.77"')
    )
    done = doctor(lab, str(path), "--json")
    found = {(one["host"], one["subject"]): one for one in json.loads(done.stdout)}
    note = found["tokyo", "address"]
    assert note["level"] == "note"
    assert note["text"] == "192.0.2.77 is not its own: servers listen at all that it has"
    assert found["paris", "address"]["level"] == "ok"
    # It is no matter of firewalls.
    way = found["paris", "to tokyo"]
    assert "Network is unreachable" in way["text"]
    assert way["remedy"] == "correct hosts.tokyo.address, or the routes of paris"


def test_a_host_that_another_ones_ssh_leads_to_is_noted(lab, tmp_path):
    path = tmp_path / "p.toml"
    path.write_text(WITHOUT_THE_MOON.replace('ssh = "tokyo"', 'ssh = "10.0.1.1"'))
    lab.configure("Host 10.0.1.1\nHostKeyAlias paris")
    found = json.loads(doctor(lab, str(path), "--json").stdout)
    notes = {(one["host"], one["subject"]): one["text"] for one in found if one["level"] == "note"}
    assert notes["tokyo", "machine"] == (
        "it is paris, too: what flows between them crosses no network"
    )
    assert ("paris", "machine") not in notes


TO_TOKYO = "10.0.2.0/24"
MENDED = (
    "let firewalls pass {} there, or give hosts.tokyo.ports that they pass, or reachable = false"
)


NO_UDP = ("to", TO_TOKYO, "ipproto", "udp", "dport", "5300-5301", "prohibit")


def test_what_is_between_two_hosts_is_found_before_a_run(tmp_path):
    path = tmp_path / "p.toml"
    path.write_text(WITHOUT_THE_MOON)

    def ways(lab):
        done = doctor(lab, str(path), "--json")
        assert done.returncode == 0, done.stderr
        found = {(one["host"], one["subject"]): one for one in json.loads(done.stdout)}
        back = found["tokyo", "to paris"]
        assert back["text"] == "10.0.1.1 port 8088 by TCP and UDP, path MTU 1500 bytes"
        there = found["paris", "to tokyo"]
        return there["level"], there["text"], there["remedy"]

    with remote_lab(tmp_path) as lab:
        lab.administer("middle", "ip", "rule", "add", *NO_UDP)
        assert ways(lab) == (
            "note",
            "10.0.2.1 ports 5300-5301: UDP No route to host (2 of 2 tried)",
            MENDED.format("UDP"),
        )
        lab.administer("middle", "ip", "rule", "delete", *NO_UDP)
        small = ("change", TO_TOKYO, "dev", "eth2", "mtu", "lock", "1300")
        lab.administer("middle", "ip", "route", *small)
        silent = ("to", "10.0.1.1", "ipproto", "icmp", "blackhole")
        lab.administer("middle", "ip", "rule", "add", *silent)
        assert ways(lab) == (
            "note",
            "10.0.2.1 ports 5300-5301 by TCP and UDP (2 of 2 tried), but packets of 1500 bytes are "
            "lost, and nothing says so",
            "let ICMP pass, or lower the MTU of the device to that of the path",
        )
        # Last, since a host remembers what it is told of a path.
        lab.administer("middle", "ip", "rule", "delete", *silent)
        assert ways(lab) == (
            "ok",
            "10.0.2.1 ports 5300-5301 by TCP and UDP (2 of 2 tried), path MTU 1300 bytes",
            "",
        )


def test_the_way_between_this_machine_and_a_host_is_tried_too(lab, tmp_path):
    path = tmp_path / "p.toml"
    text = WITHOUT_THE_MOON
    path.write_text(f'{text.partition("[axes]")[0]}to = "tokyo"\n')
    found = json.loads(doctor(lab, str(path), "--json").stdout)
    assert [(one["host"], one["level"]) for one in found if one["subject"] == "to tokyo"] == [
        ("local", "ok")
    ]


def to_tokyo(lab, tmp_path, ports):
    """Return what is found of these ports from paris."""
    path = tmp_path / "p.toml"
    text = WITHOUT_THE_MOON.replace("5300-5301", ports)
    path.write_text(text)
    done = doctor(lab, str(path), "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    (there,) = [one for one in found if (one["host"], one["subject"]) == ("paris", "to tokyo")]
    return there["level"], there["text"], there["remedy"]


LISTEN = "import socket; s = socket.create_server(('', 5306)); print(flush=True); input()"


def test_the_ports_of_a_range_that_pass_are_told_apart_from_those_that_do_not(tmp_path):
    with remote_lab(tmp_path) as lab:
        for kind, ports in (("tcp", "5301-5302"), ("udp", "5302-5303")):
            words = ("to", TO_TOKYO, "ipproto", kind, "dport", ports, "blackhole")
            lab.administer("middle", "ip", "rule", "add", *words)
        with subprocess.Popen(
            [*lab.lab.nodes["tokyo"].prefix, sys.executable, "-c", LISTEN],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
        ) as other:  # fmt: skip
            assert other.stdout.readline() == b"\n"
            found = to_tokyo(lab, tmp_path, "5301-5310")
            other.communicate(b"\n")
    assert found == (
        "note",
        "10.0.2.1 ports 5304-5305, 5307-5310 by TCP and UDP; port 5301: TCP no answer; port 5302: "
        "TCP no answer, UDP no answer; port 5303: UDP no answer (9 of 10 tried; in use: port 5306)",
        MENDED.format("TCP and UDP"),
    )


def test_of_a_wide_range_no_more_than_the_first_free_ports_are_tried(lab, tmp_path):
    assert to_tokyo(lab, tmp_path, "5301-5400") == (
        "ok",
        "10.0.2.1 ports 5301-5316 by TCP and UDP (16 of 100 tried), path MTU 1500 bytes",
        "",
    )
