"""What every carrier promises: the one of the tests, and the one over a real nats-server."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from fleet.broker import Broker
from fleet.fleet_support import Fleet, Got, connected, need_server

from benchctl.fleet.carrier.carrier import LeaseError


class MemoryWorld:
    def __init__(self):
        self.broker = Broker()

    def carrier(self, name):
        return self.broker.carrier()

    async def kill(self):
        await self.broker.stand_still()

    async def start(self):
        await self.broker.go_on()


class NatsWorld:
    def __init__(self, path):
        self.fleet = Fleet(path)
        self.carrier = self.fleet.carrier
        self.server = self.fleet.server()

    async def kill(self):
        self.server.process.kill()
        await self.server.process.wait()

    async def start(self):
        await self.server.__aenter__()


@pytest.fixture(params=["memory", "nats"])
def world(request, tmp_path):
    """Runs a test's coroutine with a world whose server runs, and ends it."""
    if request.param == "nats":
        need_server()

    @asynccontextmanager
    async def running():
        if request.param == "memory":
            yield MemoryWorld()
            return
        world = NatsWorld(tmp_path)
        await world.start()
        try:
            yield world
        finally:
            await world.server.__aexit__()

    def run(main):
        async def whole():
            async with running() as world:
                await main(world)

        asyncio.run(whole())

    return run


def test_a_core_message_reaches_whoever_listens_then_and_is_answered(world):
    async def main(world):
        got = Got()
        host, coordinator = world.carrier("paris"), world.carrier("coordinator")
        async with connected(host, coordinator):
            await host.send("bench.hb.paris", b"lost")
            await (await host.listen("bench.run.paris", got)).close()  # the server has all by then
            listening = await coordinator.listen("bench.hb.*", got)
            await host.send("bench.hb.paris", b"1")
            assert await got.until(1) == [b"1"]
            assert (got[0].subject, got[0].sequence, got[0].reply) == ("bench.hb.paris", 0, None)
            await listening.close()
            with pytest.raises(TimeoutError, match=r"nobody listens to bench\.run\.paris"):
                await coordinator.request("bench.run.paris", b"?", 5)

            async def answer(message):
                await message.reply(message.data + b"!")

            await host.listen("bench.run.paris", answer)
            assert await coordinator.request("bench.run.paris", b"?", 5) == b"?!"

    world(main)


def test_a_question_without_an_answer_ends_in_time(world):
    async def main(world):
        async with connected(world.carrier("paris"), world.carrier("coordinator")) as (a, b):
            await a.listen("bench.run.paris", Got())
            with pytest.raises(TimeoutError, match="no answer"):
                await b.request("bench.run.paris", b"?", 0.05)

    world(main)


def test_a_question_fails_at_once_when_the_server_dies(world):
    async def main(world):
        async with connected(world.carrier("paris"), world.carrier("coordinator")) as (a, b):
            asked = Got()
            await a.listen("bench.run.paris", asked)
            asking = asyncio.create_task(b.request("bench.run.paris", b"?", 60))
            await asked.until(1)
            await world.kill()
            with pytest.raises(ConnectionError):
                await asyncio.wait_for(asking, 10)

    world(main)


def test_following_begins_after_a_sequence_and_keeps_to_its_subject(world):
    async def main(world):
        hosts = [world.carrier("paris"), world.carrier("rome")]
        coordinator, got = world.carrier("coordinator"), Got()
        async with connected(*hosts, coordinator):
            for number in range(4):
                name = ("paris", "rome")[number % 2]
                data = str(number).encode()
                await hosts[number % 2].publish(f"bench.res.{name}", data, f"n{number}")
            await coordinator.follow("bench.res.rome", 2, got)
            assert await got.until(1) == [b"3"]
            await hosts[1].publish("bench.res.rome", b"4", "n4")
            assert await got.until(2) == [b"3", b"4"]
            assert [each.sequence for each in got] == [4, 5]

    world(main)


def test_a_repeated_publish_is_kept_once(world):
    async def main(world):
        host, coordinator, got = world.carrier("paris"), world.carrier("coordinator"), Got()
        async with connected(host, coordinator):
            for number in "112":
                await host.publish("bench.smp.paris", number.encode(), number)
            await coordinator.follow("bench.smp.*", 0, got)
            assert await got.until(2) == [b"1", b"2"]

    world(main)


