"""The carrier over NATS with JetStream, by nats-py.

One client of nats-py is one connection, which it never makes again: the loop here makes another
client whenever one has closed, whatever the reason, and renews what was subscribed.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import math
import ssl
from contextlib import AsyncExitStack, suppress
from random import uniform
from typing import Any, Final, Self

import nats.errors
import nats.js.errors
from nats.aio.client import Client

from benchctl.fleet.carrier.carrier import LeaseError, OnMessage, StreamFullError
from benchctl.fleet.carrier.jetstream import UNREACHABLE, ask, why_of
from benchctl.fleet.carrier.proxy import Tunnel
from benchctl.fleet.carrier.streams import LEASES, inbox
from benchctl.fleet.carrier.subscriptions import (
    CoreSubscription,
    NatsSubscription,
    OrderedSubscription,
)
from benchctl.fleet.trust.keys import SigningKey

CONNECT_S: Final = 3.0

_LOG = logging.getLogger(__name__)

NOT_LET_IN: Final = "the server does not know this key: it was withdrawn, or never joined"

# The server may be reading of a new key right now.
_ENOUGH_REFUSALS: Final = 3

_NO_SUCH_REVISION: Final = 10071, 10164
_FULL: Final = 10023, 10047, 10077
"""Error codes of JetStream: out of resources, out of storage, not stored because of a bound."""


class NatsCarrier:
    """A client of a server; see `Carrier` for what each method promises.

    Args:
        address: host and port of the server.
        ca: the certificate of the fleet's authority, PEM.
        key: logs in.
        name: whose inbox gets the answers.
        proxy: host and port of an HTTP proxy on the way, empty for none.
    """

    def __init__(self, address: str, ca: str, key: SigningKey, name: str, proxy: str = "") -> None:
        self._address = address
        self._tls = ssl.create_default_context(cadata=ca)
        self._tls.minimum_version = ssl.TLSVersion.TLSv1_3
        self._key = key
        self._name = name
        self._proxy = proxy
        self._client: Client | None = None
        self.why = "nothing was heard of it yet"
        """Why nothing was carried the last time, in a few words."""
        self._refusals = 0
        """How often the server has refused its key since it was last connected."""
        self._changed = asyncio.Condition()
        self._subscriptions: list[NatsSubscription] = []
        self._attaching = asyncio.Lock()
        self._is_closing = False
        self._exit = AsyncExitStack()
        self._tunnel: Tunnel | None = None
        self._certificate_ends_s = 0.0
        self._loop_task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        _quieten()
        host = self._address.rpartition(":")[0]
        if self._proxy:
            self._tunnel = Tunnel(self._proxy, self._address)
            await self._exit.enter_async_context(self._tunnel)
            url = f"tls://127.0.0.1:{self._tunnel.port}"
        else:
            url = f"tls://{self._address}"
        self._loop_task = asyncio.create_task(self._connecting(url, host.strip("[]")))
        return self

    async def __aexit__(self, *_: object) -> None:
        for subscription in list(self._subscriptions):
            await subscription.close()
        self._is_closing = True
        while self._loop_task is not None and not self._loop_task.done():
            self._loop_task.cancel()  # asyncio.wait_for of Python 3.11 may lose one
            await asyncio.wait([self._loop_task], timeout=0.1)
        await self._exit.aclose()

    @property
    def is_connected(self) -> bool:
        return self._client is not None and self._client.is_connected

    @property
    def certificate_ends_s(self) -> float:
        return self._certificate_ends_s

    async def wait_connected(self, timeout_s: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._until_connected(_ENOUGH_REFUSALS), timeout_s)
            if self.is_connected or not self._refusals:
                return
        raise ConnectionError(f"{self._address}: {self.why}")

    async def send(self, subject: str, data: bytes) -> None:
        try:
            await self._demand().publish(subject, data)
        except nats.errors.Error as error:
            raise ConnectionError(why_of(error)) from error

    async def request(self, subject: str, data: bytes, timeout_s: float) -> bytes:
        try:
            return (await self._demand().request(subject, data, timeout=timeout_s)).data
        except nats.errors.NoRespondersError:
            raise TimeoutError(f"nobody listens to {subject}") from None
        except TimeoutError:
            raise TimeoutError(f"no answer from {subject} in {timeout_s:g} s") from None
        except nats.errors.Error as error:
            raise ConnectionError(why_of(error)) from error

    async def publish(self, subject: str, data: bytes, number: str) -> None:
        # The client's buffer is lost with the connection, so only the acknowledgement counts.
        headers = {"Nats-Msg-Id": number}
        while True:
            await self._until_connected()
            try:
                await ask(self._demand(), subject, data, headers)
                return
            except (ConnectionError, TimeoutError, nats.errors.Error) as error:
                if isinstance(error, nats.js.errors.APIError) and error.err_code in _FULL:
                    raise StreamFullError(error.description or "the stream is full") from error
                self.why = why_of(error)
                await asyncio.sleep(uniform(0.2, 0.5))  # it may have only just begun

    async def listen(self, subject: str, on_message: OnMessage) -> CoreSubscription:
        subscription = CoreSubscription(self, subject, on_message)
        await self._add(subscription)
        return subscription

    async def follow(
        self, subject: str, after: int, on_message: OnMessage, since_s: float = 0.0
    ) -> OrderedSubscription:
        subscription = OrderedSubscription(self, subject, after, on_message, since_s)
        await self._add(subscription)
        return subscription

    async def lease(self, key: str, value: bytes, revision: int) -> int:
        headers = {"Nats-Expected-Last-Subject-Sequence": str(revision)}
        try:
            answer = await ask(self._demand(), f"$KV.{LEASES}.{key}", value, headers)
        except nats.js.errors.APIError as error:
            if error.err_code in _NO_SUCH_REVISION:
                why = "it was lost" if revision else "somebody else has it"
                raise LeaseError(f"lease {key}: {why}") from None
            raise ConnectionError(why_of(error)) from error
        except (TimeoutError, nats.errors.Error) as error:
            raise ConnectionError(why_of(error)) from error
        return int(answer["seq"])

    async def make_stream(self, config: dict[str, Any]) -> None:
        """Make a stream, or change it to this configuration of JetStream's API.

        Raises ConnectionError, which says why the server does not.
        """
        name = config["name"]
        body = json.dumps(config).encode()
        try:
            try:
                await ask(self._demand(), f"$JS.API.STREAM.INFO.{name}", b"{}")
            except nats.js.errors.NotFoundError:
                await ask(self._demand(), f"$JS.API.STREAM.CREATE.{name}", body)
            else:
                await ask(self._demand(), f"$JS.API.STREAM.UPDATE.{name}", body)
        except nats.js.errors.APIError as error:
            raise ConnectionError(f"stream {name}: {error.description}") from None
        except (TimeoutError, nats.errors.Error) as error:
            raise ConnectionError(f"stream {name}: {why_of(error)}") from None

    def leave(self, subscription: NatsSubscription) -> None:
        """Renew a subscription no more."""
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)

    async def _add(self, subscription: NatsSubscription) -> None:
        subscription.start()
        async with self._attaching:
            self._subscriptions.append(subscription)
            client = self._client
            if client is not None and client.is_connected:
                with suppress(*UNREACHABLE):  # otherwise it is renewed with the connection
                    await subscription.attach(client)
                    await _flush(client)

    def _demand(self) -> Client:
        client = self._client
        if client is None or not client.is_connected:
            raise ConnectionError(f"{self._address}: {self.why}")
        return client

    async def _until_connected(self, refusals: float = math.inf) -> None:
        """Wait until it is connected, or the server has refused its key so often."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.is_connected or self._refusals >= refusals)

    async def _connecting(self, url: str, hostname: str) -> None:
        while not self._is_closing:
            closed = asyncio.Event()
            client = Client()
            try:
                reading = await self._connect(client, url, hostname, closed)
                async with self._attaching:
                    for subscription in list(self._subscriptions):
                        await subscription.attach(client)
                    await _flush(client)
                    self._client, self._refusals = client, 0
                async with self._changed:
                    self._changed.notify_all()
                await asyncio.wait([reading])
                error = client.last_error
                self.why = _plain(why_of(error)) if error else "it has closed"
            except nats.errors.NoServersError:  # after an error that was heard
                self.why = (self._tunnel and self._tunnel.why) or self.why
            except UNREACHABLE as error:
                self.why = (self._tunnel and self._tunnel.why) or _not_connected(client, error)
            except Exception as error:  # of a server, or a nats-py, that nobody has seen yet
                self.why = why_of(error)
                _LOG.exception("the connection to %s", self._address)
            finally:
                closed.set()
                self._client = None
                _give_up(client)
                await _close(client)
            if self.why == NOT_LET_IN:
                async with self._changed:
                    self._refusals += 1
                    self._changed.notify_all()
            await asyncio.sleep(uniform(0.3, 1.0))

    async def _connect(
        self, client: Client, url: str, hostname: str, closed: asyncio.Event
    ) -> asyncio.Task[None]:
        """Connect a client, and return what reads from the server until the connection ends.

        nats-py itself does not say that a connection has ended if it fails at that time: if what
        it still wants to write is taken by nobody.
        """

        async def on_error(error: Exception) -> None:
            if not closed.is_set():
                self.why = why_of(error)

        # nats-py takes a seed only by packages of its own.
        client._public_nkey = self._key.nkey
        await client.connect(
            url,
            name=self._name,
            tls=self._tls,
            tls_hostname=hostname,
            tls_handshake_first=True,
            signature_cb=lambda nonce: base64.b64encode(self._key.sign(nonce.encode())),
            inbox_prefix=inbox(self._name),
            connect_timeout=int(CONNECT_S),
            ping_interval=3,
            max_outstanding_pings=2,
            allow_reconnect=False,
            max_reconnect_attempts=1,
            reconnect_time_wait=0,
            pending_size=8 << 20,
            error_cb=on_error,
        )
        shown = client._transport._io_writer.get_extra_info("peercert")  # type: ignore[union-attr]
        self._certificate_ends_s = float(ssl.cert_time_to_seconds(shown["notAfter"]))
        assert client._reading_task is not None
        return client._reading_task


