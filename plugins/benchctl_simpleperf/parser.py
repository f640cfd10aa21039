"""Reads what ``simpleperf --events`` prints, at both ends."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NoReturn

from benchctl.api import (
    Channel,
    Direction,
    Effective,
    Event,
    Failure,
    FailureKind,
    LineParser,
    ParserError,
    Ready,
    Sample,
    Started,
    Summary,
    Warn,
)

__all__ = ["EventsParser"]


class EventsParser(LineParser):
    """One parser for client and server: a client is never ready, a server never samples.

    ``metrics`` are the names that become metrics; other keys of the tool's objects are left out.
    """

    def __init__(self, metrics: Collection[str]) -> None:
        super().__init__()
        self._metrics = metrics
        self._ended = False
        self._complaint = ""

    def line(self, text: str, channel: Channel) -> Iterable[Event]:
        if channel is Channel.STDERR:
            self._complaint = text.strip() or self._complaint
            return ()
        if not text:
            return ()
        data = _object(text)
        match data.get("event"):
            case "listening":
                self._ended = True  # A server has nothing more to tell.
                return (Ready(),)
            case "start":
                return (Started(_number(data, "epoch_s")),)
            case "interval":
                return (self._interval(data),)
            case "warning":
                return (Warn(str(data.get("message"))),)
            case "end":
                self._ended = True
                return self._end(data)
            case "error":
                self._ended = True
                return (_failure(data),)
        raise ParserError(f"an unknown event: {text[:80]!r}")

    def end(self, exit_code: int) -> Iterable[Event]:
        if self._ended:
            return
        what = f"was ended by signal {-exit_code}" if exit_code < 0 else f"ended with {exit_code}"
        yield Failure(FailureKind.TOOL, self._complaint or f"simpleperf {what} and gave no result")

    def _interval(self, data: Mapping[str, Any]) -> Sample:
        start_s, end_s = _number(data, "start_s"), _number(data, "end_s")
        if start_s > end_s:
            raise ParserError(f"an interval from {start_s} to {end_s}")
        stream = data.get("stream")
        if not isinstance(stream, int) or not 0 <= stream < 1 << 16:
            raise ParserError(f"stream is {stream!r}")
        return Sample(
            start_s,
            end_s,
            {name: _number(data, name) for name in self._metrics if name in data},
            stream,
            _direction(data.get("direction")),
            omitted=data.get("omitted") is True,
        )

    def _end(self, data: Mapping[str, Any]) -> Iterable[Event]:
        effective = data.get("effective")
        if isinstance(effective, Mapping):
            yield Effective(effective)
        directions = data.get("directions")
        if not isinstance(directions, Mapping):
            raise ParserError("the end has no directions")
        for name, figures in directions.items():
            if not isinstance(figures, Mapping):
                raise ParserError(f"the figures of {name} are {figures!r}")
            yield Summary(self._summary(figures), _direction(name))

    def _summary(self, figures: Mapping[str, Any]) -> dict[str, float | Mapping[str, float]]:
        return {
            name: _distribution(value)
            if isinstance(value := figures[name], Mapping)
            else _number(figures, name)
            for name in self._metrics
            if name in figures
        }


def _failure(data: Mapping[str, Any]) -> Failure:
    kind = str(data.get("kind"))
    if kind not in set(FailureKind):
        raise ParserError(f"an error of kind {kind!r}")
    return Failure(FailureKind(kind), str(data.get("message")), str(data.get("hint", "")))


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _object(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ParserError(f"not a line of simpleperf --events: {text[:80]!r}") from error
    if not isinstance(value, dict):
        raise ParserError(f"not an object: {text[:80]!r}")
    return value


def _number(data: Mapping[str, Any], name: str) -> float:
    value = data.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ParserError(f"{name} is {value!r}")
    if not math.isfinite(value) or abs(value) > 1e300:
        raise ParserError(f"{name} is out of range")
    return float(value)


def _distribution(value: Mapping[str, Any]) -> dict[str, float]:
    names = ("min", "mean", "median", "p95", "max")
    return {name: _number(value, name) for name in names if name in value}


def _direction(name: Any) -> Direction:
    if name not in ("send", "receive"):
        raise ParserError(f"direction is {name!r}")
    return Direction(name)
