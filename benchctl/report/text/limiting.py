"""What limited each flow of a run, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from msgspec.structs import asdict

from benchctl.analysis.flow.limiting import EXCEEDED, Limit, Limiter, limit_of, waits_of
from benchctl.analysis.results import FlowReport
from benchctl.analysis.runs.summary import point_key
from benchctl.report.pivot import Pivot
from benchctl.report.report import Report
from benchctl.report.text.packets_text import waited_text
from benchctl.run.record import RecordedFlow
from benchctl.units import format_count, format_duration, format_rate, format_ratio, format_value

# More lines than a screen has are read by nobody: then each reason has one.
MOST_LINES = 12


class FlowLimit(NamedTuple):
    """What limited a flow in one direction at a point, over its repeats."""

    point: Mapping[str, Any]
    flow: str
    direction: str
    limit: Limit


def limits(report: Report) -> Iterator[FlowLimit]:
    """Yield what limited each flow at each point, in each direction."""
    flows: dict[tuple[Any, str], list[RecordedFlow]] = {}
    for trial in report.trials:
        for flow in trial.flows:
            if flow.flow.status.counts:
                key = point_key(trial.trial.point), flow.flow.name
                flows.setdefault(key, []).append(flow.flow)
    means: dict[tuple[Any, str], dict[tuple[str, str], float]] = {}
    points: dict[Any, Mapping[str, Any]] = {}
    for row in report.summary:
        key = point_key(row.point), row.flow
        points[key] = row.point
        means.setdefault(key, {})[row.direction, row.metric] = row.spread.mean
    for key, figures in means.items():
        for direction in dict.fromkeys(direction for direction, _ in figures):
            if repeats := flows.get(key):
                own, waits = _of_direction(figures, direction), waits_of(repeats, direction)
                limit = limit_of(repeats[-1], direction, own, waits)
                if limit is not None:
                    yield FlowLimit(points[key], key[1], direction, limit)


def limit_lines(report: Report) -> Iterator[str]:
    """Yield a line for each point, flow and direction, or one for each reason if these are many.

    Those of which the reason is not known share one line in any case.
    """
    lines = []
    for point, flow, direction, limit in limits(report):
        at = [f"{axis}={value}" for axis, value in point.items()]
        lines.append((limit.by, " ".join([*at, flow, direction]), reason(limit)))
    counts = Counter(by for by, _, _ in lines)
    if len(lines) > MOST_LINES:
        gathered = [*Limiter]
    else:  # what says little takes one line
        gathered = [Limiter.UNKNOWN] if counts[Limiter.UNKNOWN] > 1 else []
    yield from (f"{where}: {by}: {why}" for by, where, why in lines if by not in gathered)
    for by in gathered:
        example = next((f"{where}: {why}" for limiter, where, why in lines if limiter is by), "")
        if example:
            yield f"{by}: {counts[by]} of {len(lines)}, such as {example}"


def limit_table(report: Report) -> Pivot | None:
    """Return what limited each flow, a row for each point and direction; None of no flow."""
    axes = report.run.varying
    rows = [
        (*(str(point.get(axis, "-")) for axis in axes), flow, direction, str(limit.by),
         reason(limit))
        for point, flow, direction, limit in limits(report)
    ]  # fmt: skip
    heads = (*axes, "flow", "direction", "limited by", "why")
    return Pivot(heads, (False,) * len(heads), tuple(rows)) if rows else None


def limits_of(report: FlowReport) -> dict[str, Limit]:
    """Return what limited one attempt of a flow, by direction."""
    means = {key: figure.value for key, figure in report.figures.items()}
    found = {
        direction: limit_of(report.flow, direction, _of_direction(means, direction))
        for direction in dict.fromkeys(direction for direction, _ in report.figures)
    }
    return {direction: limit for direction, limit in found.items() if limit is not None}


def limit_entry(limit: Limit) -> dict[str, Any]:
    """Return a limit as JSON-like data, in SI base units."""
    return {**asdict(limit), "text": limit_text(limit)}


def _of_direction(figures: Mapping[tuple[str, str], float], direction: str) -> dict[str, float]:
    """Return the figures of a direction, and those of the processes, which have none."""
    shared = {metric: value for (_, metric), value in figures.items() if metric.startswith("cpu_")}
    return shared | {metric: value for (d, metric), value in figures.items() if d == direction}


def limit_text(limit: Limit) -> str:
    """Describe what limited a flow, with the bound and what was measured."""
    return f"{limit.by}: {reason(limit)}"


_BY_WAITS = (Limiter.RECEIVE_WINDOW, Limiter.NETWORK, Limiter.SENDER)
"""What the waits of a sender say without any other bound."""


def reason(limit: Limit) -> str:
    """Return why it is that, with the bound and what was measured."""
    if limit.waits_s is None:
        return _why(limit)
    many = limit.connections if limit.connections and limit.connections > 1 else 0
    of = f" of {many:,} connections" if many else ""
    senders = "the senders" if many else "the sender"
    lasted = format_duration(sum(limit.waits_s.values()))
    waited = f"of {lasted}{of}, {senders} {waited_text(limit.waits_s)}"
    if limit.by in _BY_WAITS or (limit.by is Limiter.LOSS and not limit.fits_loss):
        return f"{waited}; {format_rate(limit.rate_bps)} measured"
    return f"{_why(limit)}; {waited}"


def _why(limit: Limit) -> str:
    measured = format_rate(limit.rate_bps)
    match limit.by:
        case Limiter.RATE:
            return f"{format_rate(limit.asked_bps)} were asked for, and {measured} measured"
        case Limiter.RECEIVE_WINDOW:
            many = f"{limit.streams} x " if limit.streams > 1 else ""
            window = format_value("peer_window_bytes", limit.window_bytes or 0.0)
            allowed = format_rate(limit.window_bps)
            bound = f"{many}{window} per {format_duration(limit.rtt_s)} are {allowed}"
            return f"{bound}, and {measured} measured{_held(limit)}"
        case Limiter.SEND_BUFFER:
            return f"{measured} measured{_held(limit)}"
        case Limiter.BUFFERS:
            allowed = f"those of the two hosts allow {format_rate(limit.share_bps)}"
            return f"by theory {allowed}, and {measured} measured"
        case Limiter.BOTTLENECK if limit.share_bps and limit.rate_bps >= 0.9 * limit.share_bps:
            return f"{_share(limit)}, and {measured} measured"
        case Limiter.BOTTLENECK if limit.rtt_s is not None and limit.min_rtt_s is not None:
            added = format_duration(limit.rtt_s - limit.min_rtt_s)
            share = f"; {_share(limit)}" if limit.share_bps else ""
            least = format_duration(limit.min_rtt_s)
            return f"its queue adds {added} to {least}; {measured} measured{share}"
        case Limiter.BOTTLENECK:
            share = f"; {_share(limit)}" if limit.share_bps else ""
            lost = format_ratio(limit.loss_ratio or 0.0)
            if not limit.host_lost or limit.lost is None:
                return f"{lost} were lost on the way{share}"
            on_path = f"{limit.lost - limit.host_lost:,.0f} on the way"
            return f"{lost} were lost: {on_path}, {limit.host_lost:,.0f} {_AT_HOST}{share}"
        case Limiter.LOSS:
            return f"{_events(limit)}, and {measured} measured"
        case Limiter.PROCESSOR | Limiter.SENDER:
            used = format_ratio(limit.cpu_ratio) if limit.cpu_ratio is not None else ""
            core = f", with {used} of a core" if used else ""
            asked = f" of {format_rate(limit.asked_bps)}" if limit.asked_bps else ""
            idle = limit.idle_ratio if limit.by is Limiter.SENDER else None
            waited = (
                f"; it had nothing to send for {format_ratio(idle)} of the time" if idle else ""
            )
            return f"{measured}{asked} measured{core}{waited}"
        case Limiter.RECEIVER:
            gone, here = limit.lost or 0.0, limit.host_lost or 0.0
            rest = f", {gone - here:,.0f} were lost on the way" if gone > here else ""
            count = format_count(round(gone), "lost datagram")
            return f"{here:,.0f} of {count} were dropped {_AT_HOST}{rest}"
        case _:
            return f"{measured} measured; {_unknown(limit)}"


_AT_HOST = "at the full socket of the receiving host"


def _events(limit: Limit) -> str:
    """Return the loss events of a flow, and the rates that the models of Reno allow with them."""
    least, most = limit.loss_events_least or 0.0, limit.loss_events_most or 0.0
    count = format_count(round(most), "loss event")
    if least != most:
        count = f"{least:,.0f} to {count}"
    elif limit.loss_event_ratio:
        count += f", {format_ratio(limit.loss_event_ratio)} of the segments,"
    allow = "allows" if least == most == 1 else "allow"
    models = f"{format_rate(limit.padhye_bps)} (Padhye) to {format_rate(limit.mathis_bps)} (Mathis)"
    return f"{count} {allow} Reno {models}"


def _share(limit: Limit) -> str:
    links = f"link {limit.link}" if limit.link else "the links"
    return f"its share of {links} is {format_rate(limit.share_bps)}"


def _unknown(limit: Limit) -> str:
    if limit.asked_bps and limit.rate_bps > EXCEEDED * limit.asked_bps:
        return f"that is more than the {format_rate(limit.asked_bps)} that were asked for"
    if limit.rtt_s is None:
        return "the sender's round-trip time, window and loss are not reported at this end"
    if limit.loss_ratio and limit.loss_events_most is None:
        again = format_ratio(limit.loss_ratio)
        return f"how many loss events {again} of segments sent again were is not known"
    if limit.fits_loss:
        return f"loss may be why: {_events(limit)}"
    if limit.mathis_bps is not None:
        return f"its loss does not explain it: {_events(limit)}"
    if limit.loss_ratio:
        again = format_ratio(limit.loss_ratio)
        return f"no model says what {again} of segments sent again make of its congestion control"
    return "neither a window, nor loss, nor a queue explains it"


def _held(limit: Limit) -> str:
    if limit.held_ratio is None:
        return ""
    return f"; it held the sender back for {format_ratio(limit.held_ratio)} of its busy time"
