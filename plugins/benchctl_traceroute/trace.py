"""From probes and their answers to events, for every tool that traces a route.

**Destination and routers.** A probe that reaches the destination is a packet of the flow: its
answer is a round-trip time, its silence a loss. A probe that ends at a router before it counts for
that hop only. Routers limit how often they answer (RFC 1812, 4.3.2.8; Linux: one answer a second
to each host, net.ipv4.icmp_ratelimit), so their silence is no loss of the path.

**Which probe is meant for whom** is known when the destination has answered: those with at least
the time to live of its nearest answer in the round. All of them count for its hop. A probe to a
smaller distance, at which the destination answered in other rounds and nobody in this one, is a
loss and not a hop more.

**Times.** No tool prints when it sent a probe. Its parser gives the time at which the probe was
due, which is early by what the tool lags behind.

**Memory** is some 30 bytes for each probe, at the end ten times as much, and a bounded number of
texts.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterator
from ipaddress import ip_address

from benchctl.api import (
    Direction,
    Event,
    Failure,
    FailureKind,
    ParserError,
    Sample,
    TracedRoute,
    Warn,
)

MOST_HOPS = 255
# Of more addresses at a hop, and of more texts, the first represent all.
MOST_ADDRESSES = MOST_TEXTS = 64

_NOBODY, _ERROR = -1, -2
_UNANSWERED = {"hop_probes": 1.0, "hop_unanswered": 1.0}
_REACHED = {"packets_sent": 1.0, "packets_received": 1.0, "packets_lost": 0.0}
_LOST = {"packets_sent": 1.0, "packets_received": 0.0, "packets_lost": 1.0}


class Trace:
    """The probes of one flow to a host, an address or a name; ``most`` bounds them.

    Until the address of a name is known (`aim`), answers wait.
    """

    def __init__(self, host: str, most: int) -> None:
        self._host = canonical(host)
        self._goal = self._host if is_address(host) else ""
        self._most = most
        self._rounds = array("l")
        self._ttls = array("B")
        self._sent_s = array("d")
        self._rtts_s = array("d")
        self._answers = array("l")
        """By probe: the number of the address that answered."""
        self._names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._waiting: deque[int] = deque()
        self._nearest: dict[int, int] = {}
        """How near the destination answered so far, by round."""
        self._texts: set[str] = set()

    @property
    def sent(self) -> int:
        """How many probes were sent."""
        return len(self._ttls)

    @property
    def has_goal(self) -> bool:
        """Whether the address of the destination is known."""
        return bool(self._goal)

    def is_goal(self, address: str) -> bool:
        """Return whether an address is the destination's."""
        return canonical(address) == self._goal

    @property
    def last_sent_s(self) -> float:
        """When the last probe was due; there must be one."""
        return self._sent_s[-1]

    def send(self, number: int, ttl: int, at_s: float) -> int:
        """Take a probe of a round that was due at a time; returns its number."""
        if self.sent >= self._most:
            raise ParserError(f"more than the {self._most} probes that were asked for")
        if not 1 <= ttl <= MOST_HOPS:
            raise ParserError(f"a probe with a time to live of {ttl}")
        self._rounds.append(number)
        self._ttls.append(ttl)
        self._sent_s.append(at_s)
        self._rtts_s.append(0.0)
        self._answers.append(_NOBODY)
        return self.sent - 1

    def answer(self, probe: int, address: str, rtt_s: float, error: str = "") -> Iterator[Event]:
        """Take the answer to a probe; ``error`` is what it says, if it is not the usual one."""
        if not is_address(address):
            raise ParserError(f"not an address: {address[:80]!r}")
        address = canonical(address)
        if error:
            yield from self._warn_once(
                f"{address} answers probes to hop {self._ttls[probe]}: {error}"
            )
        if error and address != self._goal:
            self._answers[probe] = _ERROR
            yield self._sample(probe, self._ttls[probe], {"packets_in_error": 1.0})
            return
        if address not in self._numbers:
            if len(self._names) >= MOST_ADDRESSES * MOST_HOPS:
                raise ParserError(f"answers from more than {len(self._names)} addresses")
            self._numbers[address] = len(self._names)
            self._names.append(address)
        self._answers[probe] = self._numbers[address]
        self._rtts_s[probe] = rtt_s
        self._waiting.append(probe)
        yield from self._pass_on()

    def aim(self, address: str) -> Iterator[Event]:
        """Take the address of the destination, now that it is known."""
        self._goal = canonical(address)
        yield from self._pass_on()

    def end(self, before_s: float = math.inf) -> Iterator[Event]:
        """Return the last events; the fate of probes that were due after a time is not known."""
        if not self._goal:
            yield from self.aim(self._host)
        distances = self._distances()
        known = sorted(distances)
        for probe in range(self.sent):
            if self._answers[probe] == _NOBODY and self._sent_s[probe] <= before_s:
                # As far as in the round before, or else in the first one that reached it.
                place = max(0, bisect_right(known, self._rounds[probe]) - 1)
                distance = distances[known[place]] if known else MOST_HOPS + 1
                hop = min(self._ttls[probe], distance)
                lost = _LOST if hop == distance else {}
                yield self._sample(probe, hop, {**_UNANSWERED, **lost})
        starts_s = dict(zip(reversed(self._rounds), reversed(self._sent_s), strict=True))
        for number in known:
            routers = {"hops": distances[number] - 1.0}
            at_s = starts_s[number]
            yield Sample(at_s, at_s, routers, direction=Direction.ROUND_TRIP)
        hops = self._hops(distances)
        repeated = "" if distances else self._repeated(hops)
        if repeated:
            hops = hops[: next(n for n, hop in enumerate(hops, 1) if repeated in hop)]
        yield from self._changes(len(hops) - bool(distances))
        if hops:
            yield TracedRoute(hops)
        if not distances:
            yield self._silence(hops, repeated)

    def _pass_on(self) -> Iterator[Event]:
        while self._goal and self._waiting:
            probe = self._waiting.popleft()
            rtt_s = self._rtts_s[probe]
            metrics = {"hop_probes": 1.0, "hop_unanswered": 0.0, "hop_rtt_s": rtt_s}
            hop, number = self._ttls[probe], self._rounds[probe]
            if self._names[self._answers[probe]] == self._goal:
                metrics |= {**_REACHED, "rtt_s": rtt_s}
                hop = self._nearest[number] = min(hop, self._nearest.get(number, hop))
            yield self._sample(probe, hop, metrics)

    def _sample(self, probe: int, hop: int, metrics: dict[str, float]) -> Sample:
        start_s = self._sent_s[probe]
        end_s = start_s + self._rtts_s[probe]
        return Sample(round(start_s, 6), round(end_s, 6), metrics, hop, Direction.ROUND_TRIP)

    def _distances(self) -> dict[int, int]:
        """Return the destination's distance in each round that it answered."""
        end = self._numbers.get(self._goal)
        if end is None:
            return {}
        answers = {
            (number, ttl): answer
            for number, ttl, answer in zip(self._rounds, self._ttls, self._answers, strict=True)
        }
        reached = {ttl for (_, ttl), answer in answers.items() if answer == end}
        distances: dict[int, int] = {}
        for (number, ttl), answer in answers.items():
            if answer == end:
                distances[number] = min(ttl, distances.get(number, ttl))
        for number, distance in distances.items():
            nearer = distance
            while nearer - 1 in reached and answers.get((number, nearer - 1)) == _NOBODY:
                nearer -= 1
            distances[number] = nearer
        return distances

    def _hops(self, distances: dict[int, int]) -> list[dict[str, int]]:
        """Return what answered at each distance, up to the destination or the farthest answer."""
        most = max(distances.values(), default=MOST_HOPS)
        hops: list[Counter[str]] = [Counter() for _ in range(most)]
        for number, ttl, answer in zip(self._rounds, self._ttls, self._answers, strict=True):
            name = self._names[answer] if answer >= 0 else ""
            distance = distances[number] if name and name == self._goal else ttl
            if name and distance <= most:
                hop = hops[distance - 1]
                if name in hop or len(hop) < MOST_ADDRESSES:
                    hop[name] += 1
        while hops and not hops[-1]:
            hops.pop()
        return [dict(hop) for hop in hops]

    def _changes(self, routers: int) -> Iterator[Event]:
        """Yield a warning for each router's place where several answered."""
        orders: dict[int, list[str]] = {}
        for ttl, answer in zip(self._ttls, self._answers, strict=True):
            if answer >= 0 and ttl <= routers:
                order, name = orders.setdefault(ttl, []), self._names[answer]
                if order[-1:] != [name]:
                    order.append(name)
        for ttl, order in sorted(orders.items()):
            seen = [*dict.fromkeys(order)]
            if len(seen) > 1 and len(order) == len(seen):
                yield Warn(f"the route changed: hop {ttl} was {', then '.join(seen)}")
            elif len(seen) > 1:
                yield Warn(f"several routes at once: hop {ttl} is {' or '.join(seen)} by turns")

    def _repeated(self, hops: list[dict[str, int]]) -> str:
        """Return the address that alone answered at the last two distances or more."""
        if len(hops) < 2 or len(hops[-1]) != 1 or hops[-1].keys() != hops[-2].keys():
            return ""
        return next(iter(hops[-1]))

    def _silence(self, hops: list[dict[str, int]], repeated: str) -> Failure:
        message = f"no answer from {self._host}"
        if hops:
            message += f"; the farthest was {' or '.join(hops[-1])}, hop {len(hops)}"
        if repeated:
            message += ", which answered for all hops behind it"
        return Failure(
            FailureKind.UNREACHABLE, message,
            "is the host up, and does it answer such probes? try another protocol",
        )  # fmt: skip

    def _warn_once(self, text: str) -> Iterator[Event]:
        if text not in self._texts and len(self._texts) < MOST_TEXTS:
            self._texts.add(text)
            yield Warn(text)


def is_address(host: str) -> bool:
    """Return whether a host is an IP address, with or without a zone, and not a name."""
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def canonical(host: str) -> str:
    """Return an address in its usual form and without a zone; a name unchanged."""
    return str(ip_address(host.partition("%")[0])) if is_address(host) else host
