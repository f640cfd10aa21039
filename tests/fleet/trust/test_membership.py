"""The files of hosts and people, and the token to join with."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from benchctl.errors import FleetError
from benchctl.fleet.trust.keys import SigningKey
from benchctl.fleet.trust.keyset import KeySet, sign_keys
from benchctl.fleet.trust.membership import (
    Membership,
    Server,
    Token,
    may,
    next_start,
    read_membership,
    write_membership,
)
from benchctl.fleet.trust.signing import UntrustedError

ROOT, COORDINATOR, ALICE = (SigningKey(bytes([n]) * 32) for n in range(1, 4))
SERVER = Server("lab", "fleet.example:443", "PEM", ROOT.public)


def keys(number, root=ROOT):
    return sign_keys(root, KeySet("lab", number, (COORDINATOR.public,)))


MEMBER = Membership(SERVER, "alice", ALICE.text, keys(1), "run")
TOKEN = Token(SERVER, "paris", SigningKey(bytes(32)).text, keys(1), 1_800_000_000.0)


def test_a_member_s_file_is_its_owner_s_alone(tmp_path):
    path = tmp_path / "alice.fleet"
    write_membership(path, MEMBER)
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_membership(path) == MEMBER
    assert MEMBER.key.public == ALICE.public
    path.chmod(0o644)
    with pytest.raises(FleetError, match="others can read this secret"):
        read_membership(path)


@pytest.mark.parametrize("text", ["", "{}", "null", '{"server": {}}'])
def test_another_file_is_said(tmp_path, text):
    path = tmp_path / "alice.fleet"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(FleetError, match="is no file of a fleet"):
        read_membership(path)
    with pytest.raises(FleetError, match="No such file"):
        read_membership(tmp_path / "none")


def test_keys_that_another_root_signed_are_no_member_s(tmp_path):
    path = tmp_path / "alice.fleet"
    write_membership(path, structs.replace(MEMBER, keys=keys(1, COORDINATOR)))
    with pytest.raises(FleetError, match="is not known"):
        read_membership(path)


def test_a_member_takes_a_newer_set_of_keys_and_no_older_one():
    newer = MEMBER.taking(keys(3))
    assert newer.key_set().number == 3
    with pytest.raises(UntrustedError, match="older"):
        newer.taking(keys(2))


def test_a_token_is_one_line_that_a_terminal_takes():
    assert Token.parse(TOKEN.text) == TOKEN
    assert "\n" not in TOKEN.text
    full = structs.replace(TOKEN, server=structs.replace(SERVER, ca="x" * 600))
    assert len(full.text) < 4095


@given(st.integers(0, len(TOKEN.text) - 1))
def test_a_part_of_a_token_is_none(length):
    with pytest.raises(FleetError, match="this is no token"):
        Token.parse(TOKEN.text[:length])


def test_starts_are_counted(tmp_path):
    assert [next_start(tmp_path) for _ in range(3)] == [1, 2, 3]
    (tmp_path / "starts").write_text("x")
    with pytest.raises(FleetError, match="no count of starts"):
        next_start(tmp_path)


def test_rights_include_the_lesser_ones():
    assert [may("run", needed) for needed in ("view", "run", "admin")] == [True, True, False]
    assert may("admin", "admin")
    assert not may("", "view")
