"""What happened within the flows of a run, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from benchctl.analysis.runs.summary import at_point
from benchctl.metrics import title_of
from benchctl.report.report import Report
from benchctl.run.planned import Settings
from benchctl.run.record import FlowEvent, Happening
from benchctl.units import format_duration, format_rate, format_ratio, format_value

# Beside an event people look for these; the JSON has all.
BESIDE = ("retransmits", "tcp_rtt_s", "rtt_s", "loss_ratio", "packets_lost", "cwnd_bytes")


def event_lines(report: Report) -> Iterator[str]:
    """Yield a heading for each trial with events, and a line for each of them."""
    for trial in report.trials:
        found = [(flow.flow.name, event) for flow in trial.flows for event in flow.events]
        if found:
            where = at_point(trial.trial.point, " ({})")
            yield f"trial {trial.trial.position + 1}{where}, repeat {trial.trial.repeat}"
        for name, event in found:
            yield f"  {name} {event.direction}, {event_text(event)}"


def event_text(event: FlowEvent) -> str:
    """Describe an event in one line."""
    before, after = (
        format_value(event.metric, level) for level in (event.level_before, event.level_after)
    )
    what = f"{title_of(event.metric)}: {event.kind}"
    lasts = format_duration((event.until_s or event.at_s) - event.at_s)
    match event.kind:
        case Happening.STALL:
            text = f"{what} for {lasts}, before at {before}"
        case Happening.OSCILLATION:
            period = format_duration(event.period_s or 0.0)
            text = f"{what} between {before} and {after} every {period}, for {lasts}"
        case Happening.CLOCK_STEP | Happening.DELAY_STEP:
            # Of a level that may be negative, a share misleads.
            size_s = event.level_after - event.level_before
            text = f"{what} by {'+' * (size_s > 0)}{format_duration(size_s)} to {after}"
        case _:
            share = event.level_after / event.level_before - 1 if event.level_before else None
            change = "" if share is None else f" ({'+' * (share > 0)}{format_ratio(share)})"
            text = f"{what} from {before} to {after}{change}"
    beside = [
        f"{title_of(metric)} {format_value(metric, event.beside[metric])}"
        for metric in BESIDE
        if metric in event.beside
    ]
    sure = [] if event.confidence is None else [f"confidence {_floor(event.confidence)}"]
    return "; ".join([f"at {format_duration(event.at_s)} {text}", *sure, *beside])


def _floor(confidence: float) -> str:
    """Write a confidence; never as certainty."""
    return "above 99.9 %" if confidence > 0.999 else format_ratio(confidence)


def lab_changes(settings: Settings, duration_s: float) -> list[tuple[float, str]]:
    """Return when the lab changes in a trial planned for ``duration_s``, and how.

    In seconds from its start, with words such as ``core 20 Mbit/s``.
    """
    found = []
    for change in settings.lab.changes if settings.lab is not None else ():
        rate = format_rate(change.rate) if isinstance(change.rate, float) else change.rate
        parts = [
            rate,
            change.delay is not None and format_duration(change.delay),
            change.jitter is not None and f"jitter {format_duration(change.jitter)}",
            change.loss is not None and f"loss {format_ratio(change.loss)}",
        ]
        ramp_s = change.ramp + change.ramp_share * duration_s
        over = f" in {format_duration(ramp_s)}" if ramp_s else ""
        word = f"{change.link} {', '.join(part for part in parts if part)}{over}"
        found.append((change.at + change.at_share * duration_s, word))
    return found


def tally(report: Report) -> str:
    """Return how many events of each kind there were: ``2 drops, 1 stall``; empty without any."""
    events = (event for trial in report.trials for flow in trial.flows for event in flow.events)
    counts = Counter(event.kind for event in events)
    return ", ".join(
        f"{counts[kind]} {_plural(kind) if counts[kind] > 1 else kind}"
        for kind in Happening
        if counts[kind]
    )


def _plural(kind: Happening) -> str:
    return f"{kind[:-1]}ies" if kind.endswith("ry") else f"{kind}s"
