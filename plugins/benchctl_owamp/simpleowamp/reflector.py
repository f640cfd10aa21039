"""Answers probes: RFC 5357, section 4.2 and appendix I (TWAMP-Light); RFC 8762, section 4.3.

An answer goes only where its probe came from and is as long as that, so a forged source gets no
more than its forger sent. Each sender has a session of its own, which numbers its answers: by them
it can tell on which way a packet was lost (RFC 8762, section 4: "stateful"). No I/O.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from .allowance import Allowances, ClientAllowance
from .timestamps import ErrorEstimate, to_timestamp
from .two_way import TwoWayFormat

_SECOND_NS = 1_000_000_000
# A sender that measures every 15 minutes begins anew: the default of REFWAIT (RFC 5357, 4.2).
IDLE_S = 900.0
# Sessions that are remembered, a kilobyte of each.
_SESSIONS = 10_000
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
    ) -> None:
        self._form = form
        self._clock = clock
        self._allowances = allowances
        self._peer = peer
        self._most = sessions
        self._sessions: OrderedDict[Any, _Session] = OrderedDict()
        self.answered = 0
        self.ignored = 0
        """Packets that were no probes, came from elsewhere, or were beyond the limits."""
        self.seen_ns = allowances.now_ns()
        """When the last probe came, or this began: RFC 5357's REFWAIT counts from here."""

    def answer(self, packet: bytes, source: Any, arrived_ns: int, ttl: int | None) -> bytes | None:
        """Return the answer to send to the source now, None if it gets none.

        ``arrived_ns`` is in the time of the clock; the answer's own time is that of this call.
        """
        probe = self._form.read_probe(packet) if self._peer in (None, source) else None
        session = self._admitted(source, len(packet)) if probe else None
        if probe is None or session is None:
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
        return complete(to_timestamp(self._clock.now_ns()))

    def _admitted(self, source: Any, packet_bytes: int) -> _Session | None:
        """Return the session of a source, None if it has none or its client sent too much."""
        now_ns = self._allowances.now_ns()
        session = self._sessions.get(source)
        if session is None or now_ns - session.seen_ns > IDLE_S * _SECOND_NS:
            allowance = self._allowances.of(source)
            if allowance is None:
                return None
            session = self._sessions[source] = _Session(allowance)
            if len(self._sessions) > self._most:
                self._sessions.popitem(last=False)
        self._sessions.move_to_end(source)
        self.seen_ns = session.seen_ns = now_ns
        return session if session.allowance.takes_packet(packet_bytes, now_ns) else None
