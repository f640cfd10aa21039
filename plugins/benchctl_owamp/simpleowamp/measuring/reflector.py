"""Answers probes: RFC 5357, section 4.2 and appendix I (TWAMP-Light); RFC 8762, section 4.3.

An answer goes only where its probe came from and is as long as that, so a forged source gets no
more than its forger sent. If the forged source is another reflector, its answer looks like a probe.
It repeats the number and the time of what was sent to it, so it is known as an answer, and dropped.

Each sender has a session of its own, which numbers its answers: by them it can tell on which way a
packet was lost (RFC 8762, section 4: "stateful"). No I/O.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Any, Callable

from ..protocol.layouts import TEST
from ..protocol.timestamps import ErrorEstimate, to_timestamp
from ..protocol.two_way import TwoWayFormat
from .allowance import Allowances, ClientAllowance

_SECOND_NS = 1_000_000_000
# A sender that measures every 15 minutes begins anew: the default of REFWAIT (RFC 5357, 4.2).
IDLE_S = 900.0
# Sessions that are remembered, a kilobyte of each.
_SESSIONS = 10_000
# Latest answers that are remembered: as many as one core sends in 3 s, so that no path holds more
# of them. They take 6 MB.
_ANSWERS = 1 << 15
# Hosts that are shut out at a time: a filter of more takes the kernel longer for each packet.
_SHUT_OUT = 64
# For so long after the last sign of a flood.
_SHUT_OUT_NS = _SECOND_NS
# The TTL of an answer where the kernel does not say it (RFC 5357, section 4.2.1).
_TTL_UNKNOWN = 255


class _Session:
    """One sender's: the number of its next answer, when it last sent, and what its client may."""

    def __init__(self, allowance: ClientAllowance) -> None:
        self.next_seq = 0
        self.seen_ns = 0
        self.allowance = allowance


class Reflector:
    """Answers the probes of one port.

    ``peer`` is the only source that is answered, if there is one. ``clock`` is that of this end.
    When ``sessions`` are remembered, the longest idle one is forgotten for a new one.
    """

    def __init__(
        self,
        form: TwoWayFormat,
        clock: Any,
        allowances: Allowances,
        peer: Any = None,
        sessions: int = _SESSIONS,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._form = form
        self._clock = clock
        self._allowances = allowances
        self._peer = peer
        self._most = sessions
        self._warn = warn
        self._warned = False
        self._sessions: OrderedDict[Any, _Session] = OrderedDict()
        self._order: deque[tuple[_Session, int, int]] = deque()
        self._sent: set[tuple[_Session, int, int]] = set()
        """The latest answers: their sessions, numbers and times."""
        self._shut_out: dict[str, int] = {}
        """Hosts that flood this port, and until when nothing of them is read."""
        self.answered = 0
        self.ignored = 0
        """Packets that were no probes, came from elsewhere, or were beyond the limits."""
        self.seen_ns = allowances.now_ns()
        """When the last probe came, or this began: RFC 5357's REFWAIT counts from here."""

    def answer(self, packet: bytes, source: Any, arrived_ns: int, ttl: int | None) -> bytes | None:
        """Return the answer to send to the source now, None if it gets none.

        ``arrived_ns`` is in the time of the clock; the answer's own time is that of this call.
        """
        now_ns = self._allowances.now_ns()
        session = self._session(source, now_ns) if self._peer in (None, source) else None
        # Before anything else: what is beyond it takes no time from others.
        if session is None or not session.allowance.reads_packet(now_ns):
            self.ignored += 1
            if session is not None:
                self._judge(session, source, now_ns)
            return None
        probe = self._probe(packet, session)
        if probe is None:
            self.ignored += 1
            if len(packet) == TEST.size and not self._form.is_sealed:
                self._say_short(len(packet))
            return None
        self.seen_ns = session.seen_ns = now_ns
        if not session.allowance.answers_packet(len(packet), now_ns):
            self.ignored += 1
            return None
        seq, session.next_seq = session.next_seq, (session.next_seq + 1) % (1 << 32)
        self.answered += 1
        ssid = {"ssid": probe["ssid"]} if "ssid" in probe else {}
        state = self._clock.state()
        complete = self._form.write_answer(
            packet,
            seq=seq,
            error=ErrorEstimate(state.synchronized, state.max_error_s).pack(),
            received_time=to_timestamp(arrived_ns),
            sender_seq=probe["seq"],
            sender_time=probe["time"],
            sender_error=probe["error"],
            sender_ttl=_TTL_UNKNOWN if ttl is None else ttl,
            **ssid,
        )
        time = to_timestamp(self._clock.now_ns())
        if self._peer is None:
            self._remember(session, seq, time)
        return complete(time)

    def _judge(self, session: _Session, source: Any, now_ns: int) -> None:
        """Shut out a host that floods this port."""
        if session.allowance.is_flooding and len(self._shut_out) < _SHUT_OUT:
            self._shut_out[source[0]] = now_ns + _SHUT_OUT_NS

    def shut_out(self) -> tuple[str, ...]:
        """Return the hosts of which nothing should be read now: to read it takes time from others.

        A client that sends a quarter faster than it may floods the port.
        """
        if not self._shut_out:
            return ()
        now_ns = self._allowances.now_ns()
        for host in [host for host, until in self._shut_out.items() if until <= now_ns]:
            del self._shut_out[host]
        return tuple(self._shut_out)

    def keep_out(self) -> None:
        """Let in none of them yet: the flood goes on, as the kernel's count of drops shows."""
        now_ns = self._allowances.now_ns()
        self._shut_out = dict.fromkeys(self._shut_out, now_ns + _SHUT_OUT_NS)

    def _say_short(self, packet_bytes: int) -> None:
        """Say once why such probes get no answer: it would be longer than they are."""
        if not self._warned:
            self._warned = True
            due = self._form.answer_bytes
            self._warn(
                f"probes of {packet_bytes} octets get no answer, which has {due} or more:"
                f" let their sender add {due - packet_bytes} octets of padding"
            )

    def _probe(self, packet: bytes, session: _Session) -> dict[str, Any] | None:
        """Return a probe's fields, None for what is none or answers what was sent from here.

        An agreed peer has its own port for probes, where nothing reflects them.
        """
        if self._peer is None:
            reply = self._form.read_answer(packet)
            if reply and (session, reply["sender_seq"], reply["sender_time"]) in self._sent:
                return None
        return self._form.read_probe(packet)

    def _remember(self, session: _Session, seq: int, time: int) -> None:
        """Keep what identifies the answer to an answer; the oldest is forgotten."""
        sent = session, seq, time
        self._order.append(sent)
        self._sent.add(sent)
        if len(self._order) > _ANSWERS:
            self._sent.discard(self._order.popleft())

    def _session(self, source: Any, now_ns: int) -> _Session | None:
        """Return the session of a source, None if it is of no allowed network."""
        session = self._sessions.get(source)
        if session is None or now_ns - session.seen_ns > IDLE_S * _SECOND_NS:
            allowance = self._allowances.of(source)
            if allowance is None:
                return None
            session = self._sessions[source] = _Session(allowance)
            if len(self._sessions) > self._most:
                self._sessions.popitem(last=False)
            session.seen_ns = now_ns
        self._sessions.move_to_end(source)
        return session
