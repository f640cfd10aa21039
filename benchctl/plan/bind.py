"""Binds one point of the matrix to the flows of a profile: a trial.

A flow's keys and parameters come from ``[defaults]``, its own table, ``--set`` and the axes; later
ones win. Parameters are validated by the backend's own model. An error names the file and line of
the wrong value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec.structs import replace
from pydantic import ValidationError

from benchctl.backends import AnyBackend, Registry
from benchctl.errors import ProfileError, nearest
from benchctl.metrics import Direction
from benchctl.plan.bound import BoundFlow, BoundTrial
from benchctl.plan.matrix import Matrix, Point, Value
from benchctl.plan.targets import Targets, Writes, accepts, point_text
from benchctl.profile.find import NO_LAB
from benchctl.profile.load import Document
from benchctl.profile.model import FLOW_KEYS, CaptureTable
from benchctl.profile.values import is_address
from benchctl.run.planned import LOCAL, PacketCapture, PlannedFlow, PlannedTrial, patience_s
from benchctl.toml.source import Key
from benchctl.toml.table import explain
from benchctl.units import format_duration, quoted

# Time that a tool may need beyond its duration: to connect, to exchange results, to end.
DEADLINE_SLACK_S = 15.0


# Keys whose names are words of every sentence, and never the reason why a tool refuses a flow.
_COMMON_WORDS = frozenset({"from", "to"})

_OPPOSITE = {Direction.SEND: Direction.RECEIVE, Direction.RECEIVE: Direction.SEND}

_Route = tuple[PlannedFlow, AnyBackend]
"""A flow before the axes set its parameters, and its backend."""


class Binder:
    """Binds points to the flows of one profile, with exact errors."""

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
        self._ends = {LOCAL.name, *hosts, *profile.hosts}
        self._peers = {*self._ends, *profile.servers}
        inner = [interface for host in profile.hosts.values() for interface in host.interfaces]
        self._interfaces = {*interfaces, *profile.interfaces, *inner}
        self._remote = profile.outside.remote
        self._hidden = {name for name, host in profile.hosts.items() if not host.reachable}
        self.routes: dict[tuple[str | None, ...], PlannedFlow] = {}
        """The flows bound so far, each way and backend once; the parameters are any."""
        self.ip_versions: set[int] = set()
        """Those that the flows bound so far ask for."""
        self._check_names()
        self._targets = Targets(document, registry, matrix)
        self._writes = self._targets.of_values
        self._writing = {
            flow: {value: writes for value, writes in self._writes.items() if flow in writes.flows}
            for flow in self._targets.written
        }
        self._choosing = self._targets.constants.chosen is not None or any(
            writes.chosen for writes in self._writes.values()
        )
        # Flows that the innermost axes do not set repeat at once; keeping more would cost memory.
        self._route = lru_cache(maxsize=256)(self._make_route)
        self._check = lru_cache(maxsize=256)(self._check_flow)

    @property
    def backends(self) -> Mapping[str, Collection[AnyBackend]]:
        """The possible backends of each flow."""
        return {flow: found.values() for flow, found in self._targets.backends.items()}

    def bind(self, point: Point, position: int, repeat: int) -> BoundTrial:
        """Bind one point. Raises ProfileError."""
        checked = [self._check(*flow) for flow in self._flows_of(point)]
        flows = tuple(
            replace(flow, plan=replace(flow.plan, parameters=parameters))
            for flow, parameters, _ in checked
        )
        longest_s = max(end_s for _, _, end_s in checked)
        plan = PlannedTrial(
            position,
            repeat,
            {value.axis: value.shown for value in point},
            tuple(flow.plan for flow in flows),
            self.lab(point),
            longest_s,
            self._document.model.run.deadline or longest_s + self._slack_s(flows),
        )
        return BoundTrial(plan, flows)

    def _slack_s(self, flows: Iterable[BoundFlow]) -> float:
        """Return how long an attempt may take beside its flows.

        What ends while the connection to a host is cut is known when that is there again.
        """
        ends = (name for flow in flows for name in (flow.plan.source, flow.plan.to))
        reaches = [self._remote[name].reach for name in ends if name in self._remote]
        return DEADLINE_SLACK_S + max(
            (patience_s(reach) for reach in reaches if reach), default=0.0
        )

    def sets(self, value: Value) -> Mapping[str, str] | None:
        """Return the parameter of each flow that a value sets; None if it sets anything else."""
        writes = self._writes[value]
        if writes.routes or writes.lab or writes.chosen is not None:
            return None
        return {flow: next(iter(fields)) for flow, fields in writes.parameters.items()}

    def lab(self, point: Point) -> dict[str, Any]:
        """Return the settings of the lab at a point."""
        lab = dict(self._targets.constants.lab)
        for value in point:
            lab |= self._writes[value].lab
        return lab

    def duration_s(self, point: Point) -> float:
        """Return the expected time of a point's flows. Raises ProfileError."""
        checked = [self._check(*flow) for flow in self._flows_of(point)]
        longest_s = max(end_s for _, _, end_s in checked)
        deadline_s = self._document.model.run.deadline
        if deadline_s is not None and deadline_s < longest_s:
            default_s = longest_s + self._slack_s(flow for flow, _, _ in checked)
            raise self._document.error(
                ("run", "deadline"),
                f"{format_duration(deadline_s)} is shorter than a trial, which takes "
                f"{format_duration(longest_s)}",
                f"leave it out to get {format_duration(default_s)}",
            )
        return longest_s

    def check_commands(self, points: Iterable[Point], build: Callable[[BoundFlow], object]) -> None:
        """Build the commands of all flows; raises ProfileError for one that its tool refuses.

        ``build`` raises ValueError with the reason. The error is at the key that the reason names.
        """

        @lru_cache(maxsize=256)
        def check(name: str, writes: tuple[Writes, ...]) -> None:
            try:
                build(self._check(name, writes)[0])
            except ValueError as error:
                raise self._refused(name, writes, str(error)) from None

        for point in points:
            for flow in self._flows_of(point):
                check(*flow)

    def _flows_of(self, point: Point) -> list[tuple[str, tuple[Writes, ...]]]:
        """Return the flows of a point, each with the axis values that set its fields."""
        names = self._choose(point) if self._choosing else self._writing
        return [(name, tuple(filter(None, map(self._writing[name].get, point)))) for name in names]

    def _choose(self, point: Point) -> list[str]:
        chosen: Collection[str] = self._targets.constants.chosen or self._writing
        for value in point:
            chosen = self._writes[value].chosen or chosen
        return [name for name in self._writing if name in chosen]

    def _check_flow(
        self, name: str, writes: tuple[Writes, ...]
    ) -> tuple[BoundFlow, dict[str, Any], float]:
        """Return a flow, its parameters as written, and its end in seconds.

        The plan of the flow has no parameters of the axes: a check of many points needs none.
        """
        route = self._route(name, tuple([write for write in writes if write.routes]))
        flow, backend = route
        parameters = dict(flow.parameters)
        for write in writes:
            parameters.update(write.parameters.get(name, ()))
        try:
            model = backend.parameters.model_validate(parameters)
        except ValidationError as error:
            raise self._bad_parameter(route, parameters, writes, error) from None
        for key, value in parameters.items():
            if not isinstance(value, str | int) and not _is_recordable(value):
                what = f"{backend.name} cannot measure with a value that JSON cannot hold"
                raise self._error(name, (key,), what, "write it as a string or a number", writes)
        bound = BoundFlow(flow, backend, model)
        demand = bound.demand
        if demand.ip_version:
            self.ip_versions.add(demand.ip_version)
        if demand.lab_only and self._document.model.lab is None:
            what = f"{backend.name} may send this in a lab only"
            raise self._error(name, (), what, "set lab.topology, or use --lab", writes)
        return bound, parameters, flow.delay_s + bound.duration_s

    def _make_route(self, name: str, writes: tuple[Writes, ...]) -> _Route:
        written = self._targets.written[name]
        over: dict[str, Any] = dict(written)
        for write in (self._targets.constants, *writes):
            over |= write.routes.get(name, {})
        backend = self._targets.backends[name][over["backend"]]
        defaults = self._document.model.defaults.model_dump(by_alias=True, exclude_unset=True)
        fields = {
            **{key: value for key, value in defaults.items() if accepts(backend, key)},
            **over,
            **self._targets.constants.parameters.get(name, {}),
        }
        flow = PlannedFlow(
            name,
            over["backend"],
            self._known(name, "from", fields, self._ends, writes),
            self._known(name, "to", fields, self._peers, writes),
            self._interface(name, fields, writes),
            self._direction(name, backend, fields, writes),
            fields.get("delay", 0.0),
            {key: value for key, value in fields.items() if key not in FLOW_KEYS},
            self._capture(name, fields, writes),
        )
        flow = self._turned(flow, backend, writes)
        self.routes[flow.name, flow.backend, flow.source, flow.to, flow.interface] = flow
        return flow, backend

    def _turned(
        self, flow: PlannedFlow, backend: AnyBackend, writes: Sequence[Writes]
    ) -> PlannedFlow:
        """Return a flow with its client at the end that nobody can connect to.

        What it measures flows the same way as before: its direction is the opposite one.
        """
        if flow.to not in self._hidden or flow.source == flow.to:
            return flow
        what, hint = f"{quoted(flow.to)} is not reachable", f"measure from {quoted(flow.to)}"
        opposite = _OPPOSITE.get(flow.direction, flow.direction)
        if flow.source in self._hidden:
            what, hint = f"{what}, and neither is {quoted(flow.source)}", "leave this pair out"
        elif not backend.capabilities.needs_server:
            what = f"{what}, and {backend.name} has no other end that could begin"
        elif opposite not in backend.capabilities.directions:
            what = f"{what}, and {backend.name} cannot measure in direction {quoted(opposite)}"
        elif flow.interface is not None:
            what = f"{what}, so it is the client: an interface of {quoted(flow.source)} has no use"
        else:
            return replace(
                flow, source=flow.to, to=flow.source, direction=opposite,
                capture=flow.capture and flow.capture.turned,
            )  # fmt: skip
        raise self._error(flow.name, ("to",), what, hint, writes)

    def _known(
        self,
        flow: str,
        key: str,
        fields: Mapping[str, Any],
        known: Collection[str],
        writes: Sequence[Writes],
    ) -> str:
        value = fields.get(key, LOCAL.name)
        if isinstance(value, str) and value in known:
            return value
        what = f"no {'host' if key == 'from' else 'host or server'} {quoted(value)}"
        hint = nearest(str(value), known) or f"available: {', '.join(sorted(known))}"
        if f"--lab {NO_LAB}" in self._document.options:
            hint = (
                "hosts of the lab are not there with --lab none: --set from=local --set to=server "
                "--set servers.server.host=HOST"
            )
        if key == "to" and is_address(str(value)):
            hint = f'declare it: [servers.NAME] with host = "{value}", and to = "NAME"'
        raise self._error(flow, (key,), what, hint, writes)

    def _interface(
        self, flow: str, fields: Mapping[str, Any], writes: Sequence[Writes]
    ) -> str | None:
        value = fields.get("interface")
        if value is None or (isinstance(value, str) and value in self._interfaces):
            return value
        hint = nearest(str(value), self._interfaces) or "declare it under [interfaces]"
        raise self._error(flow, ("interface",), f"no interface {quoted(value)}", hint, writes)

    def _direction(
        self, flow: str, backend: AnyBackend, fields: Mapping[str, Any], writes: Sequence[Writes]
    ) -> Direction:
        can = backend.capabilities.directions
        value = fields.get("direction", can[0])
        if value in can:
            return Direction(value)
        what = f"{backend.name} cannot measure in direction {quoted(value)}"
        hint = nearest(str(value), can) or f"supported: {', '.join(can)}"
        raise self._error(flow, ("direction",), what, hint, writes)

    def _capture(
        self, flow: str, fields: Mapping[str, Any], writes: Sequence[Writes]
    ) -> PacketCapture | None:
        value = fields.get("capture")
        if value is None or value is False:
            return None
        if value is not True and not isinstance(value, dict):
            what, hint = f"cannot capture {quoted(value)}", "true or false"
            raise self._error(flow, ("capture",), what, hint, writes)
        table = CaptureTable.model_construct(**({} if value is True else value))
        ends = tuple(dict.fromkeys(table.hosts))
        if fields.get("to", LOCAL.name) in self._document.model.servers:
            ends = tuple(end for end in ends if end != "to")
        if not ends:
            what = "a server of others cannot record packets"
            raise self._error(
                flow, ("capture",), what, 'hosts = ["from"] records on this side', writes
            )
        return PacketCapture(ends, int(table.snaplen), int(table.max))

    def _bad_parameter(
        self,
        route: _Route,
        parameters: Mapping[str, Any],
        writes: Sequence[Writes],
        error: ValidationError,
    ) -> ProfileError:
        flow, backend = route
        names = [*backend.parameters.model_fields, *FLOW_KEYS]
        unknown = f"{flow.backend} has no such parameter"
        key, what, hint = explain(error, parameters, lambda _: names, unknown)
        if not key and writes:
            # Errors between parameters occur at some points only.
            what = f"{what} (at {point_text(writes)})"
        return self._error(flow.name, key, what, hint, writes)

    def _refused(self, flow: str, writes: tuple[Writes, ...], reason: str) -> ProfileError:
        route, backend = self._route(flow, tuple([write for write in writes if write.routes]))
        given = {*self._targets.written[flow], *route.parameters}
        for write in (self._targets.constants, *writes):
            given |= write.routes.get(flow, {}).keys() | write.parameters.get(flow, {}).keys()
        named = [word for word in re.findall(r"\w+", reason) if word in given - _COMMON_WORDS]
        if not named and writes:
            reason = f"{reason} (at {point_text(writes)})"
        return self._error(flow, tuple(named[:1]), f"{backend.name}: {reason}", "", writes)

    def _error(
        self, flow: str, key: Key, what: str, hint: str, writes: Sequence[Writes]
    ) -> ProfileError:
        """Return the error of a flow's field, at the place of its value."""
        where: Key = ("flows", flow, *key)
        if key:
            name = str(key[0])
            if name not in self._targets.written[flow]:
                defaults = self._document.model.defaults
                if name in defaults.model_dump(by_alias=True, exclude_unset=True):
                    where = ("defaults", *key)
            for write in (self._targets.constants, *writes):
                where = write.keys.get(f"{flow}.{name}", where)
        return self._document.error(where, what, hint)

    def _check_names(self) -> None:
        profile = self._document.model
        for name in (LOCAL.name, *profile.hosts):
            if name in profile.servers:
                raise self._document.error(
                    ("servers", name), "a host has this name too", "rename one of them"
                )


def _is_recordable(value: Any) -> bool:
    """Return whether a value of TOML survives JSON unchanged."""
    if isinstance(value, list | dict):
        return all(map(_is_recordable, value.values() if isinstance(value, dict) else value))
    return isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))
