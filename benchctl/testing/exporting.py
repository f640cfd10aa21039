"""The contract of an exporter as rules: for a report, and as a class of tests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import ClassVar

from benchctl.api import ExportedRun, Exporter, ExportError
from benchctl.testing.rules.apart import judge_import_of
from benchctl.testing.rules.bounds import peak_bytes
from benchctl.testing.rules.rule import Fault, Finding, Rule, fault_of, hold
from benchctl.testing.sample_runs import sample_runs

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_ENDING = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")

_FEW, _MANY = 500, 20_500
"""Samples of a short run and of a long one."""
# Of 20,000 samples, nobody needs more to write them out; as rows in a list they take 14 MB.
_MOST_BYTES = 1 << 21


def judge_declared(exporter: Exporter) -> Iterator[Fault | str]:
    """Look at what an exporter says of its format."""
    if not _NAME.fullmatch(exporter.name):
        yield Fault(f"its name is {exporter.name!r}", "use lower-case letters, digits, - and _")
    yield from said_in_a_line(exporter.about)
    for ending in exporter.endings:
        if not _ENDING.fullmatch(ending):
            what = f"one of its endings is {ending!r}"
            yield Fault(what, 'write it in lower case and without the dot: "toy.gz"')
    endings = ", ".join(f".{ending}" for ending in exporter.endings)
    yield f"{exporter.name}: {endings or 'no endings'}"


def said_in_a_line(about: str) -> Iterator[Fault]:
    """Look at how a plugin describes its files."""
    if not about or not about.isprintable() or len(about) > 80:
        yield Fault(f"about is {about!r}", "say in one line of up to 80 characters what a file is")


def judge_written(exporter: Exporter) -> Iterator[Fault | str]:
    """Write runs of every sort."""
    exporter.check()
    written = 0
    for run in sample_runs(single_trial=exporter.single_trial):
        try:
            pieces = _pieces(exporter, run)
        except ExportError as error:
            if not error.message or not error.message.isprintable():
                what = f"{run.name}: ExportError says {error.message!r}"
                yield Fault(what, "say in one line why it cannot be written")
            continue
        except Exception as error:
            yield fault_of(error, f"{run.name}: ")
            continue
        kind = bytes if exporter.binary else str
        for piece in pieces:
            if not isinstance(piece, kind):
                what = f"{run.name}: it yields {type(piece).__name__}, and not {kind.__name__}"
                yield Fault(what, "yield text, or set binary and yield bytes only")
                break
        else:
            written += 1
    if not written:
        yield Fault("it writes none of the sample runs", "write runs of any tool")
    yield f"{written} sample runs written"


def judge_equal(exporter: Exporter) -> Iterator[Fault | str]:
    """Write equal runs."""
    count = 0
    for run in sample_runs(single_trial=exporter.single_trial):
        try:
            first, second = _pieces(exporter, run), _pieces(exporter, run)
        except Exception:  # which another rule reports
            continue
        count += 1
        if _joined(first) != _joined(second):
            yield Fault(
                f"{run.name}: two files of it differ",
                "leave out the time of writing, random numbers and the order of sets",
            )
    yield f"{count} runs written twice"


def judge_streams(exporter: Exporter) -> Iterator[Fault | str]:
    """Write runs of few and of many samples, and compare the memory that this takes."""
    if exporter.single_trial:
        yield "a file holds one trial, and may be made in memory"
        return
    run = max(sample_runs(single_trial=False), key=lambda run: len(run.rows))
    few, many = (
        peak_bytes(partial(_write_out, exporter, replace(run, count=n))) for n in (_FEW, _MANY)
    )
    if many - few > _MOST_BYTES:
        yield Fault(
            f"{_MANY - _FEW} samples more take {(many - few) >> 10} KiB more memory",
            "yield each piece when it is made, and keep no samples: there can be millions",
        )
    yield f"{_MANY - _FEW} samples more take {max(0, many - few) >> 10} KiB more memory"


def _pieces(exporter: Exporter, run: ExportedRun) -> list[str | bytes]:
    pieces = [*exporter.export(run)]
    for piece in pieces:
        if isinstance(piece, str):
            piece.encode()
    return pieces


def _joined(pieces: Sequence[str | bytes]) -> bytes:
    return b"".join(piece.encode() if isinstance(piece, str) else piece for piece in pieces)


def _write_out(exporter: Exporter, run: ExportedRun) -> None:
    for _ in exporter.export(run):
        pass


EXPORTER_RULES: Mapping[str, Rule[Exporter]] = MappingProxyType(
    {
        rule.name: rule
        for rule in (
            Rule(
                "imports",
                "importing it prints nothing, starts nothing, and loads nothing heavy besides"
                " benchctl.api",
                lambda exporter: judge_import_of(exporter, "EXPORTER"),
            ),
            Rule("declared", "its name, endings and description can be used", judge_declared),
            Rule("written", "any run is written, or refused by ExportError", judge_written),
            Rule("equal", "equal runs give equal files", judge_equal),
            Rule("streams", "a long run takes no more memory than a short one", judge_streams),
        )
    }
)


def check_exporter(exporter: Exporter) -> Sequence[Finding]:
    """Judge an exporter by every rule of the contract."""
    return [rule.finding(exporter) for rule in EXPORTER_RULES.values()]


class ExporterContract:
    """The contract as tests: subclass it under a name that pytest collects, and say what to test.

    ``class TestColumns(ExporterContract): exporter = EXPORTER``.
    """

    exporter: ClassVar[Exporter]

    def test_importing_is_light_and_silent(self) -> None:
        hold(EXPORTER_RULES["imports"], self.exporter)

    def test_what_it_declares_can_be_used(self) -> None:
        hold(EXPORTER_RULES["declared"], self.exporter)

    def test_any_run_is_written_or_refused(self) -> None:
        hold(EXPORTER_RULES["written"], self.exporter)

    def test_equal_runs_give_equal_files(self) -> None:
        hold(EXPORTER_RULES["equal"], self.exporter)

    def test_a_long_run_takes_no_more_memory(self) -> None:
        hold(EXPORTER_RULES["streams"], self.exporter)
