"""A planned trial with what its flows need to run: their backends, and validated parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace
from pydantic import ValidationError

from benchctl.api import Demand, Flow, Role, Tool
from benchctl.backends import AnyBackend, Registry
from benchctl.errors import MissingError
from benchctl.plugins import plugin_bugs
from benchctl.run.planned import LOCAL, Host, HostInterface, Network, PlannedFlow, PlannedTrial

T = TypeVar("T")
Promised = Mapping[str, Mapping[str, float]]
"""What theory expects of a flow in a lab, by direction and metric."""
UNPROMISED: Promised = MappingProxyType({})
LOCAL_IPV6 = "::1"


class BoundFlow(Struct, frozen=True):
    """A flow with its backend, and its parameters as the backend's own model."""

    plan: PlannedFlow
    backend: AnyBackend
    parameters: Any

    @property
    def demand(self) -> Demand:
        """The flow's demand on the network. Raises MissingError if its plugin fails."""
        return self._said(self.backend.demand)

    @property
    def duration_s(self) -> float:
        """The expected time of its client. Raises MissingError if its plugin fails."""
        return self._said(self.backend.duration_s)

    @property
    def traffic_bytes(self) -> float | None:
        """The payload that it will send, None if only the network decides; raises the same."""
        return self._said(self.backend.traffic_bytes)

    def _said(self, question: Callable[[Any], T]) -> T:
        backend = f'flow {self.plan.name}: backend "{self.plan.backend}"'
        with plugin_bugs(f"{backend} failed in {question.__name__}"):
            return question(self.parameters)

    @property
    def requested(self) -> dict[str, Any]:
        """Its parameters in SI units, as JSON-like data, without those not set."""
        values = self.parameters.model_dump(mode="json")
        return {
            name: "unlimited" if value == math.inf else value
            for name, value in values.items()
            if value is not None
        }

    def address_at(self, host: Host) -> str:
        """Return the address of a host, in the IP version that the flow needs."""
        if self.demand.ip_version != 6:
            return host.address
        return LOCAL_IPV6 if host.address == LOCAL.address else host.address6 or host.address

    def listens_at(self, host: Host) -> str:
        """Return where the flow's server listens: at any address, if the host's is translated."""
        address = self.address_at(host)
        if address in host.translated:
            return "::" if ":" in address else "0.0.0.0"
        return address

    def address_in(self, network: Network) -> str:
        """Return where the client finds the server."""
        target = network.target(self.plan.to)
        if target is not None:
            return self.address_at(target)
        name = network.peers[self.plan.to].host
        known = network.hosts.get(name)
        # Resolvers differ in which of two addresses they take for a name.
        return self.address_at(known) if known is not None and known.address6 else name

    def _interface(self, network: Network) -> HostInterface:
        """Return the flow's interface, without a source address that its IP version cannot use."""
        interface = network.interface(self.plan)
        if (
            interface.device
            and interface.address
            and self.demand.ip_version == 6
            and ":" not in interface.address
        ):
            return HostInterface(interface.device)
        return interface

    def described(
        self,
        network: Network,
        port: int | None,
        tools: Mapping[Role, Tool],
        role: Role,
        start_at_s: float | None = None,
        expected: Promised = UNPROMISED,
        second_port: int | None = None,
    ) -> Flow[Any]:
        """Return the flow as its backend sees it, for the command of one end."""
        rates = [
            metrics["throughput_bps"]
            for metrics in expected.values()
            if "throughput_bps" in metrics
        ]
        interface, address = self._interface(network), self.address_in(network)
        target = network.target(self.plan.to)
        if role is Role.SERVER and target is not None:
            address = self.listens_at(target)
        return Flow(
            params=self.parameters,
            direction=self.plan.direction,
            address=address,
            port=port,
            tool=tools[role],
            owns_server=target is not None and self.backend.capabilities.needs_server,
            one_clock=network.is_one_machine(self.plan.source, self.plan.to),
            source_address=interface.address,
            source_device=interface.device,
            client_ports=network.hosts[self.plan.source].ports,
            server_ports=None if target is None else target.ports,
            start_at_s=start_at_s,
            expected_bps=min(rates, default=None),
            second_port=second_port,
        )


class BoundTrial(Struct, frozen=True):
    """A trial whose flows are bound, in the order of the plan."""

    plan: PlannedTrial
    flows: tuple[BoundFlow, ...]


def bind_trial(plan: PlannedTrial, registry: Registry) -> BoundTrial:
    """Bind a trial from a store: its plan may have been checked by other versions of its backends.

    Raises MissingError if a backend is missing, or no longer accepts the parameters.
    """
    return BoundTrial(
        plan, tuple(bind_flow(flow, registry.load(flow.backend)) for flow in plan.flows)
    )


def timed(trial: BoundTrial) -> PlannedTrial:
    """Return the plan of a trial whose parameters were changed, with the time that it takes now."""
    plan = trial.plan
    longest_s = max(flow.plan.delay_s + flow.duration_s for flow in trial.flows)
    deadline_s = plan.deadline_s + max(0.0, longest_s - plan.duration_s)
    return replace(plan, duration_s=longest_s, deadline_s=deadline_s)


def bind_flow(flow: PlannedFlow, backend: AnyBackend) -> BoundFlow:
    """Bind one flow. Raises MissingError if the backend no longer accepts its parameters."""
    try:
        return accepted(flow, backend)
    except ValueError as error:
        raise MissingError(
            f'flow {flow.name}: backend "{flow.backend}" no longer accepts its parameters: {error}',
            "plan the profile again",
        ) from None


def accepted(flow: PlannedFlow, backend: AnyBackend) -> BoundFlow:
    """Bind one flow. Raises ValueError with the reason why the backend rejects its parameters."""
    bound = BoundFlow(flow, backend, parameters_of(backend, flow.parameters))
    bound.requested  # noqa: B018 (it is recorded with every attempt)
    return bound


def parameters_of(backend: AnyBackend, written: Mapping[str, Any]) -> Any:
    """Return parameters as a profile writes them as a backend's own model. Raises ValueError."""
    try:
        return backend.parameters.model_validate(written)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
