"""Trials of one flow with any figures, as a store gives them to strategies and searches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchctl.analysis.results import FlowReport, TrialReport
from benchctl.metrics import Direction
from benchctl.run.condition import parse_condition
from benchctl.run.planned import PlannedFlow, Search
from benchctl.run.record import Figure, FlowEvent, RecordedFlow, Trial
from benchctl.run.status import Status
from benchctl.units import parse_rate

FLOW = PlannedFlow("main", "fake", "local", "local", None, Direction.SEND, 0.0, {})
SEARCH = Search(
    "rate", {"main": "rate"}, 1e6, 1e9, parse_condition("loss_ratio < 0.1%"), 0.01, 2, 20
)


def ended(
    position: int,
    repeat: int,
    point: Mapping[str, Any],
    figures: Mapping[str, float],
    *,
    requested: Mapping[str, Any] | None = None,
    expected: Mapping[str, float] | None = None,
    events: Sequence[FlowEvent] = (),
    status: Status = Status.OK,
    error: str = "",
    kept: bool = True,
) -> TrialReport:
    """Return a trial of one flow with figures by metric."""
    flow = RecordedFlow(
        id=position + 1, trial_id=position + 1, attempt=1, name="main", backend="fake",
        source="local", target="local", direction="send", port=None, status=status, failure="",
        error=error, hint="", client=(), server=(), requested=requested or {}, effective={},
        expected={"send": expected or {}}, started_time=None, finished_time=None, exit_code=0,
        stderr="",
    )  # fmt: skip
    links: Any = ({"link": "L2", "kept": kept},)
    trial = Trial(
        id=position + 1, run_id=1, position=position, repeat=repeat, point=point, flows=(FLOW,),
        lab={}, duration_s=5.0, deadline_s=9.0, status=status, error=error, started_time=None,
        finished_time=None, start_skew_s=None, fairness_jain=None, links=links,
    )  # fmt: skip
    own = {("send", metric): Figure(value, "tool") for metric, value in figures.items()}
    return TrialReport(trial, [FlowReport(flow, own, events)])


def tried(
    position: int,
    point: Mapping[str, Any],
    capacity_bps: float,
    repeat: int = 1,
    *,
    sent_bps: float | None = None,
    **more: Any,
) -> TrialReport:
    """Return a try at the rate of a point over a link without a queue."""
    rate_bps = parse_rate(point["rate"])
    sent_bps = rate_bps if sent_bps is None else sent_bps
    arrived_bps = min(sent_bps, capacity_bps)
    figures = {
        "sent_bps": sent_bps,
        "throughput_bps": arrived_bps,
        "loss_ratio": 1 - arrived_bps / sent_bps,
    }
    expected = {"throughput_bps": min(rate_bps, capacity_bps)}
    return ended(
        position, repeat, point, figures, requested={"rate": rate_bps}, expected=expected, **more
    )
