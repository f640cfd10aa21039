"""Sessions that have ended and can be fetched, until they are too old or their memory is needed."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from itertools import islice
from typing import Callable, NamedTuple

from ..protocol.layouts import RECORD
from ..protocol.messages import SessionRequest
from ..protocol.records import PacketRecord, SkipRange, unpack_records
from .quota import Claim
from .receiving import Receiving

_GROUP = 256


class Kept(NamedTuple):
    """A session that has ended. The records are packed: a million of them take 25 MB.

    Those of lost packets are made when they are asked for. Without the sender's word at its end,
    ``finished`` is false, and what follows means nothing.
    """

    claim: Claim
    request: SessionRequest
    records: bytes
    receiving: Receiving
    finished: bool
    next_seq: int = 0
    skips: tuple[SkipRange, ...] = ()

    def groups(self, first: int, last: int) -> Iterator[tuple[PacketRecord, ...]]:
        """Yield the records of packets of a range, some at a time.

        They are in the order in which the receiver knew of them: a lost packet when its timeout was
        over (RFC 4656, section 4.2). owping refuses a lost one after packets that came much later.
        """
        lost = self.receiving.lost(self.receiving.lost_seqs(self.next_seq, self.skips))
        known = merge(self._arrived(), lost, key=self._known_time)
        wanted = (record for record in known if first <= record.seq <= last)
        while group := tuple(islice(wanted, _GROUP)):
            yield group

    def _arrived(self) -> Iterator[PacketRecord]:
        for at in range(0, len(self.records), _GROUP * RECORD.size):
            yield from unpack_records(self.records[at : at + _GROUP * RECORD.size])

    def _known_time(self, record: PacketRecord) -> int:
        return record.receive_time or record.send_time + self.request.timeout

    def record_count(self, first: int, last: int) -> int:
        """Return the number of records of a range."""
        if first == 0 and last >= self.request.packet_count - 1:
            lost = self.receiving.lost_count(self.next_seq, self.skips)
            return len(self.records) // RECORD.size + lost
        return sum(map(len, self.groups(first, last)))


class Shelf:
    """Keeps sessions by id; ``forget`` is called with each claim that is no longer needed."""

    def __init__(self, keep_s: float, forget: Callable[[Claim], None]) -> None:
        self._keep_s = keep_s
        self._forget = forget
        self._kept: dict[bytes, tuple[Kept, float]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, sid: bytes) -> bool:
        return sid in self._kept

    def put(self, kept: Kept, now_s: float) -> None:
        """Keep a session."""
        self._kept[kept.request.sid] = kept, now_s + self._keep_s

    def get(self, sid: bytes, origin: bytes) -> Kept | None:
        """Return a session to the client that asked for it, and to nobody else."""
        kept = self._kept.get(sid, (None, 0.0))[0]
        return kept if kept and kept.claim.origin == origin else None

    def tidy(self, now_s: float) -> None:
        """Drop what is too old."""
        for sid, (_, until_s) in list(self._kept.items()):
            if until_s > now_s:
                break
            self._drop(sid)

    def make_room(self, origin: bytes) -> bool:
        """Drop the oldest session of a client; False if there is none."""
        found = (sid for sid, (kept, _) in self._kept.items() if kept.claim.origin == origin)
        sid = next(found, None)
        if sid is not None:
            self._drop(sid)
        return sid is not None

    def _drop(self, sid: bytes) -> None:
        kept, _ = self._kept.pop(sid)
        self._forget(kept.claim)
