"""Parsers: the output of a command to events, and recorded output to try them on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import pairwise

from benchctl.api.events import Event


class ParserError(Exception):
    """The only exception that a parser may raise: this is not output of the tool."""


class Channel(StrEnum):
    """Where bytes came from."""

    STDOUT = "stdout"
    STDERR = "stderr"


class Parser(ABC):
    """Parses the output of one command into events, however the bytes are split.

    A parser has no state outside itself. It never blocks, keeps a
    bounded amount of unparsed input, and raises only `ParserError`.
    """

    @abstractmethod
    def feed(self, data: bytes, channel: Channel = Channel.STDOUT) -> Sequence[Event]:
        """Take the next bytes of a channel and return the events they complete."""

    @abstractmethod
    def close(self, exit_code: int) -> Sequence[Event]:
        """Take the end of the command and return the last events.

        ``exit_code`` is negative when a signal ended the command (``-15`` for SIGTERM).
        """


class LineParser(Parser):
    """A parser for tools that print lines: write `line`, and `end` if needed.

    Lines are decoded as UTF-8 with replacement and lose their line end. A line longer than
    ``max_line`` bytes raises ParserError.
    """

    max_line = 1 << 20

    def __init__(self) -> None:
        self._pending = {Channel.STDOUT: b"", Channel.STDERR: b""}
        self.__refusal: ParserError | None = None

    @abstractmethod
    def line(self, text: str, channel: Channel) -> Iterable[Event]:
        """Return the events of one whole line."""

    def end(self, exit_code: int) -> Iterable[Event]:
        """Return the events of the command's end; called after the last line."""
        return ()

    def feed(self, data: bytes, channel: Channel = Channel.STDOUT) -> Sequence[Event]:
        if self.__refusal is not None:
            raise self.__refusal
        *lines, self._pending[channel] = (self._pending[channel] + data).split(b"\n")
        events: list[Event] = []
        try:
            for raw in lines:
                events.extend(self._decode(raw, channel))
            self._check_length(self._pending[channel], channel)
        except ParserError as error:
            if not events:
                raise
            # The lines before are valid, however the bytes are split: the next call raises it.
            self.__refusal = error.with_traceback(None)
        return events

    def close(self, exit_code: int) -> Sequence[Event]:
        if self.__refusal is not None:
            raise self.__refusal
        rest = [
            event
            for channel, raw in self._pending.items()
            if raw
            for event in self._decode(raw, channel)
        ]
        self._pending = dict.fromkeys(self._pending, b"")
        return [*rest, *self.end(exit_code)]

    def _decode(self, raw: bytes, channel: Channel) -> Iterable[Event]:
        self._check_length(raw, channel)
        return self.line(raw.decode("utf-8", "replace").rstrip("\r"), channel)

    def _check_length(self, raw: bytes, channel: Channel) -> None:
        if len(raw) > self.max_line:
            raise ParserError(f"a line of more than {self.max_line} bytes on {channel}")


def replay(
    parser: Parser,
    stdout: bytes,
    stderr: bytes = b"",
    exit_code: int = 0,
    cuts: Iterable[int] = (),
) -> list[Event]:
    """Feed recorded output to a parser, split at the given offsets of ``stdout``; for tests.

    Events must not depend on the cuts. Raises what the parser raises.
    """
    bounds = [0, *sorted(cut for cut in cuts if 0 < cut < len(stdout)), len(stdout)]
    events: list[Event] = []
    for start, stop in pairwise(bounds):
        events += parser.feed(stdout[start:stop])
    if stderr:
        events += parser.feed(stderr, Channel.STDERR)
    return [*events, *parser.close(exit_code)]
