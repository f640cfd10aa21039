"""What only the carrier over NATS meets: a wrong server, one that hangs, one that lost its disk."""

import asyncio
import logging
import os
import shutil
import signal
import time

import pytest
from fleet.fleet_support import Fleet, Got, connected, need_server
from msgspec import structs

from benchctl.fleet.carrier.carrier import StreamFullError
from benchctl.fleet.carrier.opening import open_carrier
from benchctl.fleet.carrier.subscriptions import SILENCE_S
from benchctl.fleet.trust.certificates import DAY_S, make_ca


@pytest.fixture
def fleet(tmp_path):
    need_server()
    return Fleet(tmp_path)


def test_a_server_of_another_authority_is_refused_and_said(fleet):
    other = structs.replace(fleet.directory.server(), ca=make_ca("lab", time.time())[0].decode())

    async def main():
        async with fleet.server(), open_carrier(other, fleet.keys["paris"], "paris") as host:
            with pytest.raises(ConnectionError, match="its certificate is refused"):
                await host.wait_connected(2)

    asyncio.run(main())


def test_the_end_of_the_server_s_certificate_is_known(fleet):
    async def main():
        async with fleet.server(), connected(fleet.carrier("paris")) as (host,):
            return host.certificate_ends_s

    assert asyncio.run(main()) == pytest.approx(time.time() + 397 * DAY_S, abs=60)


def test_a_stream_that_was_lost_with_its_disk_is_followed_from_its_begin(fleet):
    async def main():
        server, got = fleet.server(), Got()
        async with (
            server,
            connected(fleet.carrier("paris"), fleet.carrier("coordinator")) as (a, b),
        ):
            await b.follow("bench.res.*", 0, got)
            for number in "123":
                await a.publish("bench.res.paris", number.encode(), number)
            await got.until(3)
            server.process.kill()
            await server.process.wait()
            shutil.rmtree(fleet.directory.path / "streams")
            await server.__aenter__()
            await a.publish("bench.res.paris", b"4", "4")
            assert await got.until(4) == [b"1", b"2", b"3", b"4"]
            assert got[3].sequence == 1

    asyncio.run(main())


def test_a_server_that_stood_still_is_gone_on_with(fleet):
    async def main():
        server, got = fleet.server(), Got()
        async with (
            server,
            connected(fleet.carrier("paris"), fleet.carrier("coordinator")) as (a, b),
        ):
            await b.follow("bench.res.*", 0, got)
            await a.publish("bench.res.paris", b"1", "1")
            await got.until(1)
            os.kill(server.process.pid, signal.SIGSTOP)
            # On a busy machine its threads go on until one of them has taken the signal.
            os.waitid(os.P_PID, server.process.pid, os.WSTOPPED | os.WNOWAIT)
            publishing = asyncio.create_task(a.publish("bench.res.paris", b"2", "2"))
            await asyncio.wait([publishing], timeout=SILENCE_S + 1)
            assert not publishing.done()
            os.kill(server.process.pid, signal.SIGCONT)
            await asyncio.wait_for(publishing, 20)
            assert await got.until(2, timeout_s=20) == [b"1", b"2"]

    asyncio.run(main())


def test_a_connection_that_ends_before_all_is_written_is_made_again(fleet):
    async def main():
        server = fleet.server()
        async with server, connected(fleet.carrier("paris")) as (host,):
            unwritten = b"PUB bench.hb.paris 1\r\nx\r\n"
            host._client._pending.append(unwritten)
            host._client._pending_data_size += len(unwritten)
            server.process.kill()
            await server.process.wait()
            await server.__aenter__()
            await host.wait_connected(10)

    asyncio.run(main())


def test_what_a_server_gave_numbers_that_it_had_given_before_is_delivered(fleet):
    async def main():
        server, got = fleet.server(), Got()
        hosts = fleet.carrier("paris"), fleet.carrier("coordinator")
        async with server, connected(*hosts) as (host, coordinator):
            await coordinator.follow("bench.smp.*", 0, got)
            for number in "123":
                await host.publish("bench.smp.paris", number.encode(), number)
            await got.until(3)
            # The last ones were delivered, and not written.
            async with coordinator._attaching:
                server.process.kill()
                await server.process.wait()
                shutil.rmtree(fleet.directory.path / "streams")
                await server.__aenter__()
                for number in "4567":
                    await host.publish("bench.smp.paris", number.encode(), number)
            assert await got.until(7) == [b"1", b"2", b"3", b"4", b"5", b"6", b"7"]

    asyncio.run(main())


def test_a_stream_is_followed_since_a_time(fleet):
    async def main():
        got = Got()
        hosts = fleet.carrier("paris"), fleet.carrier("coordinator")
        async with fleet.server(), connected(*hosts) as (host, coordinator):
            await host.publish("bench.res.paris", b"1", "1")
            since_s = time.time()
            for number in "23":
                await host.publish("bench.res.paris", number.encode(), number)
            await coordinator.follow("bench.res.*", 0, got, since_s)
            assert await got.until(2) == [b"2", b"3"]

    asyncio.run(main())


def test_a_full_stream_is_said(fleet):
    async def main():
        setup = open_carrier(fleet.directory.server(), fleet.directory.setup_key(), "setup")
        host = fleet.carrier("paris")
        small = {
            "name": "RESULTS", "subjects": ["bench.res.*"], "storage": "file",
            "discard": "new", "max_bytes": 5000,
        }  # fmt: skip
        async with fleet.server(), connected(setup, host):
            await setup.make_stream(small)
            for number in range(4):
                await host.publish("bench.res.paris", bytes(1000), str(number))
            with pytest.raises(StreamFullError, match="maximum bytes exceeded"):
                await host.publish("bench.res.paris", bytes(2000), "last")

    asyncio.run(main())


def test_a_missing_message_of_a_stream_is_fetched_again(fleet):
    async def main():
        got = Got()
        hosts = fleet.carrier("paris"), fleet.carrier("coordinator")
        async with fleet.server(), connected(*hosts) as (host, coordinator):
            following = await coordinator.follow("bench.res.*", 0, got)
            await host.publish("bench.res.paris", b"1", "1")
            await got.until(1)
            take, lost = following._take, []

            async def lose_one(client, consumer, message):
                if message.data == b"2" and not lost:
                    lost.append(message)
                else:
                    await take(client, consumer, message)

            following._take = lose_one
            following._is_broken.set()  # the next consumer delivers to what loses one
            async with asyncio.timeout(10):
                number = 1
                while not lost:
                    number += 1
                    await host.publish("bench.res.paris", b"2", f"2 {number}")
                    await asyncio.sleep(0.05)
            await host.publish("bench.res.paris", b"3", "3")
            async with asyncio.timeout(10):
                while b"3" not in [each.data for each in got]:
                    got.came.clear()
                    await got.came.wait()
            sequences = [each.sequence for each in got]
            assert sequences == list(range(1, len(sequences) + 1))

    asyncio.run(main())


def test_what_asyncio_logs_of_each_closed_connection_is_left_out(fleet, caplog):
    async def main():
        async with fleet.server(), connected(fleet.carrier("paris")):
            log = logging.getLogger("asyncio")
            log.warning("returning true from eof_received() has no effect when using ssl")
            log.warning("something else")

    asyncio.run(main())
    assert [each.getMessage() for each in caplog.records] == ["something else"]
