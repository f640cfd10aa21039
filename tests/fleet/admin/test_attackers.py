"""What somebody can do over a real server with one host's key, or with one person's: nothing.

The carrier's own client is used for what its interface has no way to ask.
"""

import asyncio
import json
import time

import nats.errors
import pytest
from fleet.fleet_support import Fleet, Got, connected, need_server

from benchctl.fleet.messages import AskHost, Done
from benchctl.fleet.trust.signing import Signer, UntrustedError, Verifier


@pytest.fixture
def attack(tmp_path):
    """Runs a test's coroutine with a fleet and the carriers of those that it names."""
    need_server()
    fleet = Fleet(tmp_path)

    def run(main, *names):
        async def whole():
            async with fleet.server():
                carriers = [fleet.carrier(name) for name in names]
                async with connected(*carriers):
                    await main(fleet, *carriers)

        asyncio.run(whole())

    return run


async def denied(carrier, subject, reply=""):
    """Publish and subscribe nothing: return what the server said of a subject."""
    carrier.why = ""
    client = carrier._client
    await client.publish(subject, b"x", reply=reply)
    for _ in range(2):
        await client.flush()
    return carrier.why


HOSTS_OWN = ("bench.hb.paris", "bench.smp.paris", "bench.res.paris")
FOREIGN = (
    "bench.hb.rome", "bench.smp.rome", "bench.res.rome", "bench.run.rome", "bench.run.paris",
    "bench.submit.alice", "bench.submit.bob", "bench.join.oslo", "bench.keys", "bench.log.x",
    "$KV.lease.coordinator",
    "_INBOX_coordinator.x", "_INBOX_rome.x", "_INBOX_alice.x", "$SYS.REQ.SERVER.PING",
    "$JS.API.STREAM.PURGE.RESULTS", "$JS.API.STREAM.DELETE.RESULTS", "$JS.API.STREAM.CREATE.X",
    "$JS.API.STREAM.UPDATE.RESULTS", "$JS.API.STREAM.MSG.DELETE.RESULTS", "$JS.API.INFO",
    "$JS.API.STREAM.MSG.GET.RESULTS", "$JS.API.CONSUMER.CREATE.RESULTS", "$JS.ACK.RESULTS.x",
    "$JS.API.CONSUMER.CREATE.RESULTS.x.bench.res.*", "$JS.API.DIRECT.GET.KV_lease",
)  # fmt: skip
LISTENED = (
    ">", "bench.>", "bench.run.*", "bench.run.rome", "bench.hb.*", "bench.submit.*", "bench.res.*",
    "_INBOX_coordinator.>", "_INBOX_rome.>", "_INBOX_bob.>", "*.>", "$JS.EVENT.>", "bench.join.*",
)  # fmt: skip


@pytest.mark.parametrize("name", ["paris", "alice"])
def test_no_foreign_subject_takes_a_member_s_message(attack, name):
    async def main(fleet, member):
        own = {"paris": set(HOSTS_OWN), "alice": {"bench.submit.alice"}}[name]
        for subject in (*HOSTS_OWN, *FOREIGN):
            said = await denied(member, subject)
            assert bool(said) is (subject not in own), subject
            if said:
                assert "permissions violation for publish" in said.lower()

    attack(main, name)


@pytest.mark.parametrize("name", ["paris", "alice"])
def test_no_foreign_subject_is_heard(attack, name):
    async def main(fleet, member):
        for subject in LISTENED:
            member.why = ""
            await member.listen(subject, Got())
            for _ in range(20):
                if member.why:
                    break
                await member._client.flush()
            assert "permissions violation for subscription" in member.why.lower(), subject

    attack(main, name)


def test_nobody_without_a_key_gets_in(attack):
    async def main(fleet, paris):
        stranger = fleet.carrier("stranger")
        stranger._key = type(stranger._key).make()
        async with stranger:
            with pytest.raises(ConnectionError, match="does not know this key"):
                await stranger.wait_connected(2)
        assert paris.is_connected

    attack(main, "paris")


def test_what_the_server_answers_at_a_chosen_subject_is_no_message_to_a_host(attack):
    async def main(fleet, paris, rome):
        got = Got()
        await rome.listen("bench.run.rome", got)
        # The server does not check the reply subject of a member's own message.
        await paris._client.publish("bench.res.paris", b"x", reply="bench.run.rome")
        (data,) = await got.until(1)
        assert json.loads(data)["stream"] == "RESULTS"
        opener = Verifier("lab", "rome", fleet.directory.find, "coordinator")
        with pytest.raises(UntrustedError, match="no message of a fleet"):
            opener.open(data, time.time(), AskHost)

    attack(main, "paris", "rome")


