"""A host joins over a real server: with a token, once, also through a proxy."""

import asyncio
import time
from contextlib import asynccontextmanager

import pytest
from fleet.fleet_support import Fleet, connected, need_server

from benchctl.errors import FleetError
from benchctl.fleet.admin.directory import ADMIN_FILE
from benchctl.fleet.admin.joining import (
    HOST_FILE,
    JOINS,
    admitting,
    join,
    serve_members,
)
from benchctl.fleet.carrier.opening import open_carrier
from benchctl.fleet.carrier.streams import KEYS
from benchctl.fleet.learned_keys import LearnedKeys
from benchctl.fleet.trust.membership import read_membership


@pytest.fixture
def fleet(tmp_path):
    need_server()
    return Fleet(tmp_path)


@asynccontextmanager
async def admitted(fleet):
    """A server, and a coordinator that takes in hosts."""
    async with fleet.server(), connected(fleet.carrier("coordinator")) as (coordinator,):
        await coordinator.listen(JOINS, admitting(fleet.directory))
        yield coordinator


def test_a_host_makes_its_own_key_and_is_let_in(fleet, tmp_path, monkeypatch):
    token = fleet.directory.invite_host("oslo", time.time() + 60)

    async def main():
        async with admitted(fleet):
            member = await join(token, tmp_path / "oslo")
            assert fleet.directory.members().hosts["oslo"].nkey == member.key.nkey
            assert member.key.text != token.seed
            async with connected(open_carrier(member.server, member.key, "oslo")) as (host,):
                await host.send("bench.hb.oslo", b"")
            monkeypatch.setattr("benchctl.fleet.admin.joining.CONNECT_S", 2)
            with pytest.raises(FleetError, match=r"cannot join the fleet lab.*does not know this"):
                await join(token, tmp_path / "other")

    asyncio.run(main())
    assert read_membership(tmp_path / "oslo" / HOST_FILE).name == "oslo"
    assert not (tmp_path / "other" / HOST_FILE).exists()


def test_a_host_joins_again_with_another_key_and_the_one_before_is_out(fleet, tmp_path):
    async def main():
        async with admitted(fleet):
            members = []
            for _ in range(2):
                token = fleet.directory.invite_host("oslo", time.time() + 60)
                members.append(await join(token, tmp_path / "oslo"))
            first, second = members
            assert first.seed != second.seed
            async with open_carrier(first.server, first.key, "oslo") as host:
                with pytest.raises(ConnectionError, match="does not know this key"):
                    await host.wait_connected(2)

    asyncio.run(main())
    assert read_membership(tmp_path / "oslo" / HOST_FILE).key.public


def test_a_coordinator_that_does_not_run_is_said(fleet, tmp_path):
    token = fleet.directory.invite_host("oslo", time.time() + 60)

    async def main():
        async with fleet.server():
            with pytest.raises(FleetError, match="the coordinator of the fleet lab does not run"):
                await join(token, tmp_path / "oslo")

    asyncio.run(main())
    assert not list((tmp_path / "oslo").iterdir())


def test_a_server_that_does_not_run_is_said(fleet, tmp_path, monkeypatch):
    monkeypatch.setattr("benchctl.fleet.admin.joining.CONNECT_S", 2)
    token = fleet.directory.invite_host("oslo", time.time() + 60)
    with pytest.raises(FleetError, match=r"cannot join the fleet lab: 127\.0\.0\.1:\d+: Connect"):
        asyncio.run(join(token, tmp_path / "oslo"))


def test_a_person_learns_the_next_key_of_the_coordinator_while_connected(fleet):
    path = fleet.directory.path / ADMIN_FILE

    async def main():
        fleet.directory.renew_coordinator()
        member, learned = read_membership(path), asyncio.Event()
        keys = LearnedKeys(path, member)

        async def take(message):
            await keys.take(message)
            learned.set()

        admin = open_carrier(member.server, member.key, member.name)
        async with fleet.server(), connected(admin, fleet.carrier("coordinator")) as (_, here):
            await admin.listen(KEYS, take)
            serving = asyncio.create_task(serve_members(here, fleet.directory))
            await asyncio.wait_for(learned.wait(), 20)
            serving.cancel()

    asyncio.run(main())
    assert read_membership(path).key_set().number == 2


@asynccontextmanager
async def http_proxy(status="200 Connection established"):
    """A proxy that knows CONNECT, and the addresses that it was asked for."""
    asked = []

    async def serve(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        asked.append(head.split()[1].decode())
        writer.write(f"HTTP/1.1 {status}\r\n\r\n".encode())
        if not status.startswith("200"):
            writer.close()
            return
        host, _, port = asked[-1].rpartition(":")
        far_reader, far_writer = await asyncio.open_connection(host, int(port))

        async def copy(source, sink):
            while data := await source.read(65536):
                sink.write(data)
            sink.close()

        await asyncio.gather(
            copy(reader, far_writer), copy(far_reader, writer), return_exceptions=True
        )

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", asked
    finally:
        server.close()


def test_a_host_behind_a_proxy_joins_and_stays_behind_it(fleet, tmp_path):
    token = fleet.directory.invite_host("oslo", time.time() + 60)

    async def main():
        async with admitted(fleet), http_proxy() as (proxy, asked):
            member = await join(token, tmp_path / "oslo", proxy)
            assert set(asked) == {fleet.directory.members().address}
            assert member.server.proxy == proxy
            assert len(asked) == 2

    asyncio.run(main())


def test_a_proxy_that_refuses_is_said(fleet, tmp_path, monkeypatch):
    monkeypatch.setattr("benchctl.fleet.admin.joining.CONNECT_S", 1.5)
    token = fleet.directory.invite_host("oslo", time.time() + 60)

    async def main():
        async with fleet.server(), http_proxy("403 Forbidden") as (proxy, _):
            with pytest.raises(FleetError, match=r"proxy .*: it answers 'HTTP/1\.1 403 Forbidden'"):
                await join(token, tmp_path / "oslo", proxy)

    asyncio.run(main())
