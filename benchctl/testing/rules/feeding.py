"""Feeds output to parsers: pieces by channel, until the end or the contract's error."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from benchctl.api import (
    METRICS,
    Backend,
    Channel,
    Direction,
    Effective,
    Event,
    Failure,
    Parser,
    ParserError,
    Sample,
    Started,
    Summary,
    Warn,
)
from benchctl.testing.rules.rule import Fault, fault_of

Pieces = Iterable[tuple[Channel, bytes]]
_STATISTICS = {"min", "mean", "median", "p95", "max"}


def fed(parser: Parser, pieces: Pieces, exit_code: int) -> Iterator[Event]:
    """Yield the events as they come; raises what the parser raises."""
    for channel, data in pieces:
        yield from parser.feed(data, channel)
    yield from parser.close(exit_code)


def events_of(parser: Parser, pieces: Pieces, exit_code: int) -> tuple[list[Event], str]:
    """Return the events, and the words of the contract's error if that ended them."""
    events: list[Event] = []
    try:
        events.extend(fed(parser, pieces, exit_code))
    except ParserError as error:
        return events, f"ParserError: {error}"
    return events, ""


def declared(backend: Backend[Any]) -> Collection[str]:
    """Return the names of the metrics that a backend may emit."""
    return METRICS.keys() | {metric.name for metric in backend.capabilities.metrics}


def judged(
    backend: Backend[Any], parser: Parser, pieces: Pieces, exit_code: int, what: str
) -> Iterator[Fault]:
    """Yield what is wrong with a parser's reaction to any output, which ``what`` describes."""
    events: list[Event] = []
    try:
        events, _ = events_of(parser, pieces, exit_code)
    except Exception as error:
        fault = fault_of(error, f"{what}: ")
        yield Fault(
            fault.what, f"raise ParserError for what the tool does not print; {fault.remedy}"
        )
    names = declared(backend)
    for event in events:
        if wrong := unsound(event, names):
            yield Fault(f"{what}: {wrong}", "raise ParserError for values that cannot be")
            return


def unsound(event: object, names: Collection[str]) -> str:
    """Return what is wrong with an event of any output; nothing if it can be stored."""
    match event:
        case Sample():
            values: Mapping[str, Any] = {
                "start_s": event.start_s, "end_s": event.end_s, **event.metrics
            }  # fmt: skip
            if unknown := event.metrics.keys() - names:
                return f"metrics that are not declared: {', '.join(sorted(unknown))}"
            if event.direction not in Direction or event.direction is Direction.BOTH:
                return f"a sample of direction {event.direction!r}"
            if event.end_s < event.start_s:
                return f"a sample from {event.start_s} to {event.end_s} s"
            return _not_finite(values)
        case Summary():
            if unknown := event.metrics.keys() - names:
                return f"metrics that are not declared: {', '.join(sorted(unknown))}"
            beside = event.broken.keys() | event.instead.keys()
            if absent := beside - event.metrics.keys():
                return f"a word on {', '.join(sorted(absent))}, which it does not report"
            if event.direction is Direction.BOTH:
                return "a summary of both directions"
            if wrong := _not_finite({**event.instead}) or _not_finite({**event.resolution}):
                return wrong
            return next(filter(None, map(_of_figure, event.metrics.items())), "")
        case Started():
            return _not_finite({"epoch_s": event.epoch_s})
        case Effective():
            return _not_json(event.settings)
        case Failure() if not event.message:
            return "a failure without a message"
        case Warn() if not event.message:
            return "a warning without a message"
    return "" if isinstance(event, Event) else f"{event!r} is no event"


def _of_figure(figure: tuple[str, Any]) -> str:
    name, value = figure
    if not isinstance(value, Mapping):
        return _not_finite({name: value})
    if unknown := value.keys() - _STATISTICS:
        return f"{name} with {', '.join(sorted(unknown))}"
    return _not_finite({f"{name}.{key}": statistic for key, statistic in value.items()})


def _not_finite(values: Mapping[str, Any]) -> str:
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            return f"{name} is {value!r}, not a number"
        if not math.isfinite(value):
            return f"{name} is {value}"
    return ""


def _not_json(settings: Mapping[str, Any]) -> str:
    import json

    try:
        json.dumps(dict(settings), allow_nan=False)
    except (TypeError, ValueError) as error:
        return f"settings that are no JSON: {error}"
    return ""
