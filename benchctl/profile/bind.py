"""Binds one point of the matrix to the flows of a profile: a trial.

A flow's keys and parameters come from ``[defaults]``, then its own table, then ``--set``, then the
axes, later ones winning. Parameters are checked against the backend's own model; an error names
the file and line that wrote the wrong value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from benchctl.api import Direction
from benchctl.backends import AnyBackend, Registry
from benchctl.errors import MissingError, ProfileError, UsageError
from benchctl.profile.load import Document, explain_first, nearest
from benchctl.profile.matrix import Matrix, Point
from benchctl.profile.model import FLOW_KEYS, Scalar
from benchctl.profile.source import Key
from benchctl.units import parse_duration

# What a tool may take beyond its own time: to connect, to exchange results, to end.
DEADLINE_SLACK_S = 15.0
LOCAL = "local"
LAB_TARGET = "lab."

Write = tuple[str, str, Any, Key]
"""What an axis or ``--set`` writes: flow ("" for the choice of flows), field, value, origin."""


@dataclass(frozen=True, slots=True)
class FlowPlan:
    """One flow of a trial, bound: names as in the profile, parameters as written there."""

    name: str
    backend: str
    source: str
    to: str
    interface: str | None
    direction: Direction
    delay_s: float
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Trial:
    """One point of the matrix, one repeat.

    ``index`` counts from 0 in the order of execution, ``repeat`` from 1. ``lab`` holds settings
    of the topology for this point. ``duration_s`` is the expected time of its flows.
    """

    index: int
    repeat: int
    point: Mapping[str, Scalar]
    flows: tuple[FlowPlan, ...]
    lab: Mapping[str, Any]
    duration_s: float
    deadline_s: float


class Binder:
    """Binds points to the flows of one profile, and says exactly what does not fit."""

    def __init__(
        self,
        document: Document,
        registry: Registry,
        matrix: Matrix,
        hosts: Collection[str],
        interfaces: Collection[str],
    ) -> None:
        profile = document.model
        self._document = document
        self._registry = registry
        self._ends = {LOCAL, *hosts, *profile.hosts}
        self._peers = {*self._ends, *profile.servers}
        self._interfaces = {*interfaces, *profile.interfaces}
        self._written = {
            name: flow.model_dump(by_alias=True, exclude_unset=True)
            for name, flow in profile.flows.items()
        }
        self._candidates = self._backends_of_flows(matrix)
        self._check_names()
        self._check_defaults()
        self._constants = self._targets_of_all(
            (target, value, ()) for target, value in document.assigned.items()
        )
        self._writes = {
            id(value): self._targets_of_all((t, v, value.key) for t, v in value.sets)
            for value in matrix.values()
        }

    def bind(self, point: Point, index: int, repeat: int) -> Trial:
        """Bind one point. Raises ProfileError."""
        fields = {name: dict(written) for name, written in self._written.items()}
        chosen: Collection[str] = tuple(fields)
        lab: dict[str, Any] = {}
        for flow, name, setting, _ in self._writes_of(point):
            if flow == LAB_TARGET:
                lab[name] = setting
            elif flow:
                fields[flow][name] = setting
            else:
                chosen = setting
        bound = [self._bind_flow(name, fields[name], point) for name in fields if name in chosen]
        flows = tuple(flow for flow, _ in bound)
        longest_s = max(flow.delay_s + duration_s for flow, duration_s in bound)
        deadline_s = self._document.model.run.deadline or longest_s + DEADLINE_SLACK_S
        shown = {value.axis: value.shown for value in point}
        return Trial(index, repeat, shown, flows, lab, longest_s, deadline_s)

    def _bind_flow(
        self, name: str, written: Mapping[str, Any], point: Point
    ) -> tuple[FlowPlan, float]:
        backend = self._registry.load(written["backend"])
        defaults = {
            key: value
            for key, value in self._document.model.defaults.items()
            if _accepts(backend, key)
        }
        fields = {**defaults, **written}
        parameters = {key: value for key, value in fields.items() if key not in FLOW_KEYS}
        try:
            checked = backend.parameters.model_validate(parameters)
        except ValidationError as error:
            key, what, hint = explain_first(error, [*backend.parameters.model_fields, *FLOW_KEYS])
            raise self._error(name, key, what, hint, point) from None
        direction = self._direction(name, fields, backend.capabilities.directions, point)
        flow = FlowPlan(
            name,
            fields["backend"],
            self._known(name, "from", fields.get("from", LOCAL), self._ends, point),
            self._known(name, "to", fields.get("to", LOCAL), self._peers, point),
            self._interface(name, fields.get("interface"), point),
            direction,
            fields.get("delay", 0.0),
            parameters,
        )
        return flow, backend.duration_s(checked)

    def _known(
        self, flow: str, key: str, value: object, known: Collection[str], point: Point
    ) -> str:
        if isinstance(value, str) and value in known:
            return value
        what = "host" if key == "from" else "host or server"
        names = sorted(known)
        hint = nearest(str(value), names) or f"there are: {', '.join(names)}"
        raise self._error(flow, (key,), f'no {what} "{value}"', hint, point)

    def _interface(self, flow: str, value: object, point: Point) -> str | None:
        if value is None or (isinstance(value, str) and value in self._interfaces):
            return value
        names = sorted(self._interfaces)
        hint = nearest(str(value), names) or "declare it under [interfaces]"
        raise self._error(flow, ("interface",), f'no interface "{value}"', hint, point)

    def _direction(
        self, flow: str, fields: Mapping[str, Any], can: tuple[Direction, ...], point: Point
    ) -> Direction:
        value = fields.get("direction")
        if value is None:
            return can[0]
        if isinstance(value, str) and value in can:
            return Direction(value)
        names = ", ".join(can)
        what = f'{fields["backend"]} cannot measure in direction "{value}"'
        raise self._error(flow, ("direction",), what, f"it can: {names}", point)

    def _error(self, flow: str, key: Key, what: str, hint: str, point: Point) -> ProfileError:
        """Return the error of a flow's field, at the place that wrote its value."""
        field = key[0] if key else None
        where: Key = ("flows", flow, *key)
        if field in self._document.model.defaults and field not in self._written[flow]:
            where = ("defaults", *key)
        for written, name, _, origin in self._writes_of(point):
            if (written, name) == (flow, field):
                if not origin:
                    return ProfileError(f"--set {field}: {what}", hint)
                where = origin
        return self._document.error(where, what, hint)

    def _writes_of(self, point: Point) -> Iterable[Write]:
        yield from self._constants
        for value in point:
            yield from self._writes[id(value)]

    def _targets_of_all(self, assignments: Iterable[tuple[str, Any, Key]]) -> tuple[Write, ...]:
        return tuple(
            (flow, name, self._delay(value, key) if name == "delay" else value, key)
            for target, value, key in assignments
            for flow, name in self._targets(target, value, key)
        )

    def _delay(self, value: object, key: Key) -> float:
        try:
            return parse_duration(value)
        except ValueError as error:
            raise self._bad_target(key, f"delay: {error}", "", ()) from None

    def _targets(self, target: str, value: Any, key: Key) -> list[tuple[str, str]]:
        if target == "flows":
            for name in value if isinstance(value, list) else [value]:
                if name not in self._written:
                    raise self._bad_target(key, f'no flow "{name}"', str(name), self._written)
            return [("", "flows")]
        if target.startswith(LAB_TARGET):
            if self._document.model.lab is None:
                raise self._bad_target(key, f'"{target}" needs a [lab]', target, ())
            return [(LAB_TARGET, target.removeprefix(LAB_TARGET))]
        flow, dot, name = target.partition(".")
        if dot and flow in self._written:
            if not self._takes(flow, name):
                raise self._bad_target(
                    key, f'flow "{flow}" has no parameter "{name}"', name, self._fields_of(flow)
                )
            return [(flow, name)]
        takers = [(flow, target) for flow in self._written if self._takes(flow, target)]
        if not takers:
            known = {field for flow in self._written for field in self._fields_of(flow)}
            raise self._bad_target(key, f'no flow takes "{target}"', target, known)
        return takers

    def _bad_target(
        self, key: Key, what: str, name: str, known: Collection[str]
    ) -> ProfileError | UsageError:
        hint = nearest(name, known)
        return self._document.error(key, what, hint) if key else UsageError(f"--set: {what}", hint)

    def _takes(self, flow: str, field: str) -> bool:
        return any(_accepts(backend, field) for backend in self._candidates[flow])

    def _fields_of(self, flow: str) -> set[str]:
        parameters = {name for b in self._candidates[flow] for name in b.parameters.model_fields}
        return {*FLOW_KEYS, *parameters}

    def _backends_of_flows(self, matrix: Matrix) -> dict[str, list[AnyBackend]]:
        """Load every backend that a flow may have: its own, and those an axis gives it."""
        names = {flow: {written["backend"]} for flow, written in self._written.items()}
        sets = [pair for value in matrix.values() for pair in value.sets]
        for target, value in [*sets, *self._document.assigned.items()]:
            for flow in names:
                if target in ("backend", f"{flow}.backend"):
                    names[flow].add(value)
        return {
            flow: [self._load(flow, name) for name in sorted(backends)]
            for flow, backends in names.items()
        }

    def _load(self, flow: str, backend: str) -> AnyBackend:
        if backend not in self._registry.candidates:
            names = sorted(self._registry.candidates)
            hint = nearest(backend, names) or f"there are: {', '.join(names)}"
            error = self._document.error(("flows", flow, "backend"), f'no backend "{backend}"')
            raise MissingError(error.message, hint)
        return self._registry.load(backend)

    def _check_names(self) -> None:
        profile = self._document.model
        for name in (LOCAL, *profile.hosts):
            if name in profile.servers:
                raise self._document.error(
                    ("servers", name), f'"{name}" is the name of a host too', "rename one"
                )

    def _check_defaults(self) -> None:
        for name in self._document.model.defaults:
            if name == "delay" or not any(self._takes(flow, name) for flow in self._written):
                known = {field for flow in self._written for field in self._fields_of(flow)}
                raise self._document.error(
                    ("defaults", name), "no flow takes this parameter", nearest(name, known)
                )


def _accepts(backend: AnyBackend, field: str) -> bool:
    if field == "direction":
        return len(backend.capabilities.directions) > 1
    return field in FLOW_KEYS or field in backend.parameters.model_fields
