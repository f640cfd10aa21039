"""Reads the output of ``simpleperf --events``: one JSON object a line, at both ends."""

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

_DISTRIBUTION = ("min", "mean", "median", "p95", "max")
_STREAMS_LIMIT = 1 << 16


class _EventsParser(LineParser):
    """Finds the objects. ``metrics`` are the names that become metrics; others are dropped."""

    def __init__(self, metrics: Collection[str]) -> None:
        super().__init__()
        self._metrics = metrics
        self._over = False
        """Set when the tool said all that is expected of it."""
        self._complaint = ""

    def line(self, text: str, channel: Channel) -> Iterable[Event]:
        if channel is Channel.STDERR:
            self._complaint = text.strip()[:500] or self._complaint
            return ()
        return self.event(_object(text)) if text else ()

    def event(self, data: Mapping[str, Any]) -> Iterable[Event]:
        """Return the events of one object."""
        raise NotImplementedError

    def end(self, exit_code: int) -> Iterable[Event]:
        if self._over:
            return ()
        ended = f"was ended by signal {-exit_code}" if exit_code < 0 else f"ended with {exit_code}"
        why = self._complaint or "no reason given"
        message = f"simpleperf {ended} before its output was complete: {why}"
        return (Failure(FailureKind.TOOL, message),)

    def failure(self, data: Mapping[str, Any]) -> Failure:
        """Return the failure of an ``error``."""
        self._over = True
        kind = str(data.get("kind"))
        if kind not in set(FailureKind):
            raise ParserError(f"an error of kind {kind[:40]!r}")
        return Failure(FailureKind(kind), str(data.get("message")), str(data.get("hint", "")))

    def sample(self, data: Mapping[str, Any]) -> Sample:
        """Return the sample of an ``interval``."""
        start_s, end_s = _number(data, "start_s"), _number(data, "end_s")
        if start_s > end_s:
            raise ParserError(f"an interval from {start_s} to {end_s}")
        stream = data.get("stream")
        if type(stream) is not int or not 0 <= stream < _STREAMS_LIMIT:
            raise ParserError(f"a stream {str(stream)[:40]!r}")
        metrics = {name: _number(data, name) for name in self._metrics if name in data}
        direction = _direction(data.get("direction"))
        omitted = data.get("omitted") is True
        return Sample(start_s, end_s, metrics, stream, direction, omitted)


class ServerParser(_EventsParser):
    """The server reports when it is ready, and for plain streams also what arrived when."""

    def __init__(self, metrics: Collection[str], samples: bool) -> None:
        super().__init__(metrics)
        self._samples = samples

    def event(self, data: Mapping[str, Any]) -> Iterable[Event]:
        match data.get("event"):
            case "listening":
                self._over = True
                return (Ready(),)
            case "interval" if self._samples:
                return (self.sample(data),)
            case "warning":
                return (Warn(str(data.get("message"))),)
            case "error":
                return (self.failure(data),)
            case "end" if "epoch_s" in data:
                return (Started(_number(data, "epoch_s")),)
            case "interval" | "end":
                return ()  # The client reports these figures, together with the other end's.
        raise _unknown(data)


class LastingServerParser(LineParser):
    """A server that prints for people says when it is ready, or why it is not."""

    def line(self, text: str, channel: Channel) -> Iterable[Event]:
        if text.startswith("simpleperf server listening on "):
            yield Ready()
        elif channel is Channel.STDERR and text.strip():
            yield Failure(FailureKind.TOOL, text.removeprefix("simpleperf: "))


class ClientParser(_EventsParser):
    """The client reports everything that was measured."""

    def event(self, data: Mapping[str, Any]) -> Iterable[Event]:
        match data.get("event"):
            case "start":
                return (Started(_number(data, "epoch_s")),)
            case "interval":
                return (self.sample(data),)
            case "probe":
                return (self.sample({"stream": 0, **data}),)
            case "warning":
                return (Warn(str(data.get("message"))),)
            case "end":
                self._over = True
                return self._result(data)
            case "error":
                return (self.failure(data),)
        raise _unknown(data)

    def _result(self, data: Mapping[str, Any]) -> Iterable[Event]:
        directions = _mapping(data, "directions")
        in_force: dict[str, Any] = {}
        once = _cpu(data)
        if "responsiveness_rpm" in data:
            once["responsiveness_rpm"] = _number(data, "responsiveness_rpm")
        for name in directions:
            figures = _mapping(directions, name)
            in_force[name] = figures.get("effective", {})
            yield Summary(self._summary({**figures, **once}), _direction(name))
            once = {}  # Figures of the whole have no direction, so they are reported once.
        effective = in_force if len(in_force) > 1 else next(iter(in_force.values()), {})
        missing = {
            f"{end}: {name}": reason
            for end, reasons in _mapping(data, "unavailable").items()
            if isinstance(reasons, Mapping)
            for name, reason in reasons.items()
        }
        if isinstance(effective, Mapping):
            yield Effective({**effective, **({"unavailable": missing} if missing else {})})

    def _summary(self, figures: Mapping[str, Any]) -> dict[str, float | Mapping[str, float]]:
        summary: dict[str, float | Mapping[str, float]] = {}
        for name in self._metrics & figures.keys():
            value = figures[name]
            if isinstance(value, Mapping):
                summary[name] = {key: _number(value, key) for key in _DISTRIBUTION if key in value}
            else:
                summary[name] = _number(figures, name)
        return summary


def _cpu(data: Mapping[str, Any]) -> dict[str, float]:
    """Return the CPU figures by the names of the metrics; some systems do not report all."""
    names = {"process_ratio": "cpu_{}_ratio", "host_ratio": "cpu_{}_host_ratio"}
    ends = _mapping(data, "cpu")
    return {
        metric.format(end): _number(figures, name)
        for end in ("client", "server")
        if isinstance(figures := ends.get(end), Mapping)
        for name, metric in names.items()
        if figures.get(name) is not None
    }


def _unknown(data: Mapping[str, Any]) -> ParserError:
    return ParserError(f"an unknown event: {str(data.get('event'))[:40]!r}")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _finite(text: str) -> float:
    if math.isinf(value := float(text)):  # 1e999
        _refuse_constant(text)
    return value


def _object(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise ParserError(f"not a line of simpleperf --events: {text[:80]!r}") from error
    if not isinstance(value, dict):
        raise ParserError(f"not an object: {text[:80]!r}")
    return value


def _mapping(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = data.get(name, {})
    if not isinstance(value, Mapping):
        raise ParserError(f"{name} is not an object")
    return value


def _number(data: Mapping[str, Any], name: str) -> float:
    value = data.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ParserError(f"{name} is {str(value)[:40]!r}")
    if not -1e300 < value < 1e300:
        raise ParserError(f"{name} is out of range")
    return float(value)


def _direction(name: Any) -> Direction:
    if name not in ("send", "receive"):
        raise ParserError(f"a direction {str(name)[:40]!r}")
    return Direction(name)
