"""A transcript: one run of one command, as the tests of its parser replay it.

``benchctl backends record`` writes them, one JSON file each, to be read by people and compared by
version control: output that is UTF-8 is a list of lines, any other is base64. The file is
``CASE.client.json`` or ``CASE.server.json``. The events that its parser gave may lie beside it, in
``CASE.client.events.jsonl``.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Struct
from msgspec.structs import asdict
from pydantic import BeforeValidator, ConfigDict, PlainSerializer, TypeAdapter, ValidationError

from benchctl.api import Backend, Channel, Direction, Event, Flow, Parser, Role, Tool

FORMAT: Literal[1] = 1
StoppedBy = Literal["user", "time", "size", "client"]


_UNKNOWN = Tool("")


def _read_bytes(written: object) -> bytes:
    match written:
        case bytes():
            return written
        case {"base64": [*lines]} if all(isinstance(line, str) for line in lines):
            return base64.b64decode("".join(map(str, lines)), validate=True)
        case [*lines] if all(isinstance(line, str) for line in lines):
            return "".join(map(str, lines)).encode()
    raise ValueError('neither a list of lines nor {"base64": a list of lines}')


def _write_bytes(data: bytes) -> list[str] | dict[str, list[str]]:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" not in text:  # no text has it, and in JSON it would take six characters
        return text.splitlines(keepends=True)
    return {"base64": base64.encodebytes(data).decode().splitlines()}


def _write_tool(tool: Tool) -> dict[str, Any]:
    return {"version": tool.version, "features": sorted(tool.features)}


@dataclass(frozen=True, slots=True)
class Piece:
    """Output that arrived at once, ``at_s`` seconds after its command began."""

    at_s: float
    channel: Channel
    data: Annotated[bytes, BeforeValidator(_read_bytes), PlainSerializer(_write_bytes)]


@dataclass(frozen=True, slots=True)
class Stop:
    """The signal that a command was sent to end it, by its name, and why.

    ``by`` is ``"user"`` (Ctrl-C), ``"time"`` or ``"size"`` for the limits of a recording, and
    ``"client"`` for a server whose client had ended. After ``"size"``, output is missing.
    """

    at_s: float
    signal: str
    by: StoppedBy


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """One run of one command, and the flow that it belongs to.

    ``parameters`` are those of the flow as a profile writes them. ``direction`` is None for the
    backend's first, ``port`` for its default, ``second_port`` for the next one.
    ``exit_code`` is negative if a signal ended the command. ``lasted_s`` is the time from its begin
    to its end.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True)

    format: Literal[1] = FORMAT
    backend: str
    role: Role = Role.CLIENT
    direction: Direction | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    tool: Annotated[Tool, PlainSerializer(_write_tool)] = _UNKNOWN
    address: str = "127.0.0.1"
    port: int | None = None
    second_port: int | None = None
    owns_server: bool = False
    argv: tuple[str, ...]
    exit_code: int
    lasted_s: float = 0.0
    stop: Stop | None = None
    pieces: tuple[Piece, ...]

    @classmethod
    def load(cls, path: Path) -> Transcript:
        """Read a file. Raises ValueError, in one line, if it is no transcript; OSError."""
        try:
            found: Transcript = _codec().validate_json(path.read_bytes())
        except ValidationError as error:
            raise ValueError(f"{path}: {_fault(error)}") from None
        return found

    def save(self, path: Path) -> None:
        """Write a file, over one of its name. Raises OSError."""
        try:
            path.write_bytes(_codec().dump_json(self, indent=2) + b"\n")
        except OSError:
            with suppress(OSError):  # a part of it is worth nothing
                path.unlink()
            raise

    @property
    def stdout(self) -> bytes:
        """All that the command wrote to stdout."""
        return self._of(Channel.STDOUT)

    @property
    def stderr(self) -> bytes:
        """All that the command wrote to stderr."""
        return self._of(Channel.STDERR)

    def _of(self, channel: Channel) -> bytes:
        return b"".join(piece.data for piece in self.pieces if piece.channel is channel)

    def replay(self, parser: Parser) -> list[Event]:
        """Feed the output to a parser as it came. Raises what the parser raises."""
        events: list[Event] = []
        for piece in self.pieces:
            events += parser.feed(piece.data, piece.channel)
        return [*events, *parser.close(self.exit_code)]

    def flow(self, backend: Backend[Any]) -> Flow[Any]:
        """Return the flow as the backend saw it.

        Raises ValueError if the backend does not accept its parameters.
        """
        can = backend.capabilities
        try:
            params = backend.parameters.model_validate(dict(self.parameters))
        except ValidationError as error:
            raise ValueError(f"{backend.name}: {_first(error)}") from None
        port = can.default_port if self.port is None else self.port
        return Flow(
            params=params,
            direction=self.direction or can.directions[0],
            address=self.address,
            port=port,
            tool=self.tool,
            owns_server=self.owns_server,
            one_clock=self.owns_server,
            second_port=self.second_port or can.port_beside(port),
        )

    def parser(self, backend: Backend[Any]) -> Parser:
        """Return a new parser for the output, as the backend makes it for the flow.

        Raises ValueError if the backend does not accept the flow, or has no server.
        """
        flow = self.flow(backend)
        command = backend.client(flow) if self.role is Role.CLIENT else backend.server(flow)
        if command is None:
            raise ValueError(f"{backend.name} has no server")
        return command.parser