def test_a_host_s_key_signs_nothing_that_another_host_takes(attack):
    async def main(fleet, paris):
        opener = Verifier("lab", "rome", fleet.directory.find, "coordinator")
        for sender in ("paris", "coordinator"):
            signer = Signer(fleet.keys["paris"], "lab", sender)
            data = signer.seal(AskHost("facts", []), "rome", now_s=time.time())
            with pytest.raises(UntrustedError, match="paris is a host"):
                opener.open(data, time.time(), AskHost)

    attack(main, "paris")


@pytest.mark.parametrize(
    "reply", ["bench.run.rome", "bench.keys", "_INBOX_bob.x", "_INBOX_coordinator.x", "bench.res.x"]
)
def test_the_coordinator_answers_only_in_the_sender_s_own_inbox(attack, reply):
    async def main(fleet, coordinator, alice, rome):
        got = Got()
        await coordinator.listen("bench.submit.*", got)
        await alice._client.publish("bench.submit.alice", b"x", reply=reply)
        assert await got.until(1) == [b"x"]
        assert got[0].reply is None
        # Were it asked to answer there all the same, the server would not let it.
        if not reply.startswith(("bench.run", "bench.keys", "_INBOX_bob")):
            assert "permissions violation" in (await denied(coordinator, reply)).lower()

    attack(main, "coordinator", "alice", "rome")


def test_the_coordinator_has_no_rights_on_streams(attack):
    async def main(fleet, coordinator):
        for what in ("CREATE", "UPDATE", "DELETE", "PURGE", "MSG.DELETE"):
            said = await denied(coordinator, f"$JS.API.STREAM.{what}.RESULTS")
            assert "permissions violation" in said.lower()

    attack(main, "coordinator")


def test_a_consumer_that_delivers_to_a_host_brings_nothing_that_it_takes(attack):
    """A person may make consumers of the log, and choose where they deliver."""

    async def main(fleet, coordinator, alice, rome):
        got = Got()
        await rome.listen("bench.run.rome", got)
        signer = Signer(fleet.directory.coordinator_key(), "lab", "coordinator")
        entry = signer.seal(Done("a trial"), "people", now_s=time.time())
        await coordinator.publish("bench.log.1", entry, "1")
        config = {
            "name": "x", "deliver_subject": "bench.run.rome", "ack_policy": "none",
            "filter_subject": "bench.log.*",
        }  # fmt: skip
        body = {"stream_name": "LOG", "config": config, "action": "create"}
        try:
            await alice._client.request(
                "$JS.API.CONSUMER.CREATE.LOG.x.bench.log.*", json.dumps(body).encode(), timeout=2
            )
            (data,) = await got.until(1, timeout_s=2)
        except (nats.errors.Error, TimeoutError):
            return
        opener = Verifier("lab", "rome", fleet.directory.find, "coordinator")
        with pytest.raises(UntrustedError, match="to people, not to rome"):
            opener.open(data, time.time(), Done)

    attack(main, "coordinator", "alice", "rome")


def test_garbage_harms_nobody(attack):
    async def main(fleet, coordinator, paris):
        got = Got()
        opener = Verifier("lab", "coordinator", fleet.directory.find, "host")

        async def hear(message):
            with pytest.raises(UntrustedError):
                opener.open(message.data, time.time(), Done)
            await got(message)

        await coordinator.listen("bench.hb.*", hear)
        for data in (b"", b"\x91" * 100_000, b"\xff" * 1_000_000, b'{"a":1}'):
            await paris.send("bench.hb.paris", data)
        assert len(await got.until(4)) == 4
        assert coordinator.is_connected

    attack(main, "coordinator", "paris")


def test_who_is_withdrawn_is_out_within_five_seconds_and_the_others_are_undisturbed(attack):
    async def main(fleet, coordinator, paris, rome):
        got = Got()
        await coordinator.follow("bench.res.*", 0, got)
        clients = [each._client for each in (coordinator, rome)]
        fleet.directory.change(lambda members: members.without("paris"))
        async with asyncio.timeout(5):
            while paris.is_connected:
                await asyncio.sleep(0.01)
        with pytest.raises(ConnectionError, match="does not know this key"):
            await paris.wait_connected(2)
        await rome.publish("bench.res.rome", b"1", "1")
        assert await got.until(1) == [b"1"]
        assert [each._client for each in (coordinator, rome)] == clients

    attack(main, "coordinator", "paris", "rome")
