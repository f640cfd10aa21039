"""A flow keeps its parameters as the backend read them; a recorded one is read once more."""

from decimal import Decimal
from pathlib import PurePath

import pytest
from engine.fakes import FakeBackend
from engine.virtual import REGISTRY, flow, trial

from benchctl.api import Field, Parameters, Rate
from benchctl.errors import MissingError
from benchctl.plan.bound import bind_flow, bind_trial


class RichParameters(Parameters):
    duration: str = Field(description="as written")
    label: str = Field("x", description="a word")
    rate: Rate = Field("unlimited", description="a bound", validate_default=True)
    share: Decimal = Field(Decimal("0.5"), description="a type that JSON has not")
    file: PurePath = Field(PurePath("here"), description="another")
    nothing: int | None = Field(None, description="not set")


class RichBackend(FakeBackend):
    parameters = RichParameters


class FaultyBackend(FakeBackend):
    def demand(self, params):
        return params.window

    def duration_s(self, params):
        return params.seconds

    def traffic_bytes(self, params):
        return params.bytes


class OddParameters(RichParameters):
    odd: object = Field(default_factory=object, description="what nothing can write")


class OddBackend(FakeBackend):
    parameters = OddParameters


def test_what_was_requested_is_data_that_json_holds():
    assert bind_flow(flow(), RichBackend()).requested == {
        "duration": "1s", "label": "x", "rate": "unlimited", "share": "0.5", "file": "here",
    }  # fmt: skip


def test_the_model_is_kept_and_the_plan_says_what_was_written():
    (bound,) = bind_trial(trial(flow(duration="2s")), REGISTRY).flows
    assert (bound.parameters.duration, bound.plan.parameters["duration"]) == (2.0, "2s")


@pytest.mark.parametrize(
    ("backend", "parameters", "what"),
    [
        (FakeBackend(), {"speed": 1}, "speed: Extra inputs"),
        (OddBackend(), {}, "Unable to serialize"),
    ],
)
def test_a_backend_that_takes_its_parameters_no_more_is_named(backend, parameters, what):
    with pytest.raises(
        MissingError, match=f'backend "fake" no longer accepts its parameters: {what}'
    ):
        bind_flow(flow(**parameters), backend)


@pytest.mark.parametrize("what", ["demand", "duration_s", "traffic_bytes"])
def test_a_backend_that_fails_to_say_what_a_flow_asks_is_named(what):
    bound = bind_flow(flow(), FaultyBackend())
    error = f'flow main: backend "fake" failed in {what}: AttributeError: '
    with pytest.raises(MissingError, match=error) as caught:
        getattr(bound, what)
    assert caught.value.hint == "report it to the author of the plugin"
