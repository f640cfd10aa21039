"""What one trial shows in a search: whether its rate passes, and by which sign it does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchctl.analysis.flow.rising import excess_of
from benchctl.analysis.results import MISSED, FlowReport, TrialReport, asked_bps
from benchctl.analysis.runs.summary import point_key
from benchctl.analysis.search.search import Try
from benchctl.metrics import title_of
from benchctl.run.condition import Condition
from benchctl.run.planned import PlannedTrial, Search
from benchctl.run.record import Figure, Happening
from benchctl.run.status import Status
from benchctl.units import format_rate, format_value, parse_rate


def try_of(search: Search, ended: TrialReport) -> Try:
    """Return what a trial shows.

    It passes if the condition holds for every flow and direction with its metric, if no delay of a
    probe rises as under an excess of half the precision, and if the senders kept up with the rate:
    a rate that was not offered is not known to pass.
    """
    rate_bps = parse_rate(ended.trial.point[search.axis])
    if ended.trial.status is not Status.OK:
        return Try(rate_bps, None, None, ended.trial.error or str(ended.trial.status))
    values = list(_values(search.condition, ended))
    cannot_be = [why for flow in ended.flows for why in _broken(search.condition, flow)]
    if cannot_be and all(map(search.condition.holds, values)):
        return Try(rate_bps, None, None, cannot_be[0])
    if not values:
        return Try(rate_bps, None, None, f"{search.condition.metric} was not measured")
    parts = [part for flow in ended.flows if (part := _carried(search, flow)) is not None]
    carried_bps = rate_bps * min(parts) if parts else None
    whys = [
        f"{title_of(search.condition.metric)} {format_value(search.condition.metric, value)}"
        for value in values
        if not search.condition.holds(value)
    ]
    whys += [why for flow in ended.flows for why in _risen(search, flow)]
    unsent = [why for flow in ended.flows for why in _not_offered(search, flow)]
    # What a lower rate than asked for fails, the rate asked for would fail, too.
    doubtful = (bool(unsent) and not whys) or not all(link["kept"] for link in ended.trial.links)
    whys += unsent
    return Try(rate_bps, not whys, carried_bps, whys[0] if whys else "", doubtful)


def search_key(search: Search, trial: PlannedTrial) -> tuple[Any, ...]:
    """Return what the tries of one search have in common: the other axes, and the repeat."""
    point = {axis: value for axis, value in trial.point.items() if axis != search.axis}
    return point_key(point), trial.repeat


def _values(condition: Condition, ended: TrialReport) -> Iterator[float]:
    """Yield every figure that the condition is about."""
    for flow in ended.flows:
        for (_, metric), figure in flow.figures.items():
            if metric == condition.metric:
                value = _reduced(figure, condition.aggregate)
                if value is not None:
                    yield value


def _broken(condition: Condition, report: FlowReport) -> Iterator[str]:
    """Yield why figures that the condition is about cannot be."""
    for (_, metric), figure in report.reported.items():
        if metric == condition.metric and figure.broken is not None and not figure.counts:
            yield f"{title_of(metric)} of {report.flow.name} cannot be: {figure.broken.words}"


def _reduced(figure: Figure, aggregate: str) -> float | None:
    return figure.value if aggregate in ("", "mean") else figure.spread.get(aggregate)


def _risen(search: Search, report: FlowReport) -> Iterator[str]:
    for event in report.events:
        if event.kind is Happening.RISING_DELAY and excess_of(event) > search.precision / 2:
            by = format_value(event.metric, event.level_after - event.level_before)
            yield f"{title_of(event.metric)} of {report.flow.name} rose by {by}"


def _not_offered(search: Search, report: FlowReport) -> Iterator[str]:
    """Yield the directions in which a sender did not reach the rate."""
    wanted_bps = asked_bps(report.flow, search.sets.get(report.flow.name, ""))
    for direction in dict.fromkeys(direction for direction, _ in report.figures):
        offered_bps = _offered_bps(report, direction)
        if not wanted_bps or offered_bps is None:
            continue
        # One packet more or less is due to when the trial ended.
        packets = report.figures.get((direction, "packets_sent"))
        grain = 2 / packets.value if packets and packets.value else 0.0
        if offered_bps < wanted_bps * (1 - max(MISSED, search.precision) - grain):
            yield f"only {format_rate(offered_bps)} of {format_rate(wanted_bps)} were sent"


def _offered_bps(report: FlowReport, direction: str) -> float | None:
    """Return what was sent; by what arrived and the loss if the sender does not say."""
    sent, arrived, lost = (
        report.figures.get((direction, metric))
        for metric in ("sent_bps", "throughput_bps", "loss_ratio")
    )
    if sent is not None:
        return sent.value
    if arrived is None or lost is None or lost.value >= 1:
        return None
    return arrived.value / (1 - lost.value)


def _carried(search: Search, report: FlowReport) -> float | None:
    """Return the smallest share that arrived of what was asked for, or sent; None if not known."""
    wanted_bps = asked_bps(report.flow, search.sets.get(report.flow.name, ""))
    shares = [
        figure.value / base_bps
        for (direction, metric), figure in report.figures.items()
        if metric == "throughput_bps"
        and (base_bps := wanted_bps or _offered_bps(report, direction))
    ]
    return min([1.0, *shares]) if shares else None


def expected_bps(search: Search, ended: TrialReport) -> float | None:
    """Return the rate that theory expects to be the highest; None if it expects no limit here."""
    rate_bps = parse_rate(ended.trial.point[search.axis])
    shares = [
        metrics["throughput_bps"] / wanted_bps
        for flow in ended.flows
        if (wanted_bps := asked_bps(flow.flow, search.sets.get(flow.flow.name, "")))
        for metrics in flow.flow.expected.values()
        if "throughput_bps" in metrics
    ]
    return rate_bps * min(shares) if shares and min(shares) < 1 - 1e-6 else None
