"""What is chosen for a run on the plan screen, instead of what its profile says. Pure.

Every choice is an option of ``benchctl run``, so the command that does the same is known.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from benchctl.profile.find import NO_LAB

if TYPE_CHECKING:
    from benchctl.plan.plan import Plan

FLOWS = "flows"
LAB = "--lab"
"""The key of the topology, which has an option of its own."""


class Settable(Struct, frozen=True):
    """One value that can be chosen: its key for ``--set``, what it is called, and what it is now.

    ``words`` may be in it.
    """

    key: str
    name: str
    value: str
    words: Sequence[str] = ()


class Choices(Struct, frozen=True):
    """The values that were chosen, by key."""

    values: Mapping[str, str] = {}

    def with_value(self, key: str, text: str) -> Choices:
        """Return the choices with another value; an empty text leaves it to the profile."""
        values = {name: value for name, value in self.values.items() if name != key}
        return replace(self, values=values | ({key: text} if text else {}))

    @property
    def assignments(self) -> list[str]:
        """What ``--set`` takes."""
        return [
            f"{key}={_as_list(text) if key == FLOWS else text}"
            for key, text in self.values.items()
            if key != LAB
        ]

    @property
    def lab(self) -> str | None:
        """What ``--lab`` takes."""
        return self.values.get(LAB)

    @property
    def options(self) -> list[str]:
        """The words of the command line."""
        words = [word for text in self.assignments for word in ("--set", text)]
        return [*words, *([LAB, self.lab] if self.lab else [])]


def choices_of(plan: Plan, labs: Sequence[str]) -> list[Settable]:
    """Return what can be chosen for a plan, as it is planned now.

    ``labs`` are the topologies that are known.
    """
    model = plan.document.model
    places = ["local", *model.servers, *model.hosts]
    found = [
        Settable(
            axis,
            axis,
            ", ".join(map(str, values)),
            [*map(str, values), *(places if "to" in _targets(plan, axis) else ())],
        )
        for axis, values in plan.values.items()
    ]
    sets = {target for axis in plan.values for target in _targets(plan, axis)}
    if len(model.flows) > 1 and FLOWS not in sets:
        names = [*dict.fromkeys(flow.name for flow in plan.trial(0).plan.flows)]
        found.append(Settable(FLOWS, FLOWS, ", ".join(names), [*model.flows]))
    durations = {
        str(flow.parameters["duration"])
        for flow in plan.trial(0).plan.flows
        if "duration" in flow.parameters
    }
    if "duration" not in sets:
        found.append(
            Settable("duration", "duration", ", ".join(sorted(durations)), ["10s", "1min"])
        )
    found.append(Settable("run.repeats", "repeats", str(plan.repeats)))
    topology = model.lab.topology if model.lab is not None else NO_LAB
    found.append(Settable(LAB, "lab", topology, [NO_LAB, *labs]))
    if "to" not in sets:
        for flow in plan.trial(0).plan.flows:
            found.append(Settable(f"flows.{flow.name}.to", f"{flow.name} goes to", flow.to, places))
    for name, server in model.servers.items():
        found.append(Settable(f"servers.{name}.host", f"address of {name}", server.host))
    return found


def _as_list(text: str) -> str:
    return json.dumps([part.strip() for part in text.split(",")])


def _targets(plan: Plan, axis: str) -> Sequence[str]:
    """Return what an axis sets: its name, if the profile says nothing else."""
    form = plan.document.model.axes.get(axis)
    sets = getattr(form, "sets", None)
    return [axis] if sets is None else [sets] if isinstance(sets, str) else [*sets]
