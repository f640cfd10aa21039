"""A fleet's directory and a real server for tests."""

import asyncio
import time
from contextlib import asynccontextmanager

import pytest
from ports import lend_port

from benchctl.errors import MissingError
from benchctl.fleet.admin.directory import FleetDirectory
from benchctl.fleet.admin.members import Person
from benchctl.fleet.admin.server import TrialServer, find_server
from benchctl.fleet.carrier.opening import open_carrier
from benchctl.fleet.trust.keys import SigningKey


def need_server():
    """Skip the test where there is no nats-server; the gate has the one of the extra."""
    try:
        find_server()
    except MissingError as error:
        pytest.skip(f"{error.message}: {error.hint}")


class Fleet:
    """A fleet with some hosts and people, whose keys a test has."""

    def __init__(self, path, *, hosts=("paris", "rome"), people=("alice", "bob")):
        address = f"127.0.0.1:{lend_port()}"
        self.directory = FleetDirectory.make(path / "lab", "lab", address, address, time.time())
        self.keys = {name: SigningKey.make() for name in (*hosts, *people)}
        for name in hosts:
            token = self.directory.invite_host(name, time.time() + 60)
            assert token.name == name
            self.directory.change(
                lambda members, name=name: members.join(name, self.keys[name].nkey, time.time())
            )
        for name in people:
            person = Person(self.keys[name].nkey, "run")
            self.directory.change(
                lambda members, name=name, person=person: members.invite_person(name, person)
            )

    def carrier(self, name):
        key = self.keys.get(name) or self.directory.coordinator_key()
        return open_carrier(self.directory.server(), key, name)

    def server(self):
        return TrialServer(self.directory)


@asynccontextmanager
async def connected(*carriers):
    for carrier in carriers:
        await carrier.__aenter__()
    try:
        for carrier in carriers:
            await carrier.wait_connected(10)
        yield carriers
    finally:
        for carrier in carriers:
            await carrier.__aexit__(None, None, None)


class Got(list):
    """Messages that arrived, and a wait for the next ones."""

    def __init__(self):
        self.came = asyncio.Event()

    async def __call__(self, message):
        self.append(message)
        self.came.set()

    async def until(self, count, timeout_s=10):
        async with asyncio.timeout(timeout_s):
            while len(self) < count:
                self.came.clear()
                await self.came.wait()
        return [each.data for each in self]
