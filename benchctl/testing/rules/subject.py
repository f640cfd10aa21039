"""A backend as the rules of its contract see it, and what several of them need to know."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from benchctl.api import Backend, Channel, Flow, Parser, Role, Tool
from benchctl.testing.rules.damage import shapes
from benchctl.testing.rules.rule import NotCheckedError
from benchctl.testing.transcript import Transcript

if TYPE_CHECKING:
    from benchctl.errors import MissingError

# Something else may take a port between the look for a free one and the server's start.
PORTS = 5
# Of documentation (RFC 5737, RFC 3849): commands are only built for them.
ADDRESS, ADDRESS_6 = "192.0.2.1", "2001:db8::1"
# What a flow may ask besides its parameters.
_ASKED: tuple[Mapping[str, Any], ...] = (
    {},
    {"address": ADDRESS_6},
    {"source_address": "192.0.2.2"},
    {"source_device": "eth0"},
    {"owns_server": True, "one_clock": True},
    {"owns_server": True, "lasting": True},
    {"owns_server": True, "lasting": True, "allow": ("192.0.2.0/24", "2001:db8::/32")},
    {"start_at_s": 1_800_000_000.25},
)


@dataclass(frozen=True, slots=True)
class Case:
    """A flow to build commands for; it can be sent to another process."""

    base: Transcript
    asked: Mapping[str, Any] = field(default_factory=dict)

    def flow(self, backend: Backend[Any]) -> Flow[Any]:
        """Return the flow. Raises ValueError if the backend rejects the parameters."""
        return replace(self.base.flow(backend), **self.asked)

    def __str__(self) -> str:
        parameters = {**self.base.parameters, **self.asked}
        words = [f"{name}={value}" for name, value in parameters.items()]
        return ", ".join([str(self.base.direction or "any direction"), *words])


@dataclass(frozen=True, slots=True)
class ParserKind:
    """A kind of parser: how to make one, and output that it reads."""

    name: str
    backend: Backend[Any]
    case: Case
    role: Role
    stdout: bytes = b""
    stderr: bytes = b""

    def new(self) -> Parser:
        """Return a new parser."""
        parser = parser_of(self.backend, self.case, self.role)
        assert parser is not None, "it had one before"
        return parser

    @property
    def lines(self) -> Iterator[tuple[Channel, bytes, bytes]]:
        """The lines of each kind in its output, each with the output of its channel before it."""
        for channel, data in ((Channel.STDOUT, self.stdout), (Channel.STDERR, self.stderr)):
            for before, line in shapes(data or b"complaint 1\n"):
                yield channel, before, line


class Subject:
    """A backend and its transcripts by name, with the events expected of some as text.

    ``port`` is for its real server; None for a free one.
    """

    def __init__(
        self,
        backend: Backend[Any],
        transcripts: Mapping[str, Transcript],
        expected: Mapping[str, str] = MappingProxyType({}),
        port: int | None = None,
    ) -> None:
        self.backend = backend
        self.transcripts = transcripts
        self.expected = expected
        self.port = port

    @cached_property
    def parsed(self) -> Mapping[str, Transcript]:
        """The transcripts. Raises NotCheckedError if there are none."""
        if not self.transcripts:
            raise NotCheckedError(
                "needs transcripts: benchctl backends record "
                f"{self.backend.name}, then --transcripts DIRECTORY"
            )
        return self.transcripts

    @cached_property
    def cases(self) -> list[Case]:
        """Flows of every kind that a run may ask for."""
        defaults = [
            Transcript(
                backend=self.backend.name, direction=direction, parameters=self.parameters,
                tool=tool, address=ADDRESS, argv=(), exit_code=0, pieces=(),
            )
            for tool in self._tools
            for direction in self.backend.capabilities.directions
        ]  # fmt: skip
        asked = {str(Case(transcript)): transcript for transcript in self.transcripts.values()}
        recorded = [replace(transcript, pieces=()) for transcript in asked.values()]
        bases = [*defaults, *recorded]
        return [Case(bases[0], asked) for asked in _ASKED] + [Case(base) for base in bases[1:]]

    @cached_property
    def kinds(self) -> Mapping[str, ParserKind]:
        """Every kind of parser, by its name; each with its longest transcript, if there is one."""
        found: dict[str, ParserKind] = {}
        recorded = sorted(self.transcripts.values(), key=lambda transcript: -len(transcript.stdout))
        for transcript in recorded:
            case, role = Case(transcript), transcript.role
            if parser := parser_of(self.backend, case, role):
                name = type(parser).__name__
                kind = ParserKind(
                    name, self.backend, case, role, transcript.stdout, transcript.stderr
                )
                found.setdefault(name, kind)
        for case in self.cases:
            for role in Role:
                if parser := parser_of(self.backend, case, role):
                    name = type(parser).__name__
                    found.setdefault(name, ParserKind(name, self.backend, case, role))
        return found

    @cached_property
    def tools_here(self) -> Mapping[Role, Tool | MissingError]:
        """What the probes find on this machine, for each end that benchctl starts."""
        from benchctl.backends import Registry
        from benchctl.engine.checks.tools import look
        from benchctl.plugins import Candidate

        name = self.backend.name
        registry = Registry({name: Candidate(name, "", lambda: self.backend)})
        found = look(registry, [(name, role) for role in Role])
        return {role: tool for (_, role), tool in found.items()}

    def require_tools(self) -> None:
        """Raise NotCheckedError if an end that benchctl starts lacks its program."""
        from benchctl.errors import MissingError

        for role, tool in self.tools_here.items():
            if isinstance(tool, MissingError):
                raise NotCheckedError(self.needs(role))

    @cached_property
    def parameters(self) -> Mapping[str, Any]:
        """Parameters of a flow: none, or those of a transcript if some have no default.

        Raises NotCheckedError if there is no such transcript.
        """
        fields = self.backend.parameters.model_fields.values()
        if not any(parameter.is_required() for parameter in fields):
            return {}
        for transcript in self.transcripts.values():
            if transcript.parameters:
                return transcript.parameters
        raise NotCheckedError("needs a transcript: some parameters have no default")

    @property
    def _tools(self) -> Iterator[Tool]:
        """The known versions of the tool: those of the transcripts, else that of this machine."""
        seen = {transcript.tool: transcript for transcript in self.transcripts.values()}
        if seen:
            yield from seen
            return
        from benchctl.errors import MissingError

        tool = self.tools_here[Role.CLIENT]
        if isinstance(tool, MissingError):
            raise NotCheckedError(self.needs(Role.CLIENT))
        yield tool

    def needs(self, role: Role) -> str:
        """Return which program an end needs, and how to get it."""
        probe = self.backend.probe(role)
        assert probe is not None, "what is not looked for is not missing"
        return f"needs {probe.argv[0]}: {probe.install}"


def parser_of(backend: Backend[Any], case: Case, role: Role) -> Parser | None:
    """Return a new parser of an end; None if the backend has none for the flow."""
    try:
        flow = case.flow(backend)
        command = backend.client(flow) if role is Role.CLIENT else backend.server(flow)
    except ValueError:
        return None
    return command.parser if command is not None else None


def home_of(plugin: object, variable: str = "BACKEND") -> str:
    """Return the module to import for a plugin: the one of its package that offers it."""
    of_class = type(plugin).__module__
    root = of_class.partition(".")[0]
    offers = [
        name
        for name, module in tuple(sys.modules.items())
        if name.partition(".")[0] == root and vars(module).get(variable) is plugin
    ]
    return min(offers, key=len, default=of_class)
