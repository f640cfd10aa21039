"""Reads the summaries of ``owping -M``: one block for each session.

The grammar: ``KEY TAB VALUE`` lines from ``SUMMARY`` on, and the sections BUCKETS, TTLBUCKETS and
NREORDERING in angle brackets, whose lines are ``TAB NUMBER TAB COUNT``. In seconds, ``%g``.

- A key is missing where its figure is undefined: MIN and MAX when all packets were lost, PDV when
  more than 5 % were, BUCKETS when none was received.
- SYNC is 1 when every packet's clocks were synchronized, and also when there was no packet. MAXERR,
  the largest error estimate, means something only with SYNC 1 and packets.
- A bucket is rounded away from zero; MIN and MAX are exact, and bound what a bucket can mean.
- The block of the session to the server comes first. It alone may be missing without the other
  being too, and then owping says so on stderr.
- Exit code 0, SESSION_FINISHED 1 and SYNC 1 do not mean that anything was measured: SENT does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from benchctl.api import (
    Channel,
    Direction,
    Effective,
    Event,
    LineParser,
    ParserError,
    Summary,
    Warn,
)
from benchctl_owping.complaints import Complaints, nothing_arrived, nothing_sent
from benchctl_owping.figures import spread

# The size of a test packet without padding, in open mode (RFC 4656, 4.1.2).
HEADER_BYTES = 14

_NUMBER = r"-?\d{1,20}(?:\.\d{1,12})?(?:e[+-]\d{1,2})?"
# owping prints 26 keys.
MOST_KEYS = 64

_VALUE = re.compile(rf"(?P<key>[A-Z_]{{1,32}})\t(?P<value>{_NUMBER}|0x[0-9a-f]{{2}})")
_TAG = re.compile(r"<(?P<end>/?)(?P<name>BUCKETS|TTLBUCKETS|NREORDERING)>")
_ROW = re.compile(r"\t(?P<number>-?\d{1,10})\t(?P<count>\d{1,10})")


@dataclass(slots=True)
class Block:
    """One session's summary as printed: its values, and the rows of its sections."""

    values: dict[str, float] = field(default_factory=dict)
    buckets: dict[str, dict[int, int]] = field(default_factory=dict)
    complete: bool = False

    def __getitem__(self, key: str) -> float:
        """Return a value that every block has. Raises ParserError."""
        if key not in self.values:
            raise ParserError(f"a summary of owping has no {key}")
        return self.values[key]


