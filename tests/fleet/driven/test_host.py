"""How a coordinator knows one host: by the answers to what it sends it."""

import asyncio
import time

from fleet.broker import Broker
from fleet.small import FLEET, Coordinator

from benchctl.fleet.driven.host import DrivenHost
from benchctl.fleet.driven.presence import Standstill
from benchctl.fleet.host_messages import CommittedEnd, Go, GoingEnd, Heartbeat, SpoolState, ToHost
from benchctl.fleet.messages import COORDINATOR, EndRef, answered
from benchctl.fleet.trust.keys import SigningKey
from benchctl.fleet.trust.signing import KnownKey, Signer, Verifier

AHEAD_S = 100.0


def beat():
    return Heartbeat("n", 0.0, "1", [], [], SpoolState(0, 1, 0, 0, 1), {}, is_wanted=False)


def test_a_go_shows_how_the_host_is_and_tells_it_what_is_stored_as_a_ping_does():
    ours, theirs = SigningKey.make(), SigningKey.make()
    known = {
        key.public[:8].hex(): KnownKey(key.public, role, name)
        for key, role, name in ((ours, "coordinator", COORDINATOR), (theirs, "host", "paris"))
    }
    verifier = Verifier(FLEET, "paris", known.get, "coordinator", nonce="n")
    signer = Signer(theirs, FLEET, "paris")
    heard, taken = [], []
    ended = EndRef("r", 1, 1, "bulk", "client")
    going = GoingEnd(EndRef("r", 2, 1, "bulk", "client"), 5.0, 5.0)

    async def answer(delivered):
        taken.append(verifier.open(delivered.data, None, ToHost).message)
        now_s = time.time() + AHEAD_S
        nonce = answered(delivered.data)
        await delivered.reply(signer.seal(beat(), COORDINATOR, nonce=nonce, now_s=now_s))

    async def main():
        broker = Broker()
        async with broker.carrier() as carrier, broker.carrier() as there:
            await there.listen("bench.run.paris", answer)
            identity = Coordinator(FLEET, Signer(ours, FLEET, COORDINATOR), known.get)
            host = DrivenHost("paris", carrier, identity, Standstill(0.0), heard.append)
            host.hear(beat(), time.monotonic())
            host.commit(ended, 4)
            for _ in range(2):
                await host.goes.add(going)
            return host.clock.ours(time.time())

    ours_s = asyncio.run(main())
    assert taken == [Go([going], (CommittedEnd(ended, 4),)), Go([going])]
    assert len(heard) == 2
    assert AHEAD_S - 1 < time.time() - ours_s < AHEAD_S + 1
