"""The rule of flows: a flow on loopback measures something, in each direction of a backend."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from benchctl.api import Direction, Event, Failure, FailureKind, ParserError, Role
from benchctl.testing.rules.rule import Fault, NotCheckedError
from benchctl.testing.rules.subject import PORTS, Subject
from benchctl.testing.transcript import Transcript

# Short, and long enough for an interval; some tools take whole seconds only, or a number of probes.
_SHORT: Sequence[Mapping[str, Any]] = ({"duration": "200ms"}, {"duration": "1s"}, {"count": 2})
_REMEDY = "yield a Sample for each interval, or a Summary if the tool is silent until its end"


def judge_flows(subject: Subject) -> Iterator[Fault | str]:
    """Measure with the real tool on loopback, once in each direction."""
    subject.require_tools()
    can = subject.backend.capabilities
    if can.needs_root and os.geteuid() != 0:
        raise NotCheckedError("needs root")
    for direction in can.directions:
        if why := _why_nothing(subject, direction):
            yield Fault(f"{direction}: {why}", _REMEDY)
    yield f"measured {', '.join(can.directions)}"


def _why_nothing(subject: Subject, direction: Direction) -> str:
    """Return why a flow measured nothing; empty if it did."""
    for _ in range(PORTS):
        transcripts = _measure(subject, direction)
        try:
            events = [event for transcript in transcripts for event in _events(subject, transcript)]
        except ParserError as error:
            return str(error)
        failures = [event for event in events if isinstance(event, Failure)]
        if any(failure.kind is FailureKind.BUSY for failure in failures):
            continue  # something else took the port
        if not any(transcript.role is Role.CLIENT for transcript in transcripts):
            return failures[0].message if failures else "its server was not ready"
        return failures[0].message if failures else _lack(subject, events)
    raise NotCheckedError(f"needs a free port: something else took {PORTS} of them")


def _lack(subject: Subject, events: Sequence[Event]) -> str:
    from benchctl.analysis.flow.figures import FlowFold
    from benchctl.api import Sample, Summary

    fold = FlowFold(subject.backend.capabilities.metrics)
    for event in events:
        if isinstance(event, Sample):
            fold.add_sample(Role.CLIENT, event)
        elif isinstance(event, Summary):
            fold.add_summary(event)
    return fold.lack


def _measure(subject: Subject, direction: Direction) -> Sequence[Transcript]:
    from benchctl.hosts.tasks import run_to_end

    return run_to_end(_flow(subject, direction))


async def _flow(subject: Subject, direction: Direction) -> Sequence[Transcript]:
    from benchctl.hosts.local.spawn import LocalSpawner
    from benchctl.testing.loopback import ends_of
    from benchctl.testing.recording import Session

    parameters = _short(subject)
    async with LocalSpawner() as spawner:
        ends = await ends_of(spawner, subject.backend, direction, parameters, subject.port)
        if subject.backend.capabilities.needs_server and Role.SERVER not in ends:
            raise NotCheckedError("needs a peer: the backend starts no server")
        found = await Session(spawner).flow(subject.backend, ends)
    return [
        replace(transcript, backend=subject.backend.name, parameters=parameters)
        for transcript in found
    ]


def _short(subject: Subject) -> Mapping[str, Any]:
    """Return parameters of a flow that takes little time, as far as the backend takes such."""
    model, given = subject.backend.parameters, subject.parameters
    for short in _SHORT:
        with suppress(ValueError):
            if short.keys() <= model.model_fields.keys():
                model.model_validate({**given, **short})
                return {**given, **short}
    return given


def _events(subject: Subject, transcript: Transcript) -> Sequence[Event]:
    events = transcript.replay(transcript.parser(subject.backend))
    if transcript.role is Role.SERVER and transcript.stop is not None:
        return [event for event in events if not isinstance(event, Failure)]  # it was ended
    return events
