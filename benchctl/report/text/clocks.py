"""What one-way delays show of the clocks of the two ends, in words.

The figures as measured stay as they are, and those without the offset stand beside them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchctl.analysis.clocks.clocks import (
    RECEIVE,
    SEND,
    ClockPoint,
    Clocks,
    ClocksOverRun,
    ClockVerdict,
    clocks_of,
    clocks_over,
)
from benchctl.analysis.results import FlowReport, fewest_packets
from benchctl.analysis.runs.summary import at_point
from benchctl.report.report import Report
from benchctl.run.record import ClockReading, RecordedFlow, Run, Trial
from benchctl.units import format_duration

# More lines of one kind are read by nobody.
MOST_LINES = 3


def clocks_in(run: Run, report: FlowReport) -> Clocks | None:
    """Return what an attempt of a flow shows of the clocks; None if nothing has to be said."""
    if delays_error_s(report.flow) is not None:
        return None  # their offset is taken out
    return clocks_of(
        report.figures, report.flow.expected, one_clock=_has_one_clock(run, report.flow)
    )


def delays_error_s(flow: RecordedFlow) -> float | None:
    """Return by how much delays may be wrong that have no offset in them: those of its packets.

    None if the packets of both ends were not recorded by clocks that are known.
    """
    errors_s = (pair.get("clock_error_s") for pair in flow.paired)
    return next((error_s for error_s in errors_s if error_s is not None), None)


def _has_one_clock(run: Run, flow: RecordedFlow) -> bool:
    network = run.settings.network.network
    in_lab = run.settings.lab is not None and flow.target not in network.peers
    return not run.origin and (in_lab or network.is_one_machine(flow.source, flow.target))


def clock_lines(report: Report) -> Iterator[str]:
    """Yield what the delays of a run show of the clocks.

    A line for each flow whose clocks moved over its trials, else one for each trial, or for a few
    of them.
    """
    yield from _between_hosts(report)
    for flow, found in _points(report).items():
        over = clocks_over([point for _, point in found])
        if over is not None:
            yield f"{flow}: {over_text(over)}"
        lines = dict.fromkeys((where, clock_text(point.clocks)) for where, point in found)
        shown = MOST_LINES if over is None else 1
        for where, text in [*lines][-shown:]:
            yield f"{flow}{where}: {text}"
        if len(lines) > shown:
            yield f"{flow}: {len(lines) - shown} more such trials; benchctl show --trials has them"


def _between_hosts(report: Report) -> Iterator[str]:
    """Yield how far the clocks of flows with one-way delays are apart, in the last trial of each.

    By the round trips of SSH.
    """
    texts = {}
    for trial in report.trials:
        for flow in trial.flows:
            if any(metric == "owd_s" for _, metric in flow.figures):
                texts[flow.flow.name] = apart_text(trial.trial, flow.flow)
    yield from (f"{flow}: {text}" for flow, text in texts.items() if text)


def apart_text(trial: Trial, flow: RecordedFlow) -> str:
    """Return how far the clocks of a flow's ends are apart; empty if neither is elsewhere."""
    ends = [trial.clocks.get(name) for name in (flow.source, flow.target)]
    if ends == [None, None]:
        return ""
    ours = ClockReading(0.0, 0.0, 0.0)
    source, target = (end or ours for end in ends)
    offset_s, error_s = target.offset_s - source.offset_s, target.error_s + source.error_s
    carried = "both"
    if (known_s := delays_error_s(flow)) is not None:
        carried, error_s = "only this error", known_s
    return (
        f"by the round trips of SSH, the clock of {flow.target} is {_signed(offset_s)} from that of"
        f" {flow.source}, \N{PLUS-MINUS SIGN}{_length(error_s)}: one-way delays carry {carried}"
    )


def over_entries(report: Report) -> list[dict[str, Any]]:
    """Return the flows whose clocks moved over the trials as JSON-like data."""
    moved = {
        flow: clocks_over([point for _, point in found]) for flow, found in _points(report).items()
    }
    return [over_entry(flow, over) for flow, over in moved.items() if over is not None]


def over_entry(flow: str, over: ClocksOverRun) -> dict[str, Any]:
    """Return how the clocks of a flow moved as JSON-like data, in SI base units."""
    return {
        "flow": flow,
        "offsets_s": over.offsets_s,
        "symmetric_medians_s": over.usual_s,
        "lasted_s": over.lasted_s,
        "drift_ratio": over.drift,
        "text": over_text(over),
    }


def _points(report: Report) -> dict[str, list[tuple[str, ClockPoint]]]:
    """Return what each trial shows of the clocks, by flow, with the words for where."""
    seen: dict[str, list[tuple[str, ClockPoint]]] = {}
    for trial in report.trials:
        for flow in trial.flows:
            if flow.flow.status.counts and (clocks := clocks_in(report.run, flow)) is not None:
                where = at_point(trial.trial.point)
                where += f", repeat {trial.trial.repeat}" if trial.trial.repeat > 1 else ""
                point = ClockPoint(_moment(flow), fewest_packets(flow.figures), clocks)
                seen.setdefault(flow.flow.name, []).append((where, point))
    return seen


