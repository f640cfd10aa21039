"""The contract of a backend as rules: for a report, and as a class of tests.

A rule is implemented once; `check` and `BackendContract` only say in two ways what came of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from benchctl.api import Backend
from benchctl.testing.rules.apart import judge_imports, judge_probes
from benchctl.testing.rules.bounded import judge_garbage
from benchctl.testing.rules.commands import judge_commands
from benchctl.testing.rules.ending import judge_ends
from benchctl.testing.rules.measuring import judge_flows
from benchctl.testing.rules.parameters import judge_parameters
from benchctl.testing.rules.parsing import judge_cuts, judge_laws, judge_metrics, judge_time
from benchctl.testing.rules.rule import Finding, Rule, hold
from benchctl.testing.rules.subject import Subject
from benchctl.testing.transcript import Transcript, expected_path, transcripts_in

Transcripts = Path | Mapping[str, Transcript]

RULES: Mapping[str, Rule[Subject]] = MappingProxyType(
    {
        rule.name: rule
        for rule in (
            Rule(
                "imports",
                "importing it prints nothing, starts nothing, and loads nothing heavy besides"
                " benchctl.api",
                judge_imports,
            ),
            Rule(
                "parameters",
                "each has a description, a unit if it is a quantity, and a schema that says what"
                " it accepts",
                judge_parameters,
            ),
            Rule(
                "commands",
                "they are the same for the same flow, in any process and environment",
                judge_commands,
            ),
            Rule(
                "probes",
                "they end with a version or a reason, also where there is no program at all",
                judge_probes,
            ),
            Rule(
                "cuts", "output in any pieces gives equal events, and those expected", judge_cuts
            ),
            Rule(
                "garbage",
                "any output ends in events or ParserError, in bounded time and memory",
                judge_garbage,
            ),
            Rule("time", "no sample ends before it begins, and no interval counts twice",
                 judge_time),
            Rule("metrics", "those emitted are declared, and finite", judge_metrics),
            Rule(
                "laws",
                "no figure of a transcript is one that cannot be, but those it names itself",
                judge_laws,
            ),
            Rule("flows", "a flow on loopback measures something, in each direction", judge_flows),
            Rule("ends", "ended at any moment, no process stays", judge_ends),
        )
    }
)  # fmt: skip


def subject_of(
    backend: Backend[Any], transcripts: Transcripts = MappingProxyType({}), port: int | None = None
) -> Subject:
    """Return a backend with its transcripts, which a directory may hold.

    Raises ValueError for a file that is no transcript, OSError.
    """
    if not isinstance(transcripts, Path):
        return Subject(backend, transcripts, port=port)
    found = transcripts_in(transcripts)
    expected = {
        path.name: expected_path(path).read_text(encoding="utf-8")
        for path in found
        if expected_path(path).exists()
    }
    return Subject(
        backend, {path.name: transcript for path, transcript in found.items()}, expected, port
    )


def check(
    backend: Backend[Any], transcripts: Transcripts = MappingProxyType({}), port: int | None = None
) -> Sequence[Finding]:
    """Judge a backend by every rule of the contract.

    ``transcripts`` are those that `benchctl backends record` wrote to a directory, or made by
    hand, by name. ``port`` is where its real server listens; by default, a free one. Raises
    ValueError for a file that is no transcript, OSError.
    """
    subject = subject_of(backend, transcripts, port)
    return [rule.finding(subject) for rule in RULES.values()]


class BackendContract:
    """The contract as tests: subclass it under a name that pytest collects, and say what to test.

    ``class TestEchotime(BackendContract): backend = BACKEND; transcripts = Path(...)``. What a
    rule needs and this machine lacks skips its test.
    """

    backend: ClassVar[Backend[Any]]
    transcripts: ClassVar[Transcripts] = MappingProxyType({})
    port: int | None = None

    def test_importing_is_light_and_silent(self) -> None:
        self._holds("imports")

    def test_every_parameter_is_described_and_has_its_unit(self) -> None:
        self._holds("parameters")

    def test_commands_depend_on_the_flow_alone(self) -> None:
        self._holds("commands")

    def test_probes_end_with_a_version_or_a_reason(self) -> None:
        self._holds("probes")

    def test_any_cut_gives_equal_events(self) -> None:
        self._holds("cuts")

    def test_any_output_gives_events_or_a_parser_error(self) -> None:
        self._holds("garbage")

    def test_time_never_runs_backwards(self) -> None:
        self._holds("time")

    def test_every_metric_is_declared(self) -> None:
        self._holds("metrics")

    def test_a_flow_on_loopback_measures_in_each_direction(self) -> None:
        self._holds("flows")

    def test_no_figure_is_one_that_cannot_be(self) -> None:
        self._holds("laws")

    def test_no_process_stays(self) -> None:
        self._holds("ends")

    def _holds(self, name: str) -> None:
        subject = self._subject()
        subject.port = self.port
        hold(RULES[name], subject)

    @classmethod
    def _subject(cls) -> Subject:
        # Its rules share what is costly to find; pytest makes an instance for each test.
        if "_found" not in vars(cls):
            cls._found = subject_of(cls.backend, cls.transcripts)
        return cls._found

    _found: ClassVar[Subject]
