"""The server's side of one control connection: from its hello to its result.

Everything here happens in the hub's thread; the measurements' own threads only wake it.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping, Sequence
from typing import Any, Callable, NamedTuple

from benchctl_standalone.addresses import origin_of, same_host
from benchctl_standalone.errors import Problem, describe_os_error
from benchctl_standalone.hub import Hub, HubConnection
from benchctl_standalone.sockets import address_text, plain_address

from .. import __version__
from ..measuring.cpu import CpuMeter
from ..measuring.options import notice_absence, set_options
from ..measuring.side import Side
from ..protocol.auth import new_secret, proves
from ..protocol.conversation import SERVER, VERSION, Conversation
from ..protocol.intervals import encode_rows, interval_figures
from ..protocol.results import one_sided_result
from ..protocol.settings import Limits, MeasurementSettings, Pause
from .quota import Claim, Quota

# How much data to a client may be unread.
_UNREAD_LIMIT = 1 << 20
# From the connection to the last stream's joining, no step takes longer than this.
_HANDSHAKE_S = 15.0
# How long a client may take to read its result or its problem, and close.
_GOODBYE_S = 5.0


class Policy(NamedTuple):
    """A session's interface to its server.

    ``admit`` claims a test's needs from the ``quota``, or raises Problem. ``sessions`` are those
    that await streams, by token. ``known`` maps socket addresses of expected streams to their
    session and number. ``show`` gets each interval and ``done`` the session at its end. Other
    threads call ``notify`` when there are new results. ``pauses`` are when receivers over TCP stop
    reading.
    """

    limits: Limits
    quota: Quota
    admit: Callable[[bytes, MeasurementSettings], Claim]
    key: bytes | None
    sessions: dict[str, Session]
    known: dict[Any, tuple[Session, int]]
    show: Callable[[dict[str, Any]], None]
    done: Callable[[Session], None]
    notify: Callable[[], None]
    pauses: Sequence[Pause]


class Session(HubConnection):
    """One control connection, from a client's ``address``."""

    def __init__(self, sock: socket.socket, address: Any, hub: Hub, policy: Policy) -> None:
        super().__init__(sock, origin_of(address), time.monotonic() + _HANDSHAKE_S)
        notice_absence(sock, policy.limits.idle_s)
        self.settings: MeasurementSettings | None = None
        self.result: dict[str, Any] | None = None
        """What this end saw, once the measurement is over."""
        self.problem = Problem("peer", "the client closed the connection")
        """Why there is no result."""
        self._address = address
        self._claim: Claim | None = None
        self._hub = hub
        self._policy = policy
        self._conversation = Conversation(SERVER)
        self._outgoing = bytearray()
        self._challenge = ""
        self._token = ""
        self._joined: dict[str, dict[int, socket.socket]] = {}
        self._names: dict[str, list[str]] = {}
        self._sides: dict[str, Side] = {}
        self._unavailable: dict[str, str] = {}
        self._cpu = CpuMeter()

    # --- what the hub calls ---

    def on_readable(self, buffer: memoryview) -> None:
        count = self.sock.recv_into(buffer)
        if count:
            self.feed(bytes(buffer[:count]))
        else:
            self._end()

    def on_broken(self) -> None:
        self._end()

    def on_writable(self) -> None:
        self._flush()

    def on_sweep(self) -> None:
        for direction, side in self._sides.items():
            self._pass_on(direction, side)
        if self._conversation.state == "running":
            self._finish_when_over()

    def on_deadline(self) -> None:
        state = self._conversation.state
        if state == "running":
            self.give_up(Problem("refused", "the measurement took longer than the server allows"))
        else:
            self.give_up(Problem("peer", f"the client sent nothing in time in state {state}"))

    # --- what the server calls ---

    @property
    def awaits_datagrams(self) -> bool:
        """Whether it has UDP streams."""
        return self.settings is not None and self.settings.protocol == "udp"

    @property
    def stream_names(self) -> list[str]:
        """The ids of its streams."""
        return [name for names in self._names.values() for name in names]

    @property
    def waits(self) -> bool:
        return self._claim is None

    def feed(self, data: bytes) -> None:
        """Take bytes of the control connection."""
        try:
            for kind, members in self._conversation.receive(data):
                _ANSWERS[kind](self, members)
        except Problem as problem:
            self.give_up(problem)

    def is_of(self, address: Any) -> bool:
        """Whether an address is the client's own, as its control connection proved it.

        The token is no proof: anyone who requests a measurement has one, and may forge the source
        address of a datagram. A stream of another address ends the session.
        """
        if same_host(address, self._address):
            return True
        streams, asked = address_text(address), address_text(self._address)
        self.give_up(
            Problem(
                "refused",
                f"a stream comes from {streams}, the control connection from {asked}",
                "give one source address for both (-b), or use a path that does not change it",
            )
        )
        return False

    def join(self, direction: str, stream: int, sock: socket.socket) -> bool:
        """Take the connection of a stream; False if none is awaited."""
        settings, present = self.settings, self._joined.get(direction)
        if settings is None or present is None or stream in present or stream >= settings.streams:
            return False
        if (sock.type == socket.SOCK_DGRAM) != (settings.protocol == "udp"):
            return False
        present[stream] = sock
        try:
            set_options(sock, settings, self._unavailable)
            if all(len(socks) == settings.streams for socks in self._joined.values()):
                self._prepare(settings)
        except Problem as problem:
            self.give_up(problem)
        except OSError as error:
            self.give_up(Problem("peer", f"a stream broke: {describe_os_error(error)}"))
        return True

    def give_up(self, problem: Problem) -> None:
        """Tell the client why there will be no result, and end."""
        self._drop_streams()
        if self._conversation.state == "done":
            self._end()
            return
        self.problem = problem
        self.deadline_s = time.monotonic() + _GOODBYE_S
        message, hint = problem.message[:500], problem.hint[:500]
        self._send("problem", kind=problem.kind, message=message, hint=hint)

    # --- messages of the client ---

    def _on_hello(self, members: Mapping[str, Any]) -> None:
        if members["version"] != VERSION:
            raise Problem("refused", f"the server supports only version {VERSION} of the protocol")
        if self._policy.key is None:
            self._send("welcome", version=VERSION, agent=f"simpleperf {__version__}")
        else:
            self._challenge = new_secret(32)
            self._send("challenge", nonce=self._challenge)

    def _on_proof(self, members: Mapping[str, Any]) -> None:
        key = self._policy.key
        if key is None or not proves(key, self._challenge, members["nonce"], members["mac"]):
            raise Problem("refused", "the key is wrong")
        self._send("welcome", version=VERSION, agent=f"simpleperf {__version__}")

    def _on_test(self, members: dict[str, Any]) -> None:
        known_by = members.pop("known_by")
        settings = MeasurementSettings.from_message(members)
        self._claim = self._policy.admit(self.origin, settings)
        self.settings = settings
        self._joined = {direction: {} for direction in settings.directions}
        self._token = new_secret(16)
        self._policy.sessions[self._token] = self
        self._send("accepted", token=self._token, known=bool(known_by) and self._know(known_by))

    def _know(self, known_by: Mapping[str, Any]) -> bool:
        """Await streams by their address; False if somebody on the path changes addresses."""
        host, port = plain_address(self._address)
        ports = known_by["ports"]
        # A link-local address identifies a host only together with its scope.
        streams = dict.fromkeys((self._address[0], port, *self._address[2:]) for port in ports)
        if (
            known_by["control"] != address_text((host, port))
            or len(streams) != len(ports)
            or streams.keys() & self._policy.known.keys()
        ):
            return False
        for stream, address in enumerate(streams):
            self._policy.known[address] = self, stream
        return True

    def _prepare(self, settings: MeasurementSettings) -> None:
        """All streams have joined: prepare the start."""
        idle_s, pauses = self._policy.limits.idle_s, self._policy.pauses
        notify = self._policy.notify
        self._await_no_more()
        joined, self._joined = self._joined, {}
        for direction, socks in joined.items():
            sockets = [socks[stream] for stream in range(settings.streams)]
            self._names[direction] = [address_text(sock.getpeername()) for sock in sockets]
            sends = direction == "receive"
            self._sides[direction] = Side(sends, sockets, settings, idle_s, notify, pauses)
        self.deadline_s = time.monotonic() + idle_s
        self._send("ready")

    def _on_start(self, _: Mapping[str, Any]) -> None:
        if self.settings is None:
            return  # It crossed a problem that is in transit to the client.
        limits, lasts_s = self._policy.limits, self._policy.limits.duration_s
        if self.settings.duration_s is not None:
            lasts_s = self.settings.omit_s + self.settings.duration_s
        self.deadline_s = time.monotonic() + lasts_s + limits.idle_s
        self._cpu = CpuMeter()
        for side in self._sides.values():
            side.start()

    def _on_sent(self, members: Mapping[str, Any]) -> None:
        side = self._sides.get(members["direction"])
        if side is not None and not side.sends:
            side.expect(members["packets"], members["omitted"], members["duration_s"])

    def _on_stop(self, _: Mapping[str, Any]) -> None:
        for side in self._sides.values():
            side.stop()

    # --- messages to the client ---

    def _pass_on(self, direction: str, side: Side) -> None:
        rows = [side.rows.popleft() for _ in range(len(side.rows))]
        if self._conversation.state != "running" or self.settings is None:
            return
        if self.settings.interval_s:
            for row in rows:
                name = self._names[direction][row.stream]
                self._policy.show(interval_figures(direction, name, {side.sends: row}))
            for members in encode_rows(rows):
                self._send("samples", direction=direction, **members)
        if side.over and side.sends and not side.counts_known:
            side.counts_known = True
            self._send("sent", direction=direction, **side.counts)

    def _finish_when_over(self) -> None:
        sides = self._sides.values()
        failure = next((side.failure for side in sides if side.failure), None)
        if failure:
            self.give_up(Problem("peer", f"a stream broke: {describe_os_error(failure)}"))
        elif self._too_fast():
            self.give_up(Problem("refused", "the client sent more than it asked for"))
        elif all(side.over and side.counts_known for side in sides):
            figures = {name: side.figures() for name, side in self._sides.items()}
            self.result = self._own_result(figures)
            for side in sides:
                self._unavailable.update(side.unavailable)
            self.deadline_s = time.monotonic() + _GOODBYE_S
            self._send(
                "result",
                directions=figures,
                cpu=self._cpu.read(),
                unavailable=self._unavailable,
            )

    def _too_fast(self) -> bool:
        moved = sum(side.moved_bytes for side in self._sides.values() if not side.sends)
        return self._claim is not None and not self._claim.allows(moved, self._cpu.elapsed_s)

    def _own_result(self, figures: Mapping[str, Any]) -> dict[str, Any]:
        directions = {
            name: one_sided_result(figures[name], side.sends, self._names[name])
            for name, side in self._sides.items()
        }
        result = {
            "throughput_bps": directions.get("send", {}).get("throughput_bps"),
            "directions": directions,
        }
        begun_s = [side.start_epoch_s for side in self._sides.values() if side.sends]
        if self.settings is not None and any(begun_s):
            # As the client's: the second 0 of the data that this end sent.
            result["epoch_s"] = min(filter(None, begun_s)) + self.settings.omit_s
        return result

    def _send(self, kind: str, /, **members: Any) -> None:
        self._outgoing += self._conversation.send(kind, **members)
        self._flush()

    def _flush(self) -> None:
        try:
            sent = self.sock.send(self._outgoing)
        except BlockingIOError:
            sent = 0
        del self._outgoing[:sent]
        if len(self._outgoing) > _UNREAD_LIMIT:
            self._end()
            return
        self._hub.watch_writing(self, bool(self._outgoing))
        if self._conversation.state == "done" and not self._outgoing:
            # All is sent. The client closes when it has read it.
            self.sock.shutdown(socket.SHUT_WR)

    # --- the end ---

    def close(self) -> None:
        self._drop_streams()
        super().close()

    def _end(self) -> None:
        if self in self._hub.peers:
            self._hub.remove(self)
            self._policy.done(self)

    def _await_no_more(self) -> None:
        self._policy.sessions.pop(self._token, None)
        for address in [key for key, found in self._policy.known.items() if found[0] is self]:
            del self._policy.known[address]

    def _drop_streams(self) -> None:
        claim, self._claim = self._claim, None
        if claim is not None:
            self._policy.quota.free(claim)
        self._await_no_more()
        joined, self._joined = self._joined, {}
        for socks in joined.values():
            for sock in socks.values():
                sock.close()
        sides, self._sides = self._sides, {}
        for side in sides.values():
            side.close()


_ANSWERS: Mapping[str, Callable[[Session, dict[str, Any]], None]] = {
    "hello": Session._on_hello,
    "proof": Session._on_proof,
    "test": Session._on_test,
    "start": Session._on_start,
    "sent": Session._on_sent,
    "stop": Session._on_stop,
}
