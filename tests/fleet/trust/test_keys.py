"""Keys and their text, as NATS writes it."""

import pytest

from benchctl.errors import FleetError
from benchctl.fleet.trust.keys import SigningKey, fingerprint, is_signed, key_id, nkey, parse_nkey

# The example of NATS' own documentation.
SEED = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"
PUBLIC = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"


def test_a_seed_s_text_gives_the_public_key_that_nats_knows():
    key = SigningKey.parse(SEED)
    assert key.nkey == PUBLIC
    assert key.text == SEED
    assert nkey(parse_nkey(PUBLIC)) == PUBLIC
    assert key_id(key.public) == key.public.hex()[:16]


def test_a_fingerprint_is_written_as_ssh_does():
    assert fingerprint(bytes(32)) == "SHA256:Zmh6rfhivXdsj8GLjp+OIAiXFIVu4jOzkCpZHQ1fKSU"


@pytest.mark.parametrize("position", range(len(SEED)))
def test_a_mistyped_seed_is_no_key(position):
    other = "B" if SEED[position] == "A" else "A"
    with pytest.raises(ValueError, match=r"."):
        SigningKey.parse(SEED[:position] + other + SEED[position + 1 :])


def test_a_signature_is_of_one_key_and_of_these_bytes():
    key, other = SigningKey.make(), SigningKey.make()
    signature = key.sign(b"data")
    assert is_signed(key.public, signature, b"data")
    assert not is_signed(key.public, signature, b"date")
    assert not is_signed(other.public, signature, b"data")
    assert not is_signed(bytes(31), signature, b"data")


def test_a_key_s_file_is_its_owner_s_alone(tmp_path):
    path = tmp_path / "host.seed"
    key = SigningKey.make()
    key.write(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert SigningKey.read(path).public == key.public
    with pytest.raises(FleetError, match="is there already"):
        key.write(path)
    path.chmod(0o640)
    with pytest.raises(FleetError, match="others can read this key"):
        SigningKey.read(path)


@pytest.mark.parametrize("text", ["", "SUA", "garbage", "ü", PUBLIC])
def test_a_file_without_a_key_is_said(tmp_path, text):
    path = tmp_path / "host.seed"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(FleetError, match=r"host\.seed: this is no key of a fleet"):
        SigningKey.read(path)
    with pytest.raises(FleetError, match="No such file"):
        SigningKey.read(tmp_path / "none")
