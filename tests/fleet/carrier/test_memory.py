"""The carrier of the tests: what it promises, and the faults that it makes."""

import asyncio

import pytest
from fleet.broker import Broker
from fleet.fleet_support import Got

from benchctl.fleet.carrier.carrier import LeaseError, StreamFullError
from benchctl.fleet.carrier.streams import Stream, matches

SMALL = Stream("SMALL", "small.*", max_bytes=10, max_age_s=60)
ROLLING = Stream("ROLLING", "rolling.*", max_bytes=10, max_age_s=60, discards_old=True)


class Clock:
    def __init__(self):
        self.now_s = 1000.0

    def __call__(self):
        return self.now_s


async def settle():
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("pattern", "subject", "fits"),
    [
        ("a.b", "a.b", True), ("a.*", "a.b", True), ("a.*", "a.b.c", False), ("a.>", "a.b.c", True),
        ("a.>", "a", False), (">", "a", True), ("a.*.c", "a.b.c", True), ("a.b", "a.bb", False),
    ],
)  # fmt: skip
def test_a_pattern_has_a_star_for_one_word_and_a_last_arrow(pattern, subject, fits):
    assert matches(pattern, subject) is fits


def test_who_is_cut_off_loses_core_messages_and_gets_all_of_a_stream_later():
    async def main():
        broker, core, stream = Broker(), Got(), Got()
        async with broker.carrier() as a, broker.carrier() as b:
            await b.listen("bench.hb.a", core)
            await b.follow("bench.res.*", 0, stream)
            await b.cut()
            assert not b.is_connected
            with pytest.raises(ConnectionError):
                await b.send("bench.hb.b", b"")
            await a.send("bench.hb.a", b"lost")
            await a.publish("bench.res.a", b"1", "n1")
            await settle()
            assert stream == []
            await b.mend()
            assert await stream.until(1) == [b"1"]
            await a.send("bench.hb.a", b"2")
            assert await core.until(1) == [b"2"]

    asyncio.run(main())


def test_a_publish_waits_for_the_broker_and_is_kept_once_though_its_answers_get_lost():
    async def main():
        broker = Broker()
        async with broker.carrier() as a:
            await broker.stand_still()
            publishing = asyncio.create_task(a.publish("bench.res.a", b"1", "n1"))
            await settle()
            assert not publishing.done()
            broker.loses_answers = True
            await broker.go_on()
            await settle()
            assert not publishing.done()
            broker.loses_answers = False
            await publishing
            assert broker.messages("RESULTS") == [(1, "bench.res.a", b"1")]

    asyncio.run(main())


def test_a_repeat_after_the_window_is_kept_again():
    async def main():
        clock = Clock()
        broker = Broker(now_s=clock)
        async with broker.carrier() as a:
            await a.publish("bench.res.a", b"1", "n1")
            clock.now_s += 121
            await a.publish("bench.res.a", b"1", "n1")
            assert len(broker.messages("RESULTS")) == 2

    asyncio.run(main())


def test_a_full_stream_takes_no_more_until_its_oldest_are_too_old():
    async def main():
        clock = Clock()
        broker, got = Broker([SMALL], clock), Got()
        async with broker.carrier() as a:
            await a.publish("small.a", b"123456", "1")
            with pytest.raises(StreamFullError):
                await a.publish("small.a", b"123456", "2")
            clock.now_s += 61
            await a.publish("small.a", b"123456", "2")
            await a.follow("small.*", 0, got)
            await got.until(1)
            assert [each.sequence for each in got] == [2]

    asyncio.run(main())


def test_a_stream_that_drops_its_oldest_shows_a_gap():
    async def main():
        broker, got = Broker([ROLLING]), Got()
        async with broker.carrier() as a:
            for number in range(3):
                await a.publish("rolling.a", b"12345", str(number))
            await a.follow("rolling.a", 0, got)
            await got.until(2)
            assert [each.sequence for each in got] == [2, 3]

    asyncio.run(main())


def test_everything_may_arrive_twice():
    async def main():
        broker, got = Broker(), Got()
        broker.twice = True
        async with broker.carrier() as a:
            await a.listen("core", got)
            await a.follow("bench.res.a", 0, got)
            await a.publish("bench.res.a", b"s", "1")
            await a.send("core", b"c")
            assert sorted(await got.until(4)) == [b"c", b"c", b"s", b"s"]

    asyncio.run(main())


def test_a_lease_is_one_client_s_until_it_is_not_renewed():
    async def main():
        clock = Clock()
        broker = Broker(now_s=clock)
        async with broker.carrier() as a, broker.carrier() as b:
            first = await a.lease("coordinator", b"a", 0)
            with pytest.raises(LeaseError, match="somebody else"):
                await b.lease("coordinator", b"b", 0)
            clock.now_s += 1.5
            second = await a.lease("coordinator", b"a", first)
            with pytest.raises(LeaseError):
                await a.lease("coordinator", b"a", first)
            clock.now_s += 2.5
            third = await b.lease("coordinator", b"b", 0)
            assert first < second < third
            with pytest.raises(LeaseError):
                await a.lease("coordinator", b"a", second)

    asyncio.run(main())