def test_a_slow_handler_gets_all_of_a_stream_in_order(world):
    async def main(world):
        host, coordinator = world.carrier("paris"), world.carrier("coordinator")
        came, done = [], asyncio.Event()

        async def slowly(message):
            await asyncio.sleep(0.0005)
            came.append(int(message.data))
            if len(came) == 500:
                done.set()

        async with connected(host, coordinator):
            await coordinator.follow("bench.smp.*", 0, slowly)
            await asyncio.gather(
                *(host.publish("bench.smp.paris", b"%d" % n, f"n{n}") for n in range(500))
            )
            await asyncio.wait_for(done.wait(), 20)
        assert came == list(range(500))

    world(main)


def test_a_handler_that_fails_ends_no_subscription(world, caplog):
    async def main(world):
        host, coordinator, got = world.carrier("paris"), world.carrier("coordinator"), Got()

        async def fail_first(message):
            if message.data == b"1":
                raise ValueError("bad")
            await got(message)

        async with connected(host, coordinator):
            await coordinator.follow("bench.res.*", 0, fail_first)
            await host.publish("bench.res.paris", b"1", "1")
            await host.publish("bench.res.paris", b"2", "2")
            assert await got.until(1) == [b"2"]

    world(main)
    assert "a message of bench.res.paris was not handled" in caplog.text


def test_a_killed_server_loses_nothing_of_a_stream_and_all_go_on_by_themselves(world):
    async def main(world):
        host, coordinator = world.carrier("paris"), world.carrier("coordinator")
        stream, core = Got(), Got()
        async with connected(host, coordinator):
            await coordinator.listen("bench.hb.*", core)
            await coordinator.follow("bench.res.*", 0, stream)
            await host.publish("bench.res.paris", b"1", "n1")
            await stream.until(1)
            await world.kill()
            publishing = asyncio.create_task(host.publish("bench.res.paris", b"2", "n2"))
            with pytest.raises(ConnectionError):
                await host.wait_connected(0.3)
            with pytest.raises(ConnectionError):
                await host.send("bench.hb.paris", b"lost")
            assert not publishing.done()
            await world.start()
            await asyncio.wait_for(publishing, 10)
            assert await stream.until(2) == [b"1", b"2"]
            for carrier in (host, coordinator):
                await carrier.wait_connected(10)
            await host.send("bench.hb.paris", b"3")
            assert await core.until(1) == [b"3"]

    world(main)


def test_who_subscribes_before_it_is_connected_gets_messages_later(world):
    async def main(world):
        await world.kill()
        host, coordinator = world.carrier("paris"), world.carrier("coordinator")
        stream, core = Got(), Got()
        async with host, coordinator:
            await coordinator.listen("bench.hb.*", core)
            await coordinator.follow("bench.res.*", 0, stream)
            await world.start()
            for carrier in (host, coordinator):
                await carrier.wait_connected(10)
            await host.publish("bench.res.paris", b"1", "n1")
            await host.send("bench.hb.paris", b"2")
            assert await stream.until(1) == [b"1"]
            assert await core.until(1) == [b"2"]

    world(main)


def test_a_lease_is_one_client_s_until_it_is_not_renewed(world):
    async def main(world):
        async with connected(world.carrier("coordinator"), world.carrier("coordinator")) as (a, b):
            first = await a.lease("coordinator", b"a", 0)
            with pytest.raises(LeaseError, match="somebody else"):
                await b.lease("coordinator", b"b", 0)
            second = await a.lease("coordinator", b"a", first)
            with pytest.raises(LeaseError, match=r"lost|somebody else"):
                await a.lease("coordinator", b"a", first)
            async with asyncio.timeout(10):
                while True:
                    try:
                        third = await b.lease("coordinator", b"b", 0)
                        break
                    except LeaseError:
                        await asyncio.sleep(0.05)
            assert first < second < third
            with pytest.raises(LeaseError, match=r"lost|somebody else"):
                await a.lease("coordinator", b"a", second)

    world(main)