def _moment(report: FlowReport) -> float:
    """Return the time that a flow's offset is of: second 0 if its drift is known, else its middle.

    In Unix time.
    """
    flow = report.flow
    began, ended = flow.started_time or 0.0, flow.finished_time or flow.started_time or 0.0
    known = any(metric == "clock_drift_ratio" for _, metric in report.figures)
    return began if known else (began + ended) / 2


def clock_entry(clocks: Clocks) -> dict[str, Any]:
    """Return what the delays show of the clocks as JSON-like data, in SI base units."""
    return {
        "verdict": clocks.verdict,
        "offset_s": clocks.offset_s,
        "symmetric_s": clocks.way_s,
        "drift_ratio": clocks.drift,
        "synchronized": clocks.synchronized,
        "error_s": clocks.error_s,
        "text": clock_text(clocks),
    }


def clock_text(clocks: Clocks) -> str:
    """Describe what a flow's delays show of the clocks, with the figures it follows from."""
    match clocks.verdict:
        case ClockVerdict.APART:
            text = _apart(clocks)
        case ClockVerdict.CLOCKS_OR_PATH:
            text = (
                f"{_minima(clocks)}: clocks or an asymmetric path; if the path is symmetric, the"
                f" clocks are {_length(abs(clocks.offset_s or 0.0))} apart and each way takes"
                f" {_length(clocks.way_s)}"
            )
        case ClockVerdict.UNKNOWN_OFFSET:
            text = (
                "one-way delays carry an unknown offset,"
                " and only differences of delays in one direction can be relied on"
            )
        case ClockVerdict.COARSE:
            return (
                f"the clocks are synchronized only to within {_length(clocks.error_s)}, and the"
                f" least delay is {_length(min(clocks.least_s.values()))}: the delays are no more"
                " accurate than that"
            )
    claim = "the clocks of the two hosts are not synchronized"
    if clocks.synchronized:
        claim = "both clocks claim to be synchronized"
        claim += f" within {_length(clocks.error_s)}" if clocks.error_s is not None else ""
    return f"{text}{_drift(clocks.drift)}; {claim}"


def _apart(clocks: Clocks) -> str:
    if clocks.offset_s is None or clocks.way_s is None:
        least_s = min(clocks.least_s.values())
        text = f"the clocks differ: a least delay of {_signed(least_s)} cannot be"
        return text if least_s < 0 else f"{text} where {_promises(clocks)}"
    when = " at the beginning" if clocks.drift is not None else ""
    text = f"the clocks are about {_length(abs(clocks.offset_s))} apart{when}: {_minima(clocks)}"
    if clocks.promised_s:
        text += f", where {_promises(clocks)}"
    elif clocks.way_s < 0:
        text += f"; half of the sum, {_length(clocks.way_s)}, cannot be a delay:"
        text += " the clocks drift or step within the flow"
    else:
        how = " without drift and steps" if clocks.moved else ""
        text += f"; half of the sum{how}, {_length(clocks.way_s)}, is the one-way delay if the"
        text += " path is symmetric"
    return f"{text}; the other clock is {'ahead' if clocks.offset_s > 0 else 'behind'}"


def _minima(clocks: Clocks) -> str:
    both = [
        _signed(clocks.least_s[direction])
        for direction in (SEND, RECEIVE)
        if direction in clocks.least_s
    ]
    # One unit for both: "+50.2 and -49.0 ms".
    numbers, units = zip(*(text.split(" ", 1) for text in both), strict=True)
    if len(set(units)) == 1:
        return f"minima {' and '.join(numbers)} {units[0]}"
    return f"minima {' and '.join(both)}"


def _promises(clocks: Clocks) -> str:
    both = [
        _length(clocks.promised_s[direction])
        for direction in (SEND, RECEIVE)
        if direction in clocks.promised_s
    ]
    return f"the topology promises {' and '.join(dict.fromkeys(both))}"


def _drift(drift: float | None) -> str:
    if drift is None:
        return ""
    return f"; they drift by {_signed(drift * 60)} a minute ({drift * 1e6:+.3g} ppm)"


def over_text(over: ClocksOverRun) -> str:
    """Describe how the clocks moved from trial to trial."""
    before, after = over.first, over.last
    moved_s = over.offsets_s[-1] - over.offsets_s[0]
    low_s, high_s = min(over.usual_s), max(over.usual_s)
    each = "; ".join(
        f"{direction} from {_signed(before.least_s[direction])}"
        f" to {_signed(after.least_s[direction])}"
        for direction in (SEND, RECEIVE)
        if direction in before.least_s and direction in after.least_s
    )
    how = f"drift by about {_signed(over.drift * 60)} a minute" if over.drift is not None else (
        f"move by {_signed(moved_s)}"
    )  # fmt: skip
    return (
        f"the clocks {how} over the trials, not the path's delay: the least delays go {each},"
        f" while half of the sum of the medians stays between {_length(low_s)} and"
        f" {_length(high_s)}"
    )


def _signed(value_s: float) -> str:
    return f"{'+' if value_s >= 0 else ''}{format_duration(value_s)}"


def _length(value_s: float | None) -> str:
    return format_duration(value_s or 0.0)
