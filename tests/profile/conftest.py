"""Two backends that play tools, and ways to write, plan and refuse profiles in a few lines."""

from datetime import date
from types import SimpleNamespace
from typing import Literal

import pytest
from pydantic import model_validator

from benchctl.api import (
    Backend,
    Capabilities,
    Direction,
    Duration,
    Field,
    Fold,
    Metric,
    Parameters,
    Rate,
    Size,
)
from benchctl.backends import Registry
from benchctl.errors import BenchctlError
from benchctl.plan.plan import make_plan
from benchctl.plugins import Candidate
from benchctl.profile.load import load_profile


class StreamParameters(Parameters):
    duration: Duration = Field(10.0, gt=0, le=86400, description="time")
    omit: Duration = Field(0.0, description="warm-up")
    streams: int = Field(1, ge=1, le=128, description="parallel connections")
    window: Size | None = Field(None, description="socket buffer")
    bytes: Size | None = Field(None, description="amount instead of a time")
    rate: Rate | None = Field(None, description="pacing")
    protocol: Literal["tcp", "udp"] = Field("tcp", description="transport")
    congestion_control: str | None = Field(None, min_length=2, description="algorithm")
    ip_version: Literal["auto", 4, 6] = Field("auto", description="version")
    no_delay: bool = Field(False, description="Nagle off")
    tags: list[int] = Field([], description="a list")
    since: date | float | None = Field(None, description="what TOML has and JSON has not")

    @model_validator(mode="after")
    def _udp_has_no_window(self):
        if self.protocol == "udp" and self.window is not None:
            raise ValueError("udp has no window")
        return self


class EchoParameters(Parameters):
    count: int = Field(description="probes")
    interval: Duration = Field(1.0, gt=0, description="between probes")
    duration: Duration | None = Field(None, description="at most")


class Fake(Backend):
    def probe(self, role):
        return None

    def read_probe(self, role, exit_code, output):
        raise AssertionError("a plan runs nothing")

    def client(self, flow):
        raise AssertionError("a plan runs nothing")


class Stream(Fake):
    name = "stream"
    summary = "throughput"
    parameters = StreamParameters
    capabilities = Capabilities(
        (Direction.SEND, Direction.RECEIVE, Direction.BOTH),
        default_port=5201,
        needs_server=True,
        metrics=(Metric("stalls", "how often nothing came", Fold.COUNT, "lower"),),
    )

    def duration_s(self, params):
        return params.duration + params.omit


class Echo(Fake):
    name = "echo"
    summary = "round-trip time"
    parameters = EchoParameters
    capabilities = Capabilities((Direction.ROUND_TRIP,))

    def duration_s(self, params):
        return params.count * params.interval


@pytest.fixture(scope="session")
def registry():
    def broken():
        raise ImportError("no module of that kind")

    backends = {"stream": Stream, "echo": Echo, "broken": broken}
    return Registry({name: Candidate(name, "tests", load) for name, load in backends.items()})


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty directory to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def load(here):
    """Load the text of a profile as ``p.toml``."""

    def load(text, *settings):
        (here / "p.toml").write_text(text, encoding="utf-8")
        return load_profile("p.toml", settings)

    return load


@pytest.fixture
def plan(load, registry):
    """Plan the text of a profile."""

    def plan(text, *settings, **options):
        return make_plan(load(text, *settings), registry, **options)

    return plan


@pytest.fixture
def refusal(plan):
    """Return the error of a profile: its kind, the one line that says it, and the hint."""

    def refusal(text, *settings, **options):
        with pytest.raises(BenchctlError) as caught:
            plan(text, *settings, **options)
        error = caught.value
        assert len(error.message.splitlines()) == 1, error.message
        assert len(error.hint.splitlines()) <= 1, error.hint
        return SimpleNamespace(kind=type(error).__name__, message=error.message, hint=error.hint)

    return refusal