async def _flush(client: Client) -> None:
    """Wait until the server has what was subscribed.

    A PING of nats-py goes before what waits in its buffer, which is written during the first one.
    """
    for _ in range(2):
        await client.flush(timeout=int(CONNECT_S))


def _give_up(client: Client) -> None:
    """Let whoever waits for an answer know that none comes; nats-py lets them wait."""
    for waiting in list(client._resp_map.values()):
        if not waiting.done():
            waiting.set_exception(nats.errors.ConnectionClosedError())


async def _close(client: Client) -> None:
    """Close a client, whose server may take nothing any more."""
    try:
        async with asyncio.timeout(CONNECT_S):
            await client.close()
    except UNREACHABLE as error:
        _LOG.debug("a connection that was closed: %s", error)
    finally:
        writer = getattr(client._transport, "_io_writer", None)
        if writer is not None:
            writer.transport.abort()


def _not_connected(client: Client, error: Exception) -> str:
    """Return why a connection was not made.

    A server that has introduced itself and closes at once refuses the key. It says so, but what it
    says is often lost with the connection.
    """
    if client._server_info and not isinstance(error, TimeoutError):
        return NOT_LET_IN
    return _plain(why_of(error))


def _plain(why: str) -> str:
    return NOT_LET_IN if "authorization violation" in why.lower() else why


def _quieten() -> None:
    """Drop what asyncio logs of each connection with TLS that ends, which means nothing."""
    logger = logging.getLogger("asyncio")
    if _is_meant not in logger.filters:
        logger.addFilter(_is_meant)


def _is_meant(record: logging.LogRecord) -> bool:
    return "eof_received() has no effect" not in record.getMessage()
