"""The rules of parsers: any cut gives equal events, their times and metrics are what they claim."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from benchctl.api import METRICS, Channel, Direction, Event, Fold, Sample, Summary
from benchctl.testing.rules.feeding import declared, events_of, unsound
from benchctl.testing.rules.rule import Fault
from benchctl.testing.rules.subject import Subject
from benchctl.testing.transcript import Transcript

Blocks = Sequence[tuple[Channel, bytes]]

# Beyond, a transcript is no longer fed byte by byte: that takes a microsecond or two for each.
_BYTE_BY_BYTE = 1 << 14
_RANDOM_CUTS = 5
# Tools print their times with two or three digits.
_ROUNDING_S = 0.011
_UNITS = ("_s", "_bps", "_bytes", "_ratio")


def blocks_of(transcript: Transcript) -> Blocks:
    """Return the output in as few pieces as keep the order of the channels."""
    grouped = groupby(transcript.pieces, key=lambda piece: piece.channel)
    return [(channel, b"".join(piece.data for piece in pieces)) for channel, pieces in grouped]


def judge_cuts(subject: Subject) -> Iterator[Fault | str]:
    """Replay every transcript in pieces of every size."""
    replays = 0
    for name, transcript in subject.parsed.items():
        blocks, code = blocks_of(transcript), transcript.exit_code
        whole = events_of(transcript.parser(subject.backend), blocks, code)
        for how, pieces in _cuttings(blocks):
            cut = events_of(transcript.parser(subject.backend), pieces, code)
            replays += 1
            if (cut[0], bool(cut[1])) != (whole[0], bool(whole[1])):
                yield Fault(
                    f"{name}, {how}: {_difference(*whole, *cut)}",
                    "keep what is incomplete until the rest of it comes, as LineParser does",
                )
                break
        if (expected := subject.expected.get(name)) is not None:
            yield from _as_expected(name, whole[0], expected)
    yield f"{len(subject.parsed)} transcripts, {replays} cuttings"


def _cuttings(blocks: Blocks) -> Iterator[tuple[str, Blocks]]:
    yield "byte by byte", [piece for block in blocks for piece in _cut(*block, None)]
    dice = random.Random(0)
    for _ in range(_RANDOM_CUTS):
        places = [
            (channel, data, sorted(dice.choices(range(len(data) + 1), k=dice.randint(1, 12))))
            for channel, data in blocks
        ]
        at = ", ".join(str(cuts) for _, _, cuts in places)
        yield f"cut at {at}", [piece for block in places for piece in _cut(*block)]


def _cut(channel: Channel, data: bytes, places: Sequence[int] | None) -> Blocks:
    ends = range(1, min(len(data), _BYTE_BY_BYTE)) if places is None else places
    return [(channel, data[start:stop]) for start, stop in pairwise([0, *ends, len(data)])]


def _difference(whole: Sequence[Event], error: str, cut: Sequence[Event], cut_error: str) -> str:
    for number, (whole_event, cut_event) in enumerate(zip(whole, cut, strict=False)):
        if whole_event != cut_event:
            return f"event {number} is {cut_event!r}, and in one piece {whole_event!r}"
    counts = [f"{len(whole)} events {error}", f"{len(cut)} events {cut_error}"]
    return f"{counts[1].strip()}, and in one piece {counts[0].strip()}"


def _as_expected(name: str, events: Sequence[Event], expected: str) -> Iterator[Fault]:
    from benchctl.testing.transcript import events_text

    found, wanted = events_text(events).splitlines(), expected.splitlines()
    for number, (found_line, wanted_line) in enumerate(zip(found, wanted, strict=False)):
        if found_line != wanted_line:
            text = f"{name}: event {number} is {found_line}, expected {wanted_line}"
            break
    else:
        if len(found) == len(wanted):
            return
        text = f"{name}: {len(found)} events, expected {len(wanted)}"
    yield Fault(
        text, "if the new events are right, write them anew: benchctl backends record --expect"
    )


def judge_time(subject: Subject) -> Iterator[Fault | str]:
    """Look at the times of the samples: intervals of a rate follow one another."""
    rates = {
        metric.name
        for metric in (*METRICS.values(), *subject.backend.capabilities.metrics)
        if metric.fold is Fold.RATE
    }
    count = 0
    for name, transcript in subject.parsed.items():
        ends: dict[tuple[int, Direction], float] = {}
        for sample in _samples(subject, transcript):
            count += 1
            if sample.end_s < sample.start_s:
                yield Fault(
                    f"{name}: a sample from {sample.start_s} to {sample.end_s} s",
                    "end_s is not before start_s: both count from second 0 of the tool's clock",
                )
            if not rates & sample.metrics.keys():
                continue
            stream = sample.stream, sample.direction
            before_s = ends.get(stream, sample.start_s)
            if sample.start_s < before_s - _ROUNDING_S:
                yield Fault(
                    f"{name}: stream {sample.stream} ({sample.direction}) has a sample from"
                    f" {sample.start_s} s after one until {before_s} s",
                    "yield each interval of a rate once, in the order of time; give omitted ones"
                    " times before 0",
                )
            ends[stream] = sample.end_s
    yield f"{count} samples"


def _samples(subject: Subject, transcript: Transcript) -> Iterator[Sample]:
    events, _ = events_of(
        transcript.parser(subject.backend), blocks_of(transcript), transcript.exit_code
    )
    return (event for event in events if isinstance(event, Sample))


def judge_metrics(subject: Subject) -> Iterator[Fault | str]:
    """Compare the metrics in the events with those declared."""
    yield from _declarations(subject)
    names = declared(subject.backend)
    emitted: set[str] = set()
    for name, transcript in subject.parsed.items():
        events, _ = events_of(
            transcript.parser(subject.backend), blocks_of(transcript), transcript.exit_code
        )
        for event in events:
            if isinstance(event, Sample | Summary):
                emitted |= event.metrics.keys()
            if wrong := unsound(event, names):
                yield Fault(
                    f"{name}: {wrong}",
                    "use the names of benchctl.api.METRICS, declare others in"
                    " Capabilities.metrics, and leave out what is unknown",
                )
                break
    own = [metric.name for metric in subject.backend.capabilities.metrics]
    unseen = [
        metric_name
        for metric_name in (subject.backend.capabilities.headline, *own)
        if metric_name not in emitted
    ]
    yield f"{len(emitted)} metrics" + (f", never {', '.join(unseen)}" if unseen else "")


def judge_laws(subject: Subject) -> Iterator[Fault | str]:
    """Hold the figures of each transcript against the laws of docs/output.md."""
    from msgspec.structs import replace

    from benchctl.analysis.flow.figures import FlowFold
    from benchctl.analysis.flow.held import held, sentences
    from benchctl.analysis.flow.laws import terms_of

    count = named = 0
    for name, transcript in subject.parsed.items():
        blocks, code = blocks_of(transcript), transcript.exit_code
        events, _ = events_of(transcript.parser(subject.backend), blocks, code)
        fold = FlowFold(subject.backend.capabilities.metrics)
        for event in events:
            if isinstance(event, Sample):
                fold.add_sample(transcript.role, event)
            elif isinstance(event, Summary):
                fold.add_summary(event)
        parameters = transcript.flow(subject.backend).params.model_dump(by_alias=True)
        terms = replace(terms_of(parameters), lasted_s=fold.lasted_s)
        figures = fold.figures()
        named += sum(figure.broken is not None for figure in figures.values())
        count += len(figures)
        unnamed = {
            key: figure
            for key, figure in held(figures, terms, fold.others()).items()
            if figure.broken is not None and (key not in figures or figures[key].broken is None)
        }
        for text in sentences(unnamed):
            yield Fault(
                f"{name}: {text}",
                "mend the parser; name what the tool itself gets wrong in Summary.broken",
            )
    yield f"{count} figures" + (f", {named} of them named as wrong" if named else "")


def _declarations(subject: Subject) -> Iterator[Fault]:
    can = subject.backend.capabilities
    names = declared(subject.backend)
    if can.headline not in names:
        yield Fault(f"the headline {can.headline} is no metric", "declare it, or choose another")
    if not can.directions:
        yield Fault("it has no direction", "declare one in Capabilities.directions")
    for metric in can.metrics:
        if metric.name in METRICS:
            yield Fault(f"{metric.name} is declared anew", "benchctl.api.METRICS has it: leave it")
        if not metric.description:
            yield Fault(f"{metric.name} has no description", "say what it is, and its source")
        for part in metric.per or ():
            if part not in names:
                yield Fault(f"{metric.name} is per {part}, which is no metric", "declare it")
        if metric.fold is Fold.RATE and not metric.name.endswith(_UNITS):
            yield Fault(f"{metric.name} is a rate without a unit", f"end its name with {_UNITS[1]}")
