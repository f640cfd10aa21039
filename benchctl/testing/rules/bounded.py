"""The rule of wrong output: whatever comes, events or the contract's error, soon and in bounds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from benchctl.api import Channel, Parser
from benchctl.testing.rules.bounds import TakesTooLongError, cpu_at_most, held_bytes, peak_bytes
from benchctl.testing.rules.damage import damaged, garbage, variations
from benchctl.testing.rules.feeding import Pieces, judged
from benchctl.testing.rules.parsing import blocks_of
from benchctl.testing.rules.rule import Fault
from benchctl.testing.rules.subject import ParserKind, Subject
from benchctl.testing.transcript import Transcript

# How many garbled outputs are fed to all parsers of a backend together.
_DAMAGED = 600
_LEAST_DAMAGED = 5
_TRUNCATED = 8
# None of the inputs takes a second. Only what has no end takes as long.
CPU_S = 20.0

_ENDLESS = (1 << 18, 32)
"""A line without an end: bytes at a time, and how often; 8 MiB in all."""
_SUSPECT, _CERTAIN = 500, 20_000
"""Lines of one kind: many of them only if much is kept of a few."""
_ALLOCATED = 30
"""How many garbled outputs are fed with their memory traced, which takes longer."""
_MOST_BYTES = 1 << 26


def judge_garbage(subject: Subject) -> Iterator[Fault | str]:
    """Feed truncated, garbled and repeated output, and garbage."""
    count = 0
    for what, parser, pieces, code in _inputs(subject):
        count += 1
        try:
            with cpu_at_most(CPU_S):
                yield from judged(subject.backend, parser, pieces, code, what)
        except TakesTooLongError:
            yield _endless(what)
    for kind in subject.kinds.values():
        try:
            with cpu_at_most(CPU_S):
                yield from _memory(kind)
        except TakesTooLongError:
            yield _endless(f"{kind.name}, lines repeated")
    yield f"{count} outputs to {len(subject.kinds)} parsers: {', '.join(subject.kinds)}"


def _endless(what: str) -> Fault:
    return Fault(
        f"{what}: takes more than {CPU_S:g} s of CPU time",
        "take time in proportion to the input: no pattern that backtracks, and no second look at"
        " what was read",
    )


def _inputs(subject: Subject) -> Iterator[tuple[str, Parser, Pieces, int]]:
    backend = subject.backend
    for kind in subject.kinds.values():
        for what, data in garbage():
            for channel in Channel:
                for code in (0, -9):
                    yield f"{kind.name}, {what} on {channel}", kind.new(), [(channel, data)], code
    each = max(_LEAST_DAMAGED, _DAMAGED // max(1, len(subject.transcripts)))
    for number, (name, transcript) in enumerate(subject.transcripts.items()):
        for what, pieces, code in _truncated(transcript):
            yield f"{name}, {what}", transcript.parser(backend), pieces, code
        stderr = [*damaged(transcript.stderr, 3, number)]
        for index, (what, data) in enumerate(damaged(transcript.stdout, each, number)):
            other = stderr[index % len(stderr)][1] if stderr else data[:2000]
            pieces = [(Channel.STDOUT, data), (Channel.STDERR, other)]
            yield f"{name}, {what}", transcript.parser(backend), pieces, transcript.exit_code
        twice = [*blocks_of(transcript)] * 2
        yield f"{name}, twice", transcript.parser(backend), twice, transcript.exit_code


def _truncated(transcript: Transcript) -> Iterator[tuple[str, Pieces, int]]:
    stdout = transcript.stdout
    for part in range(_TRUNCATED):
        end = len(stdout) * part // _TRUNCATED
        for code in (-15, 0, 1):
            what = f"the first {end} bytes of stdout and exit code {code}"
            yield what, [(Channel.STDOUT, stdout[:end])], code


def _memory(kind: ParserKind) -> Iterator[Fault]:
    """Yield what of its input a parser keeps."""
    piece, count = _ENDLESS
    for channel in Channel:
        kept = _kept(kind.new(), channel, (b"x" * piece for _ in range(count)))
        if kept > piece * count / 2:
            yield Fault(
                f"{kind.name} keeps {kept >> 10} KiB of a line without an end on {channel}",
                "raise ParserError when a line gets longer than the tool's, as LineParser does",
            )
    for channel, before, line in kind.lines:
        for count in (_SUSPECT, _CERTAIN):
            lines = b"".join(variations(line, count))
            kept = _kept(kind.new(), channel, [before], [lines])
            if kept < len(lines) / 8:
                break
        else:
            yield Fault(
                f"{kind.name} keeps {kept >> 10} KiB of {len(lines) >> 10} KiB like {line[:60]!r}",
                "keep what the figures need, and a bounded number of texts",
            )
    for what, data in damaged(kind.stdout, _ALLOCATED, 1):
        parser = kind.new()
        peak = peak_bytes(lambda: parser.feed(data))  # noqa: B023
        if peak > _MOST_BYTES:
            yield Fault(
                f"{kind.name} takes {peak >> 20} MiB for {what}",
                "never allocate by a number that the tool printed",
            )


def _kept(parser: Parser, channel: Channel, *parts: Iterable[bytes]) -> int:
    """Return the memory that a parser keeps of the last part; none if it ends with any error."""
    before = 0
    try:
        for pieces in parts:
            before = held_bytes(parser)
            for data in pieces:
                parser.feed(data, channel)
    except Exception:  # those that are no ParserError were reported before
        return 0
    return held_bytes(parser) - before