class MachineParser(LineParser):
    """Parses the summaries of sessions of ``count`` packets in the requested directions.

    ``directions`` are in owping's order: send, then receive.
    """

    max_line = 4096

    def __init__(self, count: int, directions: tuple[Direction, ...]) -> None:
        super().__init__()
        self._count = count
        self._directions = directions
        self._complaints = Complaints()
        self._blocks: list[Block] = []
        self._section = ""

    def line(self, text: str, channel: Channel) -> Iterable[Event]:
        if channel is Channel.STDERR:
            self._complaints.add(text)
        elif text.startswith("SUMMARY\t"):
            if len(self._blocks) == len(self._directions):
                raise ParserError("owping printed more summaries than sessions were asked for")
            self._blocks.append(Block())
            self._section = ""
        elif self._blocks:
            self._read(text, self._blocks[-1])
        return ()

    def end(self, exit_code: int) -> Iterable[Event]:
        return [*self._finish(exit_code)]

    def _read(self, text: str, block: Block) -> None:
        if tag := _TAG.fullmatch(text):
            self._section = "" if tag["end"] else tag["name"]
            block.complete = text == "</NREORDERING>"
        elif self._section:
            row = _ROW.fullmatch(text)
            rows = block.buckets.setdefault(self._section, {})
            # Every row represents a packet, or one of the 256 values of a time to live.
            if row is None or len(rows) > max(self._count, 256):
                raise ParserError(f"owping does not print {text[:80]!r} under {self._section}")
            # NREORDERING ends with an empty row.
            if count := int(row["count"]):
                rows[int(row["number"])] = count
        elif match := _VALUE.fullmatch(text):
            value = match["value"]
            block.values[match["key"]] = int(value, 16) if value[:2] == "0x" else float(value)
            if len(block.values) > MOST_KEYS:
                raise ParserError("a summary of owping has no end of keys")

    def _finish(self, exit_code: int) -> Iterator[Event]:
        sessions = self._sessions()
        if not sessions:
            yield self._complaints.failure(exit_code)
            return
        failures = []
        first = next(iter(sessions.values()))
        yield Effective(_settings(first))
        for direction in self._directions:
            block = sessions.get(direction)
            if block is None or not block["SENT"]:
                failures.append(self._complaints.cause() or nothing_sent(direction))
                continue
            yield Summary(_figures(block), direction)
            if block["SENT"] < self._count:
                words = f"{block['SENT']:.0f} of {self._count} packets were sent"
                yield Warn(f"{words} in direction {direction}")
            if block["SENT"] <= block["LOST"]:
                failures.append(nothing_arrived(direction, int(block["SENT"])))
        if failures:
            yield failures[0]
        else:
            yield from map(Warn, self._complaints.texts)

    def _sessions(self) -> Mapping[Direction, Block]:
        """Return the complete blocks by their direction."""
        blocks = [block for block in self._blocks if block.complete]
        directions = self._directions
        if len(blocks) < len(directions) and self._complaints.to_is_missing:
            directions = directions[-len(blocks) :]
        return dict(zip(directions, blocks, strict=False))


def _figures(block: Block) -> dict[str, float | dict[str, float]]:
    """Return the metrics of a session that sent packets."""
    sent, lost = block["SENT"], block["LOST"]
    arrived = sum(block.buckets.get("BUCKETS", {}).values())
    if not 0 <= lost <= sent or arrived != sent - lost:
        raise ParserError("a summary of owping contradicts itself about its packets")
    overtaken = block.buckets.get("NREORDERING", {}).get(1, 0)
    figures: dict[str, float | dict[str, float]] = {
        "packets_sent": sent,
        "packets_received": sent - lost,
        "packets_lost": lost,
        "packets_duplicated": block["DUPS"],
        "packets_1_reordered": float(overtaken),
        "loss_ratio": lost / sent,
    }
    if not overtaken:
        # If no packet arrived right after a later one, all arrived in order.
        figures["packets_reordered"] = 0.0
    if arrived:
        figures["owd_s"] = _delays(block)
        figures["clock_synchronized"] = block["SYNC"]
        if block["SYNC"]:
            figures["owd_error_s"] = block["MAXERR"]
    if "PDV" in block.values:
        figures["pdv_p95_p50_s"] = block["PDV"]
    if times_to_live := block.buckets.get("TTLBUCKETS"):
        figures["hops"] = spread({255.0 - ttl: count for ttl, count in times_to_live.items()})
    return figures


def _delays(block: Block) -> dict[str, float]:
    """Return the distribution of the delays of the packets received, exact to a bucket's width."""
    least, most, width = block["MIN"], block["MAX"], block["BUCKET_WIDTH"]
    buckets = block.buckets["BUCKETS"]
    delays = spread({number * width: count for number, count in buckets.items()})
    return {name: min(max(value, least), most) for name, value in delays.items()} | {
        "min": least,
        "max": most,
    }


def _settings(block: Block) -> dict[str, float]:
    """Return the effective settings."""
    return {
        "length_bytes": block["PACKET_PADDING"] + HEADER_BYTES,
        "count": block["SESSION_PACKET_COUNT"],
        "timeout_s": block["LOSS_TIMEOUT"] / 2**32,
        "bucket_width_s": block["BUCKET_WIDTH"],
        "dscp": block["DSCP"],
    }
