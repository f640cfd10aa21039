"""Resolves axis values and ``--set`` to fields of flows.

A target is ``streams`` (every flow that has it), ``main.streams`` (one flow), ``flows`` (which
flows a point has) or ``lab.links.core.loss`` (a setting of the lab). A target that nothing has is
an error. So is a field that two axes set: one of the two would be shown and not be true.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from msgspec import Struct

from benchctl.backends import AnyBackend, Registry
from benchctl.errors import MissingError, nearest
from benchctl.plan.matrix import Assignment, Matrix
from benchctl.profile.load import Document
from benchctl.profile.model import FLOW_KEYS, RunTable
from benchctl.run.planned import Scalar
from benchctl.toml.source import Key, dotted
from benchctl.units import parse_duration, quoted, write_rate

LAB = "lab."
CHOICE = "flows"


class Writes(Struct, frozen=True, eq=False):
    """The assignments of one axis value, or of ``--set``.

    ``routes`` and ``parameters`` map flows to settings of their own keys, and of their backends'
    parameters; ``flows`` are those in either. ``lab`` maps names of the lab to settings, and
    ``chosen`` are the flows of the point (None: no choice). ``keys`` maps each target's full name
    to the key that wrote it. ``shown`` is the axis and its value.
    """

    flows: frozenset[str]
    routes: Mapping[str, Mapping[str, Any]]
    parameters: Mapping[str, Mapping[str, Any]]
    keys: Mapping[str, Key]
    lab: Mapping[str, Any]
    chosen: tuple[str, ...] | None
    shown: tuple[str, Scalar] | None = None


class Targets:
    """Resolves the targets of one profile. Raises ProfileError or MissingError."""

    def __init__(self, document: Document, registry: Registry, matrix: Matrix) -> None:
        self._document = document
        self._registry = registry
        self.written = {
            name: flow.model_dump(by_alias=True, exclude_unset=True)
            for name, flow in document.model.flows.items()
        }
        set_here = [
            (".".join(map(str, key)), setting, key)
            for key, setting in document.overrides.targets.items()
        ]
        values = tuple(matrix.values())
        assignments = [assignment for value in values for assignment in value.sets]
        self.backends = self._backends([*set_here, *assignments])
        self.constants = self._writes(set_here)
        self.of_values = {
            value: self._writes(value.sets, (value.axis, value.shown)) for value in values
        }
        self._check_axes()
        self._check_defaults()

    def takes(self, flow: str, field: str) -> bool:
        """Return whether a possible backend of the flow has a field."""
        return any(accepts(backend, field) for backend in self.backends[flow].values())

    def _backends(self, assignments: Iterable[Assignment]) -> dict[str, dict[str, AnyBackend]]:
        """Load every possible backend of a flow: its own, and those that are set."""
        found = {
            flow: {written["backend"]: self._load(written["backend"], ("flows", flow, "backend"))}
            for flow, written in self.written.items()
        }
        for target, setting, key in assignments:
            for flow, backends in found.items():
                if target in ("backend", f"{flow}.backend"):
                    backends[setting] = self._load(setting, key)
        return found

    def _load(self, backend: object, key: Key) -> AnyBackend:
        known = sorted(self._registry.candidates)
        if not isinstance(backend, str) or backend not in known:
            error = self._document.error(key, f"no backend {quoted(backend)}")
            hint = nearest(str(backend), known) or f"available: {', '.join(known) or 'none'}"
            missing = MissingError(error.message, hint)
            missing.place = error.place
            raise missing
        return self._registry.load(backend)

    def _writes(
        self, assignments: Iterable[Assignment], shown: tuple[str, Scalar] | None = None
    ) -> Writes:
        routes: dict[str, dict[str, Any]] = {}
        parameters: dict[str, dict[str, Any]] = {}
        keys: dict[str, Key] = {}
        lab: dict[str, Any] = {}
        chosen = None
        # "main.streams" is more specific than "streams", in whichever order the two are written.
        for target, setting, key in sorted(
            assignments, key=lambda assignment: "." in assignment[0]
        ):
            if target == CHOICE:
                chosen = self._choice(setting, key)
                keys[target] = key
            elif target.startswith(LAB):
                if self._document.model.lab is None:
                    raise self._document.error(key, f"{quoted(target)} needs a [lab]")
                lab[target.removeprefix(LAB)] = setting
                keys[target] = key
            else:
                for flow, field in self._resolve(target, key):
                    kind = routes if field in FLOW_KEYS else parameters
                    kind.setdefault(flow, {})[field] = self._read(field, setting, key)
                    keys[f"{flow}.{field}"] = key
        flows = frozenset({*routes, *parameters})
        return Writes(flows, routes, parameters, keys, lab, chosen, shown)

    def _choice(self, setting: Any, key: Key) -> tuple[str, ...]:
        names = tuple(setting) if isinstance(setting, list) else (setting,)
        for name in names:
            if not isinstance(name, str) or name not in self.written:
                raise self._document.error(
                    key, f"no flow {quoted(name)}", self._hint(str(name), self.written)
                )
        if not names:
            raise self._document.error(key, "selects no flow")
        return names

    def _read(self, field: str, setting: Any, key: Key) -> Any:
        if field != "delay":
            return setting
        try:
            return parse_duration(setting)
        except ValueError as error:
            raise self._document.error(key, str(error)) from None

    def _resolve(self, target: str, key: Key) -> list[tuple[str, str]]:
        flow, dot, field = target.partition(".")
        if dot and flow in self.written:
            if not self.takes(flow, field):
                what = f"flow {quoted(flow)} has no parameter {quoted(field)}"
                raise self._document.error(key, what, self._hint(field, self._fields([flow])))
            return [(flow, field)]
        takers = [(flow, target) for flow in self.written if self.takes(flow, target)]
        if not takers:
            fields = self._fields(self.written)
            # A target without its table may mean a key of it.
            more = {
                *(f"run.{name}" for name in RunTable.model_fields),
                *(f"{flow}.{field}" for flow in self.written for field in self._fields([flow])),
            }
            hint = nearest(target, fields | more) or self._hint(target, fields)
            raise self._document.error(key, f"no flow takes {quoted(target)}", hint)
        return takers

    def _fields(self, flows: Iterable[str]) -> set[str]:
        parameters = {
            name
            for flow in flows
            for backend in self.backends[flow].values()
            for name in backend.parameters.model_fields
        }
        return {*FLOW_KEYS, *parameters}

    def _hint(self, name: str, known: Collection[str]) -> str:
        return nearest(name, sorted(known)) or f"known: {', '.join(sorted(known))}"

    def _check_axes(self) -> None:
        """Reject a field that two axes set, and a ``--set`` value that an axis always replaces."""
        writers: dict[str, str] = {}
        always: dict[str, set[str]] = {}
        for value, writes in self.of_values.items():
            always.setdefault(value.axis, set(writes.keys)).intersection_update(writes.keys)
            for target, key in writes.keys.items():
                if writers.setdefault(target, value.axis) != value.axis:
                    what = f"axis {quoted(writers[target])} sets {target} too"
                    raise self._document.error(key, what, "remove one of them")
        replaced = set().union(*always.values())
        for key in self._document.overrides.targets:
            targets = [target for target, by in self.constants.keys.items() if by == key]
            if targets and replaced.issuperset(targets):
                what = f"axis {quoted(writers[targets[0]])} sets it at every point"
                hint = "choose values with --only"
                search = self._document.model.search
                if search is not None and writers[targets[0]] == search.target:
                    ends = "..".join(map(write_rate, search.range_bps))
                    hint = f"set its range: --set search.{search.target}={ends}"
                raise self._document.error(key, what, hint)

    def _check_defaults(self) -> None:
        defaults = self._document.model.defaults.model_dump(by_alias=True, exclude_unset=True)
        for name in defaults:
            if name == "backend":
                raise self._document.error(("defaults", name), "set the backend in each flow")
            if not any(self.takes(flow, name) for flow in self.written):
                known = self._fields(self.written) - {"backend"}
                what = "no flow takes this parameter"
                raise self._document.error(("defaults", name), what, self._hint(name, known))


def accepts(backend: AnyBackend, field: str) -> bool:
    """Return whether a flow of this backend has a key or parameter."""
    if field == "direction":
        return len(backend.capabilities.directions) > 1
    return field in FLOW_KEYS or field in backend.parameters.model_fields


def point_text(writes: Iterable[Writes]) -> str:
    """Write the axis values of some assignments as people do: ``streams=4, window="1M"``."""
    return ", ".join(
        f"{dotted((shown[0],))}={quoted(shown[1])}" for write in writes if (shown := write.shown)
    )
