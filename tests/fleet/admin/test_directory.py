"""The directory of a fleet, its members, and the text of what it writes."""

import stat
import time
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from benchctl.errors import FleetError, UsageError
from benchctl.fleet.admin.directory import ADMIN_FILE, FleetDirectory, check_address
from benchctl.fleet.admin.units import agent_unit, write_units
from benchctl.fleet.learned_keys import LearnedKeys
from benchctl.fleet.trust.certificates import DAY_S
from benchctl.fleet.trust.keys import SigningKey, key_id
from benchctl.fleet.trust.membership import read_membership
from benchctl.fleet.trust.signing import UntrustedError

NOW_S = time.time()


@pytest.fixture
def made(tmp_path, monkeypatch):
    clock = SimpleNamespace(time=lambda: NOW_S)
    monkeypatch.setattr("benchctl.fleet.admin.directory.time", clock)
    path = tmp_path / "lab"
    return FleetDirectory.make(path, "lab", "fleet.example:443", "0.0.0.0:443", NOW_S)


def test_all_of_it_is_its_owner_s_alone(made):
    assert made.path.stat().st_mode & 0o777 == 0o700
    loose = [p.name for p in made.path.iterdir() if p.stat().st_mode & 0o077 and p.is_file()]
    assert loose == []
    with pytest.raises(FleetError, match="is not empty"):
        FleetDirectory.make(made.path, "lab", "a:1", "a:1", NOW_S)


def test_another_directory_is_said(tmp_path):
    with pytest.raises(FleetError, match="is no directory of a fleet"):
        FleetDirectory(tmp_path)


def test_whoever_made_it_is_its_first_admin(made):
    member = read_membership(made.path / ADMIN_FILE)
    assert (member.name, member.rights, member.fleet) == ("admin", "admin", "lab")
    assert made.find(key_id(member.key.public)).role == "person"


def test_a_change_is_seen_by_another_process_at_once(made):
    other = FleetDirectory(made.path)
    made.invite_person("alice", "run", made.path / "alice.fleet")
    assert other.members().people["alice"].rights == "run"
    key = read_membership(made.path / "alice.fleet").key
    assert other.find(key_id(key.public)).name == "alice"
    made.change(lambda members: members.without("alice"))
    assert other.find(key_id(key.public)) is None


def test_a_persons_limits_are_changed_without_another_key(made):
    made.invite_person("alice", "run", made.path / "alice.fleet", {"hosts_at_once": 2})
    before = made.members().people["alice"]
    assert (before.hosts_at_once, before.trials_at_once) == (2, 32)
    made.change(lambda members: members.with_limits("alice", {"bytes_a_day": 10**9}))
    assert FleetDirectory(made.path).members().people["alice"] == replace(before, bytes_a_day=10**9)
    with pytest.raises(UsageError, match=r"no person alcie") as caught:
        made.members().with_limits("alcie", {"bytes_a_day": 1})
    assert caught.value.hint == 'did you mean "alice"?'


@pytest.mark.parametrize("name", ["", "Alice", "a b", "-a", "a.b", "a*", ">", "x" * 64, "é"])
def test_a_name_with_signs_of_subjects_is_refused(made, name):
    with pytest.raises(UsageError, match="is no name of a fleet"):
        made.invite_host(name, NOW_S + 60)


@pytest.mark.parametrize("name", ["coordinator", "setup", "admin"])
def test_names_are_unique_among_hosts_people_and_roles(made, name):
    with pytest.raises(UsageError, match="is taken"):
        made.invite_host(name, NOW_S + 60)
    made.invite_host("paris", NOW_S + 60)
    made.change(lambda members: members.join("paris", SigningKey.make().nkey, NOW_S))
    with pytest.raises(UsageError, match="is taken"):
        made.invite_person("paris", "view", made.path / "p.fleet")
    assert made.invite_host("paris", NOW_S + 60).name == "paris"


def test_a_refused_person_leaves_no_file(made):
    with pytest.raises(UsageError):
        made.invite_person("coordinator", "view", made.path / "p.fleet")
    assert not (made.path / "p.fleet").exists()


def test_a_token_is_used_once_and_not_too_late(made):
    made.invite_host("paris", NOW_S + 60)
    key = SigningKey.make().nkey
    made.change(lambda members: members.join("paris", key, NOW_S))
    for name, at_s in (("paris", NOW_S), ("rome", NOW_S)):
        with pytest.raises(FleetError, match="was used, or is too old"):
            made.change(lambda members, name=name, at_s=at_s: members.join(name, key, at_s))
    made.invite_host("rome", NOW_S + 60)
    with pytest.raises(FleetError, match="too old"):
        made.members().join("rome", key, NOW_S + 61)


def test_the_next_key_of_the_coordinator_is_known_before_it_is_used(made):
    member = read_membership(made.path / ADMIN_FILE)
    keys = LearnedKeys(made.path / ADMIN_FILE, member)
    first = made.coordinator_key()
    for number in (2, 3):
        assert made.renew_coordinator() == number
        key = made.coordinator_key()
        assert keys.find(key_id(key.public)).role == "coordinator"
        assert made.find(key_id(key.public)).role == "coordinator"
        keys.learn(made.keys())
        with pytest.raises(UntrustedError, match="older"):
            keys.learn(member.keys)
        assert read_membership(made.path / ADMIN_FILE).key_set().number == number
    for knows in (made.find, keys.find):
        assert knows(key_id(first.public)) is None


def test_another_root_key_renews_nothing(made):
    before = made.members()
    (made.path / "root.seed").unlink()
    SigningKey.make().write(made.path / "root.seed")
    with pytest.raises(FleetError, match=r"root\.seed is not the root key of this fleet"):
        made.renew_coordinator()
    assert made.members() == before


def test_a_root_key_that_is_elsewhere_is_said(made):
    (made.path / "root.seed").rename(made.path.parent / "root.seed")
    with pytest.raises(FleetError, match=r"root\.seed: No such file"):
        made.renew_coordinator()


def test_the_end_of_the_certificate_is_said_thirty_days_ahead(made):
    assert made.notes(NOW_S + 366 * DAY_S) == []
    note = "the server's certificate ends in 29 days: benchctl fleet renew"
    assert made.notes(NOW_S + 368 * DAY_S) == [note]
    made.renew_certificate(NOW_S + 368 * DAY_S)
    assert made.notes(NOW_S + 368 * DAY_S) == []


@pytest.mark.parametrize("address", ["", "a", "a:", ":1", "a:0", "a:65536", "a:x"])
def test_an_address_has_a_host_and_a_port(address):
    with pytest.raises(UsageError, match="is no address"):
        check_address(address)


def test_units_quote_what_systemd_reads(made):
    files = write_units(made.path, "/opt/nats server", "/usr/bin/python3", "0.0.0.0:443")
    server, coordinator = (file.read_text() for file in files)
    assert f'ExecStart="/opt/nats server" "-c" "{made.path}/nats.conf"' in server
    assert "AmbientCapabilities=CAP_NET_BIND_SERVICE" in server
    assert '"benchctl" "fleet" "coordinator"' in coordinator
    assert '"run" "/a%%b/$$c\\"d"' in agent_unit("python", made.path.__class__('/a%b/$c"d'))
    assert stat.S_IMODE(files[0].stat().st_mode) & 0o400
