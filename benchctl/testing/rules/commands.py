"""What a backend says of a flow, as plain data, which must be the same at any time and place."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from benchctl.api import Backend, Command, Role
from benchctl.testing.rules.apart import look_apart
from benchctl.testing.rules.rule import Fault
from benchctl.testing.rules.subject import Case, Subject, parser_of

_PURE = (
    "a method returns data, and always the same for the same arguments: no clock, no random"
    " numbers, no environment, no order of a set"
)


def declared(backend: Backend[Any], case: Case) -> Mapping[str, Any]:
    """Return all that the methods of a backend say of a flow. Raises what they raise."""
    found: dict[str, Any] = {}
    try:
        flow = case.flow(backend)
    except ValueError as error:
        return {"parameters": f"rejected: {error}"}
    builders: Mapping[str, Callable[..., Command | None]] = {
        "client": backend.client,
        "server": backend.server,
    }
    for name, build in builders.items():
        try:
            command = build(flow)
        except ValueError as error:
            found[f"{name}()"] = f"rejected: {error}"
        else:
            found |= _of_command(f"{name}()", command)
    for role in Role:
        found[f"probe({role})"] = backend.probe(role)
    found["duration_s()"] = backend.duration_s(flow.params)
    found["traffic_bytes()"] = backend.traffic_bytes(flow.params)
    found["demand()"] = asdict(backend.demand(flow.params))
    return found


def _of_command(name: str, command: Command | None) -> Mapping[str, Any]:
    if command is None:
        return {name: None}
    return {
        f"{name}.argv": command.argv,
        f"{name}.env": dict(command.env),
        f"{name}.stop_signal": command.stop_signal,
        f"{name}.secrets": dict(command.secrets),
        f"{name}.stays": command.stays,
        f"{name}.parser": type(command.parser).__qualname__,
    }


def judge_commands(subject: Subject) -> Iterator[Fault | str]:
    """Compare what is said twice here, and in a process with another environment."""
    backend, cases = subject.backend, subject.cases
    here = [declared(backend, case) for case in cases]
    again = [declared(backend, case) for case in cases]
    report = look_apart(subject)
    for reached in report.reached:
        yield Fault(f"a method does what only benchctl does: {reached}", _PURE)
    differing: set[str] = set()
    for case, said, repeated, apart in zip(cases, here, again, report.declared, strict=True):
        places = {"another call": repeated, "another process, environment and directory": apart}
        for where, there in places.items():
            for name in sorted(said.keys() - differing):
                if said[name] != there.get(name):
                    differing.add(name)
                    text = f"{name} is {said[name]!r} and in {where} {there.get(name)!r} ({case})"
                    yield Fault(text, _PURE)
        yield from _malformed(case, said)
        yield from _shared(backend, case)
    built = sum(isinstance(said.get("client().argv"), tuple) for said in here)
    if not built:
        rejected = next(iter(here)).get("client()", "")
        yield Fault(
            f"client() rejects every flow: {rejected}",
            "a flow of defaults, or that of a transcript, must have a command",
        )
    yield f"{built} of {len(cases)} flows have a command"


def _malformed(case: Case, said: Mapping[str, Any]) -> Iterator[Fault]:
    for end in ("client()", "server()"):
        argv = said.get(f"{end}.argv")
        if argv is None:
            continue
        words = [*argv, *said[f"{end}.env"], *said[f"{end}.env"].values()]
        if not isinstance(argv, tuple) or not argv or not all(isinstance(w, str) for w in words):
            yield Fault(
                f"{end}.argv is {argv!r} ({case})", "it is a tuple of texts, the program's first"
            )
        name = said[f"{end}.stop_signal"]
        if name not in signal.Signals.__members__:
            yield Fault(f"{end}.stop_signal is {name!r}", 'it is a name such as "SIGINT"')
    if not 0 < said.get("duration_s()", 1) < float("inf"):
        yield Fault(
            f"duration_s() is {said['duration_s()']!r} ({case})",
            "return the expected time of the client in seconds; benchctl ends it soon after",
        )


def _shared(backend: Backend[Any], case: Case) -> Iterator[Fault]:
    for role in Role:
        first = parser_of(backend, case, role)
        if first is not None and first is parser_of(backend, case, role):
            yield Fault(
                f"two {role} commands have one parser ({case})",
                "make a new one in each call: an attempt must not see the one before",
            )
