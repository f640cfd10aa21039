"""What is accepted of a signed message, and all that is refused."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from benchctl.fleet.messages import AskHost, Done, Envelope, Refused
from benchctl.fleet.trust.keys import SigningKey, key_id
from benchctl.fleet.trust.keyset import KeySet, open_keys, sign_keys
from benchctl.fleet.trust.signing import (
    MESSAGE_DOMAIN,
    MOST_REMEMBERED,
    KnownKey,
    Signer,
    UntrustedError,
    Verifier,
    seal,
)

COORDINATOR, PARIS, ALICE, STRANGER, ROOT = (SigningKey(bytes([n]) * 32) for n in range(1, 6))
KNOWN = {
    key_id(key.public): KnownKey(key.public, role, name)
    for key, role, name in (
        (COORDINATOR, "coordinator", "coordinator"),
        (PARIS, "host", "paris"),
        (ALICE, "person", "alice"),
    )
}
NOW_S = 1_800_000_000.0
ASK = AskHost("facts", [1])


def verifier(role="coordinator", me="paris", **options):
    return Verifier("lab", me, KNOWN.get, role, **options)


def sealed(key=COORDINATOR, sender="coordinator", fleet="lab", to="paris", message=ASK, **options):
    return Signer(key, fleet, sender).seal(message, to, **{"now_s": NOW_S, **options})


def refused(data, opener=None, now_s=NOW_S, kind=AskHost):
    with pytest.raises(UntrustedError) as caught:
        (opener or verifier()).open(data, now_s, kind)
    return caught.value.why


def test_what_was_signed_is_opened():
    signed = verifier().open(sealed(epoch=7), NOW_S, AskHost | Done)
    assert signed.message == ASK
    assert (signed.head.sender, signed.head.epoch) == ("coordinator", 7)


@given(st.data())
def test_a_flipped_bit_is_refused(data):
    whole = bytearray(sealed())
    position = data.draw(st.integers(0, len(whole) * 8 - 1))
    whole[position // 8] ^= 1 << position % 8
    refused(bytes(whole))


@given(st.binary(max_size=300))
def test_garbage_is_refused(data):
    assert refused(data) == "this is no message of a fleet"


@given(st.recursive(st.none() | st.integers(-9, 9) | st.text(), st.lists))
def test_signed_garbage_is_refused(value):
    data = seal(COORDINATOR, MESSAGE_DOMAIN, msgspec.msgpack.encode(value))
    assert "no message of this kind" in refused(data)


def test_what_is_nested_too_deep_is_refused():
    signed = msgspec.msgpack.decode(msgspec.msgpack.decode(sealed(), type=Envelope).body)
    signed["message"] = {"is": "done", "value": 0}
    body = msgspec.msgpack.encode(signed)[:-1] + b"\x91" * 100_000 + b"\x00"
    data = seal(COORDINATOR, MESSAGE_DOMAIN, body)
    assert "no message of this kind" in refused(data, kind=Done)


def test_what_the_server_answers_is_no_message():
    assert refused(b'{"stream":"RESULTS", "seq":1}') == "this is no message of a fleet"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (sealed(to="rome"), "to rome, not to paris"),
        (sealed(fleet="other"), "of the fleet other"),
        (sealed(STRANGER), "is not known"),
        (sealed(PARIS, "paris"), "paris is a host, not a coordinator"),
        (sealed(ALICE, "coordinator"), "alice is a person"),
        (sealed(sender="paris"), "signed as paris"),
        (sealed(message=Done()), "no message of this kind"),
        (sealed(now_s=NOW_S - 61), "expired 1 s ago"),
        (sealed(now_s=NOW_S + 6), "6 s ahead"),
        (sealed(life_s=601), "valid for more than 600 s"),
        (sealed(nonce="x"), "another start of paris"),
    ],
)
def test_each_wrong_head_is_refused_and_said(data, why):
    assert why in refused(data)


def test_a_signature_of_another_domain_is_refused():
    body = msgspec.msgpack.decode(sealed(), type=Envelope).body
    assert "signature" in refused(seal(COORDINATOR, b"", body))


def test_an_added_field_is_refused():
    body = msgspec.msgpack.decode(msgspec.msgpack.decode(sealed(), type=Envelope).body)
    body["message"]["argv"] = ["sh"]
    data = seal(COORDINATOR, MESSAGE_DOMAIN, msgspec.msgpack.encode(body))
    assert "argv" in refused(data)


def test_a_message_to_another_start_is_refused():
    assert "another start" in refused(sealed(nonce="old"), verifier(nonce="new"))
    assert "another start" in refused(sealed(), verifier(nonce="new"))
    assert verifier(nonce="new").open(sealed(nonce="new"), NOW_S, AskHost)


def test_a_replay_and_an_older_number_are_refused():
    signer, opener = Signer(COORDINATOR, "lab", "coordinator"), verifier()
    first, second = (signer.seal(ASK, "paris", epoch=3, now_s=NOW_S) for _ in range(2))
    assert opener.open(second, NOW_S, AskHost)
    for data in (first, second):
        assert "before" in refused(data, opener)


def test_an_older_coordinator_is_refused_and_a_newer_one_is_not():
    opener = verifier()
    assert opener.open(sealed(epoch=4), NOW_S, AskHost)
    assert "before" in refused(sealed(epoch=3), opener)
    assert opener.open(sealed(epoch=5), NOW_S, AskHost)


def test_a_refused_message_does_not_count():
    opener, signer = verifier(), Signer(COORDINATOR, "lab", "coordinator")
    good = signer.seal(ASK, "paris", now_s=NOW_S)
    refused(signer.seal(ASK, "rome", now_s=NOW_S), opener)
    refused(signer.seal(Done(), "paris", now_s=NOW_S), opener)
    assert opener.open(good, NOW_S, AskHost)


def test_a_person_s_terminals_need_no_common_order_but_each_message_counts_once():
    opener = verifier("person", "coordinator")
    first, second = (sealed(ALICE, "alice", to="coordinator") for _ in range(2))
    for data in (second, first):
        assert opener.open(data, NOW_S, AskHost)
    for data in (second, first):
        assert refused(data, opener) == "alice sent this before"
    assert "expired" in refused(first, opener, NOW_S + 61)


def test_a_person_s_message_counts_once_until_it_expires_whatever_comes_after_it():
    opener, signer = verifier("person", "coordinator"), Signer(ALICE, "lab", "alice")
    first = signer.seal(ASK, "coordinator", now_s=NOW_S, life_s=60.0)
    assert opener.open(first, NOW_S, AskHost)
    for now_s in (NOW_S + 1, NOW_S + 60):
        assert opener.open(signer.seal(ASK, "coordinator", now_s=now_s), now_s, AskHost)
        assert refused(first, opener, now_s) == "alice sent this before"


def test_messages_of_people_are_remembered_up_to_a_bound_and_until_they_expire():
    opener, signer = verifier("person", "coordinator"), Signer(ALICE, "lab", "alice")
    for _ in range(MOST_REMEMBERED):
        opener.open(signer.seal(ASK, "coordinator", now_s=NOW_S), NOW_S, AskHost)
    assert "too many" in refused(signer.seal(ASK, "coordinator", now_s=NOW_S), opener)
    later_s = NOW_S + 61
    assert opener.open(signer.seal(ASK, "coordinator", now_s=later_s), later_s, AskHost)


def test_what_something_else_counts_may_come_twice_and_late():
    opener = verifier("host", "coordinator", repeats=True)
    data = sealed(PARIS, "paris", to="coordinator")
    for _ in range(2):
        assert opener.open(data, None, AskHost).message == ASK


def test_a_refusal_travels_as_a_message():
    data = sealed(PARIS, "paris", to="coordinator", message=Refused("no", "do it"))
    opened = verifier("host", "coordinator").open(data, NOW_S, Refused | Done)
    assert opened.message == Refused("no", "do it")


KEYS = KeySet("lab", 4, (COORDINATOR.public, STRANGER.public))


def test_two_keys_of_a_set_are_the_coordinator_s():
    keys = open_keys(sign_keys(ROOT, KEYS), ROOT.public, "lab", least=4)
    opener = Verifier("lab", "paris", keys.find, "coordinator")
    for key in (COORDINATOR, STRANGER):
        assert opener.open(sealed(key, epoch=key.public[0]), NOW_S, AskHost) or True
    assert keys.find(key_id(ALICE.public)) is None


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (sign_keys(COORDINATOR, KEYS), "is not known"),
        (sign_keys(ROOT, structs.replace(KEYS, number=3)), "the set of keys 3 is older than 4"),
        (sign_keys(ROOT, structs.replace(KEYS, fleet="b")), "of the fleet b"),
        (sign_keys(ROOT, structs.replace(KEYS, coordinators=())), "no set of keys"),
        (seal(ROOT, MESSAGE_DOMAIN, msgspec.msgpack.encode(KEYS)), "signature"),
        (b"", "no message of a fleet"),
    ],
)
def test_only_a_newer_set_that_the_root_key_signed_is_taken(data, why):
    with pytest.raises(UntrustedError, match=why):
        open_keys(data, ROOT.public, "lab", least=4)
