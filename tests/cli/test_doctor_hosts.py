"""``benchctl doctor --hosts``: every host of a profile that SSH reaches, and what to mend there."""

import json
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
    (lost,) = [one for one in found if one["host"] == "moon"]
    assert (lost["subject"], lost["level"]) == ("reach", "note")
    assert "moon" in lost["text"]
    assert lost["remedy"]


def test_the_text_has_a_section_for_each_host(lab, tmp_path):
    path = tmp_path / "p.toml"
    path.write_text(PROFILE.replace('[hosts.moon]\nssh = "moon"\n', ""))
    done = doctor(lab, str(path))
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line for line in lines if line and not line.startswith(("ok", "note", " "))] == [
        "paris", "tokyo",
    ]  # fmt: skip
    assert lines[1].startswith("ok   reach                ssh paris, round trip ")


def test_an_address_that_is_not_the_hosts_own_is_noted(lab, tmp_path):
    path = tmp_path / "p.toml"
    path.write_text(
        PROFILE.replace('[hosts.moon]\nssh = "moon"\n', "").replace(
            'ssh = "tokyo"', 'ssh = "tokyo"\naddress = "192.0.2.77"'
        )
    )
    done = doctor(lab, str(path), "--json")
    found = {(one["host"], one["subject"]): one for one in json.loads(done.stdout)}
    note = found["tokyo", "address"]
    assert note["level"] == "note"
    assert note["text"] == "192.0.2.77 is not its own: servers listen at all that it has"
    assert found["paris", "address"]["level"] == "ok"
