"""The commands of a backend for a flow within this machine, as a run would start them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import ValidationError

from benchctl.api import Command, Direction, Flow, Role
from benchctl.backends import AnyBackend
from benchctl.engine.checks.network import ports_of
from benchctl.engine.checks.tools import Toolbox
from benchctl.errors import UsageError
from benchctl.hosts.local.spawn import Spawner
from benchctl.hosts.ssh.programs import located
from benchctl.plan.bound import accepted
from benchctl.plugins import plugin_bugs
from benchctl.run.planned import LOCAL, Network, PlannedFlow
from benchctl.toml.source import dotted
from benchctl.toml.table import explain

Said = TypeVar("Said")


async def ends_of(
    spawner: Spawner,
    backend: AnyBackend,
    direction: Direction | None = None,
    parameters: Mapping[str, Any] | None = None,
    port: int | None = None,
) -> dict[Role, tuple[Flow[Any], Command]]:
    """Return the flow and the command of each end that benchctl runs, the server's first.

    They use the first free ports unless one is given. Raises ValueError if the backend does
    not accept the flow, MissingError if a program is missing or the plugin fails.
    """
    flow_direction = direction or backend.capabilities.directions[0]
    here, network = LOCAL.name, Network({LOCAL.name: LOCAL})
    plan = PlannedFlow(
        backend.name, backend.name, here, here, None, flow_direction, 0.0, parameters or {}
    )
    bound = accepted(plan, backend)
    tools = await Toolbox(spawner).of_flow(backend, LOCAL, LOCAL)
    taken = () if port is None else (port,)
    (free, second_port), *_ = await ports_of(bound, network, taken, spawner, {})
    if port is None or free is None:
        port = free
    ends: dict[Role, tuple[Flow[Any], Command]] = {}
    for role, build in ((Role.SERVER, backend.server), (Role.CLIENT, backend.client)):
        if role in tools:
            flow = bound.described(network, port, tools, role, second_port=second_port)
            if (command := said(backend, build, flow)) is not None:
                ends[role] = flow, replace(command, argv=located(command.argv))
    return ends


def check_parameters(backend: AnyBackend, parameters: Mapping[str, Any]) -> None:
    """Raise UsageError, as for ``--set``, if the backend does not accept them."""
    try:
        backend.parameters.model_validate(dict(parameters))
    except ValidationError as error:
        known = [*backend.parameters.model_fields]
        unknown = f"{backend.name} has no such parameter"
        key, what, hint = explain(error, parameters, lambda _: known, unknown)
        name = dotted(key) or " ".join(parameters)
        raise UsageError(f"--set {name}: {what}", hint) from None


def said(backend: AnyBackend, question: Callable[[Any], Said], about: Any) -> Said:
    """Return what a method of a backend says. Raises ValueError as it does, else MissingError."""
    with plugin_bugs(f'backend "{backend.name}" failed in {question.__name__}', ValueError):
        return question(about)
