"""The contract of an importer as rules: for a report, and as a class of tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from benchctl.api import METRICS, Importer, ParserError, Recording, Sample, Summary
from benchctl.testing.exporting import said_in_a_line
from benchctl.testing.rules.apart import judge_import_of
from benchctl.testing.rules.bounds import TakesTooLongError, cpu_at_most
from benchctl.testing.rules.damage import damaged, garbage
from benchctl.testing.rules.rule import Fault, Finding, NotCheckedError, Rule, fault_of, hold

SampleFiles = Path | Mapping[str, bytes]
"""Files of the kind, unpacked: a directory of them, or their contents by name."""

_DAMAGED = 300
# None of the files takes a second. Only what has no end takes as long.
_CPU_S = 20.0


@dataclass(frozen=True, slots=True)
class ImporterSubject:
    """An importer, and files of its kind."""

    importer: Importer
    samples: Mapping[str, bytes] = field(default_factory=dict)

    def needed_samples(self) -> Mapping[str, bytes]:
        """Return the files. Raises NotCheckedError without any."""
        if not self.samples:
            raise NotCheckedError("needs a file of its kind: name a directory of them")
        return self.samples


def importer_subject(importer: Importer, samples: SampleFiles) -> ImporterSubject:
    """Return an importer with files of its kind. Raises OSError."""
    if isinstance(samples, Path):
        files = [path for path in sorted(samples.iterdir()) if path.is_file()]
        samples = {path.name: path.read_bytes() for path in files}
    return ImporterSubject(importer, samples)


def judge_declared(subject: ImporterSubject) -> Iterator[Fault | str]:
    """Look at what an importer says of its files."""
    importer = subject.importer
    yield from said_in_a_line(importer.about)
    for metric in importer.metrics:
        if metric.name in METRICS:
            yield Fault(
                f"{metric.name} is described already", "use that of METRICS, or another name"
            )
        if not metric.description:
            yield Fault(f"{metric.name} has no description", "say what it is")
    known = {*METRICS, *(metric.name for metric in importer.metrics)}
    if importer.headline and importer.headline not in known:
        yield Fault(f"its headline {importer.headline} is no metric", "describe it in metrics")
    own = ", ".join(metric.name for metric in importer.metrics)
    yield f"{importer.name}: {own or 'no metrics'}"


def judge_read(subject: ImporterSubject) -> Iterator[Fault | str]:
    """Read files of the kind."""
    importer = subject.importer
    known = {*METRICS, *(metric.name for metric in importer.metrics)}
    count = 0
    for name, data in subject.needed_samples().items():
        try:
            trials = importer.recorded(data)
        except ParserError as error:
            yield Fault(
                f"{name}: cannot be read: {error}", "read it, or leave it out of the samples"
            )
            continue
        if not trials:
            yield Fault(f"{name}: {trials!r} instead of trials", "recognise it, and read it")
            continue
        for recording in _recordings(trials):
            yield from _storable(name, recording, known)
            count += 1
        if importer.recorded(data) != trials:
            yield Fault(
                f"{name}: reading it again gives other trials", "keep no state between files"
            )
    yield f"{count} recordings of {len(subject.samples)} files"


def _recordings(trials: Sequence[Mapping[str, Recording]]) -> Iterator[Recording]:
    for trial in trials:
        for recording in trial.values():
            if not isinstance(recording, Recording):
                raise TypeError(f"{type(recording).__name__} instead of a Recording")
            yield recording


def _storable(name: str, recording: Recording, known: set[str]) -> Iterator[Fault]:
    from benchctl.analysis.flow_result import check

    for event in recording.events:
        try:
            check(event)
        except (ValueError, TypeError) as error:
            yield Fault(f"{name}: {error}", "leave out what was not measured")
        if isinstance(event, Sample | Summary) and (strange := {*event.metrics} - known):
            yield Fault(
                f"{name}: {', '.join(sorted(strange))} is not declared",
                "use a name of METRICS, or describe it in metrics",
            )
        if isinstance(event, Sample) and event.end_s < event.start_s:
            yield Fault(f"{name}: a sample ends before it begins", "take the tool's own times")


def judge_others(subject: ImporterSubject) -> Iterator[Fault | str]:
    """Look at files of others, which it must leave to others."""
    count = 0
    for what, data in garbage():
        count += 1
        try:
            with cpu_at_most(_CPU_S):
                found = subject.importer.recorded(data)
        except TakesTooLongError:
            yield _endless(what)
        except ParserError as error:
            yield Fault(f"{what}: ParserError: {error}", "return None: it is of another kind")
        except Exception as error:
            yield fault_of(error, f"{what}: ")
        else:
            if found is not None:
                yield Fault(
                    f"{what}: is taken for one of its files", "look for the tool's own words"
                )
    yield f"{count} files of others"


def judge_damaged(subject: ImporterSubject) -> Iterator[Fault | str]:
    """Read truncated and garbled files of the kind."""
    samples = subject.needed_samples()
    count = 0
    for seed, (name, whole) in enumerate(samples.items()):
        each = max(20, _DAMAGED // len(samples))
        cut = ((f"the first {end} bytes", whole[:end]) for end in _ends(len(whole)))
        for what, data in (*cut, *damaged(whole, each, seed)):
            count += 1
            try:
                with cpu_at_most(_CPU_S):
                    for _ in _recordings(subject.importer.recorded(data) or ()):
                        pass
            except TakesTooLongError:
                yield _endless(f"{name}, {what}")
            except ParserError:
                continue
            except Exception as error:
                yield fault_of(error, f"{name}, {what}: ")
    yield f"{count} damaged files"


def _ends(length: int) -> list[int]:
    return [length * part // 16 for part in range(16)]


def _endless(what: str) -> Fault:
    return Fault(
        f"{what}: takes more than {_CPU_S:g} s of CPU time",
        "take time in proportion to the file: no pattern that backtracks",
    )


IMPORTER_RULES: Mapping[str, Rule[ImporterSubject]] = MappingProxyType(
    {
        rule.name: rule
        for rule in (
            Rule(
                "imports",
                "importing it prints nothing, starts nothing, and loads nothing heavy besides"
                " benchctl.api",
                lambda subject: judge_import_of(subject.importer, "IMPORTER"),
            ),
            Rule("declared", "its description and its metrics can be used", judge_declared),
            Rule("read", "files of its kind are trials that can be stored", judge_read),
            Rule("others", "files of other kinds are left to others", judge_others),
            Rule(
                "damaged",
                "a damaged file ends in trials, None or ParserError, in bounded time",
                judge_damaged,
            ),
        )
    }
)


def check_importer(importer: Importer, samples: SampleFiles) -> Sequence[Finding]:
    """Judge an importer by every rule of the contract. Raises OSError."""
    subject = importer_subject(importer, samples)
    return [rule.finding(subject) for rule in IMPORTER_RULES.values()]


class ImporterContract:
    """The contract as tests: subclass it under a name that pytest collects, and say what to test.

    ``class TestFlent(ImporterContract): importer = IMPORTER; samples = Path(...)``.
    """

    importer: ClassVar[Importer]
    samples: ClassVar[SampleFiles]

    def test_importing_is_light_and_silent(self) -> None:
        self._holds("imports")

    def test_what_it_declares_can_be_used(self) -> None:
        self._holds("declared")

    def test_files_of_its_kind_are_read(self) -> None:
        self._holds("read")

    def test_files_of_others_are_left_to_others(self) -> None:
        self._holds("others")

    def test_damaged_files_end_in_a_parser_error(self) -> None:
        self._holds("damaged")

    def _holds(self, name: str) -> None:
        hold(IMPORTER_RULES[name], importer_subject(self.importer, self.samples))
