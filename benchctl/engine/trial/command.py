"""The command of one end of a flow, as its backend builds it for the host where it will run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from benchctl.api import Command, Failure, FailureKind, Flow, Role
from benchctl.engine.trial.flow import FlowAttempt
from benchctl.hosts.ssh.programs import located


def command_of(
    flow: FlowAttempt,
    role: Role,
    build: Callable[[Flow[Any]], Command | None],
    start_at_s: float | None = None,
) -> Command | None:
    """Return the command of one end; None if there is none, or if the flow failed because of it."""
    setup = flow.setup
    host = setup.target if role is Role.SERVER and setup.target else setup.source
    try:
        flow_of = setup.flow.described(
            setup.network, setup.port, setup.tools, role, start_at_s, setup.expected,
            setup.second_port,
        )  # fmt: skip
        command = build(flow_of)
        if command and host.reach is None:
            return replace(command, argv=located(command.argv))
        return command
    except ValueError as error:  # the tool on this host cannot do what the flow asks
        flow.fail(Failure(FailureKind.PARAMETER, str(error)), role)
    except Exception as error:  # third-party code may fail in any way
        text = f"the plugin failed to build a command: {type(error).__name__}: {error}"
        flow.fail(
            Failure(FailureKind.PARAMETER, text, "report it to the author of the plugin"), role
        )
    return None