@cache
def _codec() -> TypeAdapter[Transcript]:
    return TypeAdapter(Transcript)


def _fault(error: ValidationError) -> str:
    for detail in error.errors(include_url=False):
        if detail["loc"] == ("format",):
            return f"a transcript of format {detail['input']!r}, but this benchctl reads {FORMAT}"
    return f"not a transcript: {_first(error)}"


def _first(error: ValidationError) -> str:
    """Return the first error, in one line."""
    first = error.errors(include_url=False)[0]
    where = ".".join(map(str, first["loc"]))
    return " ".join(f"{f'{where}: ' if where else ''}{first['msg']}".split())


def default_directory() -> Path:
    """Return where a plugin keeps its transcripts: in its tests, if they have a place for them."""
    in_tests = Path("tests", "transcripts")
    return in_tests if in_tests.is_dir() else Path("transcripts")


def path_of(directory: Path, case: str, role: Role) -> Path:
    """Return the file of a transcript."""
    return directory / f"{case}.{role}.json"


def transcripts_in(directory: Path) -> dict[Path, Transcript]:
    """Read the transcripts in a directory, in the order of their names.

    Raises ValueError for a file that is none, OSError.
    """
    found = sorted(path for role in Role for path in directory.glob(f"*.{role}.json"))
    return {path: Transcript.load(path) for path in found}


def keep_expected(path: Path, events: Iterable[Event]) -> None:
    """Write the events that the parser of a transcript should give. Raises OSError."""
    expected_path(path).write_text(events_text(events), encoding="utf-8")


def expected_path(path: Path) -> Path:
    """Return the file of the events that the parser of a transcript should give."""
    return path.with_suffix(".events.jsonl")


def events_text(events: Iterable[Event]) -> str:
    """Write events as JSON, one line each; mappings in the order of their keys."""
    return "".join(
        f"{json.dumps({'event': type(event).__name__, **_values(event)})}\n" for event in events
    )


_LATER = ("broken", "instead", "resolution")
"""Fields that are left out while they are empty: files that were written before lack them."""


def _values(event: Event) -> dict[str, Any]:
    values = {name: getattr(event, name) for name in type(event).__match_args__}
    return {name: _plain(v) for name, v in values.items() if v or name not in _LATER}


def _plain(value: Any) -> Any:
    if isinstance(value, Struct):
        return asdict(value)
    if isinstance(value, Mapping):
        return {name: _plain(value[name]) for name in sorted(value)}
    return [*map(_plain, value)] if isinstance(value, list | tuple) else value
